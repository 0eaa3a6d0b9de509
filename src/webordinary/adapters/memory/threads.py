"""Mail conversations in memory, for tests and simulation."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from webordinary.model.errors import Permanent
from webordinary.model.projects import Thread


class MemoryThreads:
    """See Threads."""

    def __init__(self) -> None:
        self._threads: dict[str, Thread] = {}
        self._messages: dict[str, str] = {}
        self._mails: dict[str, str] = {}
        self._lock = threading.Lock()

    def find(self, message_ids: Sequence[str]) -> Thread | None:
        with self._lock:
            known = next((self._messages[m] for m in message_ids if m in self._messages), None)
            return self._threads[known] if known else None

    def get(self, thread_id: str) -> Thread | None:
        return self._threads.get(thread_id)

    def record(self, thread: Thread, message_id: str, now: datetime, email_id: str = "") -> Thread:
        with self._lock:
            self._mails.setdefault(message_id, email_id)
            self._messages.setdefault(message_id, thread.thread_id)
            return self._threads.setdefault(thread.thread_id, thread)

    def add_message(self, thread_id: str, message_id: str, email_id: str = "") -> None:
        with self._lock:
            if thread_id not in self._threads:
                raise Permanent(f"thread {thread_id} is not recorded: {message_id} cannot join it")
            self._mails.setdefault(message_id, email_id)
            self._messages.setdefault(message_id, thread_id)

    def mail_of(self, message_ids: Sequence[str]) -> str:
        with self._lock:
            return next((self._mails[m] for m in message_ids if m in self._mails), "")

    def save_session(self, thread_id: str, agent_session: str) -> None:
        with self._lock:
            if thread_id in self._threads:
                self._threads[thread_id] = replace(self._threads[thread_id], agent_session=agent_session)
