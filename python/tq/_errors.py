"""What goes wrong, and what is worth a word."""

from __future__ import annotations

import os
import re
import sys
import warnings
from typing import Optional

_HERE = os.path.dirname(__file__)


class Error(Exception):
    """What is wrong, where, and what to do next.

    `what` is what is wrong; `place` the file and line where the SQL came from a file, `excerpt` the line of SQL with carets below it, else
    None; `hints` says what to do next. `str()` has all of them.
    """

    def __init__(self, what: str, place: Optional[str] = None, excerpt: Optional[str] = None, hints: Optional[list[str]] = None) -> None:
        super().__init__(what, place, excerpt, hints or [])
        self.what = what
        self.place = place
        self.excerpt = excerpt
        self.hints: list[str] = hints or []

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        excerpt = [self.excerpt] if self.excerpt else []
        return "\n".join([place + self.what, *excerpt, *(f"hint: {hint}" for hint in self.hints)])


class TraceError(Error):
    """A trace could not be opened."""


class QueryError(Error):
    """A question has no answer: its text, its values, or what the traces hold."""


class LimitError(QueryError, MemoryError):
    """Something asked for more memory than the session may have; a session that is open goes on."""


class TraceLimitError(TraceError, LimitError):
    """A trace could not be opened within the memory that the session may have."""


class TraceWarning(UserWarning):
    """Records of a trace were lost or repaired; the table `import_stats` has all of it."""


class TraceNote(UserWarning):
    """What an answer leaves out, or what was guessed."""


def warn(label: str, text: str) -> None:
    """Warns whoever called the package."""
    # Frames are read from a temporary folder, of which nobody knows.
    text = re.sub(r"\S*/tq-temporary-\w+/", "", text)
    level = 1
    frame = sys._getframe(0)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        level += 1
        frame = frame.f_back  # type: ignore[assignment]
    warnings.warn(text, TraceWarning if label == "warning" else TraceNote, stacklevel=level)


def missing(module: str, extra: str) -> ImportError:
    """The error for a package that an extra brings."""
    return ImportError(f"this needs `{module}`: pip install 'tq-traces[{extra}]'", name=module)
