"""How long does the time breakdown of a GPU take on a Kineto trace, loading included?

The trace imitates PyTorch's profiler: operators on a thread, each with a launch, and for each launch a kernel, a collective of
NCCL or a copy on one of two devices, each on a stream of its own, with the flow between them. Python's json and a sweep over
the intervals give the same figures. tq is measured from outside, whole process; Python from inside. Needs nothing else.
"""

import csv
import json
import random
import sys

import common

WORK = [
    # kind, name, stream, mean duration in ns
    ("kernel", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int, float)", 7, 12_000),
    ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", 20, 90_000),
    ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 13, 40_000),
]
MORE = {
    "kernel": '"registers per thread": 96, "shared memory": 0, "blocks per SM": 0.074074, "warps per SM": 1.259259, '
    '"grid": [8, 1, 1], "block": [544, 1, 1], "est. achieved occupancy %": 0',
    "gpu_memcpy": '"bytes": 4000, "memory bandwidth (GB/s)": 0.7861635220125787',
}
PARTS = ["computing", "exposed communication", "exposed copies", "idle"]


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="tasks of the trace [100000]")
    options = common.parsed(parser)
    path = common.generate(options.work / f"kineto_{options.rows}.json", write_trace, options.rows)
    common.heading("Time breakdown of a GPU", options, [], {path: f"{options.rows} tasks and their flows"})
    query = [options.tq, "query", path, "gpu-time-breakdown", "--format", "csv"]
    results = common.in_turns(options.runs, {"tq query": lambda: common.run(query), "Python's json": common.child(path)})
    common.table(common.COST_HEAD, common.cost_rows(results))
    common.same({name: [figures_of(name, run.output) for run in runs] for name, runs in results.items()})
    wall = common.median(results["tq query"], "wall")
    common.bar("at most 0.3 s", wall <= 0.3, f"{wall:.3f} s by the clock")
    common.close()


def figures_of(name, output):
    """Device to ns of each part."""
    if name != "tq query":
        return json.loads(output)
    figures = {}
    for row in csv.DictReader(output.splitlines()):
        figures.setdefault(row["device"], {})[row["part"]] = int(row["total_time"])
    return figures


def child(path):
    def work():
        with open(path, encoding="utf-8") as file:
            # A double holds these times to 0.5 ns only, and rounding would move some: they stay text.
            events = json.load(file, parse_float=str)["traceEvents"]
        spans = {}
        for event in events:
            if event.get("cat") in ("kernel", "gpu_memcpy"):
                start = ns(event["ts"])
                role = "copy" if event["cat"] == "gpu_memcpy" else "nccl" if event["name"].startswith("nccl") else "work"
                spans.setdefault(str(event["pid"]), []).append((start, start + ns(event["dur"]), role))
        return {device: breakdown(sorted(spans_of_device)) for device, spans_of_device in sorted(spans.items())}

    common.report(work, lambda figures: figures)


def breakdown(spans):
    """What `gpu-time-breakdown` shows, of one device: a part counts where none of those before it runs."""
    computing = covered(span for span in spans if span[2] == "work")
    without_copies = covered(span for span in spans if span[2] != "copy")
    busy = covered(spans)
    total = max(finish for _, finish, _ in spans) - spans[0][0]
    return dict(zip(PARTS, [computing, without_copies - computing, busy - without_copies, total - busy], strict=True))


def covered(spans):
    """Length of the union of sorted spans."""
    length, end = 0, 0
    for start, finish, _ in spans:
        length += max(0, finish - max(start, end))
        end = max(end, finish)
    return length


def write_trace(path, rows):
    draw = random.Random(1)
    now, free = 4_458_676_000_000_000, {}
    with open(path, "w", encoding="utf-8") as file:
        file.write('{\n  "schemaVersion": 1,\n  "deviceProperties": [\n')
        file.write(",\n".join(f'    {{"id": {device}, "name": "NVIDIA A100-PG509-200", "numSms": 108}}' for device in (0, 1)))
        file.write('\n  ],\n  "traceEvents": [\n')
        for number in range(rows // 3):
            kind, name, stream, length = draw.choices(WORK, (17, 1, 2))[0]
            device, operator_length = draw.randrange(2), draw.randrange(6_000, 14_000)
            launch = now + draw.randrange(500, 2_000)
            start = max(launch + draw.randrange(3_000, 9_000), free.get((device, stream), 0) + draw.randrange(0, 2_000))
            length = int(length * draw.uniform(0.5, 1.5))
            free[device, stream] = start + length
            ids = f'"External id": {number + 1}'
            cpu, gpu = '"pid": 2910249, "tid": 2919752', f'"pid": {device}, "tid": {stream}'
            flow = f'"id": {number + 1}, "cat": "ac2g", "name": "ac2g"'
            events = [
                f'"ph": "X", "cat": "cpu_op", "name": "aten::op_{number % 40}", {cpu},\n'
                f'    "ts": {us(now)}, "dur": {us(operator_length)},\n'
                f'    "args": {{\n      {ids},"Record function id": {number}, "Ev Idx": {number}\n    }}',
                f'"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", {cpu},\n'
                f'    "ts": {us(launch)}, "dur": {us(2_500)},\n'
                f'    "args": {{\n      {ids}, "cbid": 211, "correlation": {number + 1}\n    }}',
                f'"ph": "s", {cpu}, "ts": {us(launch)},\n    {flow}',
                f'"ph": "X", "cat": "{kind}", "name": "{name}", {gpu},\n'
                f'    "ts": {us(start)}, "dur": {us(length)},\n    "args": {{\n'
                f'      {ids}, "device": {device}, "context": 1, "stream": {stream}, "correlation": {number + 1}, {MORE[kind]}\n    }}',
                f'"ph": "f", {gpu}, "ts": {us(start)},\n    {flow}, "bp": "e"',
            ]
            file.writelines(f"  {{\n    {event}\n  }},\n" for event in events)
            now += operator_length + draw.randrange(200, 3_000)
        file.write(
            '  {\n    "ph": "M", "name": "process_name", "pid": 2910249, "tid": 0, "ts": 4458676000000.000,\n'
            '    "args": {\n      "name": "python"\n    }\n  }\n  ],\n  "traceName": "generated"\n}\n'
        )


def us(time):
    """Nanoseconds as microseconds with three decimals."""
    return f"{time // 1000}.{time % 1000:03d}"


def ns(text):
    """The reverse of `us`."""
    return int(text.replace(".", ""))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        main()
