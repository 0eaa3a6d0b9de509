"""The package registry that the operator's npm uses; nothing of a site can choose another."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from webordinary.adapters.local.builders.bench import NotBuilt
from webordinary.adapters.local.processes import run

_SECONDS = 30.0
_PASSED_ON = ("PATH", "HOME")


@dataclass(frozen=True, slots=True)
class Registry:
    """Where packages come from. No key goes along: what a package would do with it is not known."""

    url: str
    authorities: str = ""
    files: tuple[Path, ...] = field(default=())

    @property
    def hosts(self) -> frozenset[str]:
        """The one host that an install may reach."""
        parts = urlsplit(self.url)
        return frozenset({f"{parts.hostname}:{parts.port or 443}"})

    @property
    def env(self) -> dict[str, str]:
        """Tells npm so; this wins over a site's own settings."""
        known = {"npm_config_registry": self.url}
        return known | ({"npm_config_cafile": self.authorities} if self.authorities else {})


def registry_of(npm: str) -> Registry:
    """Ask the operator's npm, away from any site; raises NotBuilt where the answer cannot be used."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="webordinary-") as nowhere:
        told = run([npm, "config", "list", "--json"], cwd=Path(nowhere), env=env, seconds=_SECONDS)
    try:
        settings = json.loads(told.out)
        url, authorities = str(settings["registry"]), settings.get("cafile") or ""
    except (ValueError, KeyError, TypeError) as problem:
        raise NotBuilt("npm does not tell which registry it uses.", mendable=False) from problem
    if urlsplit(url).scheme != "https" or not urlsplit(url).hostname:
        raise NotBuilt("npm is set to a registry without https, which installs cannot reach.", mendable=False)
    files = (Path(authorities),) if authorities and Path(authorities).is_file() else ()
    return Registry(url, str(authorities) if files else "", files)
