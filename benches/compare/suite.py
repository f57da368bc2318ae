"""All questions of the suite, asked of tq and of the tools that can answer them, side by side.

Each run is a process of its own, in turns. A question counts only where all answers are the same, and the same as those that are written in
`answers.json` for this scale; `--accept` writes them. tq is measured from outside, whole process; the others from inside, without starting
Python and without imports, which favours them. What is read is read from files in the page cache. `benches/compare/run` makes the
environment and calls this.
"""

import csv
import hashlib
import json
import os
import statistics
import sys
from pathlib import Path

import common
import peers
from inputs import Inputs
from questions import QUESTIONS, named

ANSWERS = Path(__file__).with_name("answers.json")
PACKAGES = ["duckdb", "polars", "pandas", "pyarrow", "orjson"]
# One per cent of the time that the tasks take at scale 1, in ns.
WINDOW = {"FROM_TIME": 105_000_000, "TO_TIME": 107_100_000}


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows [1]")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help=f"how many, one table each [1,{os.cpu_count()}]")
    parser.add_argument("--only", default="", help="names of questions, with commas between them [all]")
    parser.add_argument("--other", type=Path, help="another tq, to compare with that alone")
    parser.add_argument("--accept", action="store_true", help="write the answers to answers.json")
    options = common.parsed(parser)
    others = ["before"] if options.other else list(peers.TOOLS)
    os.environ.update({bound: str(int(time * options.scale)) for bound, time in WINDOW.items()})
    inputs = Inputs(options)
    chosen = [question for question in QUESTIONS if not options.only or question.name in options.only.split(",")]
    paths = {question.source: inputs.of(question.source) for question in chosen}
    packages, title = ([], "tq beside another tq") if options.other else (PACKAGES, "tq beside other tools")
    common.heading(title, options, packages, {path: source for source, path in paths.items() if path.is_file()})
    known = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    for threads in dict.fromkeys(options.threads.split(",")):
        print(f"### {threads} {'thread' if threads == '1' else 'threads'}\n")
        rows = [asked(options, question, paths[question.source], threads, known, others) for question in chosen]
        common.table(["processor time, peak memory", "tq", *others, "tq ÷ best" if not options.other else "tq ÷ before"], rows)
    if options.accept:
        ANSWERS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def asked(options, question, path, threads, known, others):
    """A row of the table: what each tool needs for a question."""
    output = options.work / f"answer-{os.getpid()}.parquet"
    asked = [question.tq] if question.is_saved else ["-c", within_window(question.tq)]
    command = [options.tq, "query", path, *asked, "-q", "--threads", threads]
    command += ["-o", output] if question.name == "sorted" else ["--format", "csv"]
    jobs = {"tq": lambda: common.run(command)}
    if options.other:
        jobs["before"] = lambda: common.run([options.other, *command[1:]])
    tools = [tool for tool in question.tools if tool in others and (tool != "HTA" or python_of(tool))]
    jobs |= {tool: common.child(tool, question.name, path, threads, output, python=python_of(tool)) for tool in tools}
    if question.name == "sorted":
        jobs = {name: written(job, output) for name, job in jobs.items()}
    results = common.in_turns(options.runs, jobs)
    for name, runs in results.items():
        given = {answer_of(name, run.output) for run in runs}
        key = f"{question.name} at scale {options.scale:g}"
        if options.accept:
            known.setdefault(key, sorted(given)[0])
        expected = known.get(key, answer_of("tq", results["tq"][0].output))
        common.check(given == {expected}, f"{question.name}: {name} gives another answer than {key} in answers.json or tq")
    output.unlink(missing_ok=True)
    costs = {name: statistics.median(run.cpu for run in runs) for name, runs in results.items()}
    best = min(cost for name, cost in costs.items() if name != "tq")
    cells = [cell(results[name]) if name in results else "" for name in ["tq", *others]]
    return [f"{question.name}: {question.title}", *cells, f"{costs['tq'] / best:.2f}"]


def written(job, output):
    """The same job, whose answer is the file that it writes."""

    def write():
        output.unlink(missing_ok=True)
        done = job()
        done.output = common.run([sys.executable, __file__, "--digest", output]).output
        return done

    return write


def digest_of(path):
    """The rows of a file of Parquet in their order."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rows = parquet.read_table(path)
    whole = hashlib.sha256()
    for name in ("task", "start", "run", "location", "name", "kind"):
        column = rows[name].cast(pa.int64() if name in ("task", "start") else pa.string())
        whole.update(json.dumps(column.to_pylist()).encode())
    print(f"in order: {whole.hexdigest()[:16]}")


def python_of(tool):
    """HTA has an environment of its own; None where it is not there."""
    return os.environ.get("TQ_COMPARE_HTA") if tool == "HTA" else sys.executable


def within_window(sql):
    return sql.format(from_time=os.environ["FROM_TIME"], to_time=os.environ["TO_TIME"])


def cell(runs):
    """`1.32 s [1.30..1.35], 260 MB`."""
    seconds = [run.cpu for run in runs]
    return f"{statistics.median(seconds):.2f} s [{min(seconds):.2f}..{max(seconds):.2f}], {common.peak_mb(runs):.0f} MB"


def answer_of(name, output):
    return output.strip() if output.startswith("in order: ") else digest(rows_of(name, output))


def rows_of(name, output):
    """The rows of an answer as texts, in an order of their own. Doubles that are whole are whole numbers."""
    rows = list(csv.reader(output.splitlines()))[1:] if name in ("tq", "before") else json.loads(output)
    return sorted([text_of(value) for value in row] for row in rows)


def text_of(value):
    try:
        number = float(value)
    except (TypeError, ValueError):
        return "" if value is None else str(value)
    return str(int(number)) if number == int(number) else f"{number:.9g}"


def digest(rows):
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def child():
    """A tool answers a question."""
    tool, name, path, threads, output = sys.argv[2:]
    os.environ["POLARS_MAX_THREADS"] = threads
    question = named(name)
    question.tq = within_window(question.tq)
    load(tool)
    common.report(lambda: peers.TOOLS[tool](question, Path(path), int(threads), output), lambda rows: rows)


def load(tool):
    """Imports count for no tool."""
    __import__({"HTA": "hta.trace_analysis"}.get(tool, tool.lower()))
    if tool in ("polars", "pandas"):
        __import__("pyarrow.parquet")


if __name__ == "__main__":
    match sys.argv[1:2]:
        case ["--child"]:
            child()
        case ["--digest"]:
            digest_of(sys.argv[2])
        case _:
            main()
