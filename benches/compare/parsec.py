"""A tiled Cholesky factorisation as PaRSEC records it: a binary profile and a task graph per rank, for commands.py.

Tiles are dealt block-cyclically to a grid of 2 x 2 ranks with 4 workers each; a worker takes tasks in the order of the loops.
Each task leaves the records of PREPARE_INPUT, itself, COMPLETE_EXEC and RELEASE_DEPS. There are no messages.
"""

import random
import struct
from dataclasses import dataclass

RANKS, WORKERS = 4, 4
BLOCK, HEAD = 4096, 25
EVENTS, DICTIONARY, STREAMS, INFOS = 1, 2, 3, 4
# Class: its number, its parameters, nominal ns.
CLASSES = {"POTRF": (0, "k", 6_000), "TRSM": (1, "mk", 4_000), "SYRK": (2, "km", 3_500), "GEMM": (3, "mnk", 3_200)}
TASK_INFO = "dc_key{uint64_t};priority{int32_t};dc_dataid{uint32_t};tcid{uint32_t};trc{int32_t};"
PREPARE, COMPLETE, RELEASE, FIRST_CLASS = 1, 2, 3, 4  # places in the dictionary; 0 is N/A


@dataclass
class Task:
    """One task; `path` is the longest path that ends with it, in ns."""

    kind: str
    parameters: tuple
    number: int
    rank: int
    worker: int
    start: int
    finish: int
    path: int
    predecessors: list


def factorisation(tiles):
    """All tasks in an order in which they can run."""
    draw = random.Random(1)
    tasks, free = {}, [[0] * WORKERS for _ in range(RANKS)]

    def add(kind, parameters, tile, predecessors):
        before = [tasks[name] for name in predecessors if name in tasks]
        rank = tile[0] % 2 * 2 + tile[1] % 2
        worker = min(range(WORKERS), key=free[rank].__getitem__)
        start = max([free[rank][worker], *(task.finish for task in before)]) + 1_000
        duration = int(CLASSES[kind][2] * draw.uniform(0.7, 1.3))
        free[rank][worker] = start + duration + 1_000
        path = duration + max((task.path for task in before), default=0)
        tasks[kind, *parameters] = Task(kind, parameters, len(tasks), rank, worker, start, start + duration, path, before)

    for k in range(tiles):
        add("POTRF", (k,), (k, k), [("SYRK", k - 1, k)])
        for m in range(k + 1, tiles):
            add("TRSM", (m, k), (m, k), [("POTRF", k), ("GEMM", m, k, k - 1)])
        for m in range(k + 1, tiles):
            add("SYRK", (k, m), (m, m), [("TRSM", m, k), ("SYRK", k - 1, m)])
            for n in range(k + 1, m):
                add("GEMM", (m, n, k), (m, n), [("TRSM", m, k), ("TRSM", n, k), ("GEMM", m, n, k - 1)])
    return list(tasks.values())


def expected(tiles):
    """Tasks, dependencies and the longest path in ns."""
    tasks = factorisation(tiles)
    return [len(tasks), sum(len(task.predecessors) for task in tasks), max(task.path for task in tasks)]


def write_cholesky(directory, tiles):
    directory.mkdir(exist_ok=True)
    tasks = factorisation(tiles)
    for rank in range(RANKS):
        own = [task for task in tasks if task.rank == rank]
        with open(directory / f"cholesky-{rank}.dot", "w", encoding="ascii") as file:
            write_graph(file, own)
        with open(directory / f"cholesky-{rank}.prof", "wb") as file:
            write_profile(file, rank, own)


def write_graph(file, tasks):
    """A line per task that ran here, and per dependency of one."""
    file.write("digraph G {\n")
    for task in tasks:
        listed = ", ".join(map(str, task.parameters))
        label = f"<{task.worker}/0> {task.kind}({listed})[{listed}]<0> keys = {{{task.number}}} {{tp: 2}}"
        file.write(
            f'{name_of(task)} [shape="polygon",label="{label}",'
            f'tooltip="tpid=2:tcid={CLASSES[task.kind][0]}:tcname={task.kind}:tid={task.number}"];\n'
        )
        last = max(task.predecessors, key=lambda source: source.finish, default=None)
        for source in task.predecessors:
            colour = "#00FF00" if source is last else "#FF0000"
            file.write(f'{name_of(source)} -> {name_of(task)} [label="C=>C",color="{colour}",style="dashed"]\n')
    file.write("}\n")


def name_of(task):
    return "_".join([task.kind, "2", *map(str, task.parameters)])


def write_profile(file, rank, tasks):
    """Header, events of each worker, dictionary, infos, streams; blocks of a chain one after the other."""
    file.write(bytes(BLOCK))
    streams = []
    for worker in range(WORKERS):
        records = [record for task in tasks if task.worker == worker for record in records_of(task)]
        name = f"PaRSEC Thread {worker} of VP 0 Bound on {worker}".encode()
        infos = [info(b"boundto", worker), info(b"th_id", worker), info(b"vp_id", 0)]
        head = struct.pack("<qQ128sqi", 0, len(records), name, chain(file, EVENTS, records), len(infos))
        streams.append(head + b"".join(infos))
    runtime = [
        ("N/A", 0, ""),
        ("PARSEC RUNTIME::PREPARE_INPUT", 0, ""),
        ("PARSEC RUNTIME::COMPLETE_EXEC", 0, ""),
        ("PARSEC RUNTIME::RELEASE_DEPS", 4, "tcid{uint32_t}"),
    ]
    kernels = [
        (f"cholesky::{kind}", 24 + 4 * len(names), TASK_INFO + "".join(f"{name}{{int32_t}};" for name in names))
        for kind, (_, names, _) in CLASSES.items()
    ]
    entries = [
        struct.pack("<64s128sii", name.encode(), b"fill:#FF0000", len(text), length) + text.encode() + bytes(3)
        for name, length, text in runtime + kernels
    ]
    infos = [info(b"hostname", "node0"), info(b"nb_cores", WORKERS), info(b"nb_vps", 1)]
    dictionary_at, infos_at, streams_at = chain(file, DICTIONARY, entries), chain(file, INFOS, infos), chain(file, STREAMS, streams)
    file.seek(0)
    file.write(
        struct.pack(
            "<q25s7xqi128siqi4xqiiq",
            0,
            b"#PARSEC BINARY PROFILE \x0c",
            0x0123456789ABCDEF,
            BLOCK,
            b"cholesky",
            len(entries),
            dictionary_at,
            len(infos),
            infos_at,
            rank,
            len(streams),
            streams_at,
        )
    )


def records_of(task):
    """The eight records of a task, in order of time."""
    number = CLASSES[task.kind][0]
    values = struct.pack(f"<QiIIi{len(task.parameters)}i", 1, 0, task.number, number, 0, *task.parameters)
    tcid = struct.pack("<I", number)
    kernel = FIRST_CLASS + number
    yield event(2 * PREPARE, 0, task.start - 400)
    yield event(2 * PREPARE + 1, 0, task.start - 100)
    yield event(2 * kernel, task.number, task.start, 2)
    yield event(2 * kernel + 1, task.number, task.finish, 2, values)
    yield event(2 * COMPLETE, 0, task.finish + 50)
    yield event(2 * RELEASE, task.number, task.finish + 100, 2, tcid)
    yield event(2 * RELEASE + 1, task.number, task.finish + 400, 2, tcid)
    yield event(2 * COMPLETE + 1, 0, task.finish + 500)


def event(key, number, time, taskpool=0xFFFFFFFF, values=b""):
    return struct.pack("<HHIQQ", key, 1 if values else 0, taskpool, number, time) + values


def info(key, value):
    value = str(value).encode()
    return struct.pack("<ii", len(key), len(value)) + key + value + bytes(3)


def chain(file, kind, records):
    """Writes records into blocks of one kind, none across two, and returns where the first block is."""
    blocks, room = [[]], BLOCK - HEAD
    for record in records:
        if len(record) > room:
            blocks.append([])
            room = BLOCK - HEAD
        blocks[-1].append(record)
        room -= len(record)
    first = file.tell()
    for number, block in enumerate(blocks):
        own = first + number * BLOCK
        following = own + BLOCK if number + 1 < len(blocks) else -1
        head = struct.pack("<qqqB", own, following, len(block), kind)
        file.write((head + b"".join(block)).ljust(BLOCK, b"\0"))
    return first
