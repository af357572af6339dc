"""Running programs on this machine, some at a time, and showing how far they are."""

import concurrent.futures
import contextlib
import shutil
import subprocess
import sys
import threading
import time

from netsim_sweeps.nodes import SweepError

INTERRUPTED = 130


class Stopped(Exception):
    """The sweep is being stopped: what a run says now is no result."""


class LocalPool:
    """Runs programs on this machine, some at a time. An executor has run(), which may be called by many threads, each(),
    which calls a function for all items and yields (item, result) as they end, and stop(). What `netsim` answers and
    where it is kept is not its business."""

    def __init__(self, jobs):
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.jobs = jobs
        self.running = set()
        self.lock = threading.Lock()
        self.stopping = False

    def run(self, command, folder):
        """(exit code, standard output, standard error) of a program."""
        with self.lock:
            if self.stopping:
                raise Stopped
            try:
                process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, errors="replace")
            except OSError as error:
                raise SweepError(f"{command[0]}: cannot be started: {error.strerror}") from None
            self.running.add(process)
        try:
            output, errors = process.communicate()
        finally:
            with self.lock:
                self.running.discard(process)
        if self.stopping or process.returncode == INTERRUPTED:
            raise Stopped
        return process.returncode, output, errors

    def each(self, function, items):
        futures = {self.pool.submit(function, item): item for item in items}
        for future in concurrent.futures.as_completed(futures):
            with contextlib.suppress(Stopped):
                yield futures[future], future.result()

    def stop(self):
        with self.lock:
            self.stopping = True
            for process in self.running:
                process.terminate()
        self.pool.shutdown(cancel_futures=True)


class Progress:
    """On a terminal one line that is written anew; elsewhere a line every half minute."""

    def __init__(self, what, total, stream=sys.stderr):
        self.what, self.total, self.stream = what, total, stream
        self.done = self.failed = 0
        self.begin = self.shown = time.monotonic()
        self.terminal = stream.isatty()

    def add(self, failed=False):
        self.done += 1
        self.failed += failed
        now = time.monotonic()
        if now - self.shown >= (0.1 if self.terminal else 30) and self.done < self.total:
            self.shown = now
            self.show(self.text())

    def text(self):
        elapsed = time.monotonic() - self.begin
        line = f"{self.done} of {self.total} {self.what}, {span(elapsed)}"
        line += f", {span(elapsed / self.done * (self.total - self.done))} to go" if self.done else ""
        return line + (f", {self.failed} failed" if self.failed else "")

    def show(self, line):
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r" + line[:width] + "\x1b[K")
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def finish(self):
        if self.terminal:
            self.stream.write("\r\x1b[K")


def span(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
