"""Does scripts/strategies.py play a study's rows on its clusters, keep what it played, count what GPUs send, and say what is wrong?
NETSIM_BINARY names the program."""

import contextlib
import csv
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import strategies

BINARY = pathlib.Path(os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim"))
CLUSTER = "topology: {kind: star, hosts: 8, rate: RATE Gbps}\nhost: dgx_a100\n"
MODEL = "kind: llama\nlayers: 4\nhidden: 1024\nheads: 8\ngroups: 8\ninner: 2048\nsequence: 512\nvocabulary: 32000\n"
JOB = "kind: ptdp\nmodel: {kind: file, file: model.yaml}\nrecompute: none\n"
ROWS = (("DP", "dp", "parallel: {data: 4}\nmicrobatches: 2\n"),
        ("PP", "pp", "parallel: {pipeline: 4}\nmicrobatches: 8\n"),
        ("TP", "tp", "parallel: {tensor: 4}\nmicrobatches: 8\n"))
ELEMENTS = 512 * 1024
LAYER = 4 * 1024 * 1024 + 3 * 1024 * 2048 + 2 * 1024
PARAMETERS = 4 * LAYER + 2 * 32000 * 1024 + 1024


class Study(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        (self.path / "clusters").mkdir()
        for name, rate in (("fast", "400"), ("slow", "50")):
            (self.path / "clusters" / f"{name}.yaml").write_text(CLUSTER.replace("RATE", rate))
        (self.path / "model.yaml").write_text(MODEL)
        for _, file, more in ROWS:
            (self.path / f"{file}.yaml").write_text(JOB + more)
        self.write(*(f"small,{label},{file}.yaml" for label, file, _ in ROWS))

    def write(self, *rows):
        (self.path / "study.csv").write_text("\n".join(("model,strategy,workload",) + rows) + "\n")

    def main(self, *more):
        words = ["strategies.py", "--study", str(self.path / "study.csv"), "--out", str(self.path / "out"), "--binary", str(BINARY), *more]
        output, progress = io.StringIO(), io.StringIO()
        with unittest.mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(output), contextlib.redirect_stderr(progress):
            strategies.main()
        return output.getvalue(), progress.getvalue()

    def refused(self, *more):
        with self.assertRaises(SystemExit) as refused:
            self.main(*more)
        return str(refused.exception)

    def test_a_study_is_played_and_goes_on_where_it_stopped(self):
        self.main("--clusters", "slow", "--strategies", "DP")
        def kept():
            return sorted((self.path / "out").glob("slow.small.dp.*.json"))

        self.assertEqual(len(kept()), 1)
        written = kept()[0].stat().st_mtime_ns
        output, progress = self.main()
        self.assertEqual([file.stat().st_mtime_ns for file in kept()], [written])
        self.assertEqual(sorted(re.sub(r"\.[0-9a-f]{24}\.json$", "", file.name) for file in (self.path / "out").iterdir()),
                         sorted(f"{cluster}.small.{file}" for cluster in ("fast", "slow") for _, file, _ in ROWS))
        self.assertIn("(6 of 6)", progress)
        self.assertIn("small on fast, ms:", output)
        self.assertEqual(output.count("**") // 2, 2)  # the shortest of each table
        (self.path / "model.yaml").write_text(MODEL.replace("layers: 4", "layers: 8"))
        self.main("--clusters", "slow", "--strategies", "DP")
        self.assertEqual(len(kept()), 2)  # the changed model has a result of its own

    def test_times_add_up_and_bytes_are_those_of_the_formulas(self):
        rows, clusters = strategies.read_study(self.path / "study.csv")
        (self.path / "out").mkdir()
        results = {(name, row.strategy): strategies.play(strategies.Run(name, config, row), BINARY, self.path / "out", False)
                   for row in rows for name, config in clusters}
        for result in results.values():
            parts = result["compute_s"] + result["idle_s"] + sum(result["exposed_s"].values())
            self.assertAlmostEqual(parts, result["jct_s"], delta=1e-9)
        data, pipeline, tensor = (results["slow", row.strategy]["sent_bytes"] for row in rows)
        self.assertEqual(data, {**dict.fromkeys(strategies.PARALLEL_STREAMS, 0), "dp": 2 * 3 / 4 * 2 * PARAMETERS})
        self.assertEqual(pipeline, {**dict.fromkeys(strategies.PARALLEL_STREAMS, 0), "pp": 3 / 4 * 2 * 8 * 2 * ELEMENTS})
        # Two all-reduces a layer and direction, embedding and logits, and three numbers a token for the loss.
        self.assertEqual(tensor["tp"], 2 * 3 / 4 * 8 * (2 * ELEMENTS * (4 * 4 + 2) + 3 * 4 * 512))
        self.assertGreater(results["slow", "PP"]["idle_s"], results["slow", "DP"]["idle_s"])
        self.assertEqual(results["slow", "DP"]["nic_bytes"], 0)  # within a host, which the fabric's rate does not change
        self.assertEqual(results["slow", "DP"]["jct_s"], results["fast", "DP"]["jct_s"])

    def test_the_picture_has_all_bars(self):
        try:
            import matplotlib  # noqa: F401
        except ModuleNotFoundError:
            self.skipTest("no matplotlib")
        self.main("--clusters", "fast", "--plot", str(self.path / "bars.svg"))
        picture = (self.path / "bars.svg").read_text()
        for word in ("small, fast", "exposed DP", "bubble", "PP"):
            self.assertIn(f"<!-- {word} -->", picture)

    def test_the_table_has_a_row_for_each_strategy_with_all_clusters(self):
        self.main("--table", str(self.path / "table.csv"))
        with (self.path / "table.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["strategy"] for row in rows], [strategy for strategy, _, _ in ROWS])
        played = json.loads(next((self.path / "out").glob("slow.small.dp.*.json")).read_text())
        self.assertEqual(rows[0]["slow_jct_ms"], f"{1e3 * played['jct_s']:.0f}")
        self.assertIn("fast_bubble_ms", rows[0])

    def test_what_is_wrong_is_named(self):
        self.assertIn("0", str(self.refused("--help")))
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(self.refused("--models", "large"), "2")
        for rows, message in ((["small,DP"], "study.csv:2: a row is model,strategy,workload"),
                              (["small,DP,no.yaml"], "study.csv:2: there is no"),
                              (["small,DP,dp.yaml", "small,DP,tp.yaml"], "study.csv:3: small, DP is there twice"),
                              ([], "no rows")):
            self.write(*rows)
            self.assertIn(message, self.refused())
        (self.path / "tp.yaml").write_text(JOB + "parallel: {tensor: 3}\n")
        self.write("small,TP,tp.yaml")
        self.assertIn("slow.small.tp: ", self.refused("--clusters", "slow"))
        self.assertIn("cannot be divided by 3", self.refused("--clusters", "slow"))

    def test_the_shipped_study_is_whole(self):
        rows, clusters = strategies.read_study()
        self.assertEqual(len(clusters), 3)
        for model in ("dense", "moe"):
            files = {row.workload.stem for row in rows if row.model == model}
            self.assertEqual(files, {path.stem for path in (strategies.STUDY.parent / model).glob("*.yaml")})
            self.assertEqual(sum(file.startswith("pp_") for file in files), 6)


if __name__ == "__main__":
    unittest.main()
