"""How the other tools answer the questions; each in a process of its own, which loads that tool alone."""

import json
import os


def duckdb(question, path, threads, output):
    """Reads the files of a question, or the views of a store, and asks its SQL."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    sql = question.duckdb or question.tq
    match question.source:
        case "store" | "graph":
            os.chdir(path)
            connection.execute((path / "views.sql").read_text())
            if question.name == "sorted":
                sql = f"COPY ({sql}) TO '{output}' (FORMAT parquet, COMPRESSION zstd)"
        case "files":
            kinds = "STRUCT(ph VARCHAR, name VARCHAR, pid BIGINT, tid BIGINT, ts DOUBLE, dur DOUBLE)[]"
            events = f"read_json('{path}/*.json', columns = {{traceEvents: '{kinds}'}})"
            connection.execute(
                "CREATE TABLE tasks AS SELECT e.name, e.tid, round(e.ts * 1000)::BIGINT AS start, round(e.dur * 1000)::BIGINT AS duration "
                f"FROM (SELECT unnest(traceEvents) AS e FROM {events})"
            )
        case "kineto.json":
            kinds = "STRUCT(ph VARCHAR, cat VARCHAR, name VARCHAR, ts DOUBLE, dur DOUBLE, pid JSON, tid JSON, args JSON)[]"
            document = f"read_json('{path}', columns = {{traceEvents: '{kinds}'}}, maximum_object_size = {path.stat().st_size + (1 << 20)})"
            connection.execute(
                "CREATE TABLE tasks AS SELECT e.cat AS kind, e.name, e.pid, e.tid, e.args, round(e.dur * 1000)::BIGINT AS duration "
                f"FROM (SELECT unnest(traceEvents) AS e FROM {document}) WHERE e.ph = 'X'"
            )
        case _:
            read = {"parquet": "read_parquet", "csv": "read_csv", "ndjson": "read_json"}[path.suffix[1:]]
            connection.execute(f"CREATE TABLE tasks AS SELECT * FROM {read}('{path}')")
    rows = connection.execute(sql).fetchall()
    return None if question.name == "sorted" else rows


def pandas(question, path, _, __):
    """Reads all columns, as the others do."""
    import pandas

    frame = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_csv(path)
    return [[len(frame), int((frame.finish - frame.start).sum()), frame.name.nunique(), frame.location.nunique()]]


def json_(question, path, _, __):
    """Python's own."""
    with open(path, encoding="utf-8") as file:
        return kinds(json.load(file))


def orjson(question, path, _, __):
    import orjson

    return kinds(orjson.loads(path.read_bytes()))


def hta(question, path, _, __):
    """The figures of `hta-temporal-breakdown`: times in ns."""
    from hta.trace_analysis import TraceAnalysis

    frame = TraceAnalysis(trace_files={0: str(path)}, trace_dir="").get_temporal_breakdown(visualize=False)
    parts = ["idle_time", "compute_time", "non_compute_time", "kernel_time"]
    shares = [f"{part}_pctg" for part in parts[:3]]
    return [[path.stem, row["rank"], *(round(row[f"{part}(us)"] * 1000) for part in parts), *row[shares]] for _, row in frame.iterrows()]


def kinds(document):
    """How many tasks of each kind, and how long they took."""
    sums = {}
    for event in document["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "gpu_memcpy", "cuda_runtime"):
            known = sums.setdefault(event["cat"], [0, 0])
            known[0] += 1
            known[1] += round(event["dur"] * 1000)
    return [[kind, *both] for kind, both in sums.items()]


def polars(question, path, _, output):
    """Lazily, so that it reads what it needs, as tq and DuckDB do."""
    import polars as pl

    if question.others["polars"] == "seen":
        read = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".ndjson": pl.read_ndjson}[path.suffix]
        frame = read(path)
        seen = frame.select(pl.len(), (pl.col("finish") - pl.col("start")).sum(), pl.col("name").n_unique(), pl.col("location").n_unique())
        return seen.rows()
    tasks = pl.scan_parquet(path / "runs/*/tasks-*.parquet")
    grouped = [pl.len(), pl.col("duration").sum(), pl.col("start").min().alias("first"), pl.col("start").max().alias("last")]
    match question.others["polars"]:
        case "by_name":
            return tasks.group_by("name").agg(grouped).collect().rows()
        case "by_name_and_location":
            return tasks.group_by("name", "location").agg(grouped).collect().rows()
        case "medians":
            both = [pl.col("duration").median().alias("median"), pl.col("duration").quantile(0.99, "linear").alias("p99")]
            return tasks.group_by("name").agg(both).collect().rows()
        case "longest":
            ordered = tasks.select("name", "task", "duration").sort("duration", "task", descending=[True, False])
            return ordered.group_by("name").head(3).collect().rows()
        case "parents":
            children = tasks.select("parent", "duration").drop_nulls("parent")
            joined = children.join(tasks.select("task", "name"), left_on="parent", right_on="task")
            return joined.group_by("name").agg(pl.len(), pl.col("duration").sum()).collect().rows()
        case "window":
            first, last = (int(os.environ[bound]) for bound in ("FROM_TIME", "TO_TIME"))
            there = tasks.filter((pl.col("location") == "w042") & (pl.col("start") >= first) & (pl.col("start") < last))
            return there.group_by("name").agg(pl.len(), pl.col("duration").sum()).collect().rows()
        case "busy":
            spans = tasks.select("location", "start", (pl.col("start") + pl.col("duration")).alias("finish")).sort("start", "finish")
            until = pl.col("finish").cum_max().shift().over("location").fill_null(pl.col("start"))
            fresh = (pl.col("finish") - pl.max_horizontal(pl.col("start"), until)).clip(lower_bound=0)
            return spans.with_columns(fresh.alias("fresh")).group_by("location").agg(pl.col("fresh").sum()).collect().rows()
        case "sorted_tasks":
            kept = tasks.select("task", "run", "location", "name", "kind", "start").sort("start", "task")
            kept.sink_parquet(output, compression="zstd")
            return None
        case "links_twice":
            links = pl.scan_parquet(path / "runs/*/links-*.parquet").select("source", "target")
            first = tasks.select("task", "name").join(links, left_on="task", right_on="source")
            second = first.join(links.rename({"target": "last"}), left_on="target", right_on="source")
            joined = second.join(tasks.select("task", "duration"), left_on="last", right_on="task")
            return joined.group_by("name").agg(pl.len(), pl.col("duration").sum()).collect().rows()
    raise ValueError(question.name)


TOOLS = {"DuckDB": duckdb, "polars": polars, "pandas": pandas, "json": json_, "orjson": orjson, "HTA": hta}
