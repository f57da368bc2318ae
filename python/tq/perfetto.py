"""The API of Perfetto's Python package on the engine of tq: a script changes one import line.

    from tq.perfetto import TraceProcessor          # from perfetto.trace_processor import TraceProcessor
    from tq.perfetto import BatchTraceProcessor     # from perfetto.batch_trace_processor.api import BatchTraceProcessor

Queries read the views of the schema `perfetto`, whose times (`ts`, `dur`) are nanoseconds; what PerfettoSQL cannot be answered raises
`TraceProcessorException`, which names the table or function that is missing.
"""

from __future__ import annotations

import enum
import glob
import os
import re
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, TypeVar, Union

from ._errors import Error, QueryError, missing
from ._result import Collected
from ._session import OPTIONS, Session, open

if TYPE_CHECKING:
    import pandas

__all__ = [
    "BatchTraceProcessor",
    "BatchTraceProcessorConfig",
    "FailureHandling",
    "QueryResultIterator",
    "Row",
    "Stats",
    "TraceProcessor",
    "TraceProcessorConfig",
    "TraceProcessorException",
]

ALONE = re.compile(r"(\s*INCLUDE\s+PERFETTO\s+MODULE\s+[\w.*]+\s*;?)+\s*", re.IGNORECASE)
"""Statements that say which modules a later query uses, and nothing else."""

TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/) | \bLIKE\b(?!\s*\() (?P<pattern>\s*'(?:[^']|'')*')? | '(?:[^']|'')*' | "(?:[^"]|"")*" """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Comments, LIKE with a pattern behind it, texts and names."""

ELSEWHERE = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?PERFETTO\s+(FUNCTION|MACRO|INDEX)\b", re.IGNORECASE)
"""Definitions of Perfetto's that are none of SQL."""

Trace = Union[str, "os.PathLike[str]", bytes, Any]
T = TypeVar("T")


class TraceProcessorException(Exception):
    """A trace or a query that cannot be answered."""


@dataclass
class TraceProcessorConfig:
    """Settings that scripts give; those of Perfetto's binary (`bin_path`, `unique_port`, …) mean nothing here."""

    bin_path: Optional[str] = None
    unique_port: bool = True
    verbose: bool = False
    ingest_ftrace_in_raw: bool = False
    enable_dev_features: bool = False
    resolver_registry: Any = None
    load_timeout: int = 30
    extra_flags: Optional[list[str]] = None
    fetch_latest_trace_processor: bool = False
    add_sql_packages: Any = None
    enable_sql_file_access: bool = False


class Row:
    """A row, whose columns are attributes; NULL is None."""

    def __init__(self, names: list[str], values: tuple[Any, ...]) -> None:
        self.__dict__.update(zip(names, values))

    def __repr__(self) -> str:
        return str(self.__dict__)


class QueryResultIterator:
    """The rows of a query. It is read once, as Perfetto's is; `as_pandas_dataframe` has all rows, whatever was read."""

    def __init__(self, rows: Collected) -> None:
        self._rows = rows
        self._left: Optional[Iterator[tuple[Any, ...]]] = None

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self._rows.columns

    def as_pandas_dataframe(self) -> pandas.DataFrame:
        """A DataFrame of pandas; whole numbers with NULLs are `Int64`. `ImportError` without pandas."""
        return self._rows.df()

    def as_polars_dataframe(self) -> Any:
        """A DataFrame of polars. `ImportError` without polars."""
        return self._rows.pl()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        if self._left is None:
            self._left = iter(self._rows)
        return Row(self.column_names, next(self._left))


class TraceProcessor:
    """Traces, and SQL about them in Perfetto's words.

    `trace` is a path, a file that is open for reading bytes, or bytes. `addr` names a server of Perfetto's, which is not used here: an error.
    """

    def __init__(self, trace: Optional[Trace] = None, addr: Optional[str] = None, config: Optional[TraceProcessorConfig] = None, file_path: Optional[str] = None, **options: Any) -> None:
        unknown = [name for name in options if name not in OPTIONS or name == "read_only"]
        if unknown:
            raise TypeError(f"`{unknown[0]}` is no argument of TraceProcessor here; beside those of Perfetto's, options of `tq.open` are")
        if trace is not None and file_path is not None:
            raise TraceProcessorException("`trace` and `file_path` are two names of one argument: give one")
        trace = trace if trace is not None else file_path
        if addr is not None:
            raise TraceProcessorException("`addr` names a server, and the traces are read in this process: give `trace`")
        if trace is None:
            raise TraceProcessorException("give `trace`: a path, a file, or bytes")
        self.config = config or TraceProcessorConfig()
        self.session = _opened(trace, options)
        # NULL is less than everything in SQLite.
        self.session.sql("SET datafusion.sql_parser.default_null_ordering = 'nulls_min'")

    def query(self, sql: str) -> QueryResultIterator:
        """Answers PerfettoSQL."""
        try:
            sql = TOKEN.sub(_of_sqlite, sql)
            if elsewhere := ELSEWHERE.match(sql):
                raise TraceProcessorException(f"CREATE PERFETTO {elsewhere[1].upper()} is not here: write what it stands for into the query")
            # Everything is there already.
            sql = "SELECT NULL AS nothing WHERE FALSE" if ALONE.fullmatch(sql) else sql
            return QueryResultIterator(self.session.sql(sql).collect())
        except Error as error:
            raise _told(error) from error
        except ValueError as error:
            raise TraceProcessorException(str(error)) from error

    def metric(self, metrics: list[str]) -> Any:
        """Metrics of Perfetto are programs of its own: `NotImplementedError`."""
        raise NotImplementedError(f"metrics of Perfetto are not here ({', '.join(metrics)}); `tq.open(…).queries()` lists saved queries")

    def trace_summary(self, specs: Any, metric_ids: Any = None, metadata_query_id: Any = None) -> Any:
        """Summaries of Perfetto are programs of its own: `NotImplementedError`."""
        raise NotImplementedError("summaries of Perfetto are not here; `tq.open(…).queries()` lists saved queries, `.report()` makes a page")

    def close(self) -> None:
        """Closes the traces."""
        self.session.close()

    def __enter__(self) -> TraceProcessor:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]) -> None:
        self.close()


class FailureHandling(enum.Enum):
    """What becomes of a trace that cannot be read or asked."""

    RAISE_EXCEPTION = 0
    INCREMENT_STAT = 1


@dataclass
class BatchTraceProcessorConfig:
    """Settings that scripts give: `tp_config` is that of each trace; the others say what becomes of those that fail."""

    tp_config: Optional[TraceProcessorConfig] = None
    load_failure_handling: FailureHandling = FailureHandling.RAISE_EXCEPTION
    execute_failure_handling: FailureHandling = FailureHandling.RAISE_EXCEPTION


@dataclass
class Stats:
    """How many traces could not be read, and how many questions could not be answered."""

    load_failures: int = 0
    execute_failures: int = 0


class BatchTraceProcessor:
    """Many traces, each of which is asked by itself: a pattern of paths, or a list of traces."""

    def __init__(self, traces: Union[str, Iterable[Trace]], config: Optional[BatchTraceProcessorConfig] = None) -> None:
        config = config or BatchTraceProcessorConfig()
        if isinstance(traces, str):
            found = sorted(glob.glob(traces, recursive=True))
            if not found:
                raise TraceProcessorException(f"no file is called like `{traces}`")
            traces = found
        self.config = config
        self._stats = Stats()
        self.paths: list[Any] = []
        self.processors: list[TraceProcessor] = []
        for trace in traces:
            try:
                self.processors.append(TraceProcessor(trace, config=config.tp_config))
            except TraceProcessorException:
                if config.load_failure_handling is FailureHandling.RAISE_EXCEPTION:
                    raise
                self._stats.load_failures += 1
                continue
            self.paths.append(trace)

    def query(self, sql: str) -> list[pandas.DataFrame]:
        """The answer of each trace as a DataFrame, in the order of the traces."""
        return self.execute(lambda processor: processor.query(sql).as_pandas_dataframe())

    def query_and_flatten(self, sql: str) -> pandas.DataFrame:
        """The answers of all traces in one DataFrame, whose column `_path` names the trace."""
        return self.execute_and_flatten(lambda processor: processor.query(sql).as_pandas_dataframe())

    def query_single_result(self, sql: str) -> list[Any]:
        """The one value that each trace answers."""

        def single(processor: TraceProcessor) -> Any:
            rows = processor.query(sql)
            if len(rows) != 1 or len(rows.column_names) != 1:
                raise TraceProcessorException(f"one value was expected, and there are {len(rows)} rows of {len(rows.column_names)} columns")
            return vars(next(rows))[rows.column_names[0]]

        return self.execute(single)

    def execute(self, work: Callable[[TraceProcessor], T]) -> list[T]:
        """What `work` gives for each trace, in the order of the traces; without those where it fails, if the configuration says so."""
        return [answer for _, answer in self._each(work)]

    def _each(self, work: Callable[[TraceProcessor], T]) -> Iterator[tuple[Any, T]]:
        for path, processor in zip(self.paths, self.processors):
            try:
                yield path, work(processor)
            except TraceProcessorException:
                if self.config.execute_failure_handling is FailureHandling.RAISE_EXCEPTION:
                    raise
                self._stats.execute_failures += 1

    def stats(self) -> Stats:
        """What failed until now, where that is no exception."""
        return self._stats

    def execute_and_flatten(self, work: Callable[[TraceProcessor], pandas.DataFrame]) -> pandas.DataFrame:
        """The DataFrames of `work` in one, whose column `_path` names the trace."""
        try:
            import pandas
        except ImportError:
            raise missing("pandas", "pandas") from None
        frames = [frame.assign(_path=str(path)) for path, frame in self._each(work)]
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def close(self) -> None:
        """Closes all traces."""
        for processor in self.processors:
            processor.close()

    def __enter__(self) -> BatchTraceProcessor:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]) -> None:
        self.close()


def _of_sqlite(token: re.Match[str]) -> str:
    """Blanks for comments, so that errors point at the same place; LIKE as SQLite has it, which does not go by case and knows no backslash."""
    if token["comment"]:
        return re.sub(r"[^\n]", " ", token[0])
    if token[0][:4].upper() == "LIKE":
        return "ILIKE" + (token["pattern"] or "").replace("\\", "\\\\")
    return token[0]


def _opened(trace: Trace, options: dict[str, Any]) -> Session:
    try:
        if isinstance(trace, (str, os.PathLike)):
            return open(trace, **options)
        if isinstance(trace, (bytes, bytearray, memoryview)):
            data = bytes(trace)
        else:
            data = trace.read() if hasattr(trace, "read") else b"".join(trace)
        with tempfile.TemporaryDirectory(prefix="tq-perfetto-") as folder:
            path = os.path.join(folder, "trace")
            with _bytes_of(path) as file:
                file.write(data)
            return open(path, **options)
    except Error as error:
        raise _told(error) from error


def _bytes_of(path: str) -> Any:
    import io

    return io.open(path, "wb")


def _told(error: Error) -> TraceProcessorException:
    hint = "\nhint: the tables that there are: `SELECT name FROM docs.tables`, and https://github.com/tq-traces/tq/blob/main/docs/coming-from-perfetto.md"
    lacks = isinstance(error, QueryError) and error.what.startswith(("no table", "no function", "no view"))
    return TraceProcessorException(str(error) + (hint if lacks else ""))
