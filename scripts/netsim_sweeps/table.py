"""The table of a sweep: a row for each point that has an answer. It is current while the sweep runs."""

import csv
import io
import json
import threading
import time

from netsim_sweeps.axes import RESERVED

NAME = "results.csv"
SHARE = 0.05  # the part of the time that is spent on writing a table anew while runs end


def figures(value, name=""):
    """A summary as flat (name, value) pairs; entries of a list by what names them, else by number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from figures(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and all(isinstance(each, dict) for each in value) and value:
        for i, each in enumerate(value):
            label = each.get("below_bytes", i) if "below_bytes" in each else i
            yield from figures(each, f"{name}.{'above' if label is None else label}")
    elif isinstance(value, list):
        yield name, " | ".join(str(each) for each in value)
    else:
        yield name, value


def cell(value):
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, (bool, float)) else str(value)


def row_of(sweep, point, key, record):
    """Returns the row of a point with an answer or a message."""
    row = dict(zip(sweep.columns(), sweep.cells(point)))
    summary = record.get("summary")
    row.update(run=key, outcome=summary["outcome"] if summary else "failed", message=record.get("message", ""))
    if summary:
        row.update((name, cell(value)) for name, value in figures(summary) if name != "outcome")
    return row


def table(sweep, rows):
    columns = dict.fromkeys(sweep.columns() + list(RESERVED))
    for row in rows:
        columns.update(dict.fromkeys(row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


class LiveTable:
    """Writes the table anew, as a whole, when runs have ended. Between two writes it waits so long that they take SHARE of the time.

    Threads that run points call add(). The owner calls start() once, and close() when no run is under way.
    """

    def __init__(self, sweep, points, plans, runner, own):
        self.sweep, self.points, self.runner, self.own = sweep, points, runner, own
        self.rows = [None] * len(points)  # in the order of the axes; None: no answer yet
        self.places = {}  # by key the indices of the points that have this run
        for i, plan in enumerate(plans):
            if plan.key:
                self.places.setdefault(plan.key, []).append(i)
            else:
                self.rows[i] = row_of(sweep, points[i], "", {"message": plan.message})
        self.changed = threading.Condition()
        self.stale, self.closing = False, threading.Event()
        self.thread = threading.Thread(target=self.follow)

    def add(self, key, record):
        """Enters the answer of a run into the rows of its points."""
        rows = [(i, row_of(self.sweep, self.points[i], key, record)) for i in self.places[key]]
        with self.changed:
            for i, row in rows:
                self.rows[i] = row
            self.stale = True
            self.changed.notify()

    def finished(self):
        """Returns the rows so far, in the order of the axes."""
        with self.changed:
            return [row for row in self.rows if row is not None]

    def read_kept(self, without=()):
        """Enters what is kept for all keys but those in `without`."""
        for key, places in self.places.items():
            record = None if key in without or self.rows[places[0]] else self.runner.kept(key)
            if record is not None:
                self.add(key, record)

    def write(self):
        self.own.put_text(NAME, table(self.sweep, self.finished()))

    def start(self, missing):
        """Writes the table of all runs that are not in `missing`, and follows the others."""
        self.read_kept(missing)
        self.stale = False
        self.write()
        self.thread.start()

    def follow(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.stale or self.closing.is_set())
                self.stale = False
            if self.closing.is_set():
                return
            begin = time.monotonic()
            try:
                self.write()
            except Exception:  # close() writes again, and reports what is wrong
                return
            self.closing.wait((time.monotonic() - begin) * (1 / SHARE - 1))

    def close(self):
        """Writes the table of all finished runs a last time."""
        self.closing.set()
        with self.changed:
            self.changed.notify()
        if self.thread.is_alive():
            self.thread.join()
        self.read_kept()
        self.write()
        self.own.save()
