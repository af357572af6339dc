"""Does scripts/survey_fig5b.py calculate the survey's figure 5(b) as it was done by hand, and simulate its rows?

NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full the rows have a tenth of their size instead of a hundredth. Exit code 77
(ctest: skipped) without PyYAML.
"""

import contextlib
import csv
import fractions
import io
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
try:
    import yaml
except ModuleNotFoundError as error:
    print(f"skipped: no {error.name}")
    sys.exit(77)
import survey_fig5b as study

FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")

# Ends of F1, F2 and job 2's flows in units of 80 ms, and both completion times in ms.
BY_HAND = [
    ({}, "2.75 1.625 3.25 380 300"),
    ({"f2": 1}, "2 2 3 320 280"),
    ({"job_2": 1}, "2 2 3.25 320 300"),
    ({"job_1": 1}, "3.25 1.25 2.5 420 240"),
    ({"elsewhere": True}, "2 2 2.5 320 240"),
    ({"shift": 1}, "2.25 1.875 3.75 340 340"),
    ({"split": True}, "1.5 1.5 3 280 280"),
    ({"aggregate": True}, "2 2 2.25 320 220"),
    ({"f2": 1, "job_2": 1}, "1 2 3 240 280"),
    ({"f2": 1, "aggregate": True}, "1.5 2 2 280 200"),
    ({"split": True, "aggregate": True}, "1.25 1.5 2 260 200"),
    ({"job_2": 1, "aggregate": True}, "2 2 2.25 320 220"),
    ({"f2": 1, "job_2": 1, "split": True, "aggregate": True}, "1 1.5 2 240 200"),
]


class HandCalculation(unittest.TestCase):
    def test_it_is_that_of_the_figure(self):
        for row, expected in BY_HAND:
            with self.subTest(row=row):
                *ends, jct_1, jct_2 = study.hand_calculation(**row)
                self.assertEqual([*ends, jct_1 * 80, jct_2 * 80], [fractions.Fraction(number) for number in expected.split()])

    def test_all_flows_at_once_gain_nothing_from_the_vertical_order(self):
        start = fractions.Fraction(0)
        for row in ({}, {"f2": 1}):
            self.assertEqual([time * 80 for time in study.hand_calculation(start, **row)[3:]], [400, 320])

    def test_max_min_on_a_chain_of_links(self):
        rates = study.max_min([study.Fluid(frozenset(links)) for links in ("abc", "a", "b", "b", "c")])
        self.assertEqual(rates, [fractions.Fraction(number, 3) for number in (1, 2, 1, 1, 2)])

    def test_a_level_gets_what_lower_ones_leave(self):
        rates = study.max_min([study.Fluid(frozenset("ab"), 1), study.Fluid(frozenset("a")), study.Fluid(frozenset("b"), 1)])
        self.assertEqual(rates, [0, 1, 1])


def call(*arguments):
    """The rows of the table, and all that was printed."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        table = pathlib.Path(folder) / "table.csv"
        study.main(["--binary", BINARY, "--csv", str(table), *arguments])
        with open(table, encoding="utf-8") as lines:
            return list(csv.DictReader(lines)), out.getvalue()


class Rows(unittest.TestCase):
    scale = ("--scale", "0.1" if FULL else "0.01")

    def test_no_row_is_faster_than_the_links_allow(self):
        rows, _ = call(*self.scale, "--networks", "dcqcn", "hpcc")
        self.assertEqual([row["row"] for row in rows[::2]], list(study.BY_HAND))
        for row in rows:
            with self.subTest(row=row):
                self.assertGreater(float(row["jct_1_ms"]), 239.5)  # sizes are rounded to packets
                self.assertGreater(float(row["jct_2_ms"]), 159.5)

    def test_bounds_that_a_run_breaks_are_named(self):
        links = [{"link": "tor_b->host3", "utilisation": "0.5", "data_packets": "2393"},
                 {"link": "tor_a2->host4", "utilisation": "1.01", "data_packets": "2393"},
                 {"link": "tor_b->host7", "utilisation": "0.5", "data_packets": "4786"},
                 {"link": "agg_1->tor_b", "utilisation": "0.5", "data_packets": "7100"}]
        scale = fractions.Fraction(1, 100)
        run = study.Run("none", "dcqcn", "none", ())
        self.assertEqual(study.broken_bounds(run, [240, 159], links, scale, 1),
                         ["job 2 takes 159.00 ms, but at least 160 are needed", "link tor_a2->host4 has a use of 1.01",
                          "link agg_1->tor_b carried 7100 packets of data, but 7179 are expected"])
        links[1]["utilisation"] = "1"
        links[3]["data_packets"] = "7179"
        self.assertEqual(study.broken_bounds(run, [240, 160], links, scale, 1), [])
        added_up = study.Run("host_net", "dcqcn", "host_net", ())
        self.assertEqual(len(study.broken_bounds(added_up, [240, 160], links, scale, 1)), 2)  # twice the bytes over link (2)

    def test_a_switch_that_adds_up_halves_the_bytes_of_job_2(self):
        with tempfile.TemporaryDirectory() as folder:
            call("--scale", "0.01", "--networks", "dcqcn", "--rows", "none", "host_net", "--out", folder)
            none, added_up = [{row["link"]: int(row["data_packets"]) for row in
                               study.read_table(pathlib.Path(folder) / "dcqcn" / row / "results" / "links.csv")}
                              for row in ("none", "host_net")]
        self.assertEqual(none["tor_b->host7"], 4786)
        self.assertLess(added_up["tor_b->host7"], 2393 * 1.01 + 16)
        self.assertEqual(none["tor_b->host3"], added_up["tor_b->host3"])

    def test_all_rows_repeat(self):
        if not study.has_flow_schedulers(BINARY):
            self.skipTest("no flow schedulers")
        rows, _ = call("--scale", "0.01", "--networks", "max_min", "--iterations", "3")
        self.assertEqual([row["row"] for row in rows], list(study.BY_HAND))
        times = {row["row"]: (float(row["jct_1_ms"]), float(row["jct_2_ms"])) for row in rows}
        for row in ("host_net", "vertical_host_net", "intra_host_net", "horizontal_host_net", "all"):
            with self.subTest(row=row):
                self.assertLess(times[row][1], times["none"][1])

    def test_the_picture_shows_both_links(self):
        if not study.pictures.available():
            self.skipTest("no matplotlib")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "links.svg"
            self.assertEqual(study.main(["--binary", BINARY, "--scale", "0.01", "--networks", "dcqcn", "--picture", str(path)]), 0)
            self.assertIn("</svg>", path.read_text(encoding="utf-8"))
        for arguments in (("--picture", "links.txt"), ("--picture", "links.svg", "--rows", "none")):
            with self.subTest(arguments=arguments), self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                study.main(["--binary", BINARY, *arguments])

    def test_the_order_acts_under_dcqcn(self):
        rows, text = call("--scale", "0.1", "--networks", "dcqcn", "--rows", "none", "vertical_horizontal")
        none, both = [float(row["jct_1_ms"]) for row in rows]
        self.assertLess(both, 250)
        self.assertGreater(none, 360)
        self.assertEqual(float(rows[1]["hand_1_ms"]), 240)
        self.assertIn("vertical_horizontal  dcqcn", text)

    def test_max_min_rates_give_the_hand_calculation(self):
        if not study.has_flow_schedulers(BINARY):
            self.skipTest("no flow schedulers")
        for release in ("0.5", "0.8"):
            rows, _ = call("--scale", "0.1", "--networks", "max_min", "--release", release)
            self.assertEqual([row["row"] for row in rows], list(study.BY_HAND))
            for row in rows:
                with self.subTest(row=row, release=release):
                    self.assertLess(abs(float(row["excess_1_percent"])), 1)
                    self.assertLess(abs(float(row["excess_2_percent"])), 1)

    def test_job_2_arrives_when_it_is_said(self):
        rows, _ = call("--scale", "0.1", "--networks", "dcqcn", "--rows", "none", "--release", "3")
        self.assertEqual((float(rows[0]["hand_1_ms"]), float(rows[0]["hand_2_ms"])), (320, 240))
        self.assertLess(abs(float(rows[0]["jct_2_ms"]) - 240), 24)

    def test_another_placement_pays_in_each_iteration(self):
        rows, _ = call("--scale", "0.01", "--networks", "dcqcn", "--rows", "none", "horizontal_placement", "--iterations", "4")
        none, placed = [float(row["jct_1_ms"]) for row in rows]
        self.assertLess(placed, none)
        self.assertGreater(placed, 239.5)
        self.assertEqual([row["hand_1_ms"] for row in rows], ["", ""])

    def test_wrong_arguments(self):
        for arguments, message in [(("--rows", "every"), "no row 'every' (there are none, vertical"),
                                   (("--networks", "ideal"), "no network 'ideal' (there are max_min, dcqcn, hpcc)")]:
            with self.subTest(arguments=arguments), self.assertRaises(SystemExit) as raised:
                call(*arguments)
            self.assertIn(message, str(raised.exception))
        with self.assertRaises(SystemExit):
            call("--scale", "0")
        with self.assertRaises(SystemExit):
            call("--iterations", "0")

    def test_a_row_without_a_hand_calculation_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "study.yaml"
            path.write_text(yaml.safe_dump({"config": "c.yaml", "networks": {}, "rows": {"other": {}}}))
            with self.assertRaises(SystemExit) as raised:
                call("--study", str(path))
            self.assertIn("no hand calculation of the row 'other'", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
