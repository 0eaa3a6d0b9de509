"""Two users of one project edit at once while workers are killed: nothing is lost, and every visitor gets a whole site.

Judged by git history, by what visitors were served all the while, and by the Maildir; never by our own tables.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from html import unescape
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.acceptance.waiting import Customer, get, get_bytes, replies, text_of, wait_for_reply, wait_until
from tests.conftest import Up

ROUNDS = int(os.environ.get("TWO_USERS_ROUNDS", "50"))
PUBLISHED_ROUNDS = max(ROUNDS // 5, 1)
KILL_SHARE = 0.4
LONGEST_WAIT_SECONDS = 0.5
TIMEOUT_SECONDS = 120.0
PAGES = {"scott@example.com": ("homepage", "/"), "bob@example.com": ("about page", "/about.html")}
MARK = re.compile(r"note (\d+) by (\w+)")


class Workers:
    """Two workers; one that is killed is replaced at once."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        for _ in range(2):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(timeout=120)

    def kill(self, rng: random.Random) -> None:
        """End one by itself: what it started lives on until somebody takes over."""
        process = self._processes.pop(rng.randrange(len(self._processes)))
        process.kill()
        process.wait(timeout=60)
        self._start()

    def _start(self) -> None:
        args = [sys.executable, "-m", "webordinary", "worker", "--data", str(self._data)]
        self._processes.append(subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))


class SiteWatcher:
    """Looks at the site without a pause and remembers whatever was wrong with it."""

    def __init__(self, up: Up) -> None:
        self._up = up
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="visitor", daemon=True)
        self.visits = 0
        self.wrong: list[str] = []

    def __enter__(self) -> SiteWatcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=60)

    def _look(self) -> None:
        seen: dict[str, set[str]] = {}
        while not self._over.wait(0.03) and len(self.wrong) < 10:
            for _, path in PAGES.values():
                try:
                    page = get(self._up, path)
                except (URLError, OSError) as problem:
                    self.wrong.append(f"{path}: {problem}")
                    continue
                self.visits += 1
                notes = {found[0] for found in MARK.finditer(page)}
                if not page.rstrip().endswith("</html>"):
                    self.wrong.append(f"{path} is cut short: …{page[-80:]!r}")
                if lost := seen.setdefault(path, set()) - notes:
                    self.wrong.append(f"{path} went back: {lost} vanished")
                seen[path] |= notes


@pytest.mark.timeout(600)
def test_two_users_of_one_site_edit_at_once_while_workers_are_killed(start_up: Callable[..., Up]) -> None:
    seed = random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    up = start_up("--releases-kept", "1000", "--workers", "0")
    add_user(up.data, "bob", "bob@example.com")
    with Workers(up.data) as workers, SiteWatcher(up) as visitor:
        for number in range(ROUNDS):
            asked = write_at_once(up, number)
            if rng.random() < KILL_SHARE:
                threading.Event().wait(rng.uniform(0.0, LONGEST_WAIT_SECONDS))  # the random instant itself
                workers.kill(rng)
            wait_for_answers(up, asked, number * len(PAGES), f"round {number} (seed {seed})")
    judge(up, seed)
    assert visitor.wrong == [], f"seed {seed}"
    assert visitor.visits > ROUNDS
    assert up.stop() == 0


@pytest.mark.timeout(600)
def test_two_users_publish_their_own_conversations_at_once_while_workers_are_killed(
    start_up: Callable[..., Up],
) -> None:
    seed = random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    up = start_up("--workers", "0")
    add_user(up.data, "bob", "bob@example.com")
    with Workers(up.data) as workers:
        for number in range(PUBLISHED_ROUNDS):
            asked = write_at_once(up, number)
            wait_for_answers(up, asked, 2 * number * len(PAGES), f"round {number} (seed {seed})")
            asked = publish_at_once(up, asked)
            if rng.random() < KILL_SHARE:
                threading.Event().wait(rng.uniform(0.0, LONGEST_WAIT_SECONDS))  # the random instant itself
                workers.kill(rng)
            wait_for_answers(up, asked, (2 * number + 1) * len(PAGES), f"publishing {number} (seed {seed})")
    origin = up.data / "origins" / "amelia.git"
    jobs = Counter(re.findall(r"^Job-Id: (\S+)$", git(origin, "log", "--format=%B", "main..live"), re.MULTILINE))
    assert set(jobs.values()) == {1}, f"a job published twice (seed {seed})"
    assert len(jobs) == 2 * PUBLISHED_ROUNDS, f"a publication was lost (seed {seed})"
    assert git(origin, "rev-list", "--merges", "live") == "", f"history is not one line (seed {seed})"
    for address, (_, path) in PAGES.items():
        user = address.partition("@")[0]
        shown = [int(number) for number, by in MARK.findall(get(up, path, stage="public")) if by == user]
        assert shown == list(range(PUBLISHED_ROUNDS)), f"{path} shows {shown} (seed {seed})"
    current = (up.data / "sites" / "amelia" / "public" / "current").resolve().name
    assert git(origin, "rev-parse", "live").startswith(current), f"seed {seed}"
    assert up.stop() == 0


def test_publish_in_one_conversation_does_not_put_anothers_unfinished_work_on_the_public_site(
    start_up: Callable[..., Up],
) -> None:
    up, scott, bob = start_up(), Customer(), Customer("bob@example.com")
    add_user(up.data, "bob", "bob@example.com")
    wait_for_reply(up, bob.write(up, "Change the title of the about page to “Half a thought”", subject="About"))
    done = wait_for_reply(up, scott.write(up, "Change the homepage title to Open House"))
    told = text_of(wait_for_reply(up, scott.write(up, "publish", reply_to=done)))
    assert "<title>Open House" in get(up, stage="public")
    assert "Half a thought" not in get(up, "/about.html", stage="public")
    assert "Half a thought" in get(up, "/about.html")
    words = " ".join(told.split())
    assert "Changed the title of the homepage to “Open House”. (asked by you)" in words
    assert "Changed the title of the about page to “Half a thought”. (asked by bob)" in words
    everything = wait_for_reply(up, scott.write(up, "publish all", reply_to=done))
    assert "Half a thought" in get(up, "/about.html", stage="public")
    assert "Not public yet" not in text_of(everything)
    undone = wait_for_reply(up, scott.write(up, "undo", reply_to=done))
    assert "Taken back on your edit site and your public site" in " ".join(text_of(undone).split())
    assert "Open House" not in get(up, stage="public")
    assert "Half a thought" in get(up, "/about.html", stage="public")
    assert up.stop() == 0


def test_the_reply_links_a_preview_that_shows_exactly_what_publish_makes_public(start_up: Callable[..., Up]) -> None:
    up, scott, bob = start_up(), Customer(), Customer("bob@example.com")
    add_user(up.data, "bob", "bob@example.com")
    wait_for_reply(up, bob.write(up, "Change the title of the about page to “Half a thought”", subject="About"))
    done = wait_for_reply(up, scott.write(up, "Change the homepage title to Open House"))
    link = re.search(r"http://(t-[0-9a-f]{16}\.edit\.amelia\.localhost):\d+/", text_of(done))
    assert link, text_of(done)
    promised = [get_bytes(up, path, link[1]) for path in ("/", "/about.html")]
    assert b"<title>Open House" in promised[0]
    assert b"Half a thought" not in promised[1]
    wait_for_reply(up, scott.write(up, "publish", reply_to=done))
    assert [get_bytes(up, path, "amelia.localhost") for path in ("/", "/about.html")] == promised
    assert up.stop() == 0


def test_a_person_who_only_asks_publishes_nothing_and_a_publisher_does(start_up: Callable[..., Up]) -> None:
    up, scott, bob = start_up(), Customer(), Customer("bob@example.com")
    add_user(up.data, "bob", "bob@example.com")
    for address, role in (("scott@example.com", "editor"), ("bob@example.com", "publisher")):
        command = [sys.executable, "-m", "webordinary", "project", "role", "amelia", address, role]
        subprocess.run([*command, "--data", str(up.data)], check=True, capture_output=True)
    done = wait_for_reply(up, scott.write(up, "Change the homepage title to “Open House”, and publish it"))
    assert "another person publishes" in " ".join(text_of(done).split())
    refused = wait_for_reply(up, scott.write(up, "publish", reply_to=done))
    assert "Please ask that person to publish" in " ".join(text_of(refused).split())
    wait_for_reply(up, bob.write(up, "Change the homepage title to Mine", subject="A wish"))
    assert "Open House" in get(up), "a publisher asks for no change"
    wait_for_reply(up, bob.write(up, "publish all", subject="Go"))
    assert "<title>Open House" in get(up, stage="public")
    set_site(up, "--approver", "bob@example.com")
    asked = scott.write(up, "Change the homepage title to “Second House”", subject="Second")
    wait_until(up.data, lambda: len(replies(up.data).get(asked, ())) == 2, "the answer, and the question to bob")
    [question] = [reply for reply in replies(up.data)[asked] if reply["To"] == "bob@example.com"]
    assert "A change waits for your yes" in text_of(question)
    assert "Second House" in text_of(question)
    later = scott.write(up, "Change the title of the about page to “Slipped in”", reply_to=question)
    wait_until(up.data, lambda: len(replies(up.data).get(later, ())) == 2, "the answer, and another question to bob")
    wait_for_reply(up, bob.write(up, "Yes, thank you!", reply_to=question))
    assert "<title>Second House" in get(up, stage="public")
    assert "Slipped in" not in get(up, "/about.html", stage="public"), "bob said yes to the first change alone"
    wait_for_reply(up, press(up, bob, question))
    assert "Slipped in" not in get(up, "/about.html", stage="public"), "nor by the button of the mail that showed it"
    [shown] = [reply for reply in replies(up.data)[later] if reply["To"] == "bob@example.com"]
    even_later = scott.write(up, "Change the title of the contact page to “Never shown”", reply_to=question)
    wait_until(up.data, lambda: len(replies(up.data).get(even_later, ())) == 2, "the answer, and one more question")
    wait_for_reply(up, press(up, bob, shown))
    assert "Slipped in" in get(up, "/about.html", stage="public")
    assert "Never shown" not in get(up, "/contact.html", stage="public"), "the button publishes what its mail shows"
    assert up.stop() == 0


def press(up: Up, customer: Customer, reply: EmailMessage) -> str:
    """“Publish it” in a mail program: a new mail, which answers none."""
    html = reply.get_body(("html",))
    assert html
    link = next(urlsplit(unescape(link)) for link in re.findall(r'href="(mailto:[^"]+)"', html.get_content()))
    said = {name: values[0] for name, values in parse_qs(link.query).items()}
    return replace(customer, mailbox=unquote(link.path)).write(up, said["body"], subject=said["subject"])


def set_site(up: Up, *options: str) -> None:
    command = [sys.executable, "-m", "webordinary", "project", "set", "amelia", *options, "--data", str(up.data)]
    subprocess.run(command, check=True, capture_output=True)


def publish_at_once(up: Up, asked: set[str]) -> set[str]:
    """Both answer “publish” to what they were told; the Message-IDs that are owed an answer."""
    owed: set[str] = set()
    answers = [reply for message_id in asked for reply in replies(up.data)[message_id]]

    def write(reply: EmailMessage) -> None:
        owed.add(Customer(str(reply["To"])).write(up, "publish", reply_to=reply))

    writers = [threading.Thread(target=write, args=(reply,)) for reply in answers]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=60)
    assert len(owed) == len(PAGES)
    return owed


def write_at_once(up: Up, number: int) -> set[str]:
    """Both write about their own page; the Message-IDs that are owed an answer."""
    asked: set[str] = set()

    def write(address: str, page: str) -> None:
        text = f'Add a paragraph "note {number} by {address.partition("@")[0]}" to the {page}'
        asked.add(Customer(address).write(up, text, subject=f"note {number}"))

    writers = [threading.Thread(target=write, args=(address, page)) for address, (page, _) in PAGES.items()]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=60)
    assert len(asked) == len(PAGES)
    return asked


def wait_for_answers(up: Up, asked: set[str], before: int, what: str) -> None:
    """Counting files first: hundreds of mails are not parsed each time something happens."""
    new = up.data / "outbox" / "new"
    enough = before + len(asked)
    wait_until(up.data, lambda: len(list(new.glob("*"))) >= enough, f"the answers of {what}", TIMEOUT_SECONDS)


def judge(up: Up, seed: int) -> None:
    origin = up.data / "origins" / "amelia.git"
    log = git(origin, "log", "--format=%B", "main")
    jobs = Counter(re.findall(r"^Job-Id: (\S+)$", log, re.MULTILINE))
    assert set(jobs.values()) == {1}, f"a job was published twice (seed {seed})"
    assert len(jobs) == 2 * ROUNDS, f"an edit was lost (seed {seed})"
    assert git(origin, "rev-list", "--merges", "main") == "", f"history is not one line (seed {seed})"
    for address, (_, path) in PAGES.items():
        user = address.partition("@")[0]
        shown = [int(number) for number, by in MARK.findall(get(up, path)) if by == user]
        assert shown == list(range(ROUNDS)), f"{path} shows {shown} (seed {seed})"
    answered = Counter(len(found) for found in replies(up.data).values())
    assert answered == {1: 2 * ROUNDS}, f"not everybody was answered once (seed {seed})"
    head = git(origin, "rev-parse", "main")
    current = (up.data / "sites" / "amelia" / "edit" / "current").resolve().name
    assert head.startswith(current), f"the site shows {current}, main is {head} (seed {seed})"
    git(origin, "fsck", "--connectivity-only")


def add_user(data: Path, user: str, address: str) -> None:
    repo = str(data / "origins" / "amelia.git")
    args = ["project", "add", "amelia", "--repo", repo, "--user", user, "--sender", address, "--data", str(data)]
    subprocess.run([sys.executable, "-m", "webordinary", *args], check=True, capture_output=True)


def git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", f"--git-dir={repo}", *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()
