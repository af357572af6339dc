"""Are docs/reference/components.md what scripts/reference.py prints, and docs/reference/results.md complete?

NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full all descriptions are compared, otherwise each fifth, and with
NETSIM_TEST_SIZE=few each twentieth.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EACH = {"full": "1", "few": "20"}.get(os.environ.get("NETSIM_TEST_SIZE"), "5")
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
# A workload that computes and whose memory is known; with these options a run writes every table.
WORKLOAD = """\
kind: ptdp
model: {layers: 4, hidden: 256, heads: 4, sequence: 128, vocabulary: 1000}
parallel: {tensor: 2, pipeline: 2, data: 2}
microbatches: 2
"""
OPTIONS = ["--quiet", "--set", "output.critical_path=true", "--set", "output.sample.interval=20us"]


def described_columns(sink):
    """Returns the columns that --describe lists for a result sink."""
    text = subprocess.run([BINARY, "--describe", f"result_sink.{sink}"], check=True, capture_output=True, text=True,
                          env=dict(os.environ, COLUMNS="400")).stdout
    table = text.split("\n  column ", 1)[1]
    return [row.split()[0] for row in table.splitlines()[1:]]


class Reference(unittest.TestCase):
    maxDiff = None

    def test_components_are_those_of_the_program(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts/reference.py", "--binary", BINARY, "--check", "--each", EACH], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, "scripts/reference.py --write writes the page anew\n" + done.stdout[-3000:] + done.stderr)

    def test_columns_are_those_of_a_run(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "w.yaml").write_text(WORKLOAD)
            subprocess.run([BINARY, "--config", ROOT / "configs/two_dgx.yaml", "--workload", folder / "w.yaml", *OPTIONS, "--out",
                            folder / "out"], check=True)
            written = {path.name: path.read_text().splitlines()[0].split(",") for path in (folder / "out").glob("*.csv")}
        self.assertEqual({name: described_columns(name.replace(".csv", "_csv")) for name in written}, written)
        page = (ROOT / "docs/reference/results.md").read_text(encoding="utf-8")
        self.assertEqual([name for name in written if f"`{name}`" not in page], [])


if __name__ == "__main__":
    unittest.main()
