"""The command `tq`, which the package brings along."""

import signal
import sys

from . import _process, _tq


def main() -> int:
    """Does what the words behind the program say, and gives the status with which the process is to end."""
    # The command hears Ctrl-C itself; Python's own handler would only be heard after it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _tq.run(["tq", *sys.argv[1:]], _process.PROGRAM)
