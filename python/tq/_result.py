"""Answers: lazy, read any number of times, and taken by whatever knows Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Literal, Optional, Union

from . import _tq
from ._errors import missing

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ._session import Session

ROWS_SHOWN = 20
"""Rows that a notebook and `print` show."""


@dataclass(frozen=True)
class Column:
    """A column of an answer: its name, its Arrow type, and the tick (`ns`, `ps`, `weights`) where it holds times, else None."""

    name: str
    type: str
    tick: Optional[str]


class Result:
    """The answer of a question: nothing runs before it is read, and each reading runs the question again.

    polars, pandas, pyarrow and duckdb read it directly (`polars.DataFrame(result)`, `pyarrow.table(result)`, `duckdb.sql("FROM result")`);
    columns of fixed width are not copied on the way. Times are integers whose field has the metadata `tq.time` and `tq.tick`; words
    are `string_view`. NULL is None.
    """

    def __init__(
        self, question: Union[_tq.Question, _tq.Kept], text: str, relation: Optional[str], session: Optional[Session] = None
    ) -> None:
        self._question = question
        self.session = session
        """The session that was asked; None for rows of `tq.check`."""
        self.text = text
        """The SQL, or the name of the saved query."""
        self.relation = relation
        """The SELECT that may stand in another question in its place; None, where more than that says what is asked."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns; none, where the statement defined something."""
        return [name for name, _, _ in self._question.columns]

    @property
    def schema(self) -> list[Column]:
        """Name, type and tick of each column."""
        return [Column(name, kind, dict(metadata).get("tq.tick")) for name, kind, metadata in self._question.columns]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows by Arrow's PyCapsule interface."""
        return self._question.__arrow_c_stream__(requested_schema)

    def _kept(self, words: Literal["views", "dictionaries", "texts"] = "views", limit: Optional[int] = None) -> _tq.Kept:
        if isinstance(self._question, _tq.Kept):
            return self._question
        return self._question.collect(words, limit)

    def collect(self) -> Collected:
        """Runs the question and keeps the rows, in memory of the session. `LimitError` where there is none left."""
        return Collected(self._kept(), self.text, self.relation, self.session)

    def arrow(self) -> pyarrow.Table:
        """A table of pyarrow. `ImportError` without pyarrow."""
        try:
            import pyarrow
        except ImportError:
            raise missing("pyarrow", "pyarrow") from None
        return pyarrow.table(self._kept())

    def pl(self) -> polars.DataFrame:
        """A DataFrame of polars. `ImportError` without polars."""
        try:
            import polars
        except ImportError:
            raise missing("polars", "polars") from None
        for column in self.schema:
            if column.type.startswith("Interval"):
                raise TypeError(f"`{column.name}` is an INTERVAL, which polars does not have: cast it to VARCHAR")
        return polars.DataFrame(self._kept())

    def df(self, *, times: Literal["ticks", "timedelta"] = "ticks", words: Literal["str", "category"] = "str") -> pandas.DataFrame:
        """A DataFrame of pandas, with the rows in their order and a RangeIndex.

        Whole numbers stay whole: a column with NULLs is `Int64`. With `times="timedelta"`, times become `timedelta64[ns]`, exactly:
        `ValueError` where one is no whole number of nanoseconds. With `words="category"`, columns of words are categories, which is faster
        and smaller where words repeat. `ImportError` without pandas or pyarrow.
        """
        try:
            from . import _frames
        except ImportError as error:
            raise missing(error.name or "pandas", "pandas") from None
        if times not in ("ticks", "timedelta"):
            raise ValueError(f"`times` is 'ticks' or 'timedelta', not {times!r}")
        if words not in ("str", "category"):
            raise ValueError(f"`words` is 'str' or 'category', not {words!r}")
        return _frames.frame(self._kept("dictionaries" if words == "category" else "texts"), times, words)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python's values. Needs no other package."""
        return self._kept().tuples()

    def fetchone(self) -> Optional[tuple[Any, ...]]:
        """The first row, or None."""
        rows = self._kept(limit=1).tuples()
        return rows[0] if rows else None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Rows as tuples, as they come. Where the loop ends early, so does the run."""
        if isinstance(self._question, _tq.Kept):
            yield from self._question.tuples()
            return
        reading = self._question.read()
        try:
            while (batch := reading.next()) is not None:
                yield from batch.tuples()
        finally:
            reading.close()

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self.schema)
        return f"<tq.{type(self).__name__}: {columns or 'no columns'}>"

    def __str__(self) -> str:
        """The first rows as a table, with people's times."""
        if not self.columns:
            return ""
        shown = self._kept(limit=ROWS_SHOWN + 1)
        return shown.text(ROWS_SHOWN) + ("…\n" if len(shown) > ROWS_SHOWN else "")

    def _repr_html_(self) -> str:
        if not self.columns:
            return ""
        shown = self._kept(limit=ROWS_SHOWN + 1)
        more = f"<p>the first {ROWS_SHOWN} rows</p>" if len(shown) > ROWS_SHOWN else ""
        return f"<div>{shown.html(ROWS_SHOWN)}{more}</div>"


class Collected(Result):
    """Rows that are kept: reading them runs nothing."""

    _question: _tq.Kept

    def __len__(self) -> int:
        return len(self._question)
