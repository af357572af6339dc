"""Finds the netsim that a script runs, and measures what a run costs: processor time, memory and instructions.

It also writes files as a whole, so that no reader sees half a file.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import tempfile
import time


ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILDS = ("build/run/netsim", "build/release/netsim")  # of scripts/run.sh, and of a build by hand


def add_binary(parser):
    """The option that says which netsim a script runs."""
    parser.add_argument("--binary", type=pathlib.Path, metavar="NETSIM",
                        help="the program (default: the newer one of build/run/netsim and build/release/netsim)")


def find_binary(given=None):
    """The program that `given` names, else the one that was built last; SystemExit where there is none."""
    candidates = [pathlib.Path(given)] if given else [ROOT / path for path in BUILDS]
    there = [path for path in candidates if os.access(path, os.X_OK) and path.is_file()]
    if not there:
        raise SystemExit(f"no program at {' or '.join(str(path) for path in candidates)}: "
                         "scripts/run.sh --version builds it, --binary names another one")
    return max(there, key=lambda path: path.stat().st_mtime).resolve()


def own_libraries(binary):
    """Returns the shared libraries of netsim that the program loads: most of a netsim is in one. Others' libraries are left out."""
    try:
        shown = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return []
    return [pathlib.Path(path) for path in re.findall(r"libnetsim\S* => (/.+?) \(", shown)]


def cores():
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def add_jobs(parser, what):
    """The option that says how many runs a script has at a time; `what` it calls them."""
    def at_least_one(text):
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"'{text}' was given; a number of at least 1 is expected")
        return int(text)

    parser.add_argument("-j", "--jobs", type=at_least_one, default=cores(), metavar="N", help=f"{what} at a time (default: one per core)")


def write_whole(path, text):
    """The file appears when it is complete, whenever the process is killed, and whoever else writes it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    with open(beside, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)


def write_json(path, value):
    """A value, as write_whole() writes a text."""
    write_whole(path, json.dumps(value, indent=1) + "\n")


@dataclasses.dataclass
class Cost:
    seconds: float  # CPU time of the process, user and system, from its start to its end
    megabytes: float  # peak resident set; never less than that of the script that started it (some 15 MB)
    output: str
    wall: float = 0  # seconds from its start to its end


def run(call):
    """Runs `call` (a list) to its end; its standard output and what it cost. SystemExit where it fails."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begin = time.monotonic()
        process = subprocess.Popen(call, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(call)}\nended with {process.returncode}: {errors.read().strip()}")
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, output.read(), wall)


def has_callgrind():
    return shutil.which("valgrind") is not None


def instructions(call):
    """Runs `call` under callgrind: the instructions executed in all, and its standard output."""
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *call],
                          capture_output=True, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or collected is None:
        raise SystemExit(f"{' '.join(call)}\nunder callgrind ended with {done.returncode}: {done.stderr.strip()}")
    return int(collected.group(1)), done.stdout
