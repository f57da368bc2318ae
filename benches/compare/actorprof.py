"""How fast is the heat map of an ActorProf directory, beside pandas?

The directory is what the triangle counting of HClib-Actor would log on one node with 16 PEs, rows dealt in ranges of as many
edges: each row of an R-MAT graph (A = .57, B = C = .19, edge factor 16, loops and repeated edges left out, lower triangle)
sends a message to the owner of each earlier neighbour, once for each neighbour up to that one. Who sends to whom is
computed, times are 1.05 us apart.

pandas comes twice: all columns of all files and a crosstab, and file by file with the two columns that count. tq is
measured from outside, whole process; pandas from inside, without its import. Needs pandas.
"""

import bisect
import csv
import itertools
import json
import random
import sys
from pathlib import Path

import common

PES = 16
NAMES = ["source_node", "source", "target_node", "target", "bytes", "time"]


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--scale", type=int, default=14, help="2^SCALE rows [14: about 13 million sends, 450 MB]")
    options = common.parsed(parser)
    directory = common.generate(options.work / f"actorprof_range_{options.scale}", write_directory, options.scale)
    common.heading("Heat map of an ActorProf directory", options, ["pandas", "numpy"], {directory: f"send files of {PES} PEs"})
    query = [options.tq, "query", directory, "actorprof-logical-matrix", "--format", "csv"]
    results = common.in_turns(
        options.runs,
        {
            "tq query": lambda: common.run(query),
            "pandas, all columns": common.child("plain", directory),
            "pandas, two columns": common.child("two_columns", directory),
        },
    )
    answers = {name: [matrix_of(name, run.output) for run in runs] for name, runs in results.items()}
    common.table(common.COST_HEAD, common.cost_rows(results))
    common.same(answers)
    print(f"Sends: {sum(map(sum, answers['tq query'][0]))}\n")
    tq = results["tq query"]
    for name, factor in (("pandas, all columns", 10), ("pandas, two columns", 5)):
        wall, cpu = (common.median(results[name], field) / common.median(tq, field) for field in ("wall", "cpu"))
        common.bar(f"{factor} times as fast as {name}", wall >= factor, f"{wall:.1f} times by the clock, {cpu:.1f} by processor time")
    common.bar("peak memory at most 300 MB", common.peak_mb(tq) <= 300, f"{common.peak_mb(tq):.0f} MB")
    common.close()


def matrix_of(name, output):
    """Messages from each PE (row) to each (column)."""
    if name.startswith("pandas"):
        return json.loads(output)
    matrix = [[0] * PES for _ in range(PES)]
    for row in csv.DictReader(output.splitlines()):
        matrix[int(row["source"].removeprefix("PE"))][int(row["target"].removeprefix("PE"))] = int(row["count"])
    return matrix


def plain(paths):
    import pandas

    sends = pandas.concat([pandas.read_csv(path, header=None, names=NAMES) for path in paths], ignore_index=True)
    return pandas.crosstab(sends["source"], sends["target"])


def two_columns(paths):
    import pandas

    counts = []
    for path in paths:
        sends = pandas.read_csv(path, header=None, names=NAMES, usecols=["source", "target"], dtype="int32")
        counts.append(sends.value_counts())
    return pandas.concat(counts).groupby(level=["source", "target"]).sum().unstack(fill_value=0)


def child(way, directory):
    import pandas  # noqa: F401  the import is not part of the time

    paths = sorted(Path(directory).glob("PE*_send.csv"))
    every = range(PES)
    common.report(lambda: way(paths), lambda counts: counts.reindex(index=every, columns=every, fill_value=0).to_numpy().tolist())


def write_directory(directory, scale):
    """The send files of all PEs."""
    directory.mkdir(exist_ok=True)
    neighbours = lower_triangle(scale)
    owners = owners_of(neighbours)
    for pe in range(PES):
        heads = [f"0, {pe}, 0, {target}, 16, " for target in range(PES)]
        sent = 0
        with open(directory / f"PE{pe}_send.csv", "w", encoding="ascii", buffering=1 << 20) as file:
            for row in range(bisect.bisect_left(owners, pe), bisect.bisect_right(owners, pe)):
                for rank, neighbour in enumerate(sorted(neighbours[row])):
                    head = heads[owners[neighbour]]
                    times = (number * 21 // 20 for number in range(sent, sent + rank + 1))
                    file.writelines(f"{head}{1732150000 + us // 1000000}.{us % 1000000:06d}\n" for us in times)
                    sent += rank + 1


def owners_of(neighbours):
    """The PE of each row: ranges of rows with about as many edges each."""
    edges = sum(map(len, neighbours))
    before = itertools.accumulate(map(len, neighbours), initial=0)
    return [min(count * PES // edges, PES - 1) for count, _ in zip(before, neighbours, strict=False)]


def lower_triangle(scale):
    """The earlier neighbours of each row of an R-MAT graph."""
    draw = random.Random(1).random
    neighbours = [set() for _ in range(1 << scale)]
    for _ in range(16 << scale):
        row = column = 0
        for _ in range(scale):
            quadrant = bisect.bisect((0.57, 0.76, 0.95), draw())
            row, column = 2 * row + quadrant // 2, 2 * column + quadrant % 2
        if row != column:
            neighbours[max(row, column)].add(min(row, column))
    return neighbours


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child({"plain": plain, "two_columns": two_columns}[sys.argv[2]], sys.argv[3])
    else:
        main()
