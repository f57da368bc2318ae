#!/usr/bin/env python3
"""What workers bring: python3 benches/cluster.py TQ STORE [MOST]

A STORE that is not there is made first (pyarrow and numpy): RUNS runs of TASKS tasks, two dependencies each, every second task inside of
another, on 16 locations with 300 names. Asks four questions about a store of many runs in one process on one core, then with 1, 2 … MOST (2) workers of one core each, and
prints a table: seconds by the clock, processor time of the client and of all workers, bytes through loopback, how many times as long one
worker takes. All of these take turns, and the table has medians: a machine whose speed changes meanwhile changes all of them, and the
ratio is that of neighbours. Answers must be those of the one process. Workers are pinned to the cores in turn; the client may use the core
of the first.
`TQ_CLUSTER_LEAST_BYTES` is 0, so that nothing stays here because it is small.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

QUESTIONS = {
    "tasks by run": "SELECT run, count(*), sum(duration) FROM tasks GROUP BY run",
    "busy by run and location": "SELECT run, location, busy(start, finish) FROM tasks GROUP BY run, location",
    "critical path by run": "SELECT run, count(*), sum(duration) FROM critical_path() GROUP BY run",
    "self time by name": "SELECT name, sum(self_time) FROM self_time(tasks) GROUP BY name",
    "nothing to do": "SELECT count(*) FROM tasks WHERE run = 'none'",
}
TURNS = 7
RUNS, TASKS, LOCATIONS, NAMES = 1000, 50_000, 16, 300
# Runs of one import, which share files.
TOGETHER = 100
MAPPING = """[[table]]
table = "tasks"
start = "start:ns"
duration = "duration:ns"
[[table]]
table = "links"
file = "links.parquet"
"""
TICKS = os.sysconf("SC_CLK_TCK")


def processor(pid):
    """Seconds of a process so far."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def loopback():
    """Bytes that went through loopback so far."""
    line = next(line for line in open("/proc/net/dev") if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def write_run(folder, number):
    """A trace of the format `table`: its name and path."""
    import numpy
    import pyarrow
    from pyarrow import parquet

    dice = numpy.random.default_rng(number)
    task = numpy.arange(TASKS)
    lane, turn = task // 2 % LOCATIONS, task // 2 // LOCATIONS
    is_inner = task % 2 == 1
    # Outer ones take turns of 4000 ticks; what is inside begins a tick later and ends before.
    outer = 1500 + dice.integers(0, 2500, TASKS).repeat(2)[:TASKS]
    duration = numpy.where(is_inner, outer // 3, outer)
    tasks = {
        "id": task,
        "start": turn * 4000 + is_inner,
        "duration": duration,
        "name": pyarrow.array([f"kernel_{name}" for name in range(NAMES)]).take(dice.integers(0, NAMES, TASKS)),
        "location": pyarrow.array([f"worker {place}" for place in range(LOCATIONS)]).take(lane),
    }
    target = task[2 * LOCATIONS :].repeat(2)
    # Those of the turn before, and of any earlier one.
    far = dice.integers(1, turn[target] + 1) * 2 * LOCATIONS
    source = target - numpy.where(numpy.arange(len(target)) % 2 == 0, 2 * LOCATIONS, far)
    os.mkdir(folder)
    path = os.path.join(folder, "tasks.parquet")
    parquet.write_table(pyarrow.table(tasks), path)
    parquet.write_table(pyarrow.table({"source": source, "target": target}), os.path.join(folder, "links.parquet"))
    with open(path + ".tq.toml", "w") as mapping:
        mapping.write(MAPPING)
    return f"night/{number:04}={path}"


def make(tq, store):
    for first in range(0, RUNS, TOGETHER):
        with tempfile.TemporaryDirectory() as folder:
            runs = range(first, min(first + TOGETHER, RUNS))
            traces = [write_run(os.path.join(folder, str(number)), number) for number in runs]
            subprocess.run([tq, "import", *traces, "--into", store, "--quiet"], check=True)


def start(tq, core):
    command = ["taskset", "-c", str(core), tq, "cluster", "worker", "--threads", "1"]
    began = time.monotonic()
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    address = worker.stdout.readline().decode().split()[-1]
    return worker, address, time.monotonic() - began


def ask(tq, store, cluster, sql):
    """Rows in order, seconds, seconds of the processor, bytes."""
    command = ["taskset", "-c", "0", tq, "query", store, "--threads", "1", "--quiet", "--format", "csv", "--cluster", cluster, "-c", sql]
    environment = {**os.environ, "TQ_CLUSTER_LEAST_BYTES": "0"}
    before, began, bytes_before = os.times(), time.monotonic(), loopback()
    answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    seconds, after = time.monotonic() - began, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return sorted(answer.splitlines()), seconds, used, loopback() - bytes_before


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tq, store = sys.argv[1:3]
    if not os.path.exists(store):
        make(tq, store)
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    print("| question | workers | seconds | client s | workers s | MB through loopback | to one worker |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    workers = [start(tq, number % os.cpu_count()) for number in range(most)]
    groups = [workers[:count] for count in range(most + 1)]
    for question, sql in QUESTIONS.items():
        alone = None
        turns = []
        for _ in range(TURNS):
            turn = []
            for group in groups:
                cluster = ",".join(address for _, address, _ in group) or "off"
                used_before = sum(processor(worker.pid) for worker, _, _ in group)
                rows, seconds, client, sent = ask(tq, store, cluster, sql)
                turn.append((seconds, client, sum(processor(worker.pid) for worker, _, _ in group) - used_before, sent))
                alone = alone or rows
                if rows != alone:
                    sys.exit(f"{question}: {len(group)} workers answer otherwise than one process")
            turns.append(turn)
        for count in range(most + 1):
            seconds, client, used, sent = (statistics.median(column) for column in zip(*(turn[count] for turn in turns), strict=True))
            ratio = f"{statistics.median(turn[1][0] / turn[count][0] for turn in turns):.2f}" if count > 1 else ""
            print(f"| {question} | {count} | {seconds:.2f} | {client:.2f} | {used:.2f} | {sent / 1e6:.1f} | {ratio} |", flush=True)
    for worker, _, _ in workers:
        worker.kill()
        worker.wait()
    worker, address, seconds = start(tq, 0)
    status = subprocess.run([tq, "cluster", "status", address, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout
    print(f"\nA worker starts in {seconds:.2f} s and has {json.loads(status)[0]['memory_bytes'] / 1e6:.0f} MB when idle.")
    worker.kill()


if __name__ == "__main__":
    main()
