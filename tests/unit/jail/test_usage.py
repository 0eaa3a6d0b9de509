"""Looking at what a program has written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from webordinary.adapters.local.jail.limits import MEGABYTE, JailLimits
from webordinary.adapters.local.jail.usage import look_at_all_files, look_at_files

LIMITS = replace(JailLimits(), disk_bytes=3 * MEGABYTE)


def test_files_that_nobody_can_name_count_for_who_holds_them(tmp_path: Path) -> None:
    named, nameless = tmp_path / "named", tmp_path / "nameless"
    named.write_bytes(b"x" * 2 * MEGABYTE)
    with nameless.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 * MEGABYTE)
        nameless.unlink()
        assert look_at_files((tmp_path,), LIMITS) == ""
        assert look_at_all_files((tmp_path,), LIMITS, []) == ""
        assert look_at_all_files((tmp_path,), LIMITS, [os.getpid()]) == "more than 3 MB in files"
    assert look_at_all_files((tmp_path,), LIMITS, [os.getpid()]) == ""
