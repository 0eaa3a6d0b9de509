"""PlainFiles: a site that needs no build; its tracked files are its pages."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from webordinary.adapters.local.builders.filling import Filling, NotAFile
from webordinary.model.hold import Hold
from webordinary.site.manifests import is_hidden, keep_manifest
from webordinary.site.roots import site_root
from webordinary.site.sources import BuildFailed, Built, SourceTree

_CHECK_EACH = 500


class PlainFiles:
    """Copies tracked files but no dotfiles; what has the same tracked content is shared with the last release."""

    def fits(self, tree: SourceTree) -> bool:
        """There is a home page to show."""
        return site_root(tree.files) is not None

    def build(self, tree: SourceTree, into: Path, previous: Path | None, hold: Hold) -> Built | BuildFailed:
        """Fill `into`. Never links to the workspace: an agent may change a file there in place."""
        root = site_root(tree.files)
        if root is None:
            return BuildFailed("The site has no index.html, so there would be no home page to show.")
        prefix = "" if root == PurePosixPath(".") else f"{root}/"
        wanted = _wanted(tree, prefix)
        filling = Filling(into, previous, wanted)
        for count, (path, name) in enumerate(wanted.items()):
            content = tree.files[name]
            try:
                if not filling.shared(path, content):
                    filling.copied(path, f"{tree.path}/{name}", content)
            except NotAFile:
                return BuildFailed(f"{name} is a link or not a file, and links cannot be published.")
            if count % _CHECK_EACH == 0:
                hold.check()
        keep_manifest(into, filling.manifest)
        return Built(files=len(filling.manifest), builder="plain")


def _wanted(tree: SourceTree, prefix: str) -> dict[str, str]:
    """What is published, by its path in the site, with its name in the source."""
    paths = {name.removeprefix(prefix): name for name in sorted(tree.files) if name.startswith(prefix)}
    return {path: name for path, name in paths.items() if not is_hidden(path)}
