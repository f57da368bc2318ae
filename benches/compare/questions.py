"""The questions of the suite: what each one asks, and how each tool is asked for it.

A question has a name that stays, an input, and for each tool that can answer it a text: SQL for tq and DuckDB, a function of `peers` for
the others. SQL that means the same in both is written once. Of a store (`store`, `graph`) the other tools read the same Parquet files.
"""

from dataclasses import dataclass, field

# What reading must give, whatever the format: nothing is read that is not looked at.
SEEN = "SELECT count(*), sum(finish - start), count(DISTINCT name), count(DISTINCT location) FROM tasks"
BREAKDOWN = "SELECT kind, count(*), sum(duration) FROM tasks WHERE kind IN ('kernel', 'gpu_memcpy', 'cuda_runtime') GROUP BY kind"
GROUPED = "count(*), sum(duration), min(start), max(start)"


@dataclass
class Question:
    """A question, and how it is asked."""

    name: str
    title: str
    # The input that tools read, by name; of the store where it is `store`.
    source: str
    tq: str
    # SQL for DuckDB; that of tq where it is not given.
    duckdb: str | None = None
    # Functions of `peers` by tool.
    others: dict[str, str] = field(default_factory=dict)

    @property
    def is_saved(self):
        """Whether tq has it under a name."""
        return " " not in self.tq

    @property
    def tools(self):
        """Those that can answer it, tq aside."""
        return [*([] if self.is_saved else ["DuckDB"]), *self.others]


QUESTIONS = [
    Question("read-parquet", "Read tasks from Parquet", "tasks.parquet", SEEN, others={"polars": "seen", "pandas": "seen"}),
    Question("read-csv", "Read tasks from CSV", "tasks.csv", SEEN, others={"polars": "seen", "pandas": "seen"}),
    Question("read-ndjson", "Read tasks from NDJSON", "tasks.ndjson", SEEN, others={"polars": "seen"}),
    Question("read-files", "Read many small Chrome traces of a directory", "files", "SELECT count(*), sum(duration) FROM tasks"),
    Question("read-kineto", "Read a PyTorch trace", "kineto.json", BREAKDOWN, others={"json": "kinds", "orjson": "kinds"}),
    Question(
        "temporal-breakdown",
        "HTA's temporal breakdown of a PyTorch trace",
        "kineto.json",
        "hta-temporal-breakdown",
        others={"HTA": "breakdown"},
    ),
    Question("name", "Group tasks by name", "store", f"SELECT name, {GROUPED} FROM tasks GROUP BY name", others={"polars": "by_name"}),
    Question(
        "name-location",
        "Group tasks by name and location",
        "store",
        f"SELECT name, location, {GROUPED} FROM tasks GROUP BY name, location",
        others={"polars": "by_name_and_location"},
    ),
    Question(
        "median",
        "Median and 99th percentile by name",
        "store",
        "SELECT name, median(duration), percentile_cont(duration, 0.99) FROM tasks GROUP BY name",
        "SELECT name, median(duration), quantile_cont(duration, 0.99) FROM tasks GROUP BY name",
        {"polars": "medians"},
    ),
    Question(
        "longest",
        "The three longest tasks of each name",
        "store",
        "SELECT name, task, duration FROM tasks QUALIFY row_number() OVER (PARTITION BY name ORDER BY duration DESC, task) <= 3",
        others={"polars": "longest"},
    ),
    Question(
        "parents",
        "Join tasks with their parents",
        "store",
        "SELECT p.name, count(*), sum(c.duration) FROM tasks c JOIN tasks p ON p.task = c.parent GROUP BY p.name",
        others={"polars": "parents"},
    ),
    Question(
        "window",
        "One location, one per cent of the time",
        "store",
        "SELECT name, count(*), sum(duration) FROM tasks WHERE location = 'w042' AND start >= {from_time} AND start < {to_time} "
        "GROUP BY name",
        others={"polars": "window"},
    ),
    Question(
        "busy",
        "How long something ran, by location",
        "store",
        "SELECT location, busy(start, finish) FROM tasks GROUP BY location",
        "SELECT location, sum(greatest(finish - greatest(start, coalesce(until, start)), 0)) FROM (SELECT location, start, finish, "
        "max(finish) OVER (PARTITION BY location ORDER BY start, finish ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until "
        "FROM tasks) GROUP BY location",
        {"polars": "busy"},
    ),
    Question(
        "sorted",
        "Sort tasks by start, with their words, into Parquet",
        "store",
        "SELECT task, run, location, name, kind, start FROM tasks ORDER BY start, task",
        others={"polars": "sorted_tasks"},
    ),
    Question(
        "links-twice",
        "Follow links between tasks twice",
        "graph",
        "SELECT a.name, count(*), sum(c.duration) FROM tasks a JOIN links l ON l.source = a.task JOIN links k ON k.source = l.target "
        "JOIN tasks c ON c.task = k.target GROUP BY a.name",
        others={"polars": "links_twice"},
    ),
    Question(
        "json-key",
        "Group tasks by a key of their JSON arguments",
        "graph",
        "SELECT args->>'stream' AS stream, count(*), sum(duration) FROM tasks GROUP BY stream",
        "SELECT args->>'$.stream' AS stream, count(*), sum(duration) FROM tasks GROUP BY stream",
    ),
]


def named(name):
    """The question of a name."""
    return next(question for question in QUESTIONS if question.name == name)
