"""How sources become sites: plain files, npm, Hugo, MkDocs, any command."""

from webordinary.adapters.local.builders.plain import PlainFiles

__all__ = ["PlainFiles"]
