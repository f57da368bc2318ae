"""`tq check` for tests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional, Union

from . import _process, _tq
from ._result import Collected
from ._session import Path, _options, _pairs


@dataclass(frozen=True)
class Check:
    """How one check ended: `why` says it in words, `rows` are the rows that offend, the worst first, or None."""

    query: str
    file: str
    line: int
    what: str
    verdict: Literal["held", "failed", "not run", "skipped", "noted"]
    why: str
    rows: Optional[Collected]


class CheckResult:
    """How all checks ended. It is true when each that ran held, and every one could run; `str()` is what `tq check` prints."""

    def __init__(self, checks: list[Check], text: str) -> None:
        self.checks = checks
        self.text = text

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and nothing could not be found out."""
        return all(check.verdict not in ("failed", "not run") for check in self.checks)

    @property
    def failed(self) -> list[Check]:
        """Those that did not hold, or could not run."""
        return [check for check in self.checks if check.verdict in ("failed", "not run")]

    def assert_ok(self) -> None:
        """Raises `AssertionError` with the evidence where a check did not hold or could not run."""
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError("\n" + self.text)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def check(
    traces: Union[Path, list[Path]],
    *queries: Path,
    baseline: Union[Path, list[Path], None] = None,
    tolerance: Optional[str] = None,
    params: Optional[Mapping[str, Any]] = None,
    expected: Optional[list[Path]] = None,
    allow_skip: bool = False,
    from_format: Optional[str] = None,
    options: Optional[Mapping[str, Any]] = None,
    memory: Union[int, str, None] = None,
    threads: Optional[int] = None,
) -> CheckResult:
    """Checks saved queries on traces: what they expect, and their metrics against a baseline.

    `queries` are files with `expect` and `metric` lines, folders of them, or names of saved queries; without any, makespan, busy time
    and critical path are compared with the baseline, of which `tolerance` says how much worse they may get (`"10%"`, `"2ms"`; 5 % by
    default). `params` are for the queries that declare them, `expected` files that `expect same as:` may name elsewhere.

        tq.check("run.json", "latency.sql", baseline="good.json").assert_ok()
    """
    _process.ready()
    given = _options(from_format, options, None, None, None, memory, None, threads, False, True, None, None)
    outcomes, text = _tq.check(
        _words(traces),
        [os.fspath(query) for query in queries],
        _words(baseline),
        tolerance,
        _pairs(params),
        [os.fspath(file) for file in expected or []],
        allow_skip,
        given,
    )
    checks = []
    for query, file, line, what, verdict, why, rows in outcomes:
        kept = None if rows is None else Collected(rows, what, None)
        checks.append(Check(query, file, line, what, verdict, why, kept))
    return CheckResult(checks, text)


def _words(traces: Union[Path, list[Path], None]) -> list[str]:
    if traces is None:
        return []
    return [os.fspath(trace) for trace in (traces if isinstance(traces, list) else [traces])]
