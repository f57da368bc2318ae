"""Threads, forks, signals, ends of all kinds."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from conftest import TINY

import tq

LONG = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a.value + b.value = 7"


def python(code: str, *words: str) -> subprocess.CompletedProcess:
    """Another interpreter; one that never ends is ended."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), *words], capture_output=True, text=True, timeout=900)


def test_threads_ask_at_once(tiny):
    answers = {}

    def ask(number):
        answers[number] = [tiny.sql("SELECT count(*) + $n AS n FROM tasks", n=number).fetchone() for _ in range(5)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [(10 + number,)] * 5 for number in range(8)}


def test_a_long_question_keeps_no_other_one_of_its_session():
    code = f"""
        import os, sys, threading, time, tq
        session = tq.open(sys.argv[1], threads=2)
        threading.Thread(target=lambda: session.sql({LONG!r}).fetchall(), daemon=True).start()
        time.sleep(0.5)
        print(session.sql("SELECT 1").fetchall(), session.sql("SELECT count(*) FROM tasks").fetchall(), flush=True)
        os._exit(0)
    """
    assert python(code, str(TINY)).stdout == "[(1,)] [(10,)]\n"


def test_a_process_ends_whose_session_has_rows_on_disk(tmp_path):
    code = """
        import os, sys
        os.environ["TMPDIR"] = sys.argv[2]
        import tq
        session = tq.open(sys.argv[1], memory="64MB", threads=1)
        rows = iter(session.sql("SELECT value, repeat('x', 200) AS text FROM generate_series(1, 400000) ORDER BY 0 - value"))
        print(next(rows)[0], len(os.listdir(sys.argv[2])), flush=True)
    """
    done = python(code, str(TINY), str(tmp_path))
    assert (done.stdout, done.returncode) == ("400000 1\n", 0), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_threads_run_while_a_question_does():
    code = """
        import sys, threading, tq
        ended, turns = threading.Event(), 0
        def count():
            global turns
            while not ended.wait(0.001):
                turns += 1
        session = tq.open(sys.argv[1])
        thread = threading.Thread(target=count)
        thread.start()
        session.sql("SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b WHERE a.value * b.value = 7").fetchall()
        ended.set()
        thread.join()
        print(turns)
    """
    done = python(code, str(TINY))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.mark.parametrize("read", ["fetchall()", "collect()", "df()", "pl()", "arrow()", "fetchone()", "__iter__().__next__()"])
def test_ctrl_c_ends_a_question_and_the_session_goes_on(read):
    code = f"""
        import sys, tq
        session = tq.open(sys.argv[1])
        question = session.sql({LONG!r})
        print("begun", flush=True)
        try:
            question.{read}
        except KeyboardInterrupt:
            print(session.sql("SELECT 1").fetchall(), flush=True)
    """
    assert interrupted(code) == ["begun", "[(1,)]"]


def test_ctrl_c_ends_what_another_library_reads():
    code = f"""
        import sys, tq, pyarrow
        session = tq.open(sys.argv[1])
        print("begun", flush=True)
        try:
            pyarrow.table(session.sql({LONG!r}))
        except (KeyboardInterrupt, Exception):
            pass
        try:
            print(session.sql("SELECT 1").fetchall(), flush=True)
        except KeyboardInterrupt:
            print("[(1,)]", flush=True)
    """
    assert interrupted(code) == ["begun", "[(1,)]"]


def interrupted(code: str) -> list[str]:
    """What an interpreter prints that is interrupted once it has begun."""
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(TINY)], stdout=subprocess.PIPE, text=True)
    first = process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    return (first + rest).splitlines()


def test_an_exception_while_iterating_ends_the_run(tiny):
    with pytest.raises(ZeroDivisionError):
        for row in tiny.sql("SELECT value FROM generate_series(1, 100000000)"):
            1 / (row[0] - 3)
    rows = iter(tiny.sql("SELECT value FROM generate_series(1, 100000000)"))
    assert next(rows) == (1,)
    del rows
    assert tiny.sql("SELECT 1").fetchall() == [(1,)]


def test_an_error_halfway_is_raised_where_it_is_met(tiny):
    rows = iter(tiny.sql("SELECT 10 / (50000 - value) FROM generate_series(1, 100000) ORDER BY value"))
    with pytest.raises(tq.QueryError, match="[Dd]ivi"):
        for _ in rows:
            pass


def test_the_interpreter_ends_with_an_open_session():
    code = f"""
        import sys, threading, tq
        session = tq.open(sys.argv[1])
        rows = iter(session.sql("SELECT value FROM generate_series(1, 100000000)"))
        next(rows)
        threading.Thread(target=lambda: session.sql({LONG!r}).fetchall(), daemon=True).start()
        stream = session.sql("SELECT 1").__arrow_c_stream__()
    """
    done = python(code, str(TINY))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_refuses_the_session_and_opens_its_own():
    code = """
        import os, sys, warnings, tq
        warnings.simplefilter("ignore")
        session = tq.open(sys.argv[1])
        kept, lazy = session.sql("SELECT 1").collect(), session.sql("SELECT 1")
        child = os.fork()
        if child == 0:
            try:
                for ask in (lambda: session.sql("SELECT 1"), lazy.fetchall, lambda: session.chart("SELECT * FROM tasks")):
                    try:
                        ask()
                        os._exit(1)
                    except tq.QueryError as error:
                        assert "forked" in str(error), error
                assert kept.fetchall() == [(1,)]
                with tq.open(sys.argv[1]) as own:
                    assert own.sql("SELECT count(*) FROM tasks").fetchall() == [(10,)]
                del session
                os._exit(0)
            except BaseException as error:
                print(error, file=sys.stderr, flush=True)
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert session.sql("SELECT 2").fetchall() == [(2,)]
    """
    done = python(code, str(TINY))
    assert done.returncode == 0, done.stderr


SESSIONS = int(os.environ.get("TQ_SESSIONS", "200"))
"""How many are opened and dropped; without optimisation a thousand take minutes."""


def test_many_sessions_leave_nothing():
    code = """
        import sys, threading, tq
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096
        def tasks():
            import os
            return len(os.listdir("/proc/self/task"))
        def one(number):
            session = tq.open(sys.argv[1], threads=1)
            result = session.sql("SELECT name, start FROM tasks")
            assert len(result.fetchall()) == 10
            if number % 2:
                session.close()
        for number in range(100):
            one(number)
        before = resident()
        for number in range(int(sys.argv[2])):
            one(number)
        import time
        time.sleep(1)
        print(resident() - before, tasks())
    """
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc")
    done = python(code, str(TINY), str(SESSIONS))
    assert done.returncode == 0, done.stderr
    grown, tasks = map(int, done.stdout.split())
    # What a session has in memory is many times that.
    assert grown < 100_000 * SESSIONS, grown
    assert tasks < 20, tasks


def test_two_threads_do_not_share_an_iteration(tiny):
    rows, seen = iter(tiny.sql("SELECT value FROM generate_series(1, 3)")), []
    thread = threading.Thread(target=lambda: seen.append(next(rows)))
    thread.start()
    thread.join()
    assert seen == [(1,)] and list(rows) == [(2,), (3,)]


def test_ctrl_c_ends_the_writing_of_frames(tmp_path):
    code = """
        import os, sys, threading, time, tempfile, tq
        session = tq.open(sys.argv[1])
        rows = session.sql("SELECT value AS start, 1 AS duration FROM generate_series(1, 1000000000)")
        print("begun", flush=True)
        try:
            tq.from_frames(tasks=rows, mapping={"tasks": {"time_unit": "ns"}})
        except KeyboardInterrupt:
            pass
        # Whoever writes looks up after each batch.
        last = time.monotonic() + 60
        while any(name.startswith("tq-") for name in os.listdir(tempfile.gettempdir())) and time.monotonic() < last:
            time.sleep(0.05)
        print(os.listdir(tempfile.gettempdir()), session.sql("SELECT 1").fetchall(), flush=True)
    """
    tempdir = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(tmp_path)
    try:
        assert interrupted(code) == ["begun", "[] [(1,)]"]
    finally:
        os.environ.pop("TMPDIR") if tempdir is None else os.environ.update(TMPDIR=tempdir)
