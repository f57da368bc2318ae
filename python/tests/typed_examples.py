"""Examples that a type checker reads and a test runs."""

from pathlib import Path
from typing import Optional

import tq
from tq.perfetto import TraceProcessor

TINY = Path(__file__).resolve().parent.parent.parent / "fixtures/chrome/kineto_tiny.json"


def busiest(trace: Path) -> Optional[tuple[object, ...]]:
    """The location that was busy longest."""
    with tq.open(trace, threads=1, progress=False) as session:
        result: tq.Result = session.sql("SELECT location, busy(start, finish) AS busy_time FROM tasks WHERE start >= $from GROUP BY location ORDER BY busy_time DESC", **{"from": 0})
        return result.fetchone()


def names(trace: Path) -> list[str]:
    """The names of the columns of the gaps between kernels."""
    with tq.open(trace) as session:
        kernels: tq.Collected = session.sql("SELECT * FROM tasks WHERE kind = 'kernel'").collect()
        gaps: tq.Result = session.gaps("SELECT * FROM tasks WHERE kind = 'kernel'", from_=0, ends=True)
        count: int = len(kernels)
        return gaps.columns if count else []


def held(trace: Path) -> bool:
    """Whether a trace is as fast as itself."""
    result: tq.CheckResult = tq.check(trace, baseline=[trace])
    verdicts: set[str] = {check.verdict for check in result.checks}
    return result.ok and verdicts == {"held"}


def slices(trace: Path) -> int:
    """How many slices there are, in Perfetto's words."""
    with TraceProcessor(trace=trace) as processor:
        return len(processor.query("SELECT name FROM slice"))


if __name__ == "__main__":
    print(busiest(TINY), names(TINY), held(TINY), slices(TINY))
