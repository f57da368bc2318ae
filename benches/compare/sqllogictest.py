"""Runs DuckDB's own sqllogictest files through tq and DuckDB, and compares the answers.

The files are DuckDB's (MIT), from a checkout beside this one: `sqllogictest.py ../duckdb/test/sql/join ../duckdb/test/sql/subquery`.
Every query is asked of a fresh tq, after the CREATE and INSERT statements before it. What the files say themselves is not looked at:
DuckDB answers again, as values instead of text. Files that load extensions, loop or change rows end early. Queries in words that only
DuckDB has are counted and left out. Refusals are counted by their message; every difference is printed.
"""

import collections
import datetime
import decimal
import json
import math
import re
import subprocess
import tempfile
from pathlib import Path

import duckdb
from common import arguments, parsed

MARK = "M4RK"
TRACE = "name,start_us,end_us\na,1,2\n"
NEEDS_MORE = re.compile(r"^(require (?!skip_reload|vector_size)|load |foreach|loop|mode skip|concurrent)", re.M)
DEFINES = re.compile(r"(?i)\s*(create|insert|drop)")
CHANGES = re.compile(r"(?i)\s*(delete|update|alter|begin|rollback|commit|with\b.*\binsert\b)", re.S)
ASKS = re.compile(r"(?i)^\(*(select|with|values|from)")
DUCKDBS_OWN = re.compile(
    r"(?i)\bunion( all)? by name|using sample|pivot|\bpragma|duckdb_|read_csv|\bstruct_pack|\bexclude\b|\breplace\s*\(|columns\(|\basof\b"
    r"|positional|\bqualify|\{|::[a-z]+\[\]|\bmap\b|lambda|enum|hugeint|\bunnest|\bsimilar to\b|\browid\b|order by all|group by all"
)
MOST_PER_FILE = 60


def blocks(text):
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.split("\n") if not line.startswith("#")]
        while lines and not lines[0].strip():
            lines.pop(0)
        if lines:
            end = lines.index("----") if "----" in lines else len(lines)
            yield lines[0], "\n".join(lines[1:end]).strip().rstrip(";")


def plain(value):
    """A value as both programs would write it: whole and broken numbers of equal size are equal."""
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", value):
        value = float(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return float(f"{float(value):.9g}") if math.isfinite(value) else str(float(value))
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (datetime.date, datetime.time)):
        return str(value).replace(" ", "T")
    return str(value)


def rows(values):
    return sorted(([plain(value) for value in row] for row in values), key=repr)


def answer(tq, trace, statements):
    """The rows of the last statement, or what tq says instead."""
    script = ";\n".join([*statements[:-1], f"SELECT '{MARK}' AS m", statements[-1]])
    command = [tq, "query", trace, "-q", "--timeout", "60s", "-c", script, "--format", "ndjson"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        return None, ran.stderr.strip()
    lines = ran.stdout.split("\n")
    lines = lines[lines.index(f'{{"m":"{MARK}"}}') + 1 :]
    # An answer may have a name twice.
    pairs = [json.loads(line, object_pairs_hook=lambda pairs: [value for _, value in pairs]) for line in lines if line]
    return rows(pairs), ""


def ask(file, tq, trace, counts, reasons):
    text = file.read_text()
    if NEEDS_MORE.search(text):
        counts["files that need more"] += 1
        return
    database, before, asked = duckdb.connect(), [], 0
    for head, sql in blocks(text):
        if not head.startswith(("statement ok", "query")):
            continue
        try:
            theirs = database.execute(sql).fetchall()
        except Exception:
            counts["DuckDB refuses"] += 1
            continue
        if head.startswith("statement") or DEFINES.match(sql):
            if CHANGES.match(sql):
                counts["files that change rows"] += 1
                return
            if DEFINES.match(sql):
                before.append(sql)
            continue
        if not ASKS.match(sql) or DUCKDBS_OWN.search(sql) or len(theirs) > 2000:
            counts["of DuckDB only"] += 1
            continue
        asked += 1
        if asked > MOST_PER_FILE:
            return
        ours, refused = answer(tq, trace, [*before, sql])
        if ours is None:
            counts["refused"] += 1
            reasons[re.sub(r"`[^`]*`|\d+|\"[^\"]*\"", "…", refused.split("\n")[0])[:100]] += 1
        elif repr(ours).lower() == repr(rows(theirs)).lower():
            counts["equal"] += 1
        else:
            counts["different"] += 1
            print(f"-- {file}\n{sql}\n   DuckDB {str(rows(theirs))[:400]}\n   tq     {str(ours)[:400]}\n", flush=True)


def main():
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders of sqllogictest files")
    options = parsed(parser)
    counts, reasons = collections.Counter(), collections.Counter()
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as trace:
        trace.write(TRACE)
        trace.flush()
        for file in sorted(file for folder in options.folders for file in folder.rglob("*.test")):
            ask(file, options.tq, trace.name, counts, reasons)
    print("| outcome | queries |\n| --- | ---: |")
    for outcome, count in counts.most_common():
        print(f"| {outcome} | {count} |")
    print("\n| refused with | queries |\n| --- | ---: |")
    for reason, count in reasons.most_common(40):
        print(f"| {reason.replace('|', '¦')} | {count} |")


main()
