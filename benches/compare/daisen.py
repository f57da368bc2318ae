"""Requests of a simulated machine as Akita v4.9 records them in SQLite, for commands.py.

Requests go from a component to the next one of its group: `req_out` where they are sent, its child `req_in` where they are taken
in. Times are float seconds of whole nanoseconds; the tables have all the indexes that Akita makes.
"""

import random
import sqlite3

TASKS, COMPONENTS = 1_450_001, 966


def requests():
    """Each as (number, sender, receiver, sent, taken in, answered, closed) in ns."""
    draw = random.Random(1)
    clock = [0] * COMPONENTS
    for number in range((TASKS - 1) // 2):
        sender = draw.randrange(COMPONENTS)
        receiver = (sender + 1) % COMPONENTS
        sent = clock[sender] = clock[sender] + draw.randint(1, 900)
        taken = sent + draw.randint(1, 50)
        answered = taken + draw.randint(5, 400)
        yield number, sender, receiver, sent, taken, answered, answered + draw.randint(1, 20)


def name(component):
    """`GPU[1].SA[2].L1[3]`."""
    return f"GPU[{component // 322 + 1}].SA[{component // 14 % 23}].L1[{component % 14}]"


def latencies():
    """The mean time from taking in to answering in ns, by component."""
    sums = {}
    for _, _, receiver, _, taken, answered, _ in requests():
        count, total = sums.get(receiver, (0, 0))
        sums[receiver] = count + 1, total + answered - taken
    return {name(component): total / count for component, (count, total) in sums.items()}


def write_requests(path):
    """A simulation that is the root of all, and its requests."""
    columns = ["ID", "ParentID", "Kind", "What", "Location", "StartTime", "EndTime"]
    database = sqlite3.connect(path)
    database.execute(f"CREATE TABLE trace ({', '.join(columns)})")
    database.execute("CREATE TABLE exec_info (Property, Value)")

    def rows():
        end = 0
        for number, sender, receiver, sent, taken, answered, closed in requests():
            kind = "*mem.ReadReq" if number % 3 else "*mem.WriteReq"
            yield f"{number}_req_out", "root", "req_out", kind, name(sender), sent / 1e9, closed / 1e9
            yield f"{number}@{name(receiver)}", f"{number}_req_out", "req_in", kind, name(receiver), taken / 1e9, answered / 1e9
            end = max(end, closed)
        yield "root", "", "Simulation", "Simulation", "Driver", 0.0, end / 1e9

    with database:
        database.executemany("INSERT INTO trace VALUES (?, ?, ?, ?, ?, ?, ?)", rows())
        for column in columns:
            database.execute(f"CREATE {'UNIQUE ' if column == 'ID' else ''}INDEX idx_trace_{column} ON trace({column})")
    database.close()
