"""DataFrames as traces."""

import warnings

import pytest

import tq

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")

ROWS = {"begin": [0.0, 1.5], "dur": [1.0, 2.0], "op": ["a", "b"], "worker": ["w0", "w1"], "extra": [1, 2]}
MAPPING = {"tasks": {"start": "begin:us", "duration": "dur:us", "name": "op", "location": "worker"}}
SEEN = [("a", "w0", 0, 1000, '{"extra":1}'), ("b", "w1", 1500, 3500, '{"extra":2}')]


def seen(frame):
    with tq.from_frames(tasks=frame, mapping=MAPPING) as session:
        return session.sql("SELECT name, location, start, finish, args FROM tasks ORDER BY start").fetchall()


def test_frames_of_pandas_and_pyarrow():
    assert seen(pandas.DataFrame(ROWS)) == SEEN
    assert seen(pandas.DataFrame(ROWS).astype({"op": "category"})) == SEEN
    assert seen(pyarrow.table(ROWS)) == SEEN
    assert seen(pyarrow.concat_tables([pyarrow.table(ROWS).slice(0, 1), pyarrow.table(ROWS).slice(1)])) == SEEN


def test_frames_of_polars_and_duckdb():
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    frame = polars.DataFrame(ROWS)
    assert seen(frame) == SEEN and seen(frame.with_columns(polars.col("op").cast(polars.Categorical))) == SEEN
    assert seen(duckdb.sql("FROM frame")) == SEEN


def test_dates_and_lengths():
    frame = pandas.DataFrame({"start": pandas.to_datetime(["2026-01-01", "2026-01-02"]), "duration": pandas.to_timedelta([1, 2], unit="s")})
    with tq.from_frames(tasks=frame) as session:
        assert session.sql("SELECT start, duration FROM tasks ORDER BY start").fetchall() == [(0, 10**9), (86400 * 10**9, 2 * 10**9)]


def test_several_tables_and_functions_over_them():
    tasks = pandas.DataFrame({"id": ["a", "b", "c"], "begin": [0, 4, 5], "end": [4, 5, 9]})
    links = pandas.DataFrame({"source": ["a"], "target": ["c"]})
    with tq.from_frames(tasks=tasks, links=links, mapping={"tasks": {"start": "begin:ns", "finish": "end:ns"}}) as session:
        assert session.critical_path().df()[["task", "path_time"]].values.tolist() == [[0, 4], [2, 8]]


def test_an_answer_is_a_frame(tiny):
    with tq.from_frames(tasks=tiny.sql("SELECT name, start, finish FROM tasks WHERE kind = 'kernel'"), mapping={"tasks": {"time_unit": "ns"}}) as session:
        assert session.sql("SELECT count(*) FROM tasks").fetchone() == (2,)


def test_what_is_wrong_with_a_frame_is_said():
    with pytest.raises(tq.TraceError) as raised:
        tq.from_frames(tasks=pandas.DataFrame(ROWS))
    assert raised.value.what.startswith("tasks.arrows: a task needs `start` or `duration`")
    assert 'hint: mapping={"tasks": {"start": "begin", "duration": "dur"' in str(raised.value)
    with pytest.raises(TypeError, match="`list` has no `__arrow_c_stream__`"):
        tq.from_frames(tasks=[1])
    with pytest.raises(ValueError, match="`mapping` has columns of `links`"):
        tq.from_frames(tasks=pandas.DataFrame(ROWS), mapping={"links": {}})
    with pytest.raises(tq.TraceError, match="nothing to open"):
        tq.from_frames()


def test_a_stream_that_fails_is_an_error():
    def batches():
        yield pyarrow.record_batch(ROWS)
        raise ValueError("no more")

    reader = pyarrow.RecordBatchReader.from_batches(pyarrow.table(ROWS).schema, batches())
    with pytest.raises(tq.TraceError, match="no more"):
        tq.from_frames(tasks=reader, mapping=MAPPING)


def test_what_a_frame_raises_is_raised():
    class Raises:
        def __init__(self, error):
            self.error = error

        def __arrow_c_stream__(self, requested_schema=None):
            raise self.error

    with pytest.raises(KeyboardInterrupt):
        tq.from_frames(tasks=Raises(KeyboardInterrupt()))
    with pytest.raises(tq.TraceError, match="rows of `tasks`: .*boom") as raised:
        tq.from_frames(tasks=Raises(RuntimeError("boom")))
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_batches_that_do_not_fit_and_columns_of_nothing():
    table = pyarrow.table({"start": [0, 5], "duration": [3, 2], "name": ["a", "b"], "location": ["x", "y"]})
    unit = {"tasks": {"time_unit": "ns"}}
    other = pyarrow.RecordBatchReader.from_batches(table.schema, (batch for batch in pyarrow.table({"start": [1]}).to_batches()))
    with pytest.raises(tq.TraceError, match="rows of `tasks`: .*does not have the columns"):
        tq.from_frames(tasks=other, mapping=unit)
    nothing = table.set_column(0, "start", pyarrow.nulls(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tq.from_frames(tasks=nothing, mapping=unit) as session:
            assert session.sql("SELECT start, args FROM tasks").fetchall() == [(None, None)] * 2


def test_two_relations_of_one_connection():
    duckdb = pytest.importorskip("duckdb")
    tasks = duckdb.sql("SELECT 1 AS id, 0 AS start, 5 AS finish, 'l' AS location UNION ALL SELECT 2, 6, 9, 'l'")
    with tq.from_frames(tasks=tasks, links=duckdb.sql("SELECT 1 AS source, 2 AS target")) as session:
        assert session.sql("SELECT count(*) FROM tasks").fetchone() == (2,) and session.sql("SELECT count(*) FROM links").fetchone() == (1,)
