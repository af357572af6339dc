#!/usr/bin/env python3
"""Wrong inputs by the hundred: whatever is broken, netsim answers in one line, with a place and an exit code.

    tests/scenarios/wrong_inputs.py --binary build/run/netsim [--count 900] [--seed 1] [--group yaml] [--keep DIR]

Groups: yaml (configurations and descriptions of workloads), lists (flow lists, connection matrices, topologies,
distributions), inputs (workloads of several files and folders), program (compiled workloads, byte by byte), words (the
command line), signals (every mode of the program, ended at a random moment). Files are those of this repository with one thing broken in each. A run may also be right, where what was changed does not matter. Badly answered is:
an exit code that is not netsim's, a crash, a hang, an internal check, an error of no line or of several, one that names
no file, control characters on the terminal, output beside an error, a torn file.
"""
import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
TIMEOUT_S = 300  # an answer takes at most a second or two, and no answer is what this finds
# netsim ends within a second of a signal; on a machine that does much else it may get a core much later.
SIGNAL_TIMEOUT_S = 200
MEMORY = 4 << 30
STOPPED = {0, 5, 6}  # done, stalled, limit
REFUSED = {2, 3, 4}
STAR = "topology: {kind: star, hosts: 20, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n"

# (configuration, workload): which of the two is broken is drawn.
YAML_PAIRS = [
    ("network/faults.yaml", "network/permutation.yaml"),
    ("network/static.yaml", "network/permutation.yaml"),
    ("network/credits.yaml", "network/permutation.yaml"),
    ("network/vl_arbitration.yaml", "network/two_classes.yaml"),
    ("network/drr.yaml", "network/two_classes.yaml"),
    ("network/red.yaml", "network/incast.yaml"),
    ("network/irn.yaml", "network/permutation.yaml"),
    ("network/spray.yaml", "network/permutation.yaml"),
    ("congestion/hpcc.yaml", "congestion/incast_8to1.yaml"),
    ("congestion/dcqcn.yaml", "congestion/incast_8to1.yaml"),
    ("congestion/swift.yaml", "congestion/incast_8to1.yaml"),
    ("congestion/timely.yaml", "congestion/incast_8to1.yaml"),
    ("two_dgx.yaml", "workloads/small_gpt_ptdp.yaml"),
    ("two_dgx.yaml", "collectives/tree.yaml"),
    ("traffic/star17.yaml", "traffic/poisson.yaml"),
    ("traffic/star17.yaml", "traffic/poisson_inline.yaml"),
    ("traffic/star17.yaml", "traffic/all_to_all.yaml"),
    ("traffic/star17.yaml", "traffic/ring.yaml"),
    ("traffic/star17.yaml", "traffic/flows.yaml"),
    ("traffic/star17.yaml", "traffic/custom.yaml"),
    ("sampling.yaml", "workloads/incast_1MB.yaml"),
    ("deadlock_ring.yaml", "workloads/deadlock_ring.yaml"),
    ("pipeline/accelerator.yaml", "pipeline/interleaved.yaml"),
    ("topologies/mixed.yaml", "collectives/all_reduce.yaml"),
    ("topologies/gb200.yaml", "collectives/all_reduce.yaml"),
    ("topologies/dgx_1v.yaml", "collectives/all_reduce.yaml"),
]
VALUES = ["-1", "0", "1e99", "99999999999999999999", "''", "~", "[]", "{}", "nan", "inf", "-0", "0x10", "1 us", "5 Gbps",
          "3 MB", "true", "maybe", "1e-300", "[1, 2", "{a: 1}", "*missing", "!!binary x", "'\\e[31mred'", '"\\u202e"',
          "a b c", "1,000", "1.5", "400Gbps ", "2 fortnights", "../../etc/passwd", "/dev/zero", "/nonexistent", ".",
          "18446744073709551616", "9223372036854775807", "\u00e9", "4096", "1", "2", "7"]


class Case:
    """One run: files in a directory of its own, the words after `netsim`, what was broken."""

    def __init__(self, words, broken, files, signal_after=None):
        self.words, self.broken, self.files, self.signal_after = words, broken, files, signal_after
        self.seconds, self.ended_before = 0, False  # from the signal to the end; whether it came too late


def read(path):
    with open(os.path.join(SOURCE, "configs", path), "rb") as file:
        return file.read()


def broken_line(rng, line):
    """A line of YAML, or of a list, with one thing wrong."""
    kind = rng.randrange(8)
    if kind == 0 and ":" in line:  # a key that is not known
        at = line.index(":")
        return line[:max(at - 1, 0)] + line[at:]
    if kind == 1:
        return " " * rng.randrange(1, 5) + line
    if kind == 2:
        return "\t" + line
    if kind == 3 and line:
        at = rng.randrange(len(line))
        return line[:at] + rng.choice("{}[]:,'\"&*!%@`#|>-\x00\x1b\x7f\x85\ufeff ") + line[at:]
    if kind == 4 and line:
        at = rng.randrange(len(line))
        return line[:at] + line[at + 1:]
    for mark in (": ", ", ", ",", "\t", " "):  # one of its values replaced
        if mark in line.strip():
            parts = line.split(mark)
            parts[rng.randrange(1, len(parts))] = rng.choice(VALUES)
            return mark.join(parts)
    return line + rng.choice(VALUES)


def broken_text(rng, data):
    text = data.decode("utf-8")
    lines = text.split("\n")
    marked = [i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")] or [0]
    at = rng.choice(marked)
    kind = rng.randrange(10)
    if kind == 0:
        return text[:rng.randrange(len(text) + 1)].encode()
    if kind == 1:
        del lines[at]
    elif kind == 2:
        lines.insert(at, lines[at])
    elif kind == 3:
        noise = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        cut = rng.randrange(len(data) + 1)
        return data[:cut] + noise + data[cut:]
    elif kind == 4:
        lines[at] += rng.choice(["x" * 70000, " " * 70000, "9" * 5000])
    else:
        lines[at] = broken_line(rng, lines[at])
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def broken_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        kind, at = rng.randrange(5), rng.randrange(len(data))
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:]
            data += b"\0"
        elif kind == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 12)))
        elif kind == 3:
            data[at:at + 8] = b"\xff" * 8
        else:
            del data[at:at + rng.randrange(1, 20)]
    return bytes(data)


def run_words(config, workload):
    return ["--config", config, "--workload", workload, "--until", "20us", "--quiet", "--json", "-"]


def yaml_case(rng, _):
    config, workload = rng.choice(YAML_PAIRS)
    files = {config: read(config), workload: read(workload)}
    for extra in ("traffic/flows.csv", "traffic/web_search.cdf"):
        files[extra] = read(extra)
    name = rng.choice([config, workload])
    files[name] = broken_text(rng, files[name])
    return Case(run_words(config, workload), name, files)


def lists_case(rng, _):
    files = {"star.yaml": STAR.encode()}
    kind = rng.randrange(5)
    if kind == 0:
        name = "flows.csv"
        files[name] = broken_text(rng, read("traffic/flows.csv"))
        return Case(run_words("star.yaml", name), name, files)
    if kind == 1:
        name = "web_search.cdf"
        files["poisson.yaml"] = read("traffic/poisson.yaml")
        files[name] = broken_text(rng, read("traffic/web_search.cdf"))
        return Case(run_words("star.yaml", "poisson.yaml"), name, files)
    folder = "import/htsim" if kind == 2 else "import/ns3"
    for entry in sorted(os.listdir(os.path.join(SOURCE, "configs", folder))):
        files[folder + "/" + entry] = read(folder + "/" + entry)
    name = rng.choice([n for n in sorted(files) if n != "star.yaml"])
    files[name] = broken_text(rng, files[name])
    if kind == 2:
        files["import/htsim.yaml"] = read("import/htsim.yaml")
        return Case(run_words("import/htsim.yaml", "import/htsim/connections.cm"), name, files)
    return Case(["--config", "import/ns3/config.txt", "--until", "20us", "--quiet", "--json", "-"], name, files)


def inputs_case(rng, program):
    """A workload of several files or a folder, one of which does not belong there."""
    list_ = b"source,destination,bytes,start\n0,1,1 MB,0\n"
    files = {"star.yaml": STAR.encode(), "in/a.csv": list_, "in/b.csv": broken_text(rng, list_)}
    words, broken = run_words("star.yaml", "in"), "in/b.csv"
    kind = rng.randrange(9)
    if kind == 0:  # a folder in a folder
        files["in/deep/c.csv"], broken = list_, "in/deep"
    elif kind == 1:  # a folder without files
        broken, files = "in", {"star.yaml": STAR.encode(), "in/.hidden": list_}
    elif kind == 2:  # other formats
        files["in/b.csv"] = rng.choice([program, read("import/htsim/connections.cm"), read("import/ns3/flow.txt"),
                                        read("workloads/incast_1MB.yaml"), b"just words\n", b"", b"\0\1\2"])
    elif kind == 3:  # several of a format whose readers take one
        text = rng.choice([program, read("import/htsim/connections.cm"), read("workloads/incast_1MB.yaml")])
        files.update({"in/a.csv": text, "in/b.csv": text})
        broken = "in"
    elif kind == 4:  # a file that is not there, is given twice, or is none
        words += ["--workload", rng.choice(["nowhere", "in/a.csv", "in", "fifo", "/dev/zero", ""])]
        broken = ""
    elif kind == 5:  # a line that never ends
        files["in/b.csv"] = list_ + b"x" * ((16 << 20) + 1)
    elif kind == 6:  # the same in a list of jobs
        files["jobs.yaml"] = b"jobs: [{name: a, workload: [in/a.csv, %s]}]\n" % rng.choice(
            [b"in/b.csv", b"in/a.csv", b"nowhere", b"''", b"{}", b"[]", b"star.yaml"])
        words, broken = run_words("star.yaml", "jobs.yaml"), "jobs.yaml"
    return Case(words, broken, files)


def program_case(rng, program):
    files = {"two_dgx.yaml": read("two_dgx.yaml"), "job.pb": broken_bytes(rng, program)}
    return Case(run_words("two_dgx.yaml", "job.pb"), "job.pb", files)


def words_case(rng, _):
    files = {"star.yaml": STAR.encode(), "incast.yaml": read("workloads/incast_1MB.yaml")}
    words = ["--config", "star.yaml", "--workload", "incast.yaml", "--until", "20us", "--quiet", "--json", "-"]
    kind = rng.randrange(7)
    if kind == 0:
        del words[rng.randrange(len(words))]
    elif kind == 1:
        at = rng.randrange(len(words))
        words.insert(at, words[at])
    elif kind == 2:
        words[rng.randrange(len(words))] = rng.choice(VALUES + ["--", "-", "--conf", "-x", "", "--seed"])
    elif kind == 3:
        path = rng.choice(["topology.hosts", "topology.rate", "transport.mtu", "network.switch.buffer", "network", "topology",
                           "host", "seed", "a.b.c", "", "transport.congestion_control.kind", "network.faults",
                           "output.max_rows", "engine.sets", "topology.kind"])
        words += ["--set", path + rng.choice(["=", "", ":", "=="]) + rng.choice(VALUES)]
    elif kind == 4:
        words += [rng.choice(["--seed", "--threads", "--until", "--out", "--set", "--describe", "--list", "--compile"]),
                  rng.choice(VALUES + ["64", "star.yaml", "star.yaml/x", "/dev/full", "/proc/x"])]
    elif kind == 5:
        words = [rng.choice(["--describe", "--list", "--compile", "--schema", "--print-config", "--dry-run", "--version"]),
                 rng.choice(VALUES)]
    else:
        os_file = rng.choice(["/dev/zero", "/dev/null", "/", ".", "/nonexistent", "/dev/full", "fifo"])
        words[rng.choice([1, 3])] = os_file
    return Case(words, "", files)


# Every mode of the program, as words. --large makes the files that they read describe much.
SIGNAL_MODES = [
    ["--config", "star.yaml", "--workload", "long.yaml", "--quiet", "--out", "results"],
    ["--config", "star.yaml", "--workload", "long.yaml", "--threads", "4", "--set", "engine.sets=4", "--out", "results"],
    ["--config", "star.yaml", "--workload", "long.yaml", "--quiet", "--json", "-"],
    ["--config", "star.yaml", "--workload", "long.yaml", "--dry-run"],
    ["--config", "star.yaml", "--workload", "long.yaml", "--worth", "--set", "scheduling.flows=srpt", "--quiet", "--out", "results"],
    ["--config", "leaves.yaml", "--workload", "ring.yaml", "--quiet", "--threads", "1", "--out", "results"],
    ["--config", "leaves.yaml", "--workload", "ring.yaml", "--dry-run"],
    ["--config", "leaves.yaml", "--workload", "ring.yaml", "--print-config", "--json", "-"],
    ["--config", "torus.yaml", "--dry-run"],
    ["--config", "torus.yaml", "--print-config"],
    ["--config", "torus.yaml", "--draw", "torus.svg"],
    ["--config", "torus.yaml", "--workload", "long.yaml", "--quiet"],
    ["--config", "dgx.yaml", "--write-graph", "graph.xml"],
    ["--write-program", "direct", "--kind", "all_to_all", "--ranks", "500", "--out", "direct.xml"],
    ["--write-program", "ring", "--ranks", "700", "--quiet", "--out", "ring.xml"],
    ["--show-schedule", "ring", "--ranks", "512", "--out", "ring.svg"],
    ["--prove", "ring_8.xml"],
    ["--compile", "job.pb", "--workload", "gpt.yaml", "--set", "workload.model.layers=960"],
    ["--list"], ["--schema"], ["--describe", "dcqcn"], ["--help"], ["--version"],
]


def signals_case(rng, _, number, large):
    size = 16384 if large else 1024
    side = 256 if large else 64
    files = {"star.yaml": STAR.encode(), "long.yaml": b"kind: incast\nsenders: 19\nreceiver: 19\nbytes: 4 GB\n",
             "leaves.yaml": f"topology: {{kind: leaf_spine, leaves: {size // 32}, spines: 32, hosts_per_leaf: 32}}\n"
                            "host: single_nic\nnetwork: {switch: {marker: none}}\n"
                            "transport: {congestion_control: none}\n".encode(),
             "ring.yaml": f"{{kind: collective, collective: all_reduce, bytes: 16 MB, ranks: {size}}}".encode(),
             "torus.yaml": f"topology: {{kind: torus, sizes: [{side}, {side}]}}\nhost: single_nic\n".encode(),
             "dgx.yaml": f"topology: {{kind: star, hosts: {size // 32}}}\nhost: dgx_h100\n".encode(),
             "ring_8.xml": read("collectives/ring_8.xml"), "gpt.yaml": read("workloads/small_gpt_ptdp.yaml")}
    words = SIGNAL_MODES[number % len(SIGNAL_MODES)]
    which = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP] * 4 + [signal.SIGKILL])
    return Case(words, "", files, (which, (8 if large else 0.5) * rng.random() ** 3))


GROUPS = {"yaml": (yaml_case, 0.36), "lists": (lists_case, 0.18), "inputs": (inputs_case, 0.08), "program": (program_case, 0.20),
          "words": (words_case, 0.13), "signals": (signals_case, 0.08)}


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def wait_for_handlers(process):
    """Until the program handles signals; before, they end it as they end any other."""
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                handled = next((int(line.split()[1], 16) for line in status if line.startswith("SigCgt")), 0)
        except OSError:
            return
        if handled >> (signal.SIGABRT - 1) & 1:  # the last one that it installs
            return
        time.sleep(0.0005)


def execute(binary, case, folder, limited):
    for name, data in case.files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    os.mkfifo(os.path.join(folder, "fifo"))
    process = subprocess.Popen([binary, *case.words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=limits if limited else None)
    begin = time.monotonic()
    if case.signal_after is not None:
        wait_for_handlers(process)
        case.ended_before = wait_at_most(process, case.signal_after[1])
        begin = time.monotonic()
        process.send_signal(case.signal_after[0])
    try:
        out, err = process.communicate(timeout=TIMEOUT_S if case.signal_after is None else SIGNAL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, b"", b""
    case.seconds = time.monotonic() - begin
    return process.returncode, out, err


def wait_at_most(process, seconds):
    """Whether it ended. Its output is no more than a pipe holds, or it waits for a reader, which a signal ends, too."""
    try:
        process.wait(timeout=seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def torn_files(folder):
    """A summary or manifest in an output directory that is not whole."""
    for place, _, names in os.walk(folder):
        for name in names:
            if name in ("summary.json", "manifest.json"):
                try:
                    with open(os.path.join(place, name), encoding="utf-8") as file:
                        json.load(file)
                except ValueError:
                    yield os.path.join(place, name)


def signal_complaint(case, code, err, folder):
    which = case.signal_after[0]
    if which == signal.SIGKILL and not case.ended_before:
        return None if code in STOPPED | {-which} else f"exit code {code} after signal {which}"
    # A signal may come when all is done.
    if code not in ({0} if case.ended_before else STOPPED | {130}):
        return f"exit code {code} after signal {which}"
    left = [name for _, _, names in os.walk(folder) for name in names if name.endswith(".partial") or name == ".netsim.lock"]
    if left:
        return "left: " + ", ".join(left)
    text = err.decode("utf-8", "replace")
    if code == 130 and text.count("netsim: error: ") != 1:
        return "no error, or several"
    return None


def complaint(case, code, out, err, folder):
    """Why this answer is a bad one; None for a good one."""
    torn = list(torn_files(folder))
    if torn:
        return "torn: " + ", ".join(torn)
    if code is None:
        return "no answer in time"
    if case.signal_after is not None:
        return signal_complaint(case, code, err, folder)
    if code in REFUSED:
        text = err.decode("utf-8", "replace")
        if not text.startswith("netsim: error: "):
            return "no 'netsim: error: '"
        if text.count("\n") != 1:
            return "an error of several lines"
        if "\ufffd" in text or any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text[:-1]):
            return "bytes that no terminal should see"
        if len(text) > 1500:
            return f"an error of {len(text)} characters"
        if out:
            return "output beside an error"
        if case.broken and os.path.basename(case.broken) not in text and code != 4 and \
                not any(os.path.basename(name) in text for name in case.files):
            return "an error that names no file"
        return None
    if code not in STOPPED:
        return f"exit code {code}"
    return None


def compiled_program(binary, folder):
    path = os.path.join(folder, "job.pb")
    subprocess.run([binary, "--compile", path, "--workload",
                    os.path.join(SOURCE, "configs/workloads/small_gpt_ptdp.yaml"), "--quiet"], check=True)
    with open(path, "rb") as file:
        return file.read()


def check(binary, case, keep, number, limited):
    folder = tempfile.mkdtemp(prefix="netsim_wrong_")
    try:
        code, out, err = execute(binary, case, folder, limited)
        why = complaint(case, code, out, err, folder)
        if why is None:
            return code, None
        if keep:
            shutil.copytree(folder, os.path.join(keep, str(number)), dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("fifo"))
        return code, f"{why}: netsim {' '.join(case.words)}  [{case.broken}]\n    {err[:600].decode('utf-8', 'replace').strip()}"
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--group", choices=GROUPS, action="append")
    parser.add_argument("--keep", help="folder for the inputs of those that were answered badly")
    parser.add_argument("--large", action="store_true", help="signals: plans of 16,384 ranks, 65,536 switches")
    parser.add_argument("--no-memory-limit", action="store_true", help="for sanitizers, which reserve much")
    arguments = parser.parse_args()
    binary = os.path.realpath(arguments.binary)
    with tempfile.TemporaryDirectory() as folder:
        program = compiled_program(binary, folder)
    bad = total = 0
    for group, (make, share) in GROUPS.items():
        if arguments.group and group not in arguments.group:
            continue
        codes, slowest = {}, 0
        for number in range(max(1, round(arguments.count * share))):
            rng = random.Random(f"{arguments.seed}/{group}/{number}")
            case = make(rng, program, number, arguments.large) if group == "signals" else make(rng, program)
            limited = not arguments.no_memory_limit and not arguments.large
            code, why = check(binary, case, arguments.keep, f"{group}{number}", limited)
            codes[code] = codes.get(code, 0) + 1
            slowest = max(slowest, case.seconds if case.signal_after else 0)
            total += 1
            if why:
                bad += 1
                print(f"{group} {number}: {why}", flush=True)
        print(f"{group}: " + ", ".join(f"{n} x {c}" for c, n in sorted(codes.items(), key=str)) +
              (f"; {slowest:.2f} s from a signal to the end" if group == "signals" else ""), flush=True)
    print(f"{total} wrong inputs, {bad} answered badly")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
