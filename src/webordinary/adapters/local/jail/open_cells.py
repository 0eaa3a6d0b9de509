"""Unjailed: what runs where no jail works and the operator allows that in so many words. Keys still stay out."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from webordinary.adapters.local.jail.cells import BubblewrapJail, write_program
from webordinary.adapters.local.jail.proxy import Proxy
from webordinary.adapters.local.processes import WORKER_MARK
from webordinary.site.ports import Cell
from webordinary.site.reach import NOTHING_ELSE, Reach
