"""The inputs of the suite, made once: the same numbers on every machine.

Tasks lie on 100 locations, in groups of a parent and four children that follow each other inside of it; 300 names, lengths of 40 ns to
40 µs. The graph has four links for each task, to tasks that come later. Everything is drawn from one seed.
"""

import json

import common
import gpu

LOCATIONS, NAMES, GROUP, SEED = 100, 300, 5, 20_261_128


def columns(rows):
    """The columns of so many tasks, as arrays, in order of start."""
    import numpy as np

    draw = np.random.default_rng(SEED)
    groups = rows // GROUP
    lengths = draw.integers(40, 10_000, (groups, GROUP - 1))
    inner = lengths.sum(axis=1)
    location = draw.integers(0, LOCATIONS, groups)
    gaps = draw.integers(0, 2_000, groups)
    begin = np.zeros(groups, np.int64)
    for lane in range(LOCATIONS):
        at = location == lane
        taken = inner[at] + gaps[at]
        begin[at] = np.cumsum(taken) - taken
    starts = np.column_stack([begin, begin[:, None] + np.cumsum(lengths, axis=1) - lengths])
    finishes = np.column_stack([begin + inner, starts[:, 1:] + lengths])
    number = np.arange(groups * GROUP, dtype=np.int64).reshape(groups, GROUP)
    parent = np.where(np.arange(GROUP) == 0, -1, number[:, :1])
    order = np.lexsort((number.ravel(), -finishes.ravel(), starts.ravel()))
    names = np.minimum((draw.exponential(0.2, groups * GROUP) * NAMES).astype(np.int64), NAMES - 1)
    return {
        "id": number.ravel()[order],
        "parent": parent.ravel()[order],
        "name": names[order],
        "location": np.repeat(location, GROUP)[order],
        "start": starts.ravel()[order],
        "finish": finishes.ravel()[order],
    }


def table(rows, with_args):
    """The same as a table of Arrow."""
    import numpy as np
    import pyarrow as pa

    found = columns(rows)
    words = {
        "name": [f"step_{name:03d}" for name in range(NAMES)],
        "location": [f"w{lane:03d}" for lane in range(LOCATIONS)],
    }
    parts = {name: pa.array(found[name]) for name in ("id", "start", "finish")}
    parts["parent"] = pa.array(found["parent"], mask=found["parent"] < 0)
    for name, texts in words.items():
        parts[name] = pa.DictionaryArray.from_arrays(found[name].astype(np.int32), texts)
    parts["kind"] = pa.DictionaryArray.from_arrays((found["name"] % 5).astype(np.int32), ["io", "math", "copy", "send", "wait"])
    if with_args:
        parts["args"] = pa.array(
            [f'{{"stream": {one % 37}, "correlation": {one}, "shape": [{one % 7}, 8]}}' for one in found["id"].tolist()]
        )
    return pa.table(parts)


def write_parquet(path, rows, with_args=False):
    import pyarrow.parquet as parquet

    parquet.write_table(table(rows, with_args), path, compression="zstd", row_group_size=1 << 20)


def write_csv(path, rows):
    import pyarrow as pa
    import pyarrow.csv as csv

    plain = table(rows, False)
    csv.write_csv(pa.table({name: plain[name].cast(pa.string()) if name in TEXTS else plain[name] for name in plain.column_names}), path)


TEXTS = ("name", "location", "kind")


def write_ndjson(path, rows):
    with open(path, "w") as file:
        for batch in table(rows, False).to_batches(10_000):
            file.writelines(f"{json.dumps(row)}\n" for row in batch.to_pylist())


def write_links(path, rows):
    """Four links to later tasks for each task but the last ones, by id."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    draw = np.random.default_rng(SEED + 1)
    ids = columns(rows)["id"]
    source = np.repeat(np.arange(len(ids) - 1000), 4)
    target = source + draw.integers(1, 1000, len(source))
    pairs = np.unique(np.column_stack([source, target]), axis=0)
    parquet.write_table(pa.table({"source": ids[pairs[:, 0]], "target": ids[pairs[:, 1]]}), path, compression="zstd")


def write_files(folder, files):
    """Small traces of 20 events each."""
    folder.mkdir(parents=True)
    for number in range(files):
        events = [
            {"ph": "X", "name": f"f{event % 7}", "pid": 1, "tid": event % 3, "ts": event * 10 + number, "dur": 7} for event in range(20)
        ]
        (folder / f"t{number:05d}.json").write_text(json.dumps({"traceEvents": events}))


MAPPING = """[[table]]
table = "tasks"
file = "graph.parquet"

[[table]]
table = "links"
file = "graph-links.parquet"
"""


class Inputs:
    """The files of a folder, made where they are not there."""

    def __init__(self, options):
        self.options = options
        self.rows = int(5_000_000 * options.scale) // GROUP * GROUP
        self.fewer = int(1_000_000 * options.scale) // GROUP * GROUP
        self.folder = options.work / f"scale-{options.scale}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def of(self, name):
        """The path of an input."""
        path = self.folder / name
        rows, fewer, scale = self.rows, self.fewer, self.options.scale
        match name:
            case "tasks.parquet":
                return common.generate(path, write_parquet, rows)
            case "tasks.csv":
                return common.generate(path, write_csv, fewer)
            case "tasks.ndjson":
                return common.generate(path, write_ndjson, fewer)
            case "files":
                return common.generate(path, write_files, max(int(10_000 * scale), 10))
            case "kineto.json":
                return common.generate(path, gpu.write_trace, max(int(400_000 * scale), 100))
            case "store":
                return self.imported(path, self.of("tasks.parquet"))
            case "graph":
                common.generate(self.folder / "graph.parquet", write_parquet, fewer, True)
                common.generate(self.folder / "graph-links.parquet", write_links, fewer)
                (self.folder / "graph.tq.toml").write_text(MAPPING)
                return self.imported(path, self.folder / "graph.tq.toml")
        raise ValueError(name)

    def imported(self, store, trace):
        """A store of a trace."""
        if not store.exists():
            common.run([self.options.tq, "import", trace, "--into", store, "-q"])
        return store
