"""A link to a new page in the settings of a generator that keeps its menu there."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

from webordinary.site.agents.builtin.outcomes import Desk
from webordinary.site.agents.builtin.page import Patch
from webordinary.site.agents.builtin.values import yaml_text

_NAV = re.compile(r"^nav:[ \t]*\r?\n(?P<body>(?:[ \t#-][^\r\n]*(?:\r?\n|\Z)|\r?\n)+)", re.M)
_MENU = re.compile(
    r"^(?P<indent>[ \t]*)\[\[(?P<name>menus?\.main)\]\][ \t]*\r?\n"
    r"(?P<body>(?:(?P<inner>[ \t]*)\w+[ \t]*=[^\r\n]*(?:\r?\n|\Z))+)",
    re.M,
)
_WEIGHT = re.compile(r"^[ \t]*weight[ \t]*=[ \t]*(\d{1,9})", re.M)


def link_in_settings(desk: Desk, new_page: str, title: str) -> str:
    """What was done about the menu, as the end of a sentence; empty if there is none in the settings."""
    layout = desk.draft.layout
    if layout.kind == "mkdocs":
        return _in_nav(desk, new_page, title)
    if layout.kind == "hugo" and layout.config.endswith(".toml"):
        return _in_menu(desk, layout.config, f"/{layout.slug(new_page)}", title)
    return ""


def _in_nav(desk: Desk, new_page: str, title: str) -> str:
    """MkDocs lists all pages by itself unless its settings have a `nav`."""
    config, folder = desk.draft.layout.config, desk.draft.layout.pages[0]
    text = desk.draft.text(config)
    nav = _NAV.search(text)
    if nav is None:
        return "" if re.search(r"^nav:", text, re.M) else ", and its menu has it by itself"
    items = list(re.finditer(r"^(?P<indent>[ \t]*)-[ \t]", nav["body"], re.M))
    if not items:
        return ""
    place = nav.start("body") + len(nav["body"].rstrip())
    file = str(PurePosixPath(new_page).relative_to(folder))
    line = "\r\n" if "\r\n" in text else "\n"
    entry = f"{line}{items[0]['indent']}- {yaml_text(title)}: {file}"
    desk.draft.replace(config, Patch(place, place, entry))
    return " and put it into the menu"


def _in_menu(desk: Desk, config: str, address: str, title: str) -> str:
    text = desk.draft.text(config)
    entries = list(_MENU.finditer(text))
    if not entries:
        return ""
    last = entries[-1]
    line = "\r\n" if "\r\n" in text else "\n"
    key = "pageRef" if re.search(r"^[ \t]*pageRef\b", last["body"], re.M) else "url"
    address = address if key == "pageRef" else f"{address}/"
    lines = [f"[[{last['name']}]]", f"name = {json.dumps(title, ensure_ascii=False)}", f'{key} = "{address}"']
    weights = [int(number) for entry in entries for number in _WEIGHT.findall(entry["body"])]
    lines += [f"weight = {max(weights) + 1}"] if weights else []
    block = last["indent"] + f"{line}{last['inner']}".join(lines)
    place = last.start() + len(last[0].rstrip())
    desk.draft.replace(config, Patch(place, place, line * 2 + block))
    return " and put it into the menu"
