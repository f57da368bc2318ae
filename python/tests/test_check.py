"""Checks as objects."""

import pytest
from conftest import TINY

import tq


@pytest.fixture
def query(tmp_path):
    file = tmp_path / "short.sql"
    file.write_text("-- title: Short\n-- param most: BIGINT = 100000\n-- expect no rows\nSELECT name, duration FROM tasks WHERE duration > $most\n")
    return file


def test_what_holds_is_true(query):
    result = tq.check(TINY, query, params={"most": 10**9})
    assert result and result.ok and not result.failed
    result.assert_ok()
    assert [check.verdict for check in result.checks] == ["held"]


def test_what_does_not_hold_shows_the_evidence(query):
    result = tq.check(TINY, query)
    (check,) = result.failed
    assert not result and check.verdict == "failed" and check.line == 3 and check.query == "short"
    assert ("train.py(1): step", 500000) in check.rows.fetchall()
    with pytest.raises(AssertionError, match=r"FAILED short: (.|\n)*train.py\(1\): step"):
        result.assert_ok()


def test_what_cannot_run_is_no_success(tmp_path, query):
    broken = tmp_path / "broken.sql"
    broken.write_text("-- expect no rows\nSELECT nothing FROM tasks\n")
    result = tq.check([TINY], broken, query, params={"most": 10**9})
    assert [check.verdict for check in result.checks] == ["not run", "held"] and not result.ok
    assert "no column `nothing`" in result.checks[0].why
    assert [check.verdict for check in tq.check("nothing.json", query).checks] == ["not run"]


def test_a_baseline_is_compared_with():
    result = tq.check(TINY, baseline=TINY)
    assert result.ok and "makespan" in str(result)
    with pytest.raises(tq.QueryError, match="`tolerance`"):
        tq.check(TINY, baseline=TINY, tolerance="much")
