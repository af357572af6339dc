"""Do damaged traces give an answer or one error with the file as its place?

NETSIM_BINARY names the program. Traces of this repository are damaged, and those of ../shared/samples where they exist. With
NETSIM_TEST_SIZE=full 3,000 are read, otherwise a few.
"""

import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
SHARED = pathlib.Path(os.environ.get("NETSIM_SHARED") or ROOT / "../shared") / "samples"
NUMBER = {"full": 3000, "few": 30}.get(os.environ.get("NETSIM_TEST_SIZE"), 100)
LARGEST = 2_000_000
MANY_TASKS = {"workload_analytical.txt"}  # 80 million, which take minutes
OWN = ["configs/import/chakra/step.0.et", "configs/import/goal/steps.goal", "configs/import/goal/steps.bin", "configs/import/ns3/flow.txt",
       "configs/import/htsim/connections.cm", "configs/import/inspector/node0-pid7000.log",
       "configs/import/flexflow/step.fbuf", "configs/import/mlperf/result.txt", "configs/import/aicb/stages.csv",
       "configs/import/astra/layers.txt", "configs/import/simgrid/actions.txt"]
SHARED_FOLDERS = ["aicb_csv", "chakra_et", "goal", "htsim_cm", "kineto", "mlperf_log", "nccl_inspector", "simai_txt", "simgrid", "topoopt_fbuf"]


def samples():
    files = [ROOT / name for name in OWN]
    for folder in SHARED_FOLDERS:
        files += [path for path in sorted((SHARED / folder).rglob("*")) if path.is_file() and path.suffix not in (".md", ".py")
                  and path.name not in MANY_TASKS]
    return [path for path in files if 0 < path.stat().st_size < LARGEST]


def damaged(content, chance):
    """A copy with a few bytes changed, removed, doubled or cut off."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at:at + chance.randint(1, 8)]
        elif kind == 2:
            data[at:at] = data[at:at + chance.randint(1, 16)]
        elif kind == 3:
            data[at:at] = bytes([chance.choice(b"0123456789-.,\n{}[]\"")])
        else:
            del data[at + len(data) // 2:]
    return bytes(data)


class MutatedSamples(unittest.TestCase):
    def test_each_gives_an_answer_or_one_error_with_its_place(self):
        chance = random.Random(1)
        files = samples()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_mutated_"))
        self.addCleanup(shutil.rmtree, folder)
        answers = 0
        for number in range(NUMBER):
            path = files[number % len(files)] if number < len(files) else chance.choice(files)
            # A trace of one rank of several has the others beside it.
            whole = folder / "trace"
            shutil.rmtree(whole, ignore_errors=True)
            whole.mkdir()
            if path.name.endswith(".et"):
                stem = path.name.rsplit(".", 2)[0]
                for other in path.parent.glob(f"{stem}.*"):
                    shutil.copy(other, whole / other.name)
            target = whole / path.name
            target.unlink(missing_ok=True)
            target.write_bytes(damaged(path.read_bytes(), chance))
            done = subprocess.run([BINARY, "describe-trace", target], capture_output=True, check=False, timeout=60)
            said = done.stderr.decode(errors="replace")
            with self.subTest(sample=str(path), number=number, said=said):
                if done.returncode == 0:
                    answers += 1
                    continue
                self.assertIn(done.returncode, (2, 3, 4))
                self.assertEqual(said.count("\n"), 1)
                self.assertTrue(said.startswith("netsim: error: "))
                self.assertIn(str(whole), said)
        self.assertGreater(answers, 0)


if __name__ == "__main__":
    unittest.main()
