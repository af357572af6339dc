"""The folder of a sweep: which files in it are the sweep's, and the lock that one sweep at a time has."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat

from netsim_runs import execution, results_cache
from netsim_sweeps.nodes import SweepError

# Matches the partial files of write_whole() and of pictures, and the partial folders of runs.
PARTIAL = re.compile(r"\..+\.\d+(\.[0-9a-f]{8})?\.partial")


class OwnFiles:
    """Which files of sweeps lie in a folder: `sweep.json` there names them, with a hash of each. A file that it does not
    name, or that has become another, is not the sweep's, and is never replaced or removed."""

    NAME = "sweep.json"

    def __init__(self, sweep, folder, names):
        self.sweep, self.folder, self.path = sweep, folder, folder / self.NAME
        self.plan = ""  # a hash of what the files show
        self.files = {}  # by name the hash, a list of hashes while it is being replaced, None: whatever it is
        if self.path.exists() or self.path.is_symlink():
            self.read()
        elif any(folder.glob("runs/" + "[0-9a-f]" * 24 + ".json")):  # of a sweep that kept no such record yet
            self.files = dict.fromkeys(name for name in names if (folder / name).exists())
        for name in names:
            self.require_own(name)

    def read(self):
        try:
            value = json.loads(self.path.read_text(encoding="utf-8")) if self.path.is_file() else {}
            self.plan, self.files = value["plan"], dict(value["files"])
        except (ValueError, KeyError, TypeError):
            raise self.foreign(self.path) from None

    def save(self):
        execution.write_json(self.path, {"sweep": str(self.sweep.path), "plan": self.plan, "files": self.files})

    @staticmethod
    def foreign(path):
        return SweepError(f"{path}: is not replaced: no sweep has written it as it is (--out names another folder)")

    def is_own(self, name):
        path = self.folder / name
        if name not in self.files or path.is_symlink() or not path.is_file():
            return False
        own = self.files[name]
        return own is None or results_cache.content_hash(path) in (own if isinstance(own, list) else [own])

    def require_own(self, name):
        path = self.folder / name
        if (path.exists() or path.is_symlink()) and not self.is_own(name):
            raise self.foreign(path)

    def clear(self, plan, but=()):
        """Removes the files of sweeps, which show something else than `plan`, but for those named in `but`."""
        left = {name: content for name, content in self.files.items() if name in but and self.is_own(name)}
        for name in self.files:
            if name not in left and self.is_own(name):
                (self.folder / name).unlink()
        self.plan, self.files = plan, left
        self.save()

    def put_text(self, name, text):
        """Writes a text file, or replaces it. The old and the new hash are noted before, so that it is the sweep's however this ends."""
        self.require_own(name)
        path = self.folder / name
        old = [results_cache.content_hash(path)] if path.is_file() else []
        new = hashlib.sha256(text.encode()).hexdigest()
        if old != [new]:
            self.files[name] = [*old, new]
            self.save()
            execution.write_whole(path, text)
        self.files[name] = new

    def put(self, name, make):
        """`make(path)` writes the file. It is named before, so that it is the sweep's however this ends."""
        self.require_own(name)
        self.files[name] = None
        self.save()
        made = make(self.folder / name)
        self.files[name] = results_cache.content_hash(self.folder / name)
        self.save()
        return made


def open_lock(path):
    """Opens the lock without changing a file that lies there."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path}: is no regular file")
    return os.fdopen(number, "r")


@contextlib.contextmanager
def owned(folder):
    """One sweep at a time has the folder; the lock goes with its process, however that ends."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    try:
        lock = open_lock(folder / "lock")
    except OSError as error:
        raise SweepError(f"{folder}: the folder cannot be locked: {error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SweepError(f"{folder}: another sweep is running there (--out names another folder)") from None
        for torn in [*folder.glob(".*.partial"), *folder.glob("*/.*.partial")]:
            if not PARTIAL.fullmatch(torn.name) or torn.is_symlink():
                continue
            if torn.is_dir():
                shutil.rmtree(torn)
            else:
                torn.unlink()
        yield
