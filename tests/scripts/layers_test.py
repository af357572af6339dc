"""Are the layers of the shipped networks those that scripts/layers.py computes, with the parameters that are published?"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import layers


def check(*arguments):
    command = [sys.executable, str(ROOT / "scripts" / "layers.py"), "--check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Layers(unittest.TestCase):
    def test_the_shipped_files_are_those_that_it_writes(self):
        result = check()
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_file_that_differs_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            result = check("--out", folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn("vgg_19.csv", result.stderr)

    def test_the_parameters_are_those_of_the_published_networks(self):
        for name, parameters in (("vgg_19", 143_667_240), ("resnet_50", 25_557_032), ("bert_large", 335_141_888)):
            network = layers.NETWORKS[name]()
            self.assertEqual(network.parameters, parameters)
            self.assertEqual(sum(int(row["bytes"].split()[0]) for row in network.rows), 4 * parameters)

    def test_most_of_vgg_is_its_first_connected_layer(self):
        network = layers.vgg_19()
        connected = next(row for row in network.rows if row["name"] == "fc6")
        self.assertAlmostEqual(int(connected["bytes"].split()[0]) / 4 / network.parameters, 0.715, places=3)


if __name__ == "__main__":
    unittest.main()
