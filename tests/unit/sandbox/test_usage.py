"""Looking at what a program has written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from webordinary.adapters.sandbox.bubblewrap import MEGABYTE, SandboxLimits
from webordinary.adapters.sandbox.guard import look_at_all_files, look_at_files

LIMITS = replace(SandboxLimits(), disk_bytes=3 * MEGABYTE)


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


def test_a_file_whose_path_is_too_long_counts_as_too_much(tmp_path: Path) -> None:
    """The folder can still be listed by its path, the file in it no longer."""
    inner, length = os.open(tmp_path, os.O_RDONLY), len(str(tmp_path))
    while length < 4090:
        name = "d" * max(1, min(200, 4089 - length))
        os.mkdir(name, dir_fd=inner)
        outer, inner = inner, os.open(name, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
        length += 1 + len(name)
    os.close(os.open("f" * 100, os.O_CREAT | os.O_WRONLY, dir_fd=inner))
    os.close(inner)
    assert "cannot be reached" in look_at_files((tmp_path,), LIMITS)


@pytest.mark.may_skip(os.geteuid() == 0, reason="CI may run as root")
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_the_program_closed_counts_as_too_much(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    assert "cannot be reached" in look_at_files((tmp_path,), LIMITS)
