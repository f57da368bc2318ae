"""Sessions: traces that are open."""

from __future__ import annotations

import difflib
import glob as globs
import html
import inspect
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Iterable, Literal, Mapping, Optional, Sequence, TypeVar, Union

from . import _process, _progress, _tq
from ._errors import QueryError, TraceError
from ._relations import Relations
from ._result import Result

Path = Union[str, "os.PathLike[str]"]
Value = Union[int, float, bool, str, None, Sequence[Union[int, float, bool, str, None]]]
T = TypeVar("T")


def open(
    *traces: Path,
    from_format: Optional[str] = None,
    options: Optional[Mapping[str, Any]] = None,
    run_args: Optional[Mapping[str, Any]] = None,
    runs: Optional[str] = None,
    slice: Optional[tuple[Union[int, str, None], Union[int, str, None]]] = None,
    memory: Union[int, str, None] = None,
    max_value: Union[int, str, None] = None,
    threads: Optional[int] = None,
    strict: bool = False,
    read_only: bool = False,
    cache: Optional[bool] = None,
    cluster: Optional[str] = None,
    progress: Union[bool, Callable[[str, int, Optional[int]], None], None] = None,
    **named: Path,
) -> Session:
    """Opens traces: files, folders, stores, URLs, and patterns such as `runs/*.json`.

    `"name=path"` and `name=path` name a run, so that `tq.open(base="a.json", new="b.json")` compares two.

    - `from_format` reads the traces as this format instead of recognising it; `options` are import options, e.g.
      `{"table.start": "begin:us"}`; `run_args` are noted in `runs.args`; `runs` is a pattern that picks runs of stores.
    - `slice=(from, to)` keeps what overlaps that time: ticks, or texts such as `"1.5ms"`; None is open.
    - `memory` (`"8GB"`, or bytes) limits tables and queries: three quarters of the machine's by default. `max_value` limits one text or
      list. `threads` read and answer: all cores by default.
    - `strict` makes an error of lost records, `read_only` refuses SQL that changes something, `cache` keeps what was read in the user's
      cache folder, `cluster` names workers that help with stores.
    - `progress` shows how far reading is, once it takes a second: None does in notebooks and on terminals, a function is called with
      the file, the bytes read, and how many there are (or None).

    What was repaired, lost or guessed is warned about (`TraceWarning`, `TraceNote`); the table `import_stats` has all of it.
    `TraceError` says which trace cannot be read, and why. Ctrl-C ends the waiting.
    """
    words = [word for trace in traces for word in _expanded(os.fspath(trace))]
    words += [f"{name}={os.fspath(path)}" for name, path in _paths(named)]
    if not words:
        raise TraceError("there is nothing to open", hints=['tq.open("trace.json"), or tq.from_frames(tasks=frame)'])
    given = _options(from_format, options, run_args, runs, slice, memory, max_value, threads, strict, read_only, cache, cluster)
    return _opened(words, [], given, progress)


OPTIONS = [name for name, option in inspect.signature(open).parameters.items() if option.kind is option.KEYWORD_ONLY]


def from_frames(
    *,
    tasks: Any = None,
    links: Any = None,
    messages: Any = None,
    counters: Any = None,
    events: Any = None,
    locations: Any = None,
    mapping: Optional[Mapping[str, Mapping[str, str]]] = None,
    memory: Union[int, str, None] = None,
    threads: Optional[int] = None,
    read_only: bool = False,
) -> Session:
    """DataFrames as a trace: anything with Arrow's interface (polars, pandas, pyarrow, a relation of duckdb), a frame for each table.

    `mapping` says which column means what where names differ, in the words of the format `table`:
    `{"tasks": {"start": "begin:us", "location": "worker"}}`. Columns that are not mapped stand in `args`. The run is called `frames`.

    `TraceError` says which column is missing, and suggests a mapping; `TypeError` names what has no Arrow interface.
    """
    frames = dict(tasks=tasks, links=links, messages=messages, counters=counters, events=events, locations=locations)
    mapping = mapping or {}
    for table in mapping:
        if frames.get(table) is None:
            raise ValueError(f"`mapping` has columns of `{table}`, of which there is no frame")
    given = [(table, _pairs(mapping.get(table)), rows) for table, rows in frames.items() if rows is not None]
    if not given:
        raise TraceError("there is nothing to open", hints=["tq.from_frames(tasks=frame)"])
    options = _options(None, None, None, None, None, memory, None, threads, False, read_only, None, None)
    return _opened([], given, options, False)


def _opened(words: list[str], frames: list[tuple[str, list[tuple[str, str]], Any]], given: dict[str, Any], progress: Any) -> Session:
    _process.ready()
    shown = _progress.usual() if progress is None or progress is True else progress or None
    return Session(_tq.open(words, frames, given, shown))


def _paths(named: Mapping[str, Path]) -> Iterable[tuple[str, Path]]:
    for name, path in named.items():
        near = difflib.get_close_matches(name, OPTIONS, 1)
        is_path = isinstance(path, (str, os.PathLike))
        if not is_path or (near and not os.path.exists(path) and "://" not in str(path)):
            meant = f"; did you mean `{near[0]}`?" if near else "."
            raise TypeError(f"`{name}` is no option of tq.open{meant} Other names are those of runs, and have paths")
        yield name, path


def _expanded(trace: str) -> Iterable[str]:
    if os.path.exists(trace) or "://" in trace or not globs.has_magic(trace):
        return [trace]
    found = sorted(globs.glob(trace, recursive=True))
    if not found:
        raise TraceError(f"no file is called like `{trace}`", hints=[f"the current folder is `{os.getcwd()}`"])
    return found


def _pairs(given: Optional[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(str(key), _text(value)) for key, value in (given or {}).items()]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(
    from_format: Optional[str],
    options: Optional[Mapping[str, Any]],
    run_args: Optional[Mapping[str, Any]],
    runs: Optional[str],
    slice: Optional[tuple[Union[int, str, None], Union[int, str, None]]],
    memory: Union[int, str, None],
    max_value: Union[int, str, None],
    threads: Optional[int],
    strict: bool,
    read_only: bool,
    cache: Optional[bool],
    cluster: Optional[str],
) -> dict[str, Any]:
    begin, end = slice or (None, None)
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 0):
        raise ValueError(f"`threads` is a whole number from 1 on, not {threads!r}")

    def optional(value: Any) -> Optional[str]:
        return None if value is None else str(value)

    return {
        "from_format": from_format,
        "options": _pairs(options),
        "run_args": _pairs(run_args),
        "runs": runs,
        "from_time": optional(begin),
        "to_time": optional(end),
        "memory": optional(memory),
        "max_value": optional(max_value),
        "threads": threads,
        "strict": strict,
        "read_only": read_only,
        "cache": cache,
        "cluster": cluster,
    }


@dataclass(frozen=True)
class SavedQuery:
    """A saved query: its name, the question that it answers, its topic, what the traces must hold, and its parameters."""

    name: str
    title: str
    topic: str
    needs: str
    params: list[str]


@dataclass(frozen=True)
class Function:
    """A function of SQL: `kind` is scalar, aggregate, window or relation; `is_own` tells those of tq from those of the database."""

    name: str
    kind: str
    is_own: bool
    syntax: str
    description: str

    def __str__(self) -> str:
        return f"{self.syntax}\n\n{self.description}"


class Listing(list[T]):
    """A list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [vars(entry) for entry in self]
        names = list(rows[0]) if rows else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in names)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return html.escape(", ".join(value) if isinstance(value, list) else str(value).split("\n\n")[0])


class Picture:
    """A picture as SVG, which a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: Path) -> None:
        """Writes it into a file, whose name ends in `.svg`: `ValueError` for others."""
        if not os.fspath(path).lower().endswith(".svg"):
            raise ValueError(f"a picture is SVG, and `{os.fspath(path)}` says something else: end it in `.svg`")
        with _io_open(path) as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<tq.Picture: {len(self.svg)} bytes of SVG>"


class Page:
    """A page of HTML that needs nothing else, which a notebook shows in a frame. `unanswered` says why parts of it have no answer."""

    def __init__(self, text: str, unanswered: list[str]) -> None:
        self.html = text
        self.unanswered = unanswered

    def save(self, path: Path) -> None:
        """Writes it into a file."""
        with _io_open(path) as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        source = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{source}" sandbox="allow-scripts" style="width:100%;height:800px;border:0"></iframe>'

    def __repr__(self) -> str:
        return f"<tq.Page: {len(self.html)} bytes of HTML>"


def _io_open(path: Path) -> Any:
    import io

    return io.open(path, "w", encoding="utf-8")


class Session(Relations):
    """Traces that are open. `tq.open` and `tq.from_frames` make it; `with` closes it.

    Threads may ask at the same time: each question has threads of its own, and the interpreter's lock is free meanwhile. After a fork, the
    child's copy refuses questions.
    """

    def __init__(self, session: _tq.Session) -> None:
        self._session = session

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes it. What it holds is released with the last of its answers."""
        self._session.close()

    @property
    def tick(self) -> Literal["ns", "ps", "weights"]:
        """The length of a tick, the unit of all times; `weights` where samples were counted."""
        return self._session.tick

    @property
    def runs(self) -> list[str]:
        """The names of the runs; the table `runs` has more."""
        return self._session.runs

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes that tables and queries have now, and may have."""
        return self._session.memory

    def sql(self, text: str, /, **params: Value) -> Result:
        """The answer of SQL. Keyword arguments are the values of `$name` in it; a list is one for `name = ANY($names)`.

        What is wrong with the text shows at once (`QueryError`, with the place); rows are computed when the result is read. `CREATE VIEW` and
        other definitions take effect at once. Of several statements, only the last may be a question.
        """
        question = self._session.ask(text, params)
        return Result(question, text, question.text, self)

    def query(self, name: Path, /, **params: Value) -> Result:
        """The answer of a saved query: by its name (`queries()` lists them) or the path of an `.sql` file.

        `QueryError` says what the traces lack that it needs, or which parameter is wrong.
        """
        word = os.fspath(name)
        return Result(self._session.ask_saved(word, _pairs(params)), word, None, self)

    def queries(self, word: Optional[str] = None) -> Listing[SavedQuery]:
        """The saved queries; with a word, those that have it in their name or title."""
        found = (SavedQuery(*query) for query in _tq.queries())
        return Listing(one for one in found if word is None or word.lower() in f"{one.name} {one.title}".lower())

    def tables(self, name: Optional[str] = None) -> Result:
        """Tables and views with their descriptions; with a name, its columns: name, type, unit (`ticks` for times) and description."""
        if name is None:
            return self.sql("SELECT name, kind, description FROM docs.tables")
        names = [str(known) for known, in self.sql("SELECT DISTINCT table_name FROM docs.columns").fetchall()]
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            raise QueryError(f"there is no table `{name}`", hints=[f"did you mean `{near[0]}`?" if near else "`session.tables()` lists them"])
        return self.sql("SELECT name, type, unit, description FROM docs.columns WHERE table_name = $name", name=name)

    def functions(self, word: Optional[str] = None) -> Listing[Function]:
        """The functions of SQL; with a word, those that have it in their name."""
        found = (Function(*function) for function in self._session.functions())
        return Listing(one for one in found if word is None or word.lower() in one.name)

    def import_stats(self) -> Result:
        """What was read, repaired, lost and guessed: one row for each kind of it in each run."""
        return self.sql("SELECT * FROM import_stats")

    def explain(self, text: str, /, *, analyze: bool = False, **params: Value) -> str:
        """The plan of SQL as text; with `analyze`, it runs, and the plan has rows and times of each operator."""
        rows = self.sql(f"EXPLAIN {'ANALYZE ' if analyze else ''}{text}", **params).fetchall()
        return "\n".join(f"{kind}:\n{plan}" for kind, plan in rows)

    def chart(self, question: Union[str, Result], chart: Optional[str] = None, /, **params: Value) -> Picture:
        """A picture of the answer of SQL: `gantt`, `bar x=duration y=name`, `line x=start y=value` and what `docs/charts.md` has.

        Given the name of a saved query, its picture.
        """
        if isinstance(question, Result):
            if question.session is not self or question.relation is None:
                raise ValueError("a picture is of an answer of this session without parameters, and of one statement: give its SQL")
            question = question.relation
        if not any(letter.isspace() for letter in question.strip()):
            if chart is not None:
                raise ValueError(f"the saved query `{question}` says how it is drawn: leave `{chart}` away, or give its SQL")
            return Picture(self._session.draw_saved(question, _pairs(params)))
        return Picture(self._session.draw(question, chart or "gantt", params))

    def report(self) -> Page:
        """The page that `tq report` writes: facts in words, then the evidence with pictures and a time line."""
        return Page(*self._session.report())

    def __repr__(self) -> str:
        if self._session.is_closed:
            return "<tq.Session: closed>"
        return f"<tq.Session: {', '.join(self.runs[:4])}{', …' if len(self.runs) > 4 else ''}; times in {self.tick}>"
