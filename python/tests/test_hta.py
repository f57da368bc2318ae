"""Figures of Holistic Trace Analysis once more, from Python."""

import csv

import pytest
from conftest import shared

import tq

NAMES = ["alexnet.json.gz", "event_sync.json.gz", "mi250.json.gz", "simple_add.json.gz"]


@pytest.mark.parametrize("name", NAMES)
def test_temporal_breakdown(name):
    trace = shared(f"traces/chrome/kineto/{name}")
    with open(shared(f"expected/hta/{name.split('.')[0]}.temporal.csv"), encoding="utf-8") as file:
        expected = list(csv.DictReader(file))
    with tq.open(trace) as session:
        rows = session.query("hta-temporal-breakdown").collect()
        ours = [dict(zip(rows.columns, row)) for row in rows.fetchall()]
    assert len(ours) == len(expected)
    for row, known in zip(ours, expected):
        for part in ["idle", "compute", "non_compute", "kernel"]:
            assert row[f"{part}_time"] == 1000 * int(known[f"{part}_time(us)"]), part
