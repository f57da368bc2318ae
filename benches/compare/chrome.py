"""How fast is a large Chrome trace read, beside DuckDB, Python's json and simdjson?

The files are those of the example import_chrome: kernels of three streams as object, as array and pretty-printed. Each
reader ends with the columns name, ph, ts, dur, pid, tid and args in memory, but for one row of simdjson that stops at its
own form of the document. args is text in tq, DuckDB and simdjson; Python's json leaves a dictionary, which is less work.
tq is measured from outside, whole process; the others from inside, without their imports. Needs duckdb and pysimdjson.
"""

import csv
import json
import os
import sys

import common

COLUMNS = {"name": "VARCHAR", "ph": "VARCHAR", "ts": "DOUBLE", "dur": "DOUBLE", "pid": "BIGINT", "tid": "BIGINT", "args": "JSON"}
# Count, total duration and span in ns, names, sums of the threads and of a number in args.
TQ_ANSWER = """
SELECT count(*), sum(t.duration), max(t.start) - min(t.start), count(DISTINCT t.name),
  sum(json_get_int(l.args, 'tid')), sum(json_get_int(t.args, 'correlation'))
FROM tasks t JOIN locations l ON l.run = t.run AND l.location = t.location"""
DUCKDB_ANSWER = """
SELECT count(*), sum(round(dur * 1000))::BIGINT, round((max(ts) - min(ts)) * 1000)::BIGINT, count(DISTINCT name),
  sum(tid)::BIGINT, sum((args->>'correlation')::BIGINT)::BIGINT
FROM events WHERE ph = 'X' AND pid = 0"""


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--events", type=int, default=819_598, help="events of each file [819598: 139 MB, pretty 179 MB]")
    parser.add_argument("--forms", default="object,array,pretty", help="which files [object,array,pretty]")
    parser.add_argument("--importer", help="a built example import_chrome [built here with cargo]")
    options = common.parsed(parser)
    importer = options.importer or common.cargo_example("import_chrome")

    def import_trace(form, threads):
        return common.run([importer, options.events, form, threads], TMPDIR=str(options.work))

    files = {}
    for form in options.forms.split(","):
        import_trace(form, 1)  # The first call writes the file.
        files[form] = options.work / f"dense_{options.events}_0.{form}.json"
    inputs = {path: f"{options.events} events" for path in files.values()}
    common.heading("Reading a Chrome trace", options, ["duckdb", "pysimdjson"], inputs)

    costs = {}
    for form, path in files.items():
        jobs = {}
        for threads in sorted({1, os.cpu_count()}):
            jobs[f"tq import, threads: {threads}"] = lambda form=form, threads=threads: import_trace(form, threads)
            jobs[f"DuckDB, threads: {threads}"] = common.child("duckdb", form, path, threads)
        jobs |= {name: common.child(name, form, path) for name in READERS}
        query = [options.tq, "query", path, "-c", TQ_ANSWER, "--format", "csv"]
        jobs["tq query, all threads, with its answer"] = lambda query=query: common.run(query)
        results = common.in_turns(options.runs, jobs)
        print_costs(form, common.size(path), results)
        common.same({name: [answer(name, run.output) for run in runs] for name, runs in results.items() if "import" not in name})
        costs[form] = results
    print_bars(costs, files)
    common.close()


def answer(name, output):
    """The six numbers that a reader gives."""
    if name.startswith("tq"):
        return [int(cell) for cell in list(csv.reader(output.splitlines()))[1]]
    return json.loads(output)


def print_costs(form, size_bytes, results):
    print(f"### {form}\n")
    rows = []
    for name, runs in results.items():
        rate = [f"{size_bytes / 1e6 / common.median(runs, field):.0f}" for field in ("wall", "cpu")]
        rows.append([name, common.spread(runs, "wall"), common.spread(runs, "cpu"), *rate, f"{common.peak_mb(runs):.0f} MB"])
    common.table(["", "wall", "processor time", "MB/s by the clock", "MB/s of processor time", "peak memory"], rows)


def print_bars(costs, files):
    """A core is one thread's processor time."""
    for form, factor in (("object", 8), ("array", 1)):
        if form in costs:
            tq, duckdb = (costs[form][f"{tool}, threads: 1"] for tool in ("tq import", "DuckDB"))
            cpu, wall = (common.median(duckdb, field) / common.median(tq, field) for field in ("cpu", "wall"))
            common.bar(
                f"on one thread {factor} times as fast as DuckDB, {form} form",
                cpu >= factor,
                f"{cpu:.1f} times by processor time, {wall:.1f} by the clock",
            )
    for form, results in costs.items():
        rate = common.size(files[form]) / 1e6 / common.median(results["tq import, threads: 1"], "cpu")
        common.bar(f"200 MB/s a core, {form} form", rate >= 200, f"{rate:.0f} MB/s of processor time")


def read_duckdb(form, path, threads):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    types = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    if form == "array":
        listed = "{" + ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items()) + "}"
        query = f"SELECT {', '.join(COLUMNS)} FROM read_json('{path}', format = 'array', columns = {listed})"
    else:
        source = (
            f"read_json('{path}', columns = {{traceEvents: 'STRUCT({types})[]'}}, "
            f"maximum_object_size = {os.path.getsize(path) + (1 << 20)})"
        )
        fields = ", ".join(f"event.{name}" for name in COLUMNS)
        query = f"SELECT {fields} FROM (SELECT unnest(traceEvents) AS event FROM {source})"
    common.report(lambda: connection.execute(f"CREATE TABLE events AS {query}"), lambda _: connection.execute(DUCKDB_ANSWER).fetchone())


def read_json(form, path):
    def work():
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        events = events_of(form, document)
        return {name: [event[name] for event in events] for name in COLUMNS}

    common.report(work, answer_of)


def read_simdjson(form, path):
    import simdjson

    def work():
        return columns_of(events_of(form, simdjson.Parser().load(path)))

    common.report(work, answer_of)


def read_simdjson_document(form, path):
    import simdjson

    common.report(lambda: simdjson.Parser().load(path), lambda document: answer_of(columns_of(events_of(form, document))))


def events_of(form, document):
    return document if form == "array" else document["traceEvents"]


def columns_of(events):
    """The columns of simdjson's events, args as text."""
    columns = {name: [] for name in COLUMNS}
    plain = [(name, columns[name].append) for name in COLUMNS if name != "args"]
    for event in events:
        for name, append in plain:
            append(event[name])
        columns["args"].append(event["args"].mini)
    return columns


def answer_of(columns):
    """The six numbers from Python's columns."""
    common.check(set(columns["ph"]) == {"X"} and set(columns["pid"]) == {0}, "not the generated phases and processes")
    parsed_args = (args if isinstance(args, dict) else json.loads(args) for args in columns["args"])
    return [
        len(columns["name"]),
        sum(round(dur * 1000) for dur in columns["dur"]),
        round((max(columns["ts"]) - min(columns["ts"])) * 1000),
        len(set(columns["name"])),
        sum(columns["tid"]),
        sum(args["correlation"] for args in parsed_args),
    ]


READERS = {"json": read_json, "simdjson": read_simdjson, "simdjson, no columns": read_simdjson_document}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        reader, form, path, *threads = sys.argv[2:]
        if threads:
            read_duckdb(form, path, int(threads[0]))
        else:
            READERS[reader](form, path)
    else:
        main()
