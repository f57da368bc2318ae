"""Random SQL beside PostgreSQL: ANY and ALL of lists, rows of several values, lists, with NULLs everywhere.

DuckDB compares rows and lists by rules of its own, so these have PostgreSQL for a baseline. Each statement brings its tables along, of
0 to 4 rows. Answers are ordered and must be equal; statements that PostgreSQL refuses are counted only (`CASE (a, b) WHEN (c, d)` of
different types of integers). Needs `pip install psycopg2-binary` and a server: `--postgres 'host=/tmp port=5432 user=postgres'`. Exit
code 1 when something differs.
"""

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg2

from common import ROOT, arguments, parsed
from differential import ask_tq

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
NO_LIST, EMPTY_LIST = "CAST(NULL AS BIGINT[])", "CAST(ARRAY[] AS BIGINT[])"
connections = threading.local()


class Drawn:
    """A statement drawn from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.text = self.tables() + self.query()

    def one(self, *choices):
        return self.random.choice(choices)

    def compare(self):
        return self.one(*COMPARISONS)

    def drawn(self, choices):
        """One of the functions, by its weight."""
        functions, weights = zip(*choices, strict=True)
        return self.random.choices(functions, weights)[0]()

    def some(self, draw, most=3):
        return ", ".join(draw() for _ in range(self.random.randint(1, most)))

    # Tables: t(k, a, b, c, l) with a list, u(x, y)

    def tables(self):
        def number():
            return f"CAST({self.one('NULL', '0', '1', '1', '2', '2', '3')} AS BIGINT)"

        def numbers():
            lists = ("NULL", "ARRAY[1, 2]", "ARRAY[1, NULL]", "ARRAY[2]", EMPTY_LIST, "ARRAY[CAST(NULL AS BIGINT)]", "ARRAY[1, 1, 3]")
            return f"CAST({self.one(*lists)} AS BIGINT[])"

        def table(name, rows, cells):
            names = name.partition("(")[2]
            lines = ", ".join(f"({', '.join(cells(row))})" for row in range(max(rows, 1)))
            return f"{name} AS (SELECT * FROM (VALUES {lines}) v({names}{'' if rows else ' WHERE false'})"

        t = table("t(k, a, b, c, l)", self.one(0, 1, 3, 4, 4), lambda row: (str(row), number(), number(), number(), numbers()))
        return f"WITH {t}, {table('u(x, y)', self.one(0, 1, 2, 4), lambda _: (number(), number()))} "

    def query(self):
        columns = ", ".join(f"{self.condition(2)} AS c{number}" for number in range(3))
        case = f"CASE {self.row(2)} WHEN {self.row(2)} THEN 1 WHEN {self.row(2)} THEN 2 ELSE 3 END"
        return self.random.choices(
            [
                f"SELECT t.k, {columns}, {self.list()} AS l FROM t ORDER BY 1",
                f"SELECT t.k FROM t WHERE {self.condition(3)} ORDER BY 1",
                f"SELECT t.k, u.x, u.y FROM t {self.one('', 'LEFT ')}JOIN u ON {self.condition(1)} ORDER BY 1, 2, 3",
                f"SELECT t.k, {case} AS c, w.e FROM t, unnest({self.list()}) w(e) ORDER BY 1, 2, 3",
            ],
            [11, 5, 3, 1],
        )[0]

    # Expressions

    def number(self, depth=1):
        compound = [
            (lambda: f"(SELECT max(u.y) FROM u WHERE u.x {self.compare()} {self.number(0)})", 1),
            (lambda: f"coalesce({self.number(0)}, {self.number(0)})", 1),
            (lambda: f"(CASE WHEN {self.condition(0)} THEN {self.number(0)} ELSE (SELECT max(u.x) FROM u) END)", 1),
            (lambda: f"t.l[{self.random.randint(1, 3)}]", 1),
        ]
        simple = [
            (lambda: self.one("t.a", "t.b", "t.c"), 20),
            (lambda: "CAST(NULL AS BIGINT)", 6),
            (lambda: str(self.random.randint(0, 3)), 10),
        ]
        return self.drawn(simple + (compound if depth else []))

    def list(self, depth=1):
        return self.drawn(
            [
                (lambda: "t.l", 35),
                (lambda: f"ARRAY[{self.some(lambda: self.number(depth))}]", 40),
                (lambda: self.one(EMPTY_LIST, NO_LIST), 9),
                (lambda: f"array_remove({self.list(0)}, {self.number(0)})" if depth else "t.l", 5),
                (lambda: f"array_replace({self.list(0)}, {self.number(0)}, {self.number(0)})" if depth else "t.l", 5),
                (lambda: f"({self.list(0)} || {self.one(self.list(0), self.number(0), 'NULL')})" if depth else "t.l", 5),
                (lambda: f"({self.number(0)} || {self.list(0)})" if depth else "t.l", 2),
                (lambda: f"ARRAY(SELECT u.x FROM u WHERE u.y = {self.number(0)} ORDER BY u.x)", 2),
            ]
        )

    def row(self, size):
        return f"{self.one('', '', 'ROW')}({', '.join(self.number() for _ in range(size))})"

    def rows(self, size):
        """A subquery of rows."""
        columns = ", ".join(self.one("u.x", "u.y", "u.x", "u.y", self.number(0)) for _ in range(size))
        where = self.one("", f" WHERE u.x {self.compare()} {self.number(0)}", f" WHERE {self.condition(0)}", " WHERE u.y IS NOT NULL")
        return f"(SELECT {columns} FROM u{where})"

    def condition(self, depth):
        if depth <= 0:
            return self.one(f"{self.number(0)} {self.compare()} {self.number(0)}", f"{self.number(0)} IS NULL")
        size, no = self.one(2, 2, 3), self.one("", "NOT ")

        def row():
            return self.row(size)

        def quantified():
            return f"{self.number()} {self.compare()} {self.one('ANY', 'ALL')}"

        def one_row():
            return ", ".join(self.one("max(u.x)", "min(u.y)", "count(*)") for _ in range(size))

        return self.drawn(
            [
                (lambda: f"{self.number()} {self.compare()} {self.one('ANY', 'ALL', 'SOME')} ({self.list()})", 20),
                (lambda: f"{row()} {self.compare()} {row()}", 14),
                (lambda: f"{row()} {no}IN ({self.some(row)})", 8),
                (lambda: f"{row()} {no}BETWEEN {row()} AND {row()}", 5),
                (lambda: f"{row()} IS {no}{self.one('NULL', f'DISTINCT FROM {row()}')}", 5),
                (lambda: f"{row()} {no}IN {self.rows(size)}", 8),
                (lambda: f"{row()} {self.compare()} {self.one('ANY', 'ALL')} {self.rows(size)}", 6),
                (lambda: f"{row()} {self.compare()} (SELECT {one_row()} FROM u WHERE {self.condition(0)})", 3),
                (lambda: f"{self.list()} {self.one(*COMPARISONS, '@>', '<@')} {self.list()}", 6),
                (lambda: f"({self.condition(depth - 1)} {self.one('AND', 'OR')} {self.condition(depth - 1)})", 9),
                (lambda: f"(NOT {self.condition(depth - 1)})", 5),
                (lambda: f"({self.condition(depth - 1)} IS {no}{self.one('NULL', 'TRUE', 'FALSE')})", 4),
                (lambda: f"EXISTS (SELECT 1 FROM u WHERE {self.condition(depth - 1)})", 3),
                (lambda: f"{quantified()} (SELECT u.x FROM u WHERE {self.condition(depth - 1)})", 4),
            ]
        )


def ask_postgres(options, statement):
    if not hasattr(connections, "own"):
        connections.own = psycopg2.connect(options.postgres)
        connections.own.autocommit = True
    try:
        cursor = connections.own.cursor()
        cursor.execute(statement)
        return [list(row) for row in cursor.fetchall()], None
    except psycopg2.Error as error:
        return None, str(error).split("\n")[0]


def compared(options, seed):
    """The outcome of a seed's statement, and what to print of it."""
    statement = Drawn(seed).text
    expected, refused = ask_postgres(options, statement)
    answer, error = ask_tq(options, statement)
    if refused:
        return "refused by both" if error else "only tq answers", None
    if error or expected != answer:
        finding = f"-- seed {seed}\n{statement};\n   PostgreSQL {expected}\n   tq {error or answer}\n"
        return "only PostgreSQL answers" if error else "different", finding
    return "equal", None


def main():
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--trace", default=ROOT / "fixtures/chrome/phases.json", help="a trace to open, of which nothing is asked")
    parser.add_argument("--postgres", default="", help="where the server is, as libpq writes it")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many statements")
    options = parsed(parser)
    outcomes = {}
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as threads:
        seeds = range(options.seed, options.seed + options.count)
        for outcome, finding in threads.map(lambda seed: compared(options, seed), seeds):
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if finding and outcomes[outcome] <= 10:
                print(finding, flush=True)
    print(f"{time.monotonic() - begin:.0f} s\n\n| outcome | statements |\n| --- | ---: |")
    for outcome, count in sorted(outcomes.items(), key=lambda item: -item[1]):
        print(f"| {outcome} | {count} |")
    sys.exit(1 if outcomes.keys() & {"different", "only PostgreSQL answers"} else 0)


if __name__ == "__main__":
    main()
