#!/usr/bin/env python3
"""Writes large traces of Chakra and Kineto and measures how long netsim takes to load them, and in how much memory.

    scripts/large_trace.py                                        # both at full size: 3,072 x 1,000 nodes, and 1 GB
    scripts/large_trace.py chakra --ranks 64 --nodes 100 --seconds 10 --gib 2
    scripts/large_trace.py kineto --megabytes 10 --seconds 60 --gib 1

A rank of the Chakra trace has computations that alternate with an all-reduce in groups of 8 ranks, every tenth of all ranks that have the
same place in their group. The Kineto trace is one file of one of 8 ranks. It has a launch, an arrow and a kernel for each computation, operators and
functions of Python around them, and an all-reduce in every tenth place.

The traces are generated, and are deleted at the end. The time is that of one core for `netsim describe-trace`, which loads the trace, counts
its tasks and plays them on the ideal network. The exit code is 1 where a trace takes longer or more memory than the limits.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUP = 8


def varint(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def record(message):
    return varint(len(message)) + message


def attribute(name, field, value):
    return text(10, text(1, name) + (number(field, value) if isinstance(value, int) else text(field, value)))


def node(index, rank, ranks):
    head = number(1, index) + (text(5, varint(index - 1)) if index > 0 else b"")
    if index % 2 == 0:
        return record(head + text(2, b"kernel") + number(3, 4) + number(7, 5 + index % 7) + attribute(b"is_cpu_op", 27, 0))
    across = index % 20 == 19 and ranks > GROUP
    name = ranks // GROUP + 1 + rank % GROUP if across else rank // GROUP + 1
    return record(head + text(2, b"all_reduce") + number(3, 7) + attribute(b"is_cpu_op", 27, 0) + attribute(b"comm_type", 9, 0) +
                  attribute(b"comm_size", 9, 1 << 20) + attribute(b"pg_name", 29, str(name).encode()))


def write(folder, ranks, nodes):
    groups = {str(g + 1): list(range(g * GROUP, (g + 1) * GROUP)) for g in range(ranks // GROUP)}
    groups.update({str(ranks // GROUP + 1 + place): list(range(place, ranks, GROUP)) for place in range(GROUP)})
    (folder / "large.json").write_text(json.dumps(groups))
    for rank in range(ranks):
        (folder / f"large.{rank}.et").write_bytes(record(text(1, b"1.0.0")) + b"".join(node(i, rank, ranks) for i in range(nodes)))


# A ResNet step among the samples has 10.8 events, of 2.1 KB in all, for each operation of the GPU. This trace has 9 events, of 2.0 KB.
OTHERS = [("python_function", "torch/nn/modules/module.py(1527): _call_impl", "Python id"),
          ("python_function", "nn.Module: Conv2d_17", "Python id"), ("cpu_op", "aten::conv2d", "External id"),
          ("cpu_op", "aten::convolution", "External id"),
          ("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", "External id")]


def kineto_event(at, index):
    """The events of one computation, or of one all-reduce, that begins `at` microseconds."""
    communicates = index % 10 == 9
    call = (', "Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576, "Group size": 8, "dtype": "Float", '
            '"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"' if communicates else "")
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL" if communicates else "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>"
    operator = "record_param_comms" if communicates else "aten::mm"
    stream = 20 if communicates else 7
    head = f'"pid": 1000, "tid": 1000, "ts": {at}'
    others = "".join(
        f'{{"ph": "X", "cat": "{category}", "name": "{other}", {head}.0{number}, "dur": 9.{9 - number}00, "args": {{"{identifier}": {index}{number}, '
        f'"Python parent id": {index}, "Python module id": {number}, "Ev Idx": {index}}}}},\n' for number, (category, other, identifier) in enumerate(OTHERS))
    return (others +
            f'{{"ph": "X", "cat": "cpu_op", "name": "{operator}", {head}.100, "dur": 8.000, "args": {{"External id": {index}, '
            f'"Ev Idx": {index}, "Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"]{call}}}}},\n'
            f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", {head}.200, "dur": 2.000, "args": {{"External id": {index}, '
            f'"cbid": 211, "correlation": {index}}}}},\n'
            f'{{"ph": "s", "id": {index}, {head}.200, "cat": "ac2g", "name": "ac2g"}},\n'
            f'{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream}, "ts": {at + 5}.000, "dur": 8.000, "args": {{'
            f'"External id": {index}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, "correlation": {index}, '
            f'"registers per thread": 255, "shared memory": 0, "grid": [64, 2, 1], "block": [256, 1, 1]{call}}}}}')


def write_kineto(folder, size):
    """Writes a file of about so many bytes."""
    with (folder / "rank0.json").open("w", encoding="ascii") as file:
        file.write('{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 8, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", '
                   '"ranks": [0, 1, 2, 3, 4, 5, 6, 7]}]},\n"traceEvents": [\n')
        written, index = 0, 1
        while written < size:
            block = ",\n".join(kineto_event(10 * i, i) for i in range(index, index + 1000))
            file.write((",\n" if index > 1 else "") + block)
            written += len(block)
            index += 1000
        file.write("\n]}\n")


def measured(what, binary, write_trace):
    """Seconds and GiB of describe-trace."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_large_trace_"))
    try:
        write_trace(folder)
        size = sum(path.stat().st_size for path in folder.iterdir())
        run = [sys.executable, "-c", MEASURE, binary, "describe-trace", str(folder), "--json", "-"]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(folder)
    if done.returncode != 0:
        sys.exit(done.stderr)
    seconds, gib = (float(word) for word in done.stderr.split())
    facts = json.loads(done.stdout)
    print(f"{what}: {size / 1e6:.0f} MB, {facts['ranks']} ranks, {facts['tasks']} tasks: {seconds:.1f} s, {gib:.2f} GiB")
    return seconds, gib


# A process of its own, so that the memory is that of one trace.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], check=False).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if code == 0:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss / (1 << 20), file=sys.stderr)
sys.exit(code)
"""
# Seconds and GiB that a trace of full size may take.
LIMITS = {"chakra": (10, 2), "kineto": (60, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", nargs="*", choices=[[], *LIMITS], help="chakra, kineto (default: both)")
    parser.add_argument("--ranks", type=int, default=3072, help=f"of Chakra: a multiple of {GROUP}")
    parser.add_argument("--nodes", type=int, default=1000, help="of Chakra: nodes of a rank")
    parser.add_argument("--megabytes", type=float, default=1000, help="of Kineto: size of the file")
    parser.add_argument("--binary", default=str(ROOT / "build/run/netsim"), help="the program")
    parser.add_argument("--seconds", type=float, help="most seconds (default: 10 for Chakra, 60 for Kineto)")
    parser.add_argument("--gib", type=float, help="most memory (default: 2 for Chakra, 1 for Kineto)")
    options = parser.parse_args()
    if options.ranks < GROUP or options.ranks % GROUP:
        sys.exit(f"--ranks: {options.ranks} was given; allowed: a multiple of {GROUP}")
    writers = {"chakra": lambda folder: write(folder, options.ranks, options.nodes),
               "kineto": lambda folder: write_kineto(folder, options.megabytes * 1e6)}
    over = False
    for name in options.format or LIMITS:
        seconds, gib = measured(name, options.binary, writers[name])
        most_seconds, most_gib = LIMITS[name]
        over = over or seconds > (options.seconds or most_seconds) or gib > (options.gib or most_gib)
    sys.exit(int(over))


if __name__ == "__main__":
    main()
