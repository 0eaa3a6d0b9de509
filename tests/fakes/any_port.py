"""The base of a stand-in that hands most calls on to an adapter: mypy takes it for any port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    AnyPort = Any
else:
    AnyPort = object
