"""How long does a DataFrame of all tasks of a Kineto trace take in Python, from the file on?

Name, location, start and duration of each event that lasts, as a DataFrame of pandas: by the package `tq`, by HTA's `TraceAnalysis` and by
`json.load`. Needs an environment with the wheel of `python/` and pandas, which runs this program, and HTA's
(`--hta`, by `benches/compare/run` in `~/.cache/tq-compare/hta`). Imports do not count, for none of them. Asks then what a question on an open
session costs, beside the same at the prompt of `tq`.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import common
from gpu import write_trace

HTA = Path.home() / ".cache/tq-compare/hta/bin/python"
SQL = "SELECT name, location, start, duration FROM tasks"
QUESTION = "SELECT count(*) FROM tasks WHERE duration > 7000"
QUESTIONS = 200


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=300_000, help="tasks of the trace [300000]")
    parser.add_argument("--hta", type=Path, default=HTA, help="the Python of an environment with HTA")
    options = common.parsed(parser)
    path = common.generate(options.work / f"kineto_{options.rows}.json", write_trace, options.rows)
    common.heading("From a file to a DataFrame", options, ["pandas", "pyarrow"], {path: f"{options.rows} tasks and their flows"})
    jobs = {
        "tq": common.child("tq", path),
        "tq, words as categories": common.child("tq-category", path),
        "json.load and pandas": common.child("json", path),
        "HTA's TraceAnalysis": common.child("hta", path, python=options.hta),
    }
    results = common.in_turns(options.runs, jobs)
    common.table(common.COST_HEAD, common.cost_rows(results))
    answers = {name: [json.loads(run.output) for run in runs] for name, runs in results.items()}
    common.same({name: [[answer["rows"], answer["names"]] for answer in given] for name, given in answers.items()})
    wall = {name: common.median(runs, "wall") for name, runs in results.items()}
    for name, seen in list(wall.items())[2:]:
        common.bar(f"10 times as fast as {name}", wall["tq"] * 10 <= seen, f"{seen / wall['tq']:.1f} times, {seen:.2f} and {wall['tq']:.2f} s")
    counted = [common.run([options.tq, "query", path, "--quiet", "-c", "SELECT count(*) FROM tasks"]).peak for _ in range(options.runs)]
    frame = answers["tq"][0]["bytes"]
    before = answers["tq"][0]["before"]
    allowed = 1.3 * statistics.median(counted) + frame
    peak = max(run.peak for run in results["tq"]) - before
    common.bar(
        "at most 1.3 times the memory of `tq query`, and the frame",
        peak <= allowed,
        f"{peak / 1e6:.0f} MB beyond the interpreter and its imports ({before / 1e6:.0f}); {allowed / 1e6:.0f} allowed, of it {frame / 1e6:.0f} for the frame",
    )
    python = json.loads(common.run([sys.executable, sys.argv[0], "--child", "open", path]).output)
    prompt = at_the_prompt(options.tq, path)
    common.bar("at most 1 ms more for a question on an open session", python - prompt <= 0.001, f"{python * 1e3:.2f} ms, {prompt * 1e3:.2f} at the prompt")
    common.close()


def of_tq(path, words):
    import tq

    with tq.open(path, progress=False) as session:
        return session.sql(SQL).df(words=words)


def of_json(path):
    import pandas

    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    rows = [
        (event["name"], f"{event['pid']}/{event['tid']}", event["ts"], event["dur"])
        for event in events
        if event["ph"] == "X"
    ]
    return pandas.DataFrame(rows, columns=["name", "location", "start", "duration"])


def of_hta(path):
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(path)})
    frame = analysis.t.get_trace(0)
    frame = frame[frame["dur"] >= 0]
    return frame.assign(name=frame["name"].map(analysis.t.symbol_table.get_sym_table().__getitem__))


def peak_so_far():
    import resource

    return common.bytes_of(resource.getrusage(resource.RUSAGE_SELF))


def child(tool, path):
    # Nobody's imports count.
    if tool == "hta":
        import hta.trace_analysis  # noqa: F401
    else:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import tq  # noqa: F401
    if tool == "open":
        print(json.dumps(on_an_open_session(path)))
        return
    before = peak_so_far()
    work = {
        "tq": lambda: of_tq(path, "str"),
        "tq-category": lambda: of_tq(path, "category"),
        "json": lambda: of_json(path),
        "hta": lambda: of_hta(path),
    }[tool]

    def answer(frame):
        size = int(frame.memory_usage(deep=True).sum())
        return {"rows": len(frame), "names": frame["name"].nunique(), "bytes": size, "before": before}

    common.report(work, answer)


def on_an_open_session(path):
    """Seconds of a question, as a reader in Python sees it: the median."""
    import tq

    with tq.open(path, progress=False) as session:
        taken = []
        for _ in range(QUESTIONS):
            begin = time.perf_counter()
            session.sql(QUESTION).fetchall()
            taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def at_the_prompt(tq, path):
    """Seconds of the same question at the prompt: the median."""
    asked = "\\timing on\n" + f"{QUESTION};\n" * QUESTIONS
    said = subprocess.run([tq, "--quiet", path], input=asked, capture_output=True, check=True, text=True).stderr
    return statistics.median(float(line.split()[1]) / 1e3 for line in said.splitlines() if line.startswith("Time: "))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
