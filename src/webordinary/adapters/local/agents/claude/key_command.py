"""Keys that do not last are printed by a program of the operator's, outside of any jail."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping

from webordinary.model.errors import Permanent, Transient, reason_of

KEPT_SECONDS = 180.0
"""Shorter than what programs such as gcloud leave on a key that they hand out (225 s)."""
PATIENCE_SECONDS = 30.0
_CHARACTERS = 10_000


class KeyCommand:
    """Called before each job and by each of its requests; runs the program when what it printed is no longer fresh."""

    def __init__(
        self,
        command: tuple[str, ...],
        env: Mapping[str, str],
        seconds: Callable[[], float] = time.monotonic,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._command, self._env, self._seconds, self._patience = command, dict(env), seconds, patience_seconds
        self._guard = threading.Lock()
        self._key, self._printed_at = "", 0.0

    def __call__(self) -> str:
        """The key; raises Transient when the program fails or takes too long, Permanent when no try could help."""
        with self._guard:
            if not self._key or self._seconds() - self._printed_at >= KEPT_SECONDS:
                self._key, self._printed_at = self._print(), self._seconds()
            return self._key

    def _print(self) -> str:
        name = self._command[0]
        try:
            printed = subprocess.run(
                self._command, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._patience,
                check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired as problem:
            raise Transient(f"agent_key_command {name} gave no key within {self._patience:.0f} seconds") from problem
        except subprocess.CalledProcessError as problem:
            words = problem.stderr.decode(errors="replace")[-300:] or f"it ended with {problem.returncode}"
            raise Transient(f"agent_key_command {name} gave no key: {words}") from problem
        except OSError as problem:
            raise Permanent(f"agent_key_command {name} cannot be run: {reason_of(problem)}; correct it") from problem
        key = printed.stdout.decode(errors="replace").strip()
        if not key or len(key) > _CHARACTERS or not key.isprintable():
            raise Permanent(f"agent_key_command {name} printed something that is not a key")
        return key
