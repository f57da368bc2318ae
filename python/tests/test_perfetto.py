"""Scripts against Perfetto's Python API, whose import lines were changed."""

import pytest
from conftest import FIXTURES, TINY

import tq
from tq.perfetto import (
    BatchTraceProcessor,
    BatchTraceProcessorConfig,
    FailureHandling,
    TraceProcessor,
    TraceProcessorConfig,
    TraceProcessorException,
)

pandas = pytest.importorskip("pandas")


def test_the_first_script_of_their_page():
    tp = TraceProcessor(trace=str(TINY), config=TraceProcessorConfig(verbose=False))
    qr_it = tp.query("SELECT ts, dur, name FROM slice ORDER BY id LIMIT 2")
    assert len(qr_it) == 2
    seen = [(row.ts, row.dur, row.name) for row in qr_it]
    assert seen == [(1000000, 500000, "train.py(1): step"), (1010000, 300000, "train.py(2): forward")]
    assert str(vars(tp.query("SELECT 1 AS one, NULL AS none").__next__())) == "{'one': 1, 'none': None}"
    tp.close()


def test_frames_and_modules():
    with TraceProcessor(trace=TINY) as tp:
        frame = tp.query("INCLUDE PERFETTO MODULE slices.with_context; SELECT ts, name FROM slice WHERE name GLOB 'cuda*'").as_pandas_dataframe()
        assert frame["name"].tolist() == ["cudaLaunchKernel", "cudaStreamSynchronize"] and str(frame["ts"].dtype) == "int64"


def test_like_does_not_go_by_case():
    with TraceProcessor(trace=TINY) as tp:
        seen = tp.query("""SELECT name, 'a LIKE b' AS "like" FROM slice -- LIKE
            WHERE name LIKE 'CUDA%' AND name NOT like '%SYNC%'""")
        assert [vars(row) for row in seen] == [{"name": "cudaLaunchKernel", "like": "a LIKE b"}]
        [row] = tp.query(r"SELECT 'a_b' LIKE 'a\_b' AS escaped, 'a\xb' LIKE 'a\%' AS plain")
        assert (row.escaped, row.plain) == (False, True)


def test_nulls_are_least_and_definitions_are_named():
    with TraceProcessor(trace=TINY) as tp:
        for order, first in [("", None), (" DESC", 2)]:
            assert next(tp.query(f"SELECT parent_id FROM slice ORDER BY parent_id{order} LIMIT 1")).parent_id == first
        assert list(tp.query("-- modules\nINCLUDE PERFETTO MODULE slices.with_context;")) == []
        for what in ["FUNCTION f(x INT) RETURNS INT AS SELECT $x", "MACRO m(x Expr) RETURNS Expr AS $x", "INDEX i ON slice(ts)"]:
            with pytest.raises(TraceProcessorException, match=f"CREATE PERFETTO {what.split()[0]} is not here"):
                tp.query(f"/* one */ create or replace perfetto {what}")


def test_traces_come_as_files_and_bytes():
    with open(TINY, "rb") as file, TraceProcessor(trace=file) as tp:
        count = [row.n for row in tp.query("SELECT count(*) AS n FROM slice")]
    with TraceProcessor(trace=TINY.read_bytes()) as tp:
        assert [row.n for row in tp.query("SELECT count(*) AS n FROM slice")] == count


def test_what_cannot_be_answered_says_what_is_missing():
    with TraceProcessor(trace=TINY) as tp:
        with pytest.raises(TraceProcessorException, match="no table `heap_graph_object`"):
            tp.query("SELECT * FROM heap_graph_object")
        with pytest.raises(TraceProcessorException, match="no function `cat_stacks`"):
            tp.query("SELECT CAT_STACKS('a') FROM slice")
        with pytest.raises(NotImplementedError, match="android_cpu"):
            tp.metric(["android_cpu"])
    with pytest.raises(TraceProcessorException, match="no such file"):
        TraceProcessor(trace="nothing.pftrace")
    with pytest.raises(TraceProcessorException, match="`addr` names a server"):
        TraceProcessor(addr="localhost:9001")


def test_modules_alone_arguments_and_ends():
    tp = TraceProcessor(trace=bytearray(TINY.read_bytes()))
    assert list(tp.query("INCLUDE PERFETTO MODULE slices.with_context;\ninclude perfetto module android.*;")) == []
    with pytest.raises(NotImplementedError, match="summaries"):
        tp.trace_summary([], metric_ids=["a"])
    tp.close()
    with pytest.raises(TraceProcessorException, match="closed"):
        tp.query("SELECT 1")
    with pytest.raises(TypeError, match="`metadata` is no argument"):
        TraceProcessor(trace=TINY, metadata={"a": "b"})
    with pytest.raises(TraceProcessorException, match="two names"):
        TraceProcessor(trace=TINY, file_path=str(TINY))


def test_traces_that_fail_are_counted():
    config = BatchTraceProcessorConfig(
        load_failure_handling=FailureHandling.INCREMENT_STAT, execute_failure_handling=FailureHandling.INCREMENT_STAT
    )
    with BatchTraceProcessor(["nothing.json", str(TINY)], config) as btp:
        assert len(btp.query("SELECT 1 AS one")) == 1
        assert btp.query_and_flatten("SELECT * FROM nothing").empty
        assert (btp.stats().load_failures, btp.stats().execute_failures) == (1, 1)


def test_many_traces():
    paths = [TINY, FIXTURES / "chrome/addmm_twice.json"]
    with BatchTraceProcessor(paths) as btp:
        counts = btp.query_single_result("SELECT count(*) FROM slice")
        assert len(counts) == 2 and all(count > 0 for count in counts)
        frame = btp.query_and_flatten("SELECT count(*) AS n FROM slice")
        assert frame["n"].tolist() == counts and frame["_path"].tolist() == [str(path) for path in paths]
        with pytest.raises(TraceProcessorException, match="one value was expected"):
            btp.query_single_result("SELECT ts, dur FROM slice")
    with pytest.raises(TraceProcessorException, match="no file is called like"):
        BatchTraceProcessor("nothing/*.json")


def test_times_are_those_of_the_session(tiny):
    assert tiny.sql("SELECT min(ts) FROM slice").fetchone() == tiny.sql("SELECT min(start) + min(origin) FROM tasks, runs").fetchone()
    assert isinstance(tiny, tq.Session)
