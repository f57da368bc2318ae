"""How long do whole commands take on large recordings, loading included?

- pascal: a study of 10 000 executions (50 sizes, 20 core counts, 10 repetitions) with 20 regions each, `pascal-efficiency`;
  checked against the medians that Python finds.
- parsec: a tiled Cholesky factorisation of 84 x 84 tiles on 4 ranks, 102 340 tasks and 296 310 dependencies as profiles and task
  graphs, `parsec-critical-path-summary`; checked against the longest path that the generator knows.
- daisen: 1.45 million tasks on 966 components of a simulated machine in SQLite: reading them, and all metrics of all components
  in 40 bins in one query; latencies are checked against those of the generator.
- report: the page of about 5 million Taskflow tasks (`generate t0`); checked against the file's own counts.

tq is measured from outside, whole process. Needs nothing else; the report's generator is built with cargo unless --generator names it.
"""

import csv
import json
import random
import statistics
import struct

import common
import daisen
import parsec

# All that component_metrics knows, of every component in 40 bins.
METRICS = """SELECT count(*), sum(req_in_count), sum(req_complete_count), sum(avg_latency), sum(concurrent_task), sum(buffer_pressure),
  sum(request_buffer_pressure), sum(response_buffer_pressure), sum(pending_req_out) FROM component_metrics(tasks)"""
SIZES, CORES, REPETITIONS, REGIONS = range(1, 51), range(1, 21), range(10), range(20)


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--only", default="pascal,parsec,daisen,report", help="which commands [pascal,parsec,daisen,report]")
    parser.add_argument("--tasks", type=int, default=5_100_000, help="tasks of the report [5100000]")
    parser.add_argument("--tiles", type=int, default=84, help="tile rows of the factorisation [84]")
    parser.add_argument("--generator", help="a built example generate [built here with cargo]")
    options = common.parsed(parser)
    inputs, jobs, checks, limits = {}, {}, {}, {"pascal": 1, "parsec": 0.5, "daisen reading": 3, "report": 15}
    chosen = options.only.split(",")
    if "pascal" in chosen:
        study = common.generate(options.work / "study.json", write_study)
        inputs[study] = f"{len(SIZES) * len(CORES) * len(REPETITIONS)} executions, {len(REGIONS)} regions"
        jobs["pascal"] = lambda: common.run([options.tq, "query", study, "pascal-efficiency", "--format", "csv"])
        checks["pascal"] = lambda runs: check_study(study, runs)
    if "parsec" in chosen:
        ranks = common.generate(options.work / f"cholesky_{options.tiles}", parsec.write_cholesky, options.tiles)
        inputs[ranks] = f"profiles and task graphs of {parsec.RANKS} ranks"
        jobs["parsec"] = lambda: common.run([options.tq, "query", ranks, "parsec-critical-path-summary", "--format", "csv"])
        checks["parsec"] = lambda runs: check_cholesky(options.tq, ranks, options.tiles, runs)
    if "daisen" in chosen:
        machine = common.generate(options.work / "requests.sqlite3", daisen.write_requests)
        inputs[machine] = f"{daisen.TASKS} tasks on {daisen.COMPONENTS} components"
        reading = [options.tq, "query", machine, "-c", "SELECT sum(tasks) AS tasks FROM runs", "--format", "csv"]
        jobs["daisen reading"] = lambda: common.run(reading)
        checks["daisen reading"] = lambda runs: common.check(
            all(int(rows_of(run)[0]["tasks"]) == daisen.TASKS for run in runs), "not all tasks were read"
        )
        metrics = [options.tq, "query", machine, "-c", METRICS, "--format", "csv"]
        jobs["daisen metrics"] = lambda: common.run(metrics)
        checks["daisen metrics"] = lambda _: check_latencies(options.tq, machine)
    if "report" in chosen:
        profile = options.work / f"pariter_{options.tasks}.tfp"
        if not profile.exists():
            common.run([options.generator or common.cargo_example("generate"), "t0", options.tasks, profile])
        inputs[profile] = "a Taskflow profile"
        page = options.work / "report.md"
        jobs["report"] = lambda: common.run([options.tq, "report", profile, "-o", page])
        checks["report"] = lambda _: check_report(options.tq, profile, page)
    common.heading("Whole commands", options, [], inputs)
    results = common.in_turns(options.runs, jobs)
    common.table(common.COST_HEAD, common.cost_rows(results))
    for name, runs in results.items():
        checks[name](runs)
    print()
    for name in filter(limits.__contains__, results):
        wall = common.median(results[name], "wall")
        common.bar(f"{name}: at most {limits[name]} s", wall <= limits[name], f"{wall:.3f} s by the clock")
    if "daisen" in chosen:
        both, reading = (common.median(results[f"daisen {what}"], "wall") for what in ("metrics", "reading"))
        common.bar("daisen metrics: at most 2 s beyond reading", both - reading <= 2, f"{both - reading:.3f} s")
    common.close()


def check_study(study, runs):
    """Each efficiency is the median over the repetitions of T1 / (p Tp)."""
    expected = {}
    for region in json.loads(study.read_text()):
        first, last = region["region"].split(", ")
        name = "" if (first, last) == ("0", "9999") else f"{region['filename']}: {first}-{last}"
        for repetition in region["executions"]:
            for size in repetition:
                one = size["runs"][0]["time"]
                for execution in size["runs"]:
                    key = name, size["argument"], execution["threads"]
                    expected.setdefault(key, []).append(one / (execution["threads"] * execution["time"]))
    for run in runs:
        given = {(row["region"], row["argument"], int(row["cores"])): float(row["efficiency"]) for row in rows_of(run)}
        common.check(given.keys() == expected.keys(), "other regions, sizes or cores than in the study")
        worst = max(abs(given[key] - statistics.median(ratios)) for key, ratios in expected.items())
        common.check(worst < 1e-6, f"efficiencies are {worst} off")
    print(f"pascal: {len(expected)} efficiencies are those that Python finds.")


def check_cholesky(tq, directory, tiles, runs):
    """As many tasks and dependencies as generated, and the longest path."""
    tasks, links, path_time = parsec.expected(tiles)
    sql = (
        "SELECT (SELECT count(*) FROM tasks WHERE kind = 'task') AS tasks, (SELECT count(*) FROM links WHERE kind = 'dependency') AS links"
    )
    counts = rows_of(common.run([tq, "query", directory, "-c", sql, "--format", "csv"]))[0]
    common.check([int(counts["tasks"]), int(counts["links"])] == [tasks, links], f"{counts} for {tasks} tasks and {links} links")
    common.check(all(int(rows_of(run)[0]["path_time"]) == path_time for run in runs), f"the longest path is not one of {path_time} ns")
    print(f"parsec: {tasks} tasks, {links} dependencies and a longest path of {path_time} ns, as generated.")


def check_latencies(tq, machine):
    """In one bin that holds all, the latency of a component is the mean of its requests."""
    sql = "SELECT location, avg_latency FROM component_metrics(tasks, bins => 1) WHERE avg_latency IS NOT NULL"
    rows = rows_of(
        common.run([tq, "query", machine, "-c", f"SELECT location, avg_latency / ms(1) * 1e6 AS ns FROM ({sql})", "--format", "csv"])
    )
    found, expected = {row["location"]: float(row["ns"]) for row in rows}, daisen.latencies()
    common.check(found.keys() == expected.keys(), "other components than were generated")
    worst = max(abs(found[location] - latency) / latency for location, latency in expected.items())
    common.check(worst < 1e-9, f"a latency is {worst} off")
    print(f"daisen: the mean latencies of {len(expected)} components are those of the generator.")


def check_report(tq, profile, page):
    """As many tasks and as much time as the file's own records hold, and a page with its pictures."""
    count, total = 0, 0
    with open(profile, "rb") as file:
        *_, workers = struct.unpack("<4q", file.read(32))
        for _ in range(workers):
            _, tasks = struct.unpack("<2q", file.read(16))
            for _ in range(tasks):
                _, _, begin, end = struct.unpack("<qiqq", file.read(28))
                count, total = count + 1, total + end - begin
    seen = rows_of(common.run([tq, "query", profile, "-c", "SELECT count(*) AS n, sum(duration) AS t FROM tasks", "--format", "csv"]))[0]
    common.check([int(seen["n"]), int(seen["t"])] == [count, total], f"{seen} for {count} tasks of {total} ns")
    pictures = [line for line in page.read_text().splitlines() if line.startswith("![")]
    common.check(pictures, f"{page} has no picture")
    print(f"report: {count} tasks of {total} ns, as the file says; {len(pictures)} pictures.")


def rows_of(run):
    return list(csv.DictReader(run.output.splitlines()))


def write_study(path):
    """Amdahl's law with a serial share of its own for each region, and noise."""
    draw = random.Random(1)

    def runs(region, size):
        serial = 0.01 * region + 0.1 / size
        work = size * 10 / (region + 1)
        return [{"threads": cores, "time": round(work * (serial + (1 - serial) / cores) * draw.uniform(0.95, 1.05), 6)} for cores in CORES]

    study = []
    for region in REGIONS:
        lines = f"{10 * region}, {10 * region + 8}" if region else "0, 9999"
        executions = [[{"argument": str(size), "runs": runs(region, size)} for size in SIZES] for _ in REPETITIONS]
        study.append({"region": lines, "filename": "program.c", "executions": executions})
    path.write_text(json.dumps(study))


if __name__ == "__main__":
    main()
