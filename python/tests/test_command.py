"""The command that the package brings."""

import subprocess
import sys

from conftest import TINY


def run(*words):
    done = subprocess.run([sys.executable, "-m", "tq", *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_it_is_the_command_line():
    assert run("query", str(TINY), "-c", "SELECT count(*) AS n FROM tasks") == (0, "n\n10\n", "")
    status, _, said = run("query", str(TINY), "-c", "SELECT x FROM tasks")
    assert status == 2 and said.startswith("error: no column `x`")
    assert run("--version")[1].startswith("tq ")
    assert run("--nothing")[0] == 2


def test_importing_the_package_is_no_session():
    # What the command needs is not what a session needs: nothing is done before one is opened.
    code = "import tq._process; assert tq._process._process is None"
    subprocess.run([sys.executable, "-c", code], check=True)
