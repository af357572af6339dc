"""Does scripts/deepseek.py find the steps of its jobs, and put their parts together?

NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full sequences have four times as many tokens.
"""

import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import deepseek
from netsim_runs import steps
from deepseek import Part, Step

BINARY = pathlib.Path(os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim"))
TOKENS = 64 if os.environ.get("NETSIM_TEST_SIZE") == "full" else 16
SMALL = [f"workload.model.{key}" for key in (f"sequence={TOKENS}", "hidden=512", "inner=512", "heads=8", "vocabulary=512", "experts.inner=128", "latent.query=128",
                                             "latent.key_value=128", "latent.value=64", "latent.plain=64", "latent.rotary=32")]


def timed(names):
    """A task each second."""
    return [(name, second, second + 1) for second, name in enumerate(names)]


class Parts(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.player = steps.Player(BINARY, pathlib.Path(directory.name))

    def test_steps_end_with_their_last_task(self):
        forward, backward, weights = deepseek.FORWARD, deepseek.BACKWARD, deepseek.WEIGHTS
        first, last = Part(1, first=True), Part(1, last=True)
        steps = [Step("F", first), Step("F", last), Step("B", None, last), Step("P", last, first), Step("I", None, last), Step("W", None, last)]
        tasks = timed(["embedding_lookup", "attention_forward", forward,  # F
                       "logits_forward", "loss_end", forward, "logits_forward",  # F, with the module that predicts a token more
                       "logits_backward", backward, "prediction_join_backward",  # B
                       "experts_backward", backward, weights, "experts_forward", forward, "embedding_backward",  # P
                       "logits_backward", backward,  # I
                       "logits_weights", weights])  # W
        times = [(kind, end - begin) for kind, begin, end in deepseek.steps_of(tasks, steps)]
        self.assertEqual(times, [("F", 3), ("F", 4), ("B", 3), ("P", 6), ("I", 2), ("W", 2)])
        with self.assertRaises(ValueError):
            deepseek.steps_of(tasks[:-1], steps)
        with self.assertRaises(ValueError):
            deepseek.steps_of(tasks + timed([forward]), steps)

    def test_a_stage_has_as_many_steps_as_dual_pipe_says(self):
        for stage in range(16):
            kinds = [step.kind for step in deepseek.schedule(stage, deepseek.LAYERS, 120)]
            nearer = min(stage, 15 - stage)
            meets = 1 if nearer == 7 else 0
            self.assertEqual([kinds.count(kind) for kind in "FBIWP"],
                             [23 - nearer + meets, 8 + meets, 15 - nearer, 15 - nearer, 97 + nearer - meets])

    def test_the_whole_pipeline_is_played(self):
        """Fewer tokens and microbatches."""
        path = deepseek.play(self.player, "step", "h800_stages.yaml", "deepseek_v3.yaml", [*SMALL, "workload.microbatches=32"])
        parts = deepseek.parts_of(path, microbatches=32)
        self.assertEqual(sorted(parts), ["1B", "1F", "1F1B", "1W", "bubble"])
        self.assertTrue(all(seconds > 0 for seconds in parts.values()))
        written = (path / "summary.json").stat().st_mtime_ns
        self.assertEqual(deepseek.play(self.player, "step", "h800_stages.yaml", "deepseek_v3.yaml", [*SMALL, "workload.microbatches=32"]), path)
        self.assertEqual((path / "summary.json").stat().st_mtime_ns, written)  # was there

    def test_64_gpus_say_how_long_tokens_take(self):
        path = deepseek.play(self.player, "steps", "h800_8.yaml", "deepseek_v3_steps.yaml", SMALL)
        seconds = deepseek.durations(path)
        self.assertEqual(sorted(seconds), ["B", "F", "I", "P", "W"])
        self.assertLess(seconds["I"], seconds["B"])
        self.assertLess(seconds["P"], seconds["F"] + seconds["B"])  # pairs hide communication
        rate, each = deepseek.exchange_rate(path)
        self.assertAlmostEqual(rate, 4096 * (7392 + 14336) / sum(each.values()))
        self.assertEqual(len(each), 2)

    def test_the_optimizer_is_what_follows_the_last_backward(self):
        path = deepseek.play(self.player, "optimizer", "h800_8.yaml", "deepseek_v3_optimizer.yaml",
                                [*SMALL, "workload.parallel.data=32", "workload.parallel.expert=32"])
        whole = max(end for tasks in deepseek.tasks_of(path).values() for _, _, end in tasks)
        self.assertGreater(deepseek.optimizer_of(path), 0)
        self.assertLess(deepseek.optimizer_of(path), 4.5 * whole)

    def test_the_table_has_errors(self):
        lines = list(deepseek.table({part: 1.05 * seconds for part, seconds in deepseek.MEASURED.items()}))
        self.assertEqual(len(lines), 2 + 7)
        self.assertTrue(all(line.endswith("| +5.0 % |") for line in lines[2:]))


if __name__ == "__main__":
    unittest.main()
