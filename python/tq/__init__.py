"""Execution traces as tables: SQL over PyTorch, GPU, task runtime and simulator traces.

    import tq

    with tq.open("trace.json.gz") as session:
        print(session.sql("SELECT name, sum(duration) AS total_time FROM tasks GROUP BY name ORDER BY total_time DESC LIMIT 5"))

`tq.open` reads traces, `tq.from_frames` DataFrames; both give a `Session`, whose answers are `Result`s: lazy, and read by polars, pandas,
pyarrow and duckdb without a copy. `tq.check` is `tq check` for tests, `tq.perfetto` the API of Perfetto's Python package.

Times are integers: ticks (nanoseconds, or picoseconds where a trace is that fine; `Session.tick`) since the start of the run.
"""

from ._check import Check, CheckResult, check
from ._errors import Error, LimitError, QueryError, TraceError, TraceLimitError, TraceNote, TraceWarning
from ._result import Collected, Column, Result
from ._session import Function, Listing, Page, Picture, SavedQuery, Session, from_frames, open
from ._tq import __version__

__all__ = [
    "Check",
    "CheckResult",
    "Collected",
    "Column",
    "Error",
    "Function",
    "LimitError",
    "Listing",
    "Page",
    "Picture",
    "QueryError",
    "Result",
    "SavedQuery",
    "Session",
    "TraceError",
    "TraceLimitError",
    "TraceNote",
    "TraceWarning",
    "__version__",
    "check",
    "from_frames",
    "open",
]
