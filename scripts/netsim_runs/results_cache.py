"""Keeps results of runs between calls of a script. A result belongs to a key: a hash of all that determines it.

The key comes from the manifest that `netsim --print-config --json -` prints without simulating: the resolved configuration, the seed, the
end, and the hashes of all files that were read. Comments and the order of keys do not matter.
"""

import hashlib
import json

from netsim_runs import execution


def digest(*parts):
    """Returns a key for values that JSON can express."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def content_hash(path):
    """Returns the hash of a file. Raises OSError."""
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def run_key(program, manifest, *others, without=(), blank=""):
    """Returns the key of a run.

    `program` says which netsim it is: its version, or the hashes of the files. `others` are further values that the result depends on. Files
    in `without` do not count, because the configuration holds what they say. The text `blank` is left out of the configuration: a folder
    whose name says nothing about what is in it.
    """
    import yaml  # only scripts that keep results need it
    configuration = manifest["configuration"].replace(blank, "") if blank else manifest["configuration"]
    resolved = yaml.load(configuration, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    files = sorted(file["hash"] for file in manifest["inputs"] if file["path"] not in without)
    return digest(program, resolved, manifest["seed"], manifest["until_s"], files, *others)


class ResultsCache:
    """A folder with a JSON file for each key. Without a folder nothing is kept."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, key, ending=".json"):
        return self.folder / f"{key}{ending}"

    def kept(self, key, ending=".json"):
        """Returns the result of an earlier run, or None."""
        if self.folder is None:
            return None
        try:
            return json.loads(self.path(key, ending).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def keep(self, key, result, ending=".json"):
        if self.folder is not None:
            execution.write_json(self.path(key, ending), result)
