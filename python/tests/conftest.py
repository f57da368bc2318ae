"""Traces that the tests open."""

import os
from pathlib import Path
from typing import Iterator

import pytest

import tq

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "fixtures"
TINY = FIXTURES / "chrome/kineto_tiny.json"


def shared(path: str) -> Path:
    """A recording outside of the repository; without it, the test says that it skips."""
    found = Path(os.environ.get("TQ_SHARED", ROOT.parent / "shared")) / path
    if not found.exists():
        pytest.skip(f"no {found}")
    return found


@pytest.fixture
def tiny() -> Iterator[tq.Session]:
    with tq.open(TINY) as session:
        yield session
