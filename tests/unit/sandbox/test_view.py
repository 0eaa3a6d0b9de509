"""What bubblewrap is told, and the rules around it, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from webordinary.adapters.sandbox import bubblewrap
from webordinary.adapters.sandbox.bubblewrap import SandboxLimits
from webordinary.adapters.sandbox.guard import FileUsage
from webordinary.adapters.sandbox.proxy import ByteQuota, QuotaExceeded, may_ask
from webordinary.jobs.sandbox_policy import Network, Upstream


@pytest.fixture
def view(tmp_path: Path) -> bubblewrap.View:
    (tmp_path / "furniture" / "etc").mkdir(parents=True)
    (tmp_path / "tree").mkdir()
    return bubblewrap.View(
        tmp_path / "tree", tmp_path / "furniture", tmp_path / "door",
        readable=(tmp_path / "photo",), writable=(tmp_path / "tree" / "dist",),
    )  # fmt: skip


def options(words: list[str]) -> list[str]:
    return words[: words.index("--")]


def mounted(words: list[str], option: str) -> Iterator[str]:
    return (after for before, after in pairwise(words) if before == option)


def test_every_namespace_is_its_own_and_nothing_outlives_its_parent(view: bubblewrap.View) -> None:
    words = options(bubblewrap.command("bwrap", view, SandboxLimits()))
    assert {
        "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv",
    } <= set(words)  # fmt: skip
    assert list(mounted(words, "--uid")) == ["1000"]


def test_only_the_workspace_and_what_was_given_are_writable(view: bubblewrap.View) -> None:
    words = options(bubblewrap.command("bwrap", view, SandboxLimits()))
    assert list(mounted(words, "--bind")) == [str(view.workspace), str(view.workspace / "dist")]
    assert list(mounted(words, "--remount-ro")) == ["/proc", "/dev", "/"]
    assert list(mounted(words, "--tmpfs")) == ["/tmp", "/dev/shm", "/home/site"]
    assert list(mounted(words, "--size")) == [str(SandboxLimits().scratch_bytes)] * 3


def test_nothing_of_the_host_but_programs_and_what_was_given_is_readable(view: bubblewrap.View) -> None:
    words = options(bubblewrap.command("bwrap", view, SandboxLimits()))
    places = {*mounted(words, "--ro-bind"), *mounted(words, "--ro-bind-try")}
    assert str(view.workspace.parent / "photo") in places
    assert "/etc/pki/tls/certs" in places
    assert not {"/etc/pki", "/etc/pki/tls", "/etc/pki/tls/private", "/etc/ssl", "/etc/ssl/private"} & places
    assert not {"/", "/etc", "/home", "/root", "/var", "/run", "/opt", "/sys", "/dev"} & places


def test_a_host_without_a_port_means_https() -> None:
    network = Network(hosts=frozenset({"registry.example", "127.0.0.1:4873"}))
    assert network.allowed == {"registry.example:443", "127.0.0.1:4873"}
    assert network
    assert not Network()


def test_a_key_is_not_shown_when_an_upstream_is_printed() -> None:
    assert "sk-real" not in repr(Upstream("https://model.example", {"x-api-key": "sk-real"}))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/messages", True),
        ("/v1/messages?beta=true", True),
        ("/v1/messages/batches", False),
        ("/v1/messages%2Fbatches", False),
        ("/v1/messages/", False),
        ("/v1/models/small", True),
        ("/v1/models/../files", False),
        ("/v1/models", False),
        ("/v1/messages/../files", False),
        ("/v1/messages/%2E%2e/files", False),
        ("/v1/messages\\..\\files", False),
        ("/v1/messages-of-others", False),
        ("/v1", False),
    ],
)
def test_a_path_may_be_asked_for_if_it_is_named_or_lies_below_a_named_folder(path: str, expected: bool) -> None:
    assert may_ask(path, ("/v1/messages", "/v1/models/")) is expected
    assert may_ask("/anything", ("/",))


def test_what_is_spent_is_gone() -> None:
    allowance = ByteQuota(10)
    allowance.spend(10)
    with pytest.raises(QuotaExceeded):
        allowance.spend(1)


def test_too_many_too_large_and_too_deep_are_told_apart() -> None:
    limits = SandboxLimits(files=2, disk_bytes=5_000_000, depth=3)
    assert "deep" in FileUsage(limits).add(1, 4)
    assert "5 MB" in FileUsage(limits).add(5_000_001, 1)
    tally = FileUsage(limits)
    assert [tally.add(1, 1) for _ in range(3)] == ["", "", "more than 2 files"]
