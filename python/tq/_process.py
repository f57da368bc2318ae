"""What is done once in each process."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Optional

from . import _tq

PROGRAM = [sys.executable, "-m", "tq"]
"""What starts the command `tq`."""

_process: Optional[int] = None


def ready() -> None:
    """Before the first session: signals and memory are the interpreter's, and nothing temporary stays behind it."""
    global _process
    if _process is None:
        _tq.embed(PROGRAM)
        atexit.register(_leave)
        _process = os.getpid()


def _leave() -> None:
    # In a fork, what is temporary is that of the process which opened it.
    if _process == os.getpid():
        _tq.leave()
