"""What a run of a program costs: CPU time, memory, instructions. Shared by the scripts that measure."""

import dataclasses
import os
import re
import shutil
import subprocess
import tempfile
import time


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
