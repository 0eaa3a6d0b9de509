"""What does it cost to publish one changed page of a large site to a bucket, beside `aws s3 sync`?

Workload: a site of many small pages lies in a folder and in a bucket of the emulator; one page changes. Ours plans from
the bucket's manifest and writes what differs; `aws s3 sync --delete` looks at every object. Both start from the
finished folder and talk to the same emulator, in turn.
Unit: milliseconds from the finished folder to the changed bucket; requests by kind, as the client sends them. The sync
is a program and ours is a part of one: so it is also compared without the time that `aws --version` takes.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from harness import bar, interleaved, options, ratios, report, summary, working_folder

TOOLS = Path(__file__).parents[1] / ".venv-emulator" / "bin"
QUESTION = "publish one changed page of a large site to a bucket, in milliseconds and requests, beside `aws s3 sync`"


def missing() -> list[str]:
    programs = [name for name in ("ministack", "aws") if not shutil.which(str(TOOLS / name))]
    return programs if find_spec("boto3") else ["boto3", *programs]


def main() -> None:
    chosen = options(__doc__ or "", repeats=10)
    files = chosen.pick(10_000, 100)
    workload = {"files": files, "page_bytes": 4000, "changed": 1}
    if lacking := ", ".join(missing()):
        if os.environ.get("CI") == "true":
            sys.exit(f"not installed: {lacking}")
        report(QUESTION, workload, {"not measured": f"{lacking} not installed: make test installs it"}, chosen)
        return
    buckets = import_module("parts.buckets")  # it needs what was just looked for
    with working_folder(chosen) as folder, buckets.large_site(folder, files, TOOLS / "aws") as site:
        taken = interleaved(chosen, {"ours": site.publish, "sync": site.sync, "start_of_aws": site.start_of_aws})
        counted, elsewhere = site.requests_of(site.releases), site.requests_of(site.worker())
    working = [sync - start for sync, start in zip(taken["sync"], taken["start_of_aws"], strict=True)]
    faster = ratios(taken["sync"], taken["ours"])
    results = {
        **{name: {"ms": summary(values)} for name, values in taken.items()},
        "times_faster_than_sync": faster,
        "times_faster_than_sync_without_its_start": ratios(working, taken["ours"]),
        "requests": counted,
        "requests_of_a_worker_that_never_saw_the_site": elsewhere,
        "bars": {
            "times_faster_than_sync": bar(faster["median"], at_least=10),
            "objects_written": bar(counted.get("PUT object", 0), at_least=1, at_most=1),
            "requests": bar(sum(counted.values()), at_most=3),
        },
    }
    report(QUESTION, workload, results, chosen)


if __name__ == "__main__":
    main()
