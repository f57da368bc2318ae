"""Answers: values, types, and who reads them."""

import datetime
import decimal

import pytest
from conftest import FIXTURES, TINY

import tq

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

TASKS = "SELECT task, name, start, finish, duration, location FROM tasks ORDER BY task"


def test_a_result_is_read_any_number_of_times(tiny):
    result = tiny.sql(TASKS)
    rows = result.fetchall()
    assert len(rows) == 10 and rows == result.fetchall() == list(result) == result.collect().fetchall()
    assert rows[0] == (0, "train.py(1): step", 0, 500000, 500000, "10/11") == result.fetchone()
    assert len(result.collect()) == 10


def test_the_metadata_says_which_columns_are_times(tiny):
    schema = {column.name: (column.type, column.tick) for column in tiny.sql(TASKS).schema}
    assert schema["start"] == ("Int64", "ns") and schema["task"] == ("Int64", None) and schema["name"] == ("Utf8View", None)
    field = pyarrow.table(tiny.sql(TASKS)).schema.field("duration")
    assert field.metadata == {b"tq.time": b"ticks", b"tq.tick": b"ns"}


def test_everybody_reads_the_same(tiny):
    result = tiny.sql(TASKS)
    rows = result.fetchall()
    assert list(map(tuple, pyarrow.table(result).to_pandas().itertuples(index=False))) == rows
    assert list(map(tuple, result.df().itertuples(index=False))) == rows
    assert [tuple(row.values()) for row in result.arrow().to_pylist()] == rows


def test_frames_have_lists_of_words_and_names_that_repeat(tiny):
    result = tiny.sql("SELECT location, array_agg(name ORDER BY name) AS names, {'n': min(name)} AS least FROM tasks GROUP BY location ORDER BY 1")
    frame = result.df()
    assert [list(names) for names in frame["names"]] == [names for _, names, _ in result.fetchall()]
    assert list(frame["least"]) == [least for _, _, least in result.fetchall()]
    twice = tiny.sql("SELECT 1 AS a, NULL::BIGINT AS a UNION ALL SELECT 3, 4 ORDER BY 1").df()
    assert list(twice.columns) == ["a", "a"]
    assert list(twice.iloc[:, 0]) == [1, 3] and twice.iloc[:, 1].isna().tolist() == [True, False] and twice.iloc[1, 1] == 4


def test_values_are_those_of_python(tiny):
    zero = datetime.timedelta()
    for sql, value in {
        "1.25::DECIMAL(5,2)": decimal.Decimal("1.25"),
        "DATE '2026-02-28'": datetime.date(2026, 2, 28),
        "TIME '12:34:56.789'": datetime.time(12, 34, 56, 789000),
        "arrow_cast(5, 'Duration(Second)')": datetime.timedelta(seconds=5),
        "TIMESTAMP '2026-02-28 12:00:00'": datetime.datetime(2026, 2, 28, 12),
        "MAP {'a': 1}": [("a", 1)],
        "arrow_cast([1, 2], 'FixedSizeList(2, Int64)')": [1, 2],
        "arrow_cast(x'0102', 'FixedSizeBinary(2)')": b"\x01\x02",
        "arrow_cast(0, 'Duration(Nanosecond)')": zero,
    }.items():
        found = tiny.sql(f"SELECT {sql} AS v, NULL AS n UNION ALL SELECT NULL, NULL").fetchall()
        assert (value, None) in found and (None, None) in found, sql
        assert type(next(v for v, _ in found if v is not None)) is type(value), sql
    with pytest.raises(OverflowError):
        tiny.sql("SELECT arrow_cast(-9223372036854775808, 'Timestamp(Second, None)')").fetchall()
    with pytest.raises(OverflowError, match="beyond the years"):
        tiny.sql("SELECT arrow_cast(9223372036854775807, 'Timestamp(Microsecond, None)')").fetchall()
    with pytest.raises(TypeError, match="two fields of one name"):
        tiny.sql("SELECT named_struct('a', 1, 'a', 2)").fetchall()


def test_what_is_shown_in_part_says_its_notes():
    with tq.open(FIXTURES / "tfprof/wavefront_40.tfp") as session:
        path = session.critical_path("SELECT * FROM tasks WHERE duration > us(5)")
        for show in [str, lambda shown: shown._repr_html_(), lambda shown: shown.fetchone(), lambda shown: session.chart(shown)]:
            with pytest.warns(tq.TraceNote, match="critical_path"):
                show(path)


def test_weights_stay_whole_numbers():
    with tq.open(FIXTURES / "folded/solver.folded") as session:
        frame = session.sql("SELECT a.task, b.start FROM tasks a LEFT JOIN tasks b ON b.task = a.task AND a.task > 0 ORDER BY 1").df(times="timedelta")
    assert str(frame["start"].dtype) == "Int64" and frame["start"].isna().sum() == 1


def test_polars_and_duckdb_read_it(tiny):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    result = tiny.sql(TASKS)
    rows = result.fetchall()
    assert polars.DataFrame(result).rows() == rows == result.pl().rows()
    assert duckdb.sql("FROM result ORDER BY task").fetchall() == rows
    assert duckdb.sql("SELECT count(*) FROM result").fetchall() == [(10,)]


def test_words_are_views_or_one_dictionary(tiny):
    many = tiny.sql("SELECT name FROM tasks UNION ALL SELECT name FROM tasks UNION ALL SELECT location FROM tasks")
    assert {chunk.type for chunk in pyarrow.table(many).column(0).chunks} == {pyarrow.string_view()}
    frame = many.df(words="category")
    assert frame.dtypes.iloc[0] == "category" and frame.iloc[:, 0].astype(object).tolist() == [row[0] for row in many]


def test_words_of_frames_are_those_of_rows(tiny):
    result = tiny.sql(
        "SELECT name, NULLIF(name, (SELECT min(name) FROM tasks)) AS some, name || location AS made, [name, NULL] AS list FROM tasks"
    )
    frame = result.df()
    rows = [
        (name, None if pandas.isna(some) else some, made, list(words))
        for name, some, made, words in frame.itertuples(index=False, name=None)
    ]
    assert rows == result.fetchall()
    assert any(row[1] is None for row in rows) and any(row[1] is not None for row in rows)
    words = ["name", "some", "made"]
    assert result.collect().df()[words].equals(frame[words])


def test_whole_numbers_with_nulls_stay_whole(tiny):
    frame = tiny.sql("SELECT * FROM (VALUES (9007199254740993, 1), (NULL, 2)) AS t(a, b)").df()
    assert list(frame.columns) == ["a", "b"] and str(frame.dtypes["a"]) == "Int64" and str(frame.dtypes["b"]) == "int64"
    assert frame["a"].iloc[0] == 9007199254740993 and frame["a"].iloc[1] is pandas.NA


def test_times_become_timedeltas_exactly(tiny):
    frame = tiny.sql(TASKS + " LIMIT 1").df(times="timedelta")
    assert frame["duration"].iloc[0] == pandas.Timedelta(500_000, unit="ns") and str(frame.dtypes["start"]) == "timedelta64[ns]"
    assert str(frame.dtypes["task"]) == "int64"
    frame = tiny.sql("SELECT CAST(NULL AS BIGINT) AS duration").df(times="timedelta")
    assert frame["duration"].isna().all()
    with pytest.raises(ValueError, match="'ticks' or 'timedelta'"):
        tiny.sql(TASKS).df(times="seconds")


def test_picoseconds_that_do_not_fit_are_an_error():
    frame = pyarrow.table({"start": [0, 1500], "duration": [1000, 2000]})
    mapping = {"tasks": {"start": "start:ps", "duration": "duration:ps"}}
    with tq.from_frames(tasks=frame, mapping=mapping) as session:
        assert session.tick == "ps"
        result = session.sql("SELECT start, duration FROM tasks ORDER BY start")
        assert result.fetchall() == [(0, 1000), (1500, 2000)]
        assert session.sql("SELECT duration FROM tasks").df(times="timedelta")["duration"].tolist() == [
            pandas.Timedelta(1, unit="ns"),
            pandas.Timedelta(2, unit="ns"),
        ]
        with pytest.raises(ValueError, match="`start` has picoseconds"):
            result.df(times="timedelta")


def test_values_of_every_kind(tiny):
    ask = lambda sql: tiny.sql(f"SELECT {sql} AS it").fetchone()[0]  # noqa: E731
    assert ask("[1, NULL, 3]") == [1, None, 3]
    assert ask("named_struct('a', 1, 'b', 'x')") == {"a": 1, "b": "x"}
    assert ask("TIMESTAMP '2026-01-02 03:04:05.000006'") == datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
    assert ask("arrow_cast(0.5, 'Float32')") == 0.5 and ask("arrow_cast('x', 'Binary')") == b"x"
    assert ask("DATE '2026-01-02'") == datetime.date(2026, 1, 2) and ask("NULL") is None
    assert ask("arrow_cast(18446744073709551615, 'UInt64')") == 2**64 - 1
    started = tiny.sql("SELECT started_at FROM runs").fetchone()[0]
    assert started == datetime.datetime(2023, 11, 14, 22, 13, 20, 1000, tzinfo=datetime.timezone.utc)


def test_answers_without_rows_and_columns_of_many_batches(tiny):
    none = tiny.sql("SELECT name, start FROM tasks WHERE false")
    assert none.fetchall() == [] and none.fetchone() is None and list(none.df().columns) == ["name", "start"]
    many = tiny.sql("SELECT value AS start FROM generate_series(1, 200000)")
    assert many.df()["start"].tolist() == list(range(1, 200001)) and len(many.collect()) == 200000


def test_fixed_width_columns_are_not_copied(tiny):
    polars = pytest.importorskip("polars")
    kept = tiny.sql("SELECT value AS start, value / 2.0 AS half FROM generate_series(1, 5000)").collect()
    chunks = pyarrow.table(kept).columns
    assert [column.num_chunks for column in chunks] == [1, 1]
    addresses = [column.chunk(0).buffers()[1].address for column in chunks]
    assert addresses == [column.chunk(0).buffers()[1].address for column in pyarrow.table(kept).columns]
    assert addresses == [column.to_arrow().buffers()[1].address for column in polars.DataFrame(kept).get_columns()]


def test_people_see_times_with_units(tiny):
    result = tiny.sql(TASKS)
    assert " 90.1 µs │" in str(result) and "<td>aten::mm</td>" in result._repr_html_()
    longer = tiny.sql("SELECT value FROM generate_series(1, 100)")
    assert str(longer).endswith("…\n") and "the first 20 rows" in longer._repr_html_()
    assert repr(tiny.sql("SELECT 1 AS a")) == "<tq.Result: a Int64>"
    hostile = tiny.sql("SELECT '<script>alert(1)</script>' AS a")
    assert "<script" not in hostile._repr_html_()


def test_missing_packages_say_what_to_install(tiny, monkeypatch):
    import sys

    for module, call, extra in [("polars", "pl", "polars"), ("pyarrow", "arrow", "pyarrow"), ("pandas", "df", "pandas")]:
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.delitem(sys.modules, "tq._frames", raising=False)
        monkeypatch.delattr(tq, "_frames", raising=False)
        with pytest.raises(ImportError, match=rf"pip install 'tq-traces\[{extra}\]'"):
            getattr(tiny.sql("SELECT 1"), call)()
        monkeypatch.undo()


def test_an_answer_beyond_the_limit_is_an_error_and_the_session_goes_on():
    with tq.open(TINY, memory="64MB") as session:
        with pytest.raises(tq.LimitError, match="not enough memory") as raised:
            session.sql("SELECT a.value, b.value + 1 AS b FROM generate_series(1, 100000) a, generate_series(1, 1000) b").collect()
        assert isinstance(raised.value, MemoryError) and "`memory`" in str(raised.value)
        assert session.sql("SELECT 1").fetchall() == [(1,)]
        assert session.memory[0] < 1_000_000


def test_a_trace_beyond_the_limit_is_an_error_of_both_kinds(tmp_path):
    trace = tmp_path / "large.json"
    event = '{"ph":"X","name":"n","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"text":"' + "x" * 400 + '"}}'
    trace.write_text("[" + ",\n".join(event % number for number in range(100_000)) + "]")
    with pytest.raises(tq.TraceError, match="not enough memory") as raised:
        tq.open(trace, memory="16MB")
    assert isinstance(raised.value, tq.LimitError) and isinstance(raised.value, MemoryError)


def test_frames_equal_the_command_line(tmp_path):
    import subprocess
    import sys

    sql = "SELECT task, name, location, start, duration FROM tasks ORDER BY task"
    command = [sys.executable, "-m", "tq", "query", str(FIXTURES / "chrome/addmm_twice.json"), "-c", sql, "-o", str(tmp_path / "a.parquet")]
    subprocess.run(command, check=True)
    with tq.open(FIXTURES / "chrome/addmm_twice.json") as session:
        ours, theirs = session.sql(sql).df(), pandas.read_parquet(tmp_path / "a.parquet")
    theirs = theirs.astype({name: ours.dtypes[name] for name in ours.columns})
    pandas.testing.assert_frame_equal(ours, theirs)
