"""What the comparisons share: runs of other processes measured from outside, medians, a markdown table, bars.

This module and the processes that use it stay small: on Linux a child's peak memory starts at that of its parent,
so generators and checks that need memory run in a process of their own (`apart`).
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
missed_bars = []


@dataclass
class Run:
    """One run of a process: seconds by the clock, seconds of processor time, the most bytes resident, its output."""

    wall: float
    cpu: float
    peak: int
    output: str


def arguments(description):
    """The options that every comparison has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tq", type=Path, default=ROOT / "target/release/tq", help="the tq to measure [target/release/tq]")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "tq-compare",
        help="folder of the generated files, which are kept [tq-compare in the temporary folder]",
    )
    parser.add_argument("--runs", type=int, default=5, help="runs of each command, in turns [5]")
    return parser


def parsed(parser):
    """The options, with a tq that exists and a folder that exists."""
    options = parser.parse_args()
    if not options.tq.exists():
        fail(f"no {options.tq}: build it with `cargo build --release`, or name one with --tq")
    options.tq, options.work = options.tq.resolve(), options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    return options


def fail(message):
    """Ends the program: exit code 2, nothing could be compared."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def check(holds, message):
    """Fails unless an answer is the expected one."""
    if not holds:
        fail(message)


def run(command, **environment):
    """Runs a command to its end and says what it cost."""
    with tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=output, env=os.environ | environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            fail(f"exit code {process.returncode}: {' '.join(str(part) for part in command)}")
        output.seek(0)
        return Run(wall, usage.ru_utime + usage.ru_stime, bytes_of(usage), output.read().decode())


def bytes_of(usage):
    """The most memory resident, in bytes: macOS counts bytes, Linux KiB."""
    return usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss << 10


def in_turns(runs, jobs):
    """Runs the jobs of a dictionary in turns, so that a slow minute of the machine meets all of them; a list of runs each."""
    results = {name: [] for name in jobs}
    for number in range(runs):
        for name, job in jobs.items():
            print(f"run {number + 1} of {runs}: {name}", file=sys.stderr)
            results[name].append(job())
    return results


def child(*words, python=sys.executable):
    """A job of `in_turns`: this program again, as a child that ends with `report`, whose own figures count."""

    def job():
        said = json.loads(run([python, sys.argv[0], "--child", *words]).output)
        return Run(said["wall"], said["cpu"], said["peak"], json.dumps(said["answer"]))

    return job


def report(work, answer):
    """In a child: does `work` and prints what it cost beyond the imports, and the answer that `answer` finds in the result."""
    before, begin = cpu_time(), time.perf_counter()
    result = work()
    wall, cpu = time.perf_counter() - begin, cpu_time() - before
    peak = bytes_of(resource.getrusage(resource.RUSAGE_SELF))
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "answer": answer(result)}))


def cpu_time():
    """Processor time of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def apart(function, *values):
    """Calls a function in a process of its own, so that its memory is not taken for that of the runs."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=values)
    process.start()
    process.join()
    if process.exitcode != 0:
        fail(f"{function.__name__} failed")


def generate(path, write, *values):
    """`write(path, *values)` in a process of its own, unless the path exists; a broken-off attempt leaves no path."""
    if not path.exists():
        print(f"generating {path}", file=sys.stderr)
        unfinished = path.with_name(path.name + ".unfinished")
        apart(write, unfinished, *values)
        unfinished.rename(path)
    return path


def cargo_example(name):
    """The path of an example of tq-benches, built with `--release`."""
    command = ["cargo", "build", "--release", "--example", name, "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    messages = [json.loads(line) for line in built.splitlines()]
    return Path(next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == name))


def tq_version(tq):
    """What `tq --version` prints."""
    return subprocess.run([tq, "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def heading(title, options, packages, inputs):
    """Prints title, machine, versions and the files with their sizes. Packages are asked for without being loaded."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    print(f"## {title}\n")
    print(
        f"Machine    {os.cpu_count()} cores of {processor()}, {memory() / 1e9:.0f} GB, {platform.system()} {platform.release()}, "
        f"load {os.getloadavg()[0]:.1f} before the runs"
    )
    print(f"Versions   {', '.join([tq_version(options.tq), f'Python {platform.python_version()}', *versions])}")
    for path, what in inputs.items():
        print(f"Input      {path.name}: {size(path) / 1e6:.1f} MB, {what}")
    print(f"Figures    median [least..most] of {options.runs} runs in turns, each in a process of its own, files in the page cache\n")


def size(path):
    """Bytes of a file, or of the files in a folder."""
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def processor():
    """The name of the processor."""
    for line in text_of("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory():
    """Bytes of memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def text_of(path):
    """A file's text, empty where there is no such file."""
    return Path(path).read_text() if Path(path).exists() else ""


def median(runs, field):
    """The median of a field of the runs."""
    return statistics.median(getattr(run, field) for run in runs)


def spread(runs, field):
    """`median [least..most] s` of a field of the runs."""
    values = [getattr(run, field) for run in runs]
    return f"{statistics.median(values):.3f} [{min(values):.3f}..{max(values):.3f}] s"


def peak_mb(runs):
    """The highest peak of the runs in MB."""
    return max(run.peak for run in runs) / 1e6


def table(head, rows):
    """Prints a markdown table: the first column to the left, the others to the right."""
    print(f"| {' | '.join(head)} |")
    print(f"| --- |{' ---: |' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |")
    print()


def cost_rows(results):
    """Rows of name, wall, processor time, peak."""
    return [[name, spread(runs, "wall"), spread(runs, "cpu"), f"{peak_mb(runs):.0f} MB"] for name, runs in results.items()]


COST_HEAD = ["", "wall", "processor time", "peak memory"]


def bar(text, holds, seen):
    """Prints a bar and whether it holds."""
    print(f"- {'holds' if holds else 'MISSED'}: {text}; seen {seen}")
    if not holds:
        missed_bars.append(text)


def same(answers):
    """Stops unless all answers of a dictionary (a list each, one a run) are equal."""
    first_name, (first, *_) = next(iter(answers.items()))
    for name, given in answers.items():
        for answer in given:
            if answer != first:
                fail(f"{name} answers {str(answer)[:500]}\n       {first_name} answers {str(first)[:500]}")
    print(f"The same answer comes from {'; '.join(answers)}.\n")


def close():
    """Ends the program: exit code 1 when a bar is missed, as `tq check` ends."""
    sys.exit(1 if missed_bars else 0)
