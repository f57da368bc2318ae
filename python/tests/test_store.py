"""Stores, which the command writes and sessions read; with workers, too."""

import os
import subprocess
import sys

import pytest
from conftest import TINY

import tq

COUNT = "SELECT kind, count(*) AS n, sum(duration) AS total_time FROM tasks GROUP BY kind ORDER BY kind"


@pytest.fixture
def store(tmp_path):
    subprocess.run([sys.executable, "-m", "tq", "import", str(TINY), "--into", str(tmp_path / "store")], check=True, capture_output=True)
    return tmp_path / "store"


def test_a_store_answers_as_its_traces_do(store, tiny):
    with tq.open(store) as session:
        assert session.sql(COUNT).fetchall() == tiny.sql(COUNT).fetchall()
        assert session.runs == ["kineto_tiny"]


@pytest.mark.skipif(os.name != "posix", reason="no loopback workers elsewhere")
def test_workers_of_its_own_help(store, tiny):
    with tq.open(store, cluster="local:1", memory="1GB") as session:
        assert session.sql(COUNT).fetchall() == tiny.sql(COUNT).fetchall()
