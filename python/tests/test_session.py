"""Opening, asking, and what goes wrong."""

import warnings

import pytest
from conftest import FIXTURES, TINY

import tq


def test_traces_are_opened_by_path_pattern_and_name():
    with tq.open(str(TINY)) as session:
        assert (session.runs, session.tick) == (["kineto_tiny"], "ns")
    with tq.open(FIXTURES / "chrome" / "kineto_*.json") as session:
        assert session.runs == ["kineto_tiny"]
    with tq.open(f"base={TINY}", new=TINY) as session:
        assert session.runs == ["base", "new"]
        assert repr(session) == "<tq.Session: base, new; times in ns>"
    assert repr(session) == "<tq.Session: closed>"


def test_options_reach_the_engine():
    log = FIXTURES / "table/steps.csv"
    options = {"table.start": "begin_us:us", "table.duration": "dur_us:us", "table.name": "op", "table.location": "thread"}
    with tq.open(log, options=options, run_args={"machine": "a"}, slice=("100us", None), memory="300MB", threads=1) as session:
        assert session.sql("SELECT count(*) FROM tasks").fetchone() == (5,)
        assert session.sql("SELECT args->>'machine' FROM runs").fetchone() == ("a",)
        assert session.sql("SELECT slice_from()").fetchone() == (100_000,)
        assert session.memory[1] == 300_000_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict(memory="much"), "`memory`:"),
        (dict(threads=0), "`threads`: one thread is the least"),
        (dict(from_format="chrom"), "no format `chrom`; did you mean `chrome`?"),
        (dict(slice=("5ms", "1ms")), "the slice is empty"),
    ],
)
def test_wrong_options_say_which(given, said):
    with pytest.raises(tq.TraceError, match=said.replace("?", r"\?")):
        tq.open(TINY, **given)


def test_a_trace_that_is_not_there_says_what_is():
    with pytest.raises(tq.TraceError) as raised:
        tq.open(FIXTURES / "chrome/kineto_tin.json")
    assert "no such file" in raised.value.what and "kineto_tiny.json" in str(raised.value)
    with pytest.raises(tq.TraceError, match="no file is called like"):
        tq.open(FIXTURES / "*.nothing")


def test_what_was_lost_is_a_warning_and_a_row():
    with pytest.warns(tq.TraceWarning, match="3 lost in 35 records") as warned:
        session = tq.open(FIXTURES / "chrome/phases.json")
    assert warned[0].filename == __file__
    assert ("lost", 3) in session.sql("SELECT severity, sum(count) FROM import_stats GROUP BY severity").fetchall()
    with pytest.raises(tq.TraceError, match="lost"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tq.open(FIXTURES / "chrome/phases.json", strict=True)


def test_notes_of_functions_are_warnings(tiny):
    with pytest.warns(tq.TraceNote, match="critical_path: there are no dependency links"):
        assert tiny.critical_path().fetchall() == []


def test_errors_say_what_where_and_what_next(tiny):
    with pytest.raises(tq.QueryError) as raised:
        tiny.sql("SELECT name,\n  bussy(start, finish)\nFROM tasks")
    error = raised.value
    assert error.what == "no function `bussy`"
    assert error.excerpt.splitlines() == ["  |", "2 |   bussy(start, finish)", "  |   ^^^^^"]
    assert "`busy`" in str(error).splitlines()[-1]
    with pytest.raises(tq.QueryError, match="no statement in the SQL"):
        tiny.sql(" ")
    with pytest.raises(tq.QueryError, match="only the last statement may be a question"):
        tiny.sql("SELECT 1; SELECT 2")


def test_values_of_parameters_have_types(tiny):
    result = tiny.sql("SELECT $a + 1 AS a, $b AS b, $c AS c, $d AS d, $e AS e", a=2**40, b="it's", c=None, d=True, e=0.5)
    assert result.fetchall() == [(2**40 + 1, "it's", None, True, 0.5)]
    with pytest.raises(tq.QueryError, match=r"no value for `\$a`") as raised:
        tiny.sql("SELECT $a")
    assert "hint: `a=…` gives it one" in str(raised.value)
    with pytest.raises(tq.QueryError, match=r"no statement has `\$b`"):
        tiny.sql("SELECT $a", a=1, b=2)
    with pytest.raises(TypeError, match="`a` is a `dict`"):
        tiny.sql("SELECT $a", a={1: 2})
    with pytest.raises(OverflowError, match="`a` is beyond the 64 bits"):
        tiny.sql("SELECT $a", a=2**63)


def test_definitions_take_effect_once(tiny):
    made = tiny.sql("CREATE TABLE mine AS SELECT 1 AS one")
    assert made.columns == [] and made.collect().columns == [] and made.collect().columns == [] and made.fetchall() == []
    assert tiny.sql("CREATE VIEW two AS SELECT one + 1 AS two FROM mine; SELECT two FROM two").fetchall() == [(2,)]
    with tq.open(TINY, read_only=True) as session, pytest.raises(tq.QueryError):
        session.sql("CREATE VIEW mine AS SELECT 1")


def test_saved_queries_are_asked_by_name_and_by_file(tiny, tmp_path):
    assert [len(row) for row in tiny.query("longest-tasks", limit=2).fetchall()] == [6, 6]
    file = tmp_path / "mine.sql"
    file.write_text("-- title: Mine\n-- param least: BIGINT = 0\nSELECT count(*) AS n FROM tasks WHERE duration > $least\n")
    assert tiny.query(file, least=100_000).fetchone() == (3,)
    with pytest.raises(tq.QueryError, match="did you mean `longest-tasks`"):
        tiny.query("longest-task")
    with pytest.raises(tq.QueryError, match="needs rows in `links`"):
        tiny.query("critical-path-length")
    assert [query.name for query in tiny.queries("longest tasks")] == ["longest-tasks"]
    assert "<td>longest-tasks</td>" in tiny.queries()._repr_html_()


def test_what_there_is_can_be_listed(tiny):
    assert ("tasks", "table") in [row[:2] for row in tiny.tables()]
    assert ("start", "BIGINT", "ticks") in [row[:3] for row in tiny.tables("tasks")]
    with pytest.raises(tq.QueryError, match="no table `taks`\nhint: did you mean `tasks`"):
        tiny.tables("taks")
    busy = next(function for function in tiny.functions("busy") if function.name == "busy")
    assert busy.kind == "aggregate" and busy.is_own and str(busy).startswith("busy(start, finish, [from, to])")
    assert "physical_plan:" in tiny.explain("SELECT 1") and "rows" in tiny.explain("SELECT count(*) FROM tasks", analyze=True)


def test_values_may_be_lists(tiny):
    names = [name for name, in tiny.sql("SELECT DISTINCT name FROM tasks ORDER BY name LIMIT 2").fetchall()]
    count = tiny.sql("SELECT count(*) FROM tasks WHERE name = $one OR name = $two", one=names[0], two=names[1]).fetchall()
    assert tiny.sql("SELECT count(*) FROM tasks WHERE name = ANY($names)", names=names).fetchall() == count
    assert tiny.sql("SELECT count(*) FROM tasks WHERE array_has($names, name)", names=tuple(names)).fetchall() == count
    assert tiny.sql("SELECT $all AS it", all=[1, None, 3]).fetchall() == [([1, None, 3],)]
    assert tiny.sql("SELECT cardinality($all) AS it", all=[]).fetchall() == [(0,)]
    with pytest.raises(TypeError, match="values of two types"):
        tiny.sql("SELECT $all", all=[1, "a"])


def test_pictures_are_what_was_asked_for(tiny, tmp_path):
    with pytest.raises(ValueError, match="says how it is drawn"):
        tiny.chart("longest-tasks", "gantt")
    with pytest.raises(ValueError, match="end it in `.svg`"):
        tiny.chart("SELECT * FROM tasks").save(tmp_path / "x.png")
    assert tiny.chart(tiny.sql("SELECT * FROM tasks")).svg == tiny.chart("SELECT * FROM tasks", "gantt").svg


def test_an_option_that_is_misspelt_is_no_run():
    for wrong in [{"thread": 2}, {"treads": 2}, {"memry": "2GB"}]:
        with pytest.raises(TypeError, match="is no option of tq.open; did you mean `(threads|memory)`?"):
            tq.open(TINY, **wrong)
    with pytest.raises(TypeError, match="`nothing` is no option of tq.open. Other names"):
        tq.open(TINY, nothing=5)


def test_relation_functions_are_methods(tiny):
    tasks = tiny.sql("SELECT * FROM program_tasks WHERE kind = 'kernel'")
    by_sql = tiny.sql("SELECT * FROM gaps((SELECT * FROM program_tasks WHERE kind = 'kernel'), from => 0, ends => TRUE)").fetchall()
    assert by_sql and tiny.gaps(tasks, from_=0, ends=True).fetchall() == by_sql
    assert tiny.gaps("SELECT * FROM program_tasks WHERE kind = 'kernel'", from_=0, ends=True).fetchall() == by_sql
    assert tiny.self_time("tasks").fetchall() == tiny.sql("SELECT * FROM self_time(tasks)").fetchall()
    with pytest.raises(ValueError, match="is no input"):
        tiny.gaps(tiny.sql("SELECT * FROM tasks WHERE task > $a", a=0))
    assert tiny.self_time(tiny.sql("SELECT * FROM tasks -- all of them")).fetchall() == tiny.self_time("tasks").fetchall()
    for whole in ["SELECT * FROM tasks WHERE name <> ';'", "SELECT * FROM tasks;\n"]:
        assert tiny.self_time(tiny.sql(whole)).fetchall() == tiny.self_time("tasks").fetchall()
        assert tiny.self_time(whole).fetchall() == tiny.self_time("tasks").fetchall()
    with pytest.raises(tq.QueryError, match="taks") as raised:
        tiny.self_time("SELECT * FROM taks -- all")
    assert "self_time" not in str(raised.value)
    with pytest.raises(ValueError, match="is no input"):
        tiny.self_time("DROP VIEW program_tasks")
    with pytest.raises(ValueError, match="kept are no input"):
        tiny.gaps(tasks.collect())
    with tq.open(TINY) as other, pytest.raises(ValueError, match="another session"):
        other.self_time(tiny.sql("SELECT * FROM tasks"))


def test_the_methods_are_those_of_the_engine():
    import relations

    from tq import _relations

    with open(_relations.__file__, encoding="utf-8") as file:
        assert file.read() == relations.source(), "`python python/relations.py` writes it"


def test_pictures_and_pages(tiny, tmp_path):
    picture = tiny.chart("SELECT * FROM tasks")
    assert picture._repr_svg_().startswith("<svg") and "aten::mm" in picture.svg
    assert tiny.chart("SELECT name, duration FROM tasks", "bar x=duration y=name").svg.startswith("<svg")
    assert tiny.chart("gpu-kernels").svg.startswith("<svg")
    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture.svg
    with pytest.raises(tq.QueryError, match="no chart `pie`|`pie`"):
        tiny.chart("SELECT * FROM tasks", "pie x=a")
    page = tiny.report()
    assert page.html.startswith("<!DOCTYPE html>") and "sandbox" in page._repr_html_()


def test_a_closed_session_says_so_and_its_answers_stay():
    session = tq.open(TINY)
    kept, lazy = session.sql("SELECT 1").collect(), session.sql("SELECT 2")
    session.close()
    assert kept.fetchall() == [(1,)] and lazy.fetchall() == [(2,)]
    with pytest.raises(ValueError, match="the session is closed"):
        session.sql("SELECT 1")


def test_progress_is_told_to_a_function(tmp_path):
    seen = []
    with tq.open(TINY, progress=lambda path, read, total: seen.append(path)):
        pass
    # A short reading says nothing.
    assert seen == []
