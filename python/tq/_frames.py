"""Answers as DataFrames of pandas. Importing it fails without pandas and pyarrow."""

from __future__ import annotations

from typing import Any

import pandas
import pyarrow

from . import _tq

TIME, TICK = b"tq.time", b"tq.tick"
PICOSECONDS = 1000
"""Ticks in a nanosecond, where a tick is a picosecond."""


def frame(kept: _tq.Kept, times: str, words: str) -> pandas.DataFrame:
    """The rows as a DataFrame."""
    table = pyarrow.table(kept)
    # Where nobody else has the rows, each column is released once it is converted.
    del kept
    if words == "category":
        table = table.unify_dictionaries()
    whole: list[tuple[int, str, Any]] = []
    for position in reversed(range(table.num_columns)):
        field, column = table.schema.field(position), table.column(position)
        metadata = field.metadata or {}
        # Weights are no times.
        is_time = TIME in metadata and metadata.get(TICK) in (b"ns", b"ps")
        if times == "timedelta" and is_time and pyarrow.types.is_int64(field.type):
            table = table.set_column(position, field.name, _durations(field.name, column, metadata.get(TICK, b"")))
        elif pyarrow.types.is_integer(field.type) and column.null_count:
            # NaN would make floats of them.
            whole.append((position, field.name, column.to_pandas(types_mapper=_nullable)))
            table = table.remove_column(position)
        elif (plain := _without_views(field.type)) != field.type:
            table = table.set_column(position, field.name, column.cast(plain))
    rows = table.num_rows
    converted: pandas.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True, ignore_metadata=True)
    if not len(converted.columns):
        converted = pandas.DataFrame(index=pandas.RangeIndex(rows))
    for position, name, column in reversed(whole):
        converted.insert(position, name, column, allow_duplicates=True)
    return converted


def _without_views(kind: Any) -> Any:
    """A type without views of texts, which pyarrow does not convert."""
    if pyarrow.types.is_string_view(kind):
        return pyarrow.large_string()
    if pyarrow.types.is_list(kind):
        return pyarrow.list_(_plain_field(kind.value_field))
    if pyarrow.types.is_large_list(kind):
        return pyarrow.large_list(_plain_field(kind.value_field))
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([_plain_field(kind.field(position)) for position in range(kind.num_fields)])
    return kind


def _plain_field(field: Any) -> Any:
    return field.with_type(_without_views(field.type))


def _nullable(kind: Any) -> Any:
    names = {"int8": "Int8", "int16": "Int16", "int32": "Int32", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}
    return pandas.api.types.pandas_dtype(names.get(str(kind), "Int64"))


def _durations(name: str, column: Any, tick: bytes) -> Any:
    if tick == b"ns":
        return column.cast(pyarrow.duration("ns"))
    import pyarrow.compute as compute

    whole = compute.divide(column, PICOSECONDS)
    if not compute.all(compute.equal(compute.multiply(whole, PICOSECONDS), column), min_count=0).as_py():
        raise ValueError(
            f"`{name}` has picoseconds that are no whole nanoseconds, and timedelta64[ns] has nothing finer; times='ticks' keeps them"
        )
    return whole.cast(pyarrow.duration("ns"))
