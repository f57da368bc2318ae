"""Random SQL beside DuckDB: the same statement is answered by both, and the answers must be the same bag of rows.

Two kinds of tables: those of a trace, exported by tq as Parquet and loaded by DuckDB, and small ones with NULLs, duplicates and
no rows at all, which each statement brings along as `VALUES`. Statements are drawn from a grammar: joins of all kinds with ON, USING
and NATURAL, chains of them, LATERAL; set operations with and without ALL, ORDER BY and LIMIT within; WITH within WITH, of the same names; scalar, IN,
EXISTS, ARRAY and quantified subqueries, correlated and not, in every clause; aggregates with FILTER and DISTINCT, DISTINCT ON, grouping sets; windows
with frames of all kinds; casts; texts beyond ASCII; times; CASE; NULLs everywhere. `--nested` draws from a smaller grammar instead: questions within
questions (IN, EXISTS, ANY, ALL, scalar subqueries) under AND, OR, NOT, CASE and IS NULL, correlated over several levels.

What differs by right is in KNOWN, with its reason, and in docs/sql.md for users. Everything else is printed with its seed, and
`--seed N --count 1` asks it again. Needs `pip install duckdb`. Exit code 1 when something differs.
"""

import json
import math
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
from common import ROOT, arguments, fail, parsed

# Errors of tq that are right where DuckDB answers: what the message holds, and why.
KNOWN = [
    ("does not fit", "sums and products that do not fit 64 bits end in an error; DuckDB has HUGEINT"),
    ("overflow", "the same"),
    ("NULL || NULL", "a NULL of no type"),
    ("Expect to get struct but got BOOLEAN", "the same: coalesce(TRUE, nullif(NULL, NULL))"),
]

TABLES = {
    "t": [("a", "INT"), ("b", "INT"), ("s", "TEXT")],
    "u": [("a", "INT"), ("c", "INT"), ("d", "DOUBLE")],
    "v": [("a", "INT"), ("b", "INT"), ("e", "BOOL")],
    "w": [("a", "INT"), ("f", "TEXT")],
}
FILLS, PARTS = ("'é'", "'ab'"), ("'x'", "' '", "'本'")
SQL_TYPES = {"INT": "BIGINT", "TEXT": "VARCHAR", "DOUBLE": "DOUBLE", "BOOL": "BOOLEAN"}
TRACE_TABLES = {
    "tasks": [("task", "INT"), ("name", "TEXT"), ("location", "TEXT"), ("start", "INT"), ("finish", "INT"), ("depth", "INT")],
    "locations": [("location", "TEXT"), ("kind", "TEXT"), ("sort_index", "INT")],
}


class Drawn:
    """A statement drawn from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0
        # Otherwise `nullif(NULL, NULL)` would be a text here.
        self.text = self.statement().replace("nullif(NULL, NULL)", "NULL")

    def one(self, *choices):
        return self.random.choice(choices)

    def maybe(self, probability=0.5):
        return self.random.random() < probability

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # Tables

    def statement(self):
        self.trace = self.maybe(0.25)
        tables = TRACE_TABLES if self.trace else TABLES
        self.tables = tables
        body = self.query(2)
        if self.trace:
            return body
        return "WITH " + ", ".join(self.values(name, columns) for name, columns in tables.items()) + " " + body

    def values(self, name, columns):
        rows = self.random.choices([0, 1, 2, 4, 6], [1, 1, 2, 4, 4])[0]
        names = ", ".join(column for column, _ in columns)
        if rows == 0:
            cells = ", ".join(f"CAST(NULL AS {SQL_TYPES[kind]})" for _, kind in columns)
            return f"{name}({names}) AS (SELECT * FROM (VALUES ({cells})) x({names}) WHERE 1 = 0)"
        lines = []
        for row in range(rows):
            cells = [self.literal(kind, nulls=0.2) for _, kind in columns]
            if row == 0:
                cells = [f"CAST({cell} AS {SQL_TYPES[kind]})" for cell, (_, kind) in zip(cells, columns, strict=True)]
            lines.append("(" + ", ".join(cells) + ")")
        return f"{name}({names}) AS (VALUES {', '.join(lines)})"

    def literal(self, kind, nulls=0.08):
        if self.maybe(nulls):
            return "NULL"
        if kind == "INT":
            return str(self.random.randint(-2, 4))
        if kind == "DOUBLE":
            return self.one("0e0", "1.5e0", "-2.25e0", "3e0", "0.1e0")
        if kind == "TEXT":
            return self.one("'x'", "'y'", "'xy'", "''", "'z z'", "'7'", "'zé'", "'日本語'")
        return self.one("TRUE", "FALSE")

    # Queries

    def query(self, depth, columns=None, outer=()):
        """A query of `columns` types; None draws them."""
        columns = columns or [self.one("INT", "INT", "TEXT", "DOUBLE", "BOOL") for _ in range(self.random.randint(1, 3))]
        if depth > 0 and self.maybe(0.2):
            operator = self.one("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
            return f"({self.first(depth - 1, columns, outer)}) {operator} ({self.first(depth - 1, columns, outer)})"
        return self.select(depth, columns, outer)

    def first(self, depth, columns, outer):
        """A query, or the first rows of one by all of its columns."""
        query = self.query(depth, columns, outer)
        if not self.maybe(0.25):
            return query
        order = ", ".join(f"{number + 1} {self.one('ASC', 'DESC')} NULLS {self.one('FIRST', 'LAST')}" for number in range(len(columns)))
        return f"SELECT * FROM ({query}) {self.fresh('q')} ORDER BY {order} LIMIT {self.random.randint(0, 4)}{self.one('', '', ' OFFSET 1')}"

    def select(self, depth, columns, outer):
        relation, scope = self.relation(depth, outer)
        visible = (*scope, *qualified(outer))
        where = f" WHERE {self.boolean(depth, visible)}" if self.maybe() else ""
        if self.maybe(0.35):
            return self.grouped(depth, columns, relation, scope, outer, where)
        if self.maybe(0.15) and len(scope) >= 1 and outer == ():
            # The exported tables of a trace have fewer columns.
            return f"SELECT * FROM {relation}{where}" if depth == 2 and not self.trace else self.plain(depth, columns, relation, visible, where)
        return self.plain(depth, columns, relation, visible, where)

    def plain(self, depth, columns, relation, visible, where):
        cells = [self.expression(kind, depth, visible, windows=True) for kind in columns]
        listed = ", ".join(f"{cell} AS c{number}" for number, cell in enumerate(cells))
        if self.maybe(0.08) and not any("OVER" in cell for cell in cells):
            key = self.column(self.one("INT", "TEXT"), visible)
            order = ", ".join(f"{cell} {self.one('ASC', 'DESC')} NULLS {self.one('FIRST', 'LAST')}" for cell in [key, *(f"({cell})" for cell in cells)])
            return f"SELECT DISTINCT ON ({key}) {listed} FROM {relation}{where} ORDER BY {order}" if "." in key else f"SELECT DISTINCT {listed} FROM {relation}{where}"
        distinct = "DISTINCT " if self.maybe(0.15) else ""
        return f"SELECT {distinct}{listed} FROM {relation}{where}"

    def grouped(self, depth, columns, relation, scope, outer, where):
        keys = self.random.sample(scope, min(len(scope), self.random.randint(0, 2)))
        cells = []
        for kind in columns:
            of_kind = [name for name, key_kind in keys if key_kind == kind]
            cells.append(self.one(*of_kind) if of_kind and self.maybe() else self.aggregate(kind, depth, scope))
        listed = ", ".join(f"{cell} AS c{number}" for number, cell in enumerate(cells))
        names = [name for name, _ in keys]
        group = f" GROUP BY {', '.join(names)}" if keys else ""
        if keys and self.maybe(0.2):
            sets = ", ".join(f"({', '.join(self.random.sample(names, self.random.randint(0, len(names))))})" for _ in range(self.random.randint(1, 3)))
            all_of_them = ", ".join(names)
            group = " GROUP BY " + self.one(f"ROLLUP ({all_of_them})", f"CUBE ({all_of_them})", f"GROUPING SETS (({all_of_them}), {sets})")
        having = f" HAVING {self.aggregate('INT', depth, scope)} {self.one('>', '<=', '<>')} {self.random.randint(0, 3)}" if self.maybe(0.2) else ""
        return f"SELECT {listed} FROM {relation}{where}{group}{having}"

    def relation(self, depth, outer):
        """A relation and its columns as (name as one may write it, type)."""
        if depth > 0 and self.maybe(0.15):
            alias = self.fresh("q")
            kinds = [self.one("INT", "TEXT") for _ in range(2)]
            return f"({self.query(depth - 1, kinds)}) {alias}", [(f"{alias}.c0", kinds[0]), (f"{alias}.c1", kinds[1])][: len(kinds)]
        name = self.one(*self.tables)
        alias = self.fresh("r")
        relation, scope = f"{name} {alias}", [(f"{alias}.{column}", kind) for column, kind in self.tables[name]]
        if self.maybe(0.06):
            # A name of WITH that stands for another query within.
            inner = [(f"{name}.{column}", kind) for column, kind in self.tables[name]]
            shadow = f"(WITH {name} AS (SELECT * FROM {name} WHERE {self.boolean(0, inner)}) SELECT * FROM {name} WHERE {self.boolean(0, inner)})"
            relation = f"{shadow} {alias}"
        if self.maybe(0.07):
            kind, value = self.one("INT", "TEXT"), self.fresh("q")
            join = self.one(", LATERAL", " CROSS JOIN LATERAL", " JOIN LATERAL", " LEFT JOIN LATERAL")
            condition = " ON TRUE" if join in (" JOIN LATERAL", " LEFT JOIN LATERAL") else ""
            return f"{relation}{join} ({self.answers(kind, max(depth, 2), scope)}) {value}(x){condition}", [*scope, (f"{value}.x", kind)]
        merged = {column for column, _ in self.tables[name]}
        for _ in range(self.random.choices([0, 1, 2], [3, 4, 2])[0]):
            name, alias = self.one(*self.tables), self.fresh("r")
            columns = self.tables[name]
            kind = self.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
            common = [column for column, _ in columns if column in merged]
            others = [(f"{alias}.{column}", type_) for column, type_ in columns]
            if "JOIN" not in relation and common and not self.trace and self.maybe(0.15):
                relation = f"{relation} NATURAL {kind} {name} {alias}"
                scope = [(n, t) for n, t in scope + others if n.split(".")[-1] not in common]
                scope += [(column, type_) for column, type_ in columns if column in common]
                merged |= {column for column, _ in columns}
                continue
            if common and self.maybe(0.6):
                # A column that several tables of the left side have, unmerged, would be ambiguous: those names leave.
                key = common[0]
                ambiguous = [name for name, _ in scope if name.split(".")[-1] == key]
                if len(ambiguous) <= 1:
                    relation = f"{relation} {kind} {name} {alias} USING ({key})"
                    type_of_key = dict(columns)[key]
                    scope = [(n, t) for n, t in scope if n.split(".")[-1] != key and ("." in n or n not in dict(columns))] + [(n, t) for n, t in others if n.split(".")[-1] != key]
                    scope.append((key, type_of_key))
                    merged |= {column for column, _ in columns}
                    continue
            # A merged name that this table has too is ambiguous from here on.
            scope = [(n, t) for n, t in scope if "." in n or n not in dict(columns)]
            if self.maybe(0.15):
                relation = f"{relation} CROSS JOIN {name} {alias}" if not self.trace else relation
                if self.trace:
                    continue
            else:
                left, right = self.pair(scope, others)
                if left is None:
                    continue
                also = f" AND {self.boolean(max(depth, 0), scope + others)}" if not self.trace and self.maybe(0.3) else ""
                relation = f"{relation} {kind} {name} {alias} ON {left} {self.one('=', '=', '=', 'IS NOT DISTINCT FROM')} {right}{also}"
            scope = scope + others
            merged |= {column for column, _ in columns}
        return relation, scope

    def pair(self, left, right):
        pairs = [(a, b) for a, kind in left for b, other in right if kind == other]
        return self.one(*pairs) if pairs else (None, None)

    # Expressions

    def column(self, kind, scope):
        fitting = [name for name, type_ in scope if type_ == kind]
        return self.one(*fitting) if fitting else self.literal(kind)

    def expression(self, kind, depth, scope, windows=False):
        draw = self.random.random()
        if depth <= 0 or draw < 0.35:
            return self.column(kind, scope)
        if draw < 0.42:
            return self.literal(kind)
        if draw < 0.5:
            return f"coalesce({self.expression(kind, depth - 1, scope)}, {self.expression(kind, depth - 1, scope)})"
        if draw < 0.58:
            return (
                f"CASE WHEN {self.boolean(depth - 1, scope)} THEN {self.expression(kind, depth - 1, scope)} "
                f"ELSE {self.expression(kind, depth - 1, scope)} END"
            )
        if draw < 0.66:
            return self.scalar_subquery(kind, depth, scope)
        if windows and draw < 0.74:
            return self.window(kind, scope)
        if draw < 0.78:
            return f"nullif({self.expression(kind, depth - 1, scope)}, {self.expression(kind, depth - 1, scope)})"
        if kind == "INT":
            left, right = self.expression("INT", depth - 1, scope), self.expression("INT", depth - 1, scope)
            return self.one(
                f"({left} {self.one('+', '-', '*')} {right})",
                f"(- {left})",
                f"length({self.expression('TEXT', depth - 1, scope)})",
                f"CAST({self.boolean(depth - 1, scope)} AS BIGINT)",
                f"abs({left})",
                f"({left} // {self.one('2', '3', '-2')})",
                f"({left} % {self.one('2', '3')})",
                f"TRY_CAST({self.expression('TEXT', depth - 1, scope)} AS BIGINT)",
                f"CAST(CAST({left} AS VARCHAR) AS BIGINT)",
                f"strpos({self.expression('TEXT', depth - 1, scope)}, {self.literal('TEXT')})",
                f"(CASE WHEN {self.boolean(depth - 1, scope)} THEN NULL ELSE {left} END)",
                f"CAST(extract({self.one('day', 'month', 'hour')} FROM {self.time(scope)}) AS BIGINT)",
            )
        if kind == "DOUBLE":
            return self.one(
                f"CAST({self.expression('INT', depth - 1, scope)} AS DOUBLE)",
                f"({self.expression('DOUBLE', depth - 1, scope)} + {self.expression('DOUBLE', depth - 1, scope)})",
                f"({self.expression('DOUBLE', depth - 1, scope)} / 2e0)",
            )
        if kind == "TEXT":
            return self.one(
                f"CAST({self.expression('INT', depth - 1, scope)} AS VARCHAR)",
                f"({self.expression('TEXT', depth - 1, scope)} || {self.expression('TEXT', depth - 1, scope)})",
                f"upper({self.expression('TEXT', depth - 1, scope)})",
                f"substr({self.expression('TEXT', depth - 1, scope)}, {self.random.randint(1, 3)}, {self.random.randint(0, 2)})",
                f"{self.one('left', 'right')}({self.expression('TEXT', depth - 1, scope)}, {self.random.randint(-1, 2)})",
                f"{self.one('reverse', 'lower', 'trim')}({self.expression('TEXT', depth - 1, scope)})",
                f"{self.one('lpad', 'rpad')}({self.expression('TEXT', depth - 1, scope)}, {self.random.randint(0, 4)}, {self.one(*FILLS)})",
                f"replace({self.expression('TEXT', depth - 1, scope)}, {self.one(*PARTS)}, {self.literal('TEXT')})",
                f"split_part({self.expression('TEXT', depth - 1, scope)}, {self.one(*PARTS)}, {self.random.randint(1, 2)})",
                self.listed(depth, scope),
            )
        return self.boolean(depth - 1, scope)

    def time(self, scope):
        day = self.one("2024-01-30 10:00", "2024-02-29 23:59:59.5", "2023-12-31", "2024-03-01T00:00")
        return f"(TIMESTAMP '{day}' {self.one('+', '-')} INTERVAL '{self.random.randint(0, 40)} {self.one('day', 'hour', 'month')}')"

    def listed(self, depth, scope):
        """The values of a subquery as one text."""
        relation, inner = self.relation(0, ())
        value = self.column("TEXT", inner)
        order = f" ORDER BY {value} {self.one('ASC', 'DESC')} NULLS {self.one('FIRST', 'LAST')}"
        # Of a list without a value, DuckDB makes NULL and PostgreSQL the empty text.
        return f"coalesce(array_to_string(ARRAY(SELECT {value} FROM {relation}{self.where(depth, inner, scope)}{order}), ','), '')"

    def scalar_subquery(self, kind, depth, scope):
        relation, inner = self.relation(depth - 2, ())
        where = self.where(depth, inner, scope)
        draw = self.random.random()
        if draw < 0.55:
            having = f" HAVING count(*) > {self.random.randint(0, 2)}" if self.maybe(0.15) else ""
            return f"(SELECT {self.aggregate(kind, 0, inner)} FROM {relation}{where}{having})"
        if draw < 0.65:
            # An aggregate of outer columns alone would be one of the outer query.
            value = f"{self.column('INT', inner)} + {self.column('INT', qualified(scope))}"
            value = {"INT": f"sum({value})", "DOUBLE": f"avg({value})", "TEXT": f"max(CAST({value} AS VARCHAR))"}.get(kind, f"bool_or({value} > 2)")
            return f"(SELECT {value} FROM {relation}{where})"
        value = self.column(kind, inner)
        if draw < 0.8:
            order = f"ORDER BY {value} {self.one('ASC', 'DESC')} NULLS {self.one('FIRST', 'LAST')}"
            return f"(SELECT {value} FROM {relation}{where} {order} LIMIT 1{self.one('', '', ' OFFSET 1')})"
        if draw < 0.9:
            aggregate = self.aggregate(kind, 0, [("q.x", kind)])
            return f"(SELECT {aggregate} FROM ({self.answers(kind, depth, scope)}) q(x))"
        least = f"min({value})" if kind != "BOOL" else f"bool_or({value})"
        return f"(SELECT {least} FROM {relation} WHERE 1 = 0)"

    def where(self, depth, inner, scope):
        return f" WHERE {self.boolean(max(depth - 2, 0), (*inner, *qualified(scope)))}" if self.maybe(0.65) else ""

    def answers(self, kind, depth, scope):
        """A subquery with one column, of any number of rows."""
        relation, inner = self.relation(depth - 2, ())
        where = self.where(depth, inner, scope)
        value, draw = self.column(kind, inner), self.random.random()
        if draw < 0.6:
            return f"SELECT {value} FROM {relation}{where}"
        if draw < 0.67:
            return f"SELECT DISTINCT {value} FROM {relation}{where}"
        if draw < 0.77:
            having = f" HAVING {self.aggregate('INT', 0, inner)} > {self.random.randint(0, 2)}" if self.maybe() else ""
            return f"SELECT {self.aggregate(kind, 0, inner)} FROM {relation}{where} GROUP BY {self.column('INT', inner)}{having}"
        if draw < 0.84:
            return f"SELECT {value} FROM {relation}{where} ORDER BY {value} NULLS LAST LIMIT {self.random.randint(0, 3)}"
        if draw < 0.94:
            other, columns = self.relation(0, ())
            operator = self.one("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
            return f"SELECT {value} FROM {relation}{where} {operator} SELECT {self.column(kind, columns)} FROM {other}{self.where(depth, columns, scope)}"
        return f"SELECT {self.window(kind, inner)} FROM {relation}{where}"

    def boolean(self, depth, scope):
        draw = self.random.random()
        kind = self.one("INT", "INT", "TEXT", "DOUBLE")
        left = self.expression(kind, depth - 1, scope)
        if depth <= 0 or draw < 0.3:
            return f"({left} {self.one('=', '<>', '<', '<=', '>', '>=')} {self.expression(kind, depth - 1, scope)})"
        if draw < 0.38:
            return f"({left} IS {self.one('', 'NOT ')}NULL)"
        if draw < 0.46:
            return f"({left} IS {self.one('', 'NOT ')}DISTINCT FROM {self.expression(kind, depth - 1, scope)})"
        if draw < 0.56:
            return f"({self.boolean(depth - 1, scope)} {self.one('AND', 'OR')} {self.boolean(depth - 1, scope)})"
        if draw < 0.59:
            return f"(NOT {self.boolean(depth - 1, scope)})"
        if draw < 0.61:
            # What is not chosen is not computed: it would divide by zero.
            divisor = self.column("INT", scope)
            return f"(CASE WHEN {divisor} = 0 THEN {self.one('FALSE', 'TRUE', 'NULL')} ELSE 7 // {divisor} > 1 END)"
        if draw < 0.67:
            items = ", ".join(self.literal(kind, 0.15) for _ in range(self.random.randint(1, 3)))
            return f"({left} {self.one('', 'NOT ')}IN ({items}))"
        if draw < 0.73:
            return f"({left} BETWEEN {self.literal(kind)} AND {self.expression(kind, depth - 1, scope)})"
        if draw < 0.76:
            relation, inner = self.relation(0, ())
            row, columns = f"{self.expression('INT', 0, scope)}, {left}", f"{self.column('INT', inner)}, {self.column(kind, inner)}"
            return f"(({row}) {self.one('', 'NOT ')}IN (SELECT {columns} FROM {relation}{self.where(0, inner, ())}))"
        if draw < 0.86:
            return f"({left} {self.one('', 'NOT ')}IN ({self.answers(kind, depth, scope)}))"
        if draw < 0.92:
            return f"({self.one('', 'NOT ')}EXISTS ({self.answers(self.one('INT', 'TEXT'), depth, scope)}))"
        if draw < 0.96:
            relation, inner = self.relation(0, ())
            target = self.one("1", "*", self.aggregate("INT", 0, inner))
            return f"({self.one('', 'NOT ')}EXISTS (SELECT {target} FROM {relation}{self.where(depth, inner, scope)}))"
        if draw < 0.97:
            return f"({self.time(scope)} {self.one('=', '<', '>=')} {self.time(scope)})"
        return f"({left} {self.one('=', '<', '>=')} {self.one('ANY', 'ALL')} ({self.answers(kind, depth, scope)}))"

    def aggregate(self, kind, depth, scope):
        distinct = self.one("", "", "DISTINCT ")
        filter_ = f" FILTER (WHERE {self.boolean(depth - 1, scope)})" if self.maybe(0.2) else ""
        number = self.expression("INT", depth - 1, scope)
        if kind == "INT":
            return self.one(
                f"count(*){filter_}",
                f"count({distinct}{self.column(self.one('INT', 'TEXT'), scope)}){filter_}",
                f"sum({distinct}{number}){filter_}",
                f"min({number}){filter_}",
                f"max({number}){filter_}",
            )
        if kind == "DOUBLE":
            return self.one(f"avg({distinct}{number}){filter_}", f"sum({self.column('DOUBLE', scope)}){filter_}", f"avg(CAST({number} AS DOUBLE)){filter_}")
        if kind == "TEXT":
            value = self.column("TEXT", scope)
            order = f"ORDER BY {value} {self.one('ASC', 'DESC')} NULLS {self.one('FIRST', 'LAST')}"
            return self.one(
                f"{self.one('min', 'max')}({value}){filter_}",
                f"{self.one('min', 'max')}({value}){filter_}",
                f"string_agg({distinct}{value}, ',' {order}){filter_}",
                f"coalesce(array_to_string(array_agg({distinct}{value} {order}){filter_}, ','), '')",
            )
        return f"{self.one('bool_and', 'bool_or')}({self.boolean(0, scope)}){filter_}"

    def window(self, kind, scope):
        by = f"PARTITION BY {self.column('INT', scope)} " if self.maybe() else ""
        if kind == "INT":
            key = self.column("INT", scope)
            order = f"ORDER BY {key} {self.one('ASC', 'DESC')} NULLS {self.one('FIRST', 'LAST')}"
            return self.one(
                f"rank() OVER ({by}{order})",
                f"dense_rank() OVER ({by}{order})",
                f"count(*) OVER ({by})",
                f"sum({self.column('INT', scope)}) OVER ({by}{order})",
                f"sum({self.column('INT', scope)}) OVER ({by}{order} RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
                f"max({self.column('INT', scope)}) OVER ({by})",
                f"(- {self.one('rank', 'dense_rank')}() OVER ({by}{order}))",
                f"sum({self.column('INT', scope)}) OVER ({by}{order} {self.frame('GROUPS')})",
                f"count({self.column('TEXT', scope)}) FILTER (WHERE {self.boolean(0, scope)}) OVER ({by}{order} {self.frame('GROUPS')})",
                # Rows of one key are the same here, in any order.
                f"{self.one('sum', 'min', 'count', 'first_value', 'last_value')}({key}) OVER ({by}{order} {self.frame('ROWS')})",
                f"{self.one('lag', 'lead')}({key}, {self.random.randint(0, 2)}) OVER ({by}{order})",
                f"nth_value({key}, {self.random.randint(1, 3)}) OVER ({by}{order} {self.frame('ROWS')})",
                f"(- count(*) OVER ({by}{order} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))",
            )
        if kind == "DOUBLE":
            return f"avg({self.column('INT', scope)}) OVER ({by})"
        if kind == "TEXT":
            return f"min({self.column('TEXT', scope)}) OVER ({by})"
        return f"bool_or({self.column('BOOL', scope)}) OVER ({by})"


    def frame(self, units):
        begin, end = self.random.choice([
            ("UNBOUNDED PRECEDING", "CURRENT ROW"), ("1 PRECEDING", "1 FOLLOWING"), ("CURRENT ROW", "UNBOUNDED FOLLOWING"),
            ("2 PRECEDING", "1 PRECEDING"), ("1 FOLLOWING", "2 FOLLOWING"), ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"),
        ])
        return f"{units} BETWEEN {begin} AND {end}"


class Nested(Drawn):
    """A statement of subqueries within subqueries, over tables of few rows and few values, many of them NULL."""

    def statement(self):
        self.trace = False
        names = ("p", "q", "r")
        tables = ", ".join(self.few(name) for name in names)
        return f"WITH {tables} {self.asked(names)}"

    def few(self, name):
        rows = [f"({self.digit()}, {self.digit()})" for _ in range(self.random.randint(1, 4))]
        where = " WHERE FALSE" if self.maybe(0.15) else ""
        return f"{name}(k, v) AS (SELECT CAST(k AS BIGINT), CAST(v AS BIGINT) FROM (VALUES {', '.join(rows)}) n(k, v){where})"

    def digit(self):
        return self.one("0", "1", "2", "3", "NULL")

    def asked(self, names):
        self.names_of_tables = names
        depth = self.random.randint(2, 3)
        one, other = self.one(*names), self.one(*names)

        def holds(*aliases):
            return self.holds(depth, [*aliases])

        draw = self.random.randint(0, 8)
        if draw <= 1:
            return f"SELECT o.k, o.v, {holds('o')} AS holds FROM {one} o"
        if draw <= 3:
            return f"SELECT o.k, o.v FROM {one} o WHERE {holds('o')}"
        if draw == 4:
            return f"SELECT o.k, o.v, m.k, m.v FROM {one} o {self.one('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN')} {other} m ON {holds('o', 'm')}"
        if draw == 5:
            return f"SELECT count(*) FILTER (WHERE {holds('o')}), count(*) FROM {one} o"
        if draw == 6:
            return f"SELECT o.k, count(*) FROM {one} o GROUP BY o.k HAVING {self.holds(depth, ['o'], ['o.k'])}"
        if draw == 7:
            join, condition = self.one(("CROSS JOIN", ""), ("LEFT JOIN", " ON TRUE"))
            return f"SELECT o.k, l.k FROM {one} o {join} LATERAL (SELECT m.k FROM {other} m WHERE {holds('m', 'o')}) l{condition}"
        return f"SELECT o.k, CASE WHEN {holds('o')} THEN 1 WHEN {holds('o')} THEN 2 END AS c FROM {one} o"

    def value(self, aliases, columns=None):
        """A column of the innermost table, or of one around it."""
        if columns and self.maybe(0.7):
            return self.one(*columns)
        if self.maybe(0.1):
            return self.digit()
        if columns:
            return self.one(*columns)
        alias = aliases[0] if self.maybe(0.6) else self.one(*aliases)
        return f"{alias}.{self.one('k', 'v')}"

    def holds(self, depth, aliases, columns=None):
        """A condition; `aliases` are the tables that it sees, the innermost first."""

        def value():
            return self.value(aliases, columns)

        def again():
            return self.holds(depth - 1, aliases, columns)

        draw = self.random.random()
        if depth <= 0 or draw < 0.12:
            return self.one(f"{value()} {self.one('=', '<>', '<', '>=')} {value()}", f"{value()} IS {self.one('', 'NOT ')}NULL")
        if draw < 0.42:
            return f"({again()} {self.one('AND', 'OR', 'OR')} {again()})"
        if draw < 0.5:
            return f"(NOT {again()})"
        if draw < 0.55:
            return f"({again()} IS {self.one('', 'NOT ')}{self.one('NULL', 'TRUE', 'FALSE')})"
        if draw < 0.59:
            return f"(CASE WHEN {again()} THEN {again()} ELSE {again()} END)"
        if draw < 0.62:
            return f"coalesce({again()}, {again()})"
        if draw < 0.77:
            return f"{value()} {self.one('IN', 'NOT IN', 'NOT IN')} ({self.rows(depth, aliases)})"
        if draw < 0.88:
            return f"{self.one('EXISTS', 'NOT EXISTS')} ({self.rows(depth, aliases)})"
        if draw < 0.94:
            return f"{value()} {self.one('=', '<>', '<', '>=')} {self.one('ANY', 'ALL')} ({self.rows(depth, aliases)})"
        alias = self.fresh("i")
        aggregate = self.one("count(*)", f"max({alias}.k)", f"min({alias}.v)", f"sum({alias}.v)")
        compared, table = f"{value()} {self.one('=', '<>', '<')}", self.one(*self.names_of_tables)
        return f"{compared} (SELECT {aggregate} FROM {table} {alias} WHERE {self.holds(depth - 1, [alias, *aliases])})"

    def rows(self, depth, aliases):
        alias = self.fresh("i")
        table, column = f"{self.one(*self.names_of_tables)} {alias}", f"{alias}.{self.one('k', 'v')}"
        seen = [alias, *aliases]
        if self.maybe(0.2):
            second = self.fresh("i")
            table += f" {self.one('JOIN', 'LEFT JOIN')} {self.one(*self.names_of_tables)} {second} ON {alias}.k = {second}.k"
            seen = [alias, second, *aliases]
        if self.maybe(0.15):
            return f"SELECT {column} FROM {table}"
        where = f" WHERE {self.holds(depth - 1, seen)}"
        if self.maybe(0.1):
            return f"SELECT {self.one('max', 'count')}({column}) FROM {table}{where} GROUP BY {alias}.{self.one('k', 'v')}"
        if self.maybe(0.1):
            return f"SELECT {column} FROM {table}{where} UNION ALL SELECT {alias}.k FROM {self.one(*self.names_of_tables)} {alias} WHERE {self.holds(0, [alias, *aliases])}"
        return f"SELECT {self.one('', '', 'DISTINCT ')}{column} FROM {table}{where}"


def qualified(scope):
    """The columns that a subquery may speak of: a bare name could be one of its own."""
    return [(name, kind) for name, kind in scope if "." in name]


def normal(value):
    """A cell as something that can be sorted and compared: doubles to ten digits."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            return ("number", str(value))
        return ("number", f"{float(value):.10g}".replace("-0", "0") if float(value) == 0 else f"{float(value):.10g}")
    return ("text", str(value))


def bag(rows):
    return sorted([normal(cell) for cell in row] for row in rows)


def ask_tq(options, statement):
    command = [str(options.tq), "query", str(options.trace), "-q", "--format", "json", "-c", statement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return None, "no answer in 60 s"
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()[:400]}"
    return [list(row.values()) for row in json.loads(done.stdout or "[]")], None


def ask_duckdb(database, statement):
    try:
        return database.cursor().execute(statement).fetchall(), None
    except duckdb.Error as error:
        return None, str(error)


def compared(options, database, seed):
    """What a seed's statement showed: `equal`, `refused by both`, `known`, `unsupported by DuckDB`, or a finding in words."""
    statement = options.drawn(seed).text
    expected, refused = ask_duckdb(database, statement)
    if refused and "INTERNAL" in refused:
        return "an internal error of DuckDB", None
    answer, error = ask_tq(options, statement)
    if refused:
        return ("refused by both", None) if error and "exit 2" in error else ("only tq answers", (statement, refused, answer and answer[:3]))
    if error:
        if any(text in error for text, _ in KNOWN):
            return "known", None
        return "only DuckDB answers", (statement, error, None)
    if bag(expected) != bag(answer):
        return "different", (statement, f"DuckDB {bag(expected)[:6]}", f"tq {bag(answer)[:6]}")
    return "equal", None


def exported(options):
    """DuckDB's copy of the trace's tables, as tq exports them."""
    database = duckdb.connect()
    database.execute("SET order_by_non_integer_literal = true")
    for table, columns in TRACE_TABLES.items():
        path = options.work / f"differential-{table}.parquet"
        names = ", ".join(name for name, _ in columns)
        command = [options.tq, "query", options.trace, "-q", "-c", f"SELECT {names} FROM {table}", "-o", path]
        if subprocess.run(command, check=False).returncode != 0:
            fail(f"cannot export {table} of {options.trace}")
        database.execute(f"CREATE TABLE {table} AS FROM '{path}'")
    return database


def main():
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--trace", default=ROOT / "fixtures/chrome/phases.json", help="whose tables are asked")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many statements")
    parser.add_argument("--minutes", type=float, help="instead of --count")
    parser.add_argument("--nested", dest="drawn", action="store_const", const=Nested, default=Drawn, help="subqueries within subqueries")
    parser.add_argument("--show", action="store_true", help="print each statement")
    options = parsed(parser)
    database = exported(options)
    outcomes, shown = {}, {}
    begin, seed = time.monotonic(), options.seed
    with ThreadPoolExecutor(2) as threads:
        while (time.monotonic() - begin < options.minutes * 60) if options.minutes else seed < options.seed + options.count:
            last = seed + 20 if options.minutes else min(seed + 20, options.seed + options.count)
            seeds = range(seed, last)
            seed = last
            for number, (outcome, finding) in zip(seeds, threads.map(lambda s: compared(options, database, s), seeds), strict=True):
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                if options.show:
                    print(f"-- {number}: {outcome}\n{options.drawn(number).text}\n")
                if finding and outcome != "only tq answers":
                    # One example of each message is enough to read; the count has the others.
                    key = outcome + re.sub(r"[0-9]+|`[^`]*`", "·", str(finding[1]))[:90] if outcome != "different" else f"{outcome}{number}"
                    shown[key] = shown.get(key, 0) + 1
                    if shown[key] <= 2:
                        print(f"-- seed {number}: {outcome}\n{finding[0]};\n   {finding[1]}\n   {finding[2]}\n", flush=True)
    print("| outcome | statements |\n| --- | ---: |")
    for outcome, count in sorted(outcomes.items(), key=lambda item: -item[1]):
        print(f"| {outcome} | {count} |")
    sys.exit(1 if outcomes.keys() & {"different", "only DuckDB answers"} else 0)


if __name__ == "__main__":
    main()
