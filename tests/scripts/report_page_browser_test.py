"""Is report.html, opened in a browser, whole, free of errors, accessible, and does it show the numbers of summary.json?

Headless Chromium opens the pages of small runs at 1440 and 390 pixels, in the light and the dark theme; NETSIM_TEST_SIZE=full adds
combinations. NETSIM_BINARY names the program. Exit code 77 (ctest: skipped) without Chromium, node, puppeteer-core or axe-core. The two packages of npm are looked for
in NETSIM_NODE_MODULES, in `npm root -g` and in node_modules of the tree.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
DRIVER = pathlib.Path(__file__).with_name("report_page_browser.js")
MOST_MILLISECONDS = 2000  # CPU time until a page is drawn
UNITS = {"": 1, "ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "TFLOP/s": 1, "done": 1}

RUNS = {
    "training": ["configs/timelines.yaml", "configs/workloads/small_gpt_ptdp.yaml", "output.critical_path=true",
                 "network.faults=[{link: switch0-host1/nic1, down: 3 ms, up: 4 ms}]", "workload.iterations=2", "workload.microbatches=2",
                 "workload.model.layers=4", "workload.model.hidden=512"],
    "incast": ["configs/sampling.yaml", "configs/workloads/incast_1MB.yaml"],
    "faults": ["configs/network/faults.yaml", "configs/network/permutation.yaml"],
    "mixture": ["configs/two_dgx.yaml", "configs/workloads/small_moe_ptdp.yaml", "output.critical_path=true"],
    "jobs": ["configs/two_dgx.yaml", "configs/jobs/two_jobs.yaml", "output.critical_path=true"],
}
SECTIONS = {
    "training": {"notes", "summary", "breakdown", "timeline", "path", "links", "flows", "samples", "collectives", "faults", "memory", "repeat"},
    "incast": {"summary", "flows", "links", "samples", "repeat"},
    "faults": {"notes", "summary", "flows", "links", "faults", "repeat"},
    "mixture": {"summary", "breakdown", "timeline", "path", "links", "flows", "collectives", "memory", "repeat"},
    "jobs": {"summary", "jobs", "breakdown", "timeline", "path", "links", "flows", "collectives", "repeat"},
}


def skip(missing):
    print(f"skipped: no {missing}")
    sys.exit(77)


def find_modules():
    """Returns the first directory that has both packages, or None."""
    places = [os.environ.get("NETSIM_NODE_MODULES"), str(ROOT / "node_modules")]
    if shutil.which("npm"):
        places.append(subprocess.run(["npm", "root", "-g"], text=True, capture_output=True, timeout=60, check=False).stdout.strip())
    for place in filter(None, places):
        if (pathlib.Path(place) / "puppeteer-core").is_dir() and (pathlib.Path(place) / "axe-core/axe.min.js").is_file():
            return str(pathlib.Path(place).resolve())
    return None


def value_at(summary, path):
    for key in path.split("."):
        summary = summary[int(key)] if isinstance(summary, list) else summary[key]
    return summary


def value_of(text):
    """Returns the number at the beginning of a text, in the base unit of its unit."""
    number, unit = re.match(r"([\d.,]+) ?([A-Za-z/]*)", text).groups()
    return float(number.replace(",", "")) * UNITS[unit]


def for_each_view(examine):
    """Makes a test of `examine`, which looks at one view of a page."""
    @functools.wraps(examine)
    def test(self):
        for name, views in self.pages.items():
            for view in views:
                with self.subTest(page=name, width=view["width"], theme=view["theme"]):
                    examine(self, name, view)
    return test


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_pages_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name, (config, workload, *assignments) in RUNS.items():
            sets = [word for text in assignments for word in ("--set", text)]
            subprocess.run([BINARY, "--config", str(ROOT / config), "--workload", str(ROOT / workload), *sets, "--quiet", "--out",
                            str(cls.folder / name)], check=True, timeout=300)
        files = [str(cls.folder / name / "report.html") for name in RUNS]
        done = subprocess.run([shutil.which("node"), str(DRIVER), MODULES, CHROMIUM, *files], text=True, capture_output=True, timeout=500)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        found = json.loads(done.stdout)
        cls.pages = {name: found[file]["views"] for name, file in zip(RUNS, files)}
        cls.unread = {name: found[file]["unread"] for name, file in zip(RUNS, files)}
        cls.summaries = {name: json.loads((cls.folder / name / "summary.json").read_text(encoding="utf-8")) for name in RUNS}

    @for_each_view
    def test_no_message_and_no_request_to_a_network(self, _, view):
        self.assertEqual(view["complaints"], [])

    @for_each_view
    def test_nothing_is_wider_than_the_page(self, _, view):
        self.assertLessEqual(view["overflow"], 0)
        self.assertLessEqual(view["openedOverflow"], 0)
        self.assertEqual(view["outside"], [])

    @for_each_view
    def test_all_sections_are_drawn_and_in_the_contents(self, name, view):
        self.assertLessEqual(SECTIONS[name], set(view["sections"]))
        self.assertEqual(view["contents"], ["#" + section for section in view["sections"]])
        self.assertGreater(view["drawings"], 0)
        self.assertEqual((view["empty"], view["unnamed"]), (0, 0))

    @for_each_view
    def test_notes_come_first_and_traffic_leads_with_its_flows(self, name, view):
        order = [section for section in view["sections"] if section != "notes"]
        if "notes" in view["sections"]:
            self.assertEqual(view["sections"][0], "notes")
        self.assertEqual(order[0], "summary")
        if name in ("incast", "faults"):
            self.assertEqual(order[1], "flows")

    def test_the_page_reads_all_its_data(self):
        for name, fields in self.unread.items():
            if not {"timeline", "samples"} & SECTIONS[name]:  # marks are drawn in these sections
                fields = [field for field in fields if not field.startswith(".faults.marks[]")]
            self.assertEqual(fields, [], name)

    def test_themes_differ(self):
        for name, views in self.pages.items():
            self.assertEqual({view["paper"] for view in views if view["theme"] == "light"}, {"rgb(255, 255, 255)"}, name)
            self.assertEqual({view["paper"] for view in views if view["theme"] == "dark"}, {"rgb(20, 23, 27)"}, name)

    @for_each_view
    def test_axe_finds_no_violation(self, _, view):
        self.assertEqual(view["violations"], [])

    @for_each_view
    def test_the_headline_has_the_numbers_of_the_summary(self, name, view):
        self.assertGreater(len(view["headline"]), 0)
        for figure in view["headline"]:
            expected = value_at(self.summaries[name], figure["path"])
            self.assertAlmostEqual(value_of(figure["text"]), expected, delta=6e-3 * abs(expected) + 5e-3 * (expected > 1), msg=figure)

    def test_the_breakdown_has_the_numbers_of_the_summary(self):
        keys = {"compute": "compute_s", "idle": "idle_s"}
        for name in ("training", "mixture"):
            job = self.summaries[name]["jobs"][0]
            table = next(one for one in self.pages[name][0]["tables"] if one["caption"].startswith("Time by"))
            row = dict(zip(table["columns"], table["rows"][0]))
            self.assertEqual(row.pop(table["columns"][0]), "mean GPU")
            self.assertAlmostEqual(value_of(row.pop("total")), job["iteration_time_s"], delta=6e-3 * job["iteration_time_s"])
            for column, text in row.items():
                expected = job[keys[column]] if column in keys else job["exposed_by"][column.replace("exposed ", "").lower()]
                self.assertAlmostEqual(value_of(text), expected, delta=6e-3 * expected, msg=column)
            shown = {column.replace("exposed ", "").lower() for column in row}
            self.assertLessEqual({key for key, value in job["exposed_by"].items() if value > 0}, shown)

    @for_each_view
    def test_keys_do_what_the_mouse_does(self, name, view):
        keys = view["keys"]
        if "timeline" in SECTIONS[name]:
            self.assertRegex(keys["first"], r"^rank \d+, .* takes \d")
            self.assertNotEqual(keys["first"], keys["next"])
            self.assertTrue(keys["zoomed"])
        if "path" in SECTIONS[name]:
            self.assertTrue(keys["tab"] and keys["panel"])
        self.assertEqual(keys["sorted"]["sort"], "ascending")
        self.assertEqual(keys["sorted"]["first"], sorted(keys["sorted"]["first"], key=lambda text: re.split(r"(?<= )", text.lower())))

    def test_all_is_printed_and_in_the_light_theme(self):
        for name, views in self.pages.items():
            printed = [view["print"] for view in views if "print" in view]
            self.assertGreater(len(printed), 0)
            for one in printed:
                self.assertEqual((one["theme"], one["after"]), ("light", ""), name)
                self.assertEqual(one["drawn"], one["panels"], name)
        self.assertGreater(sum(view["print"]["bytes"] for view in self.pages["training"] if "print" in view), 20_000)

    def test_pages_open_at_once(self):
        for name, views in self.pages.items():
            self.assertLess(max(view["milliseconds"] for view in views), MOST_MILLISECONDS, name)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MODULES = None

if __name__ == "__main__":
    if CHROMIUM is None:
        skip("Chromium")
    if shutil.which("node") is None:
        skip("node")
    MODULES = find_modules()
    if MODULES is None:
        skip("puppeteer-core and axe-core of npm; NETSIM_NODE_MODULES names a node_modules with both")
    unittest.main()
