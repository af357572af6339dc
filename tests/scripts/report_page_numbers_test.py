"""Are all figures of report.html those of summary.json and of the tables?

Three small runs are made: a training job whose link fails, an incast with samples, and traffic on failing links. The JSON in each page is
compared with summary.json, manifest.json and the CSV tables, which are computed anew where the page shows means or quantiles.
NETSIM_BINARY names the program.
"""

import collections
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
RUNS = {
    "training": ["configs/two_dgx.yaml", "configs/workloads/small_gpt_ptdp.yaml", "output.critical_path=true", "output.sample.interval=20 us",
                 "workload.iterations=3", "workload.microbatches=2", "workload.model.layers=4", "workload.model.hidden=512",
                 "network.faults=[{link: switch0-host1/nic1, down: 3 ms, up: 4 ms}]"],
    "incast": ["configs/sampling.yaml", "configs/workloads/incast_1MB.yaml"],
    "faults": ["configs/network/faults.yaml", "configs/network/permutation.yaml"],
}
PATH_PARTS = {"compute": "compute_s", "library latency": "launch_s", "transmission": "transmission_s", "propagation": "propagation_s",
              "queueing": "queueing_s", "pauses, no credits": "paused_s", "acknowledgements": "acknowledgement_s"}


def seconds(picoseconds):
    return int(picoseconds) / 1e12


class Run:
    """A run's directory, and the data of its page."""

    def __init__(self, folder, name):
        self.folder = folder / name
        config, workload, *assignments = RUNS[name]
        command = [BINARY, "--config", config, "--workload", workload, "--quiet", "--out", str(self.folder)]
        for assignment in assignments:
            command += ["--set", assignment]
        subprocess.run(command, cwd=ROOT, check=True, timeout=300)
        self.summary = json.loads((self.folder / "summary.json").read_text(encoding="utf-8"))
        self.manifest = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))
        self.text = (self.folder / "report.html").read_text(encoding="utf-8")
        self.page = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', self.text, re.DOTALL).group(1))

    def table(self, name):
        with open(self.folder / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def at(self, path):
        value = self.summary
        for key in path.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value


class ReportPageNumbersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.runs = {name: Run(cls.folder, name) for name in RUNS}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def each(self, section):
        """Returns the runs whose page has a section, at least one."""
        found = [run for run in self.runs.values() if section in run.page]
        self.assertTrue(found, f"no page has {section}")
        return found

    def test_each_run_has_the_sections_that_it_can_have(self):
        common = {"meta", "kind", "notes", "hints", "headline", "links", "flows", "repeat", "files"}
        training = common | {"breakdowns", "timelines", "paths", "samples", "collectives", "faults", "memory"}
        self.assertEqual(set(self.runs["training"].page), training)
        self.assertEqual(set(self.runs["incast"].page), common | {"samples"})
        self.assertEqual(set(self.runs["faults"].page), common | {"faults"})
        self.assertEqual([run.page["kind"] for run in self.runs.values()], ["training", "traffic", "traffic"])

    def test_headlines_are_figures_of_the_summary(self):
        for run in self.each("headline"):
            compared = [figure for figure in run.page["headline"] if figure["summary"]]
            self.assertGreaterEqual(len(compared), 3)
            for figure in compared:
                self.assertEqual(figure["value"], run.at(figure["summary"]), figure["label"])

    def test_the_run_is_described_as_in_the_summary_and_the_manifest(self):
        for run in self.each("meta"):
            meta = run.page["meta"]
            self.assertEqual(meta["outcome"], run.summary["outcome"])
            self.assertEqual(meta["fingerprints"], run.summary["fingerprint"])
            self.assertEqual(meta["simulated"]["s"], run.summary["simulated_time_s"])
            self.assertEqual(run.page["notes"], run.summary["notes"])
            self.assertEqual(meta["seed"], run.manifest["seed"])
            self.assertEqual(run.page["repeat"]["commands"], [run.manifest["command"]])
            self.assertEqual(run.page["repeat"]["inputs"], run.manifest["inputs"])
            self.assertEqual(run.page["repeat"]["configuration"], run.manifest["configuration"])
            self.assertEqual(set(run.page["files"]), {path.name for path in run.folder.iterdir() if not path.name.startswith(".")})

    def test_breakdowns_are_the_times_of_the_ranks(self):
        for run in self.each("breakdowns"):
            breakdown, job = run.page["breakdowns"][0], run.summary["jobs"][0]
            columns = [name.replace("exposed ", "exposed_").replace(" ", "_") + "_ps" for name in breakdown["categories"]]
            ranks = run.table("ranks.csv")
            self.assertEqual(len(breakdown["rows"]), len(ranks))
            for row, rank in zip(breakdown["rows"], ranks):
                for value, column in zip(row["s"], columns):
                    self.assertAlmostEqual(value, seconds(rank[column]) / job["iterations"], delta=1e-15)
                self.assertAlmostEqual(row["total"]["s"], job["iteration_time_s"], delta=1e-12)
            mean = dict(zip(breakdown["categories"], breakdown["mean"]["s"]))
            self.assertEqual(mean["compute"], job["compute_s"])
            self.assertEqual(mean["idle"], job["idle_s"])
            for name, value in job["exposed_by"].items():
                self.assertEqual(mean.get(f"exposed {name}", 0), value, name)

    def test_timelines_are_the_tasks(self):
        for run in self.each("timelines"):
            timeline = run.page["timelines"][0]
            tasks = [row for row in run.table("tasks.csv") if int(row["iteration"]) == timeline["iteration"]]
            self.assertEqual(timeline["iteration"], run.summary["jobs"][0]["iterations_done"] - 1)
            self.assertTrue(timeline["complete"])
            origin = min(int(row["start_ps"]) for row in tasks)
            self.assertEqual(timeline["begin"]["s"], seconds(origin))
            self.assertEqual(timeline["duration_ns"], (max(int(row["end_ps"]) for row in tasks) - origin) // 1000)
            counted, exact, single = collections.Counter(), collections.Counter(), collections.Counter()
            for track in timeline["tracks"]:
                rank, stream = re.fullmatch(r"rank (\d+), (\w+)", track["label"]).groups()
                rank, last = int(rank), 0
                for begin, duration, name, category, layer, microbatch, chunk, count in track["boxes"]:
                    self.assertGreaterEqual(begin, last)
                    last = begin + duration
                    self.assertEqual(timeline["categories"][category], stream)
                    counted[rank, stream] += count
                    if count == 1:
                        marks = tuple("" if mark < 0 else str(mark) for mark in (layer, microbatch, chunk))
                        single[rank, stream, timeline["names"][name], begin, begin + duration, *marks] += 1
            for row in tasks:
                exact[int(row["rank"]), row["stream"], row["name"], (int(row["start_ps"]) - origin) // 1000,
                      (int(row["end_ps"]) - origin) // 1000, row["layer"], row["microbatch"], row["chunk"]] += 1
            self.assertEqual(counted, collections.Counter((int(row["rank"]), row["stream"]) for row in tasks))
            self.assertGreater(sum(single.values()), len(tasks) / 4)
            self.assertFalse(single - exact, "boxes that are no task")

    def test_paths_are_those_of_the_summary(self):
        for run in self.each("paths"):
            path, summary = run.page["paths"][0], run.summary["jobs"][0]["critical_path"]
            self.assertAlmostEqual(sum(cause["s"] for cause in path["causes"]), path["total"]["s"], delta=1e-12)
            self.assertAlmostEqual(path["total"]["s"], run.summary["jobs"][0]["iteration_time_s"], delta=1e-12)
            known = [cause for cause in path["causes"] if cause["label"] in PATH_PARTS]
            self.assertGreaterEqual(len(known), 4)
            for cause in known:
                self.assertEqual(cause["s"], summary[PATH_PARTS[cause["label"]]], cause["label"])
            for entry, port in zip(path["ports"], summary["ports"]):
                self.assertEqual([entry["label"], entry["s"], entry["transmission_s"], entry["queueing_s"], entry["paused_s"]],
                                 [port["port"], port["time_s"], port["transmission_s"], port["queueing_s"], port["paused_s"]])
            for entry, cause in zip(path["collectives"], summary["causes"]):
                self.assertEqual([entry["s"], entry["steps"]], [cause["time_s"], cause["steps"]])

    def test_tiers_and_the_map_are_the_links(self):
        for run in self.each("links"):
            links, tiers = run.table("links.csv"), run.page["links"]["tiers"]
            self.assertEqual(sum(tier["carried_bytes"] for tier in tiers), sum(int(link["wire_bytes"]) for link in links))
            self.assertAlmostEqual(max(tier["maximum"] for tier in tiers), max(float(link["utilisation"]) for link in links), delta=1e-6)
            self.assertEqual(max(tier["queue_bytes"] for tier in tiers), max(int(link["max_queue_bytes"]) for link in links))
            self.assertEqual(sum(tier["ecn_marks"] for tier in tiers), sum(int(link["ecn_marks"]) for link in links))
            drawn = run.page["links"]["map"]
            between = [link for link in links if link["kind"] == "ethernet"]
            self.assertEqual(2 * sum(line[2] for line in drawn["links"]), len(between))
            self.assertAlmostEqual(max(line[4] for line in drawn["links"]), max(float(link["utilisation"]) for link in between), delta=2e-6)
            self.assertEqual(max(line[5] for line in drawn["links"]), max(int(link["max_queue_bytes"]) for link in between))
            mean = sum(line[2] * line[3] for line in drawn["links"]) / sum(line[2] for line in drawn["links"])
            self.assertAlmostEqual(mean, sum(float(link["utilisation"]) for link in between) / len(between), delta=2e-6)

    def test_distributions_are_those_of_the_flows(self):
        for run in self.each("flows"):
            flows, summary = run.page["flows"], run.summary["flows"]
            self.assertEqual(flows["count"], summary["count"])
            for key, of_summary in (("mean", "fct_mean_s"), ("p50", "fct_p50_s"), ("p99", "fct_p99_s"), ("max", "fct_max_s")):
                self.assertEqual(flows["completion"][key]["s"], summary[of_summary])
            rows = run.table("flows.csv")
            self.compare_distribution(flows["completion"]["cdf"], sorted(seconds(row["fct_ps"]) for row in rows))
            for key in ("mean", "p50", "p95", "p99"):
                self.assertEqual(flows["slowdown"][key]["value"], summary[f"slowdown_{key}"])
            self.compare_distribution(flows["slowdown"]["cdf"], sorted(float(row["slowdown"]) for row in rows if row["slowdown"]))

    def compare_distribution(self, points, values):
        self.assertEqual(len(points), 100)
        for percent, (value, share) in enumerate(points, start=1):
            self.assertEqual(share, percent / 100)
            self.assertEqual(value, values[max(-(-len(values) * percent // 100), 1) - 1])

    def test_curves_have_the_largest_samples(self):
        tables = {"queue": ("queue_samples.csv", "port", "queue_bytes"), "utilisation": ("link_samples.csv", "link", "utilisation")}
        kinds = collections.Counter()
        for run in self.each("samples"):
            for series in run.page["samples"]["series"]:
                kinds[series["kind"]] += 1
                times = [time for time, _ in series["points"]]
                self.assertEqual(times, sorted(times))
                if series["kind"] not in tables:
                    continue
                name, column, value = tables[series["kind"]]
                largest = max(float(row[value]) for row in run.table(name) if series["title"].endswith(" " + row[column]))
                self.assertAlmostEqual(max(point for _, point in series["points"]), largest, delta=1e-6)
        self.assertTrue(all(kinds[kind] for kind in ("queue", "utilisation", "rate")), kinds)

    def test_collectives_are_those_of_the_summary(self):
        for run in self.each("collectives"):
            table = run.page["collectives"]
            for row, summary in zip(table["rows"], run.summary["collectives"], strict=True):
                cells = dict(zip(table["columns"], row))
                self.assertEqual([cells["collective"], int(cells["ranks"]), int(cells["size (B)"]), cells["protocol"], int(cells["channels"])],
                                 [summary["collective"], summary["ranks"], summary["bytes"], summary["protocol"], summary["channels"]])
                self.assertAlmostEqual(float(cells["busbw (GB/s)"]), summary["busbw_GBps"], delta=0.0051)
                self.assertEqual(int(cells["number"]), summary["count"])
                self.assertTrue(cells["reason"])

    def test_faults_are_those_of_the_summary(self):
        for run in self.each("faults"):
            table, summary = run.page["faults"], run.summary["faults"]
            self.assertEqual([row[2] for row in table["rows"]], [fault["name"] for fault in summary])
            for row, fault in zip(table["rows"], summary):
                hits = [(str(hit["first_iteration"]), str(hit["last_iteration"])) for hit in fault["hits"]]
                texts = [first if first == last else f"{first} to {last}" for first, last in hits]
                hits = [] if run.page["kind"] == "traffic" else ["; ".join(texts) or "none"]
                self.assertEqual(row[4:], [str(fault["lost_packets"]), *hits])
            begins = {fault["from_s"] for fault in summary if fault["from_s"] > 0}
            self.assertLessEqual(begins, {mark["s"] for mark in table["marks"]})

    def test_memory_is_that_of_the_summary(self):
        for run in self.each("memory"):
            memory, peak = run.page["memory"][0], run.summary["jobs"][0]["memory"]["peak"]
            used = {key.removesuffix("_bytes") for key, value in peak.items() if key.endswith("_bytes") and value > 0}
            shown = {row[0].replace(" ", "_") for row in memory["rows"] if not row[1].startswith("0.00 ")}
            self.assertLessEqual(shown, used)
            self.assertIn(f"{peak['bytes'] / 2**30:.2f} GiB", memory["text"][0])

    def test_pages_are_small_and_load_nothing(self):
        for run in self.runs.values():
            self.assertLess(len(run.text), 2_000_000)
            self.assertIsNone(re.search(r"""(src|href)=["']?(https?:)?//""", run.text))

    def test_report_no_leaves_the_page_out_and_changes_nothing_else(self):
        folder = self.folder / "without"
        config, workload = RUNS["incast"]
        subprocess.run([BINARY, "--config", config, "--workload", workload, "--quiet", "--out", str(folder), "--report", "no"], cwd=ROOT,
                       check=True, timeout=300)
        self.assertFalse((folder / "report.html").exists())
        for path in self.runs["incast"].folder.glob("*.csv"):
            self.assertEqual((folder / path.name).read_bytes(), path.read_bytes(), path.name)
        self.assertEqual((folder / "summary.json").read_bytes(), (self.runs["incast"].folder / "summary.json").read_bytes())

    def test_other_values_of_report_are_refused(self):
        config, workload = RUNS["incast"]
        for value, expected in (("maybe", "--report: 'maybe' was given, allowed is yes or no"), ("", "--report: the value is empty")):
            run = subprocess.run([BINARY, "--config", config, "--workload", workload, f"--report={value}"], cwd=ROOT, capture_output=True,
                                 text=True, check=False, timeout=300)
            self.assertEqual(run.returncode, 2)
            self.assertIn(expected, run.stderr)


if __name__ == "__main__":
    unittest.main()
