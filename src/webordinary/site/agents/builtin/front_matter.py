"""The block of settings at the top of a page, of which only the title is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.site.agents.builtin.values import Value, toml_value, yaml_value

_BLOCK = re.compile(r"\A\ufeff?(?P<fence>---|\+\+\+)[ \t]*\r?\n(?P<body>.*?)^(?P=fence)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_JSON = re.compile(r"\A\ufeff?\{[ \t]*\r?\n.*?^\}[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_YAML_TITLE = re.compile(r"^title[ \t]*:[ \t]++(?P<value>[^\r\n]*+)(?!\r?\n[ \t]+\S)", re.M)
_TOML_TITLE = re.compile(r"^title[ \t]*=[ \t]*(?P<value>[^\r\n]*)", re.M)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Where the block ends and the page begins, and the title if it is a simple text."""

    end: int = 0
    title: Value | None = None


def read_front_matter(source: str) -> FrontMatter:
    """The block of a page; YAML between `---`, TOML between `+++`; JSON is stepped over."""
    block = _BLOCK.match(source)
    if block is None:
        json = _JSON.match(source)
        return FrontMatter(json.end() if json else 0)
    yaml = block["fence"] == "---"
    stop = block.end("body") if yaml else _first_table(source, block.start("body"), block.end("body"))
    found = (_YAML_TITLE if yaml else _TOML_TITLE).search(source, block.start("body"), stop)
    if found is None:
        return FrontMatter(block.end())
    read = yaml_value if yaml else toml_value
    return FrontMatter(block.end(), read(found["value"].rstrip(), found.start("value")))


def _first_table(source: str, start: int, end: int) -> int:
    table = re.compile(r"^[ \t]*\[", re.M).search(source, start, end)
    return table.start() if table else end
