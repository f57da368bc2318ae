"""How far reading is: a line in a notebook or on a terminal."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Optional

Progress = Callable[[str, int, Optional[int]], None]


def usual() -> Optional[Progress]:
    """The line where there is somebody to see it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return _Notebook().show
    if sys.stderr is not None and sys.stderr.isatty():
        return _terminal
    return None


def _words(path: str, read: int, total: Optional[int]) -> str:
    done = f"{100 * read / total:.0f} % of {total / 1e6:.0f} MB" if total else f"{read / 1e6:.0f} MB"
    return f"reading {os.path.basename(path)}: {done}"


def _terminal(path: str, read: int, total: Optional[int]) -> None:
    sys.stderr.write(f"\r\x1b[K{_words(path, read, total)}")
    if total is not None and read >= total:
        sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


class _Notebook:
    """A line of output that is replaced."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, path: str, read: int, total: Optional[int]) -> None:
        from IPython.display import display

        line = {"text/plain": _words(path, read, total)}
        if self.handle is None:
            self.handle = display(line, raw=True, display_id=True)
        else:
            self.handle.update(line, raw=True)
