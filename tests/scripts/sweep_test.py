"""Does scripts/sweep.py run what a sweep file says, keep it whatever happens, and say what is wrong?

NETSIM_BINARY names the program. With NETSIM_TEST_SIZE=full sweeps have three times as many runs, and one is killed 20 times instead
of 3 times.
Exit code 77 (ctest: skipped) without PyYAML.
"""

import csv
import json
import math
import os
import pathlib
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
try:
    from netsim_sweeps import drawing, intervals
    from netsim_sweeps import plots as sweep_plots
    from netsim_sweeps import sweep_file
except ModuleNotFoundError as error:
    print(f"skipped: no {error.name}")
    sys.exit(77)

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
STAR = "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n"
BASE = "base:\n  config: star.yaml\n  workload: incast.yaml\n"
# A program that ends with 0 where plots can be drawn. Finding the libraries is faster than importing them.
FIND_LIBRARIES = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('matplotlib', 'yaml'))))"
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
RATES = ("25", "50", "100") if FULL else ("25", "100")
SEEDS = ("1", "2") if FULL else ("1",)
SENDERS = 3 if FULL else 2
# Runs of some milliseconds: 3 x 3 x 3 x 2 = 54 in a full test, else 2 x 2 x 2 x 1 = 8.
CONTROLS = ("none", "DCQCN", "HPCC") if FULL else ("none", "HPCC")
RUNS = SENDERS * len(RATES) * len(CONTROLS) * len(SEEDS)
# A run that is interrupted simulates so long: seconds in a full test, else parts of one.
UNTIL = "20 ms" if FULL else "1 ms"
MANY = BASE + f"""\
axes:
  - {{vary: workload.senders, range: {{from: 1, to: {SENDERS}}}}}
  - {{vary: topology.rate, log: {{from: 25 Gbps, to: 100 Gbps, points: {len(RATES)}}}}}
  - vary: transport.congestion_control
    name: control
    values: {{none: none, {"DCQCN: {kind: dcqcn, profile: vendor}, " if FULL else ""}HPCC: hpcc}}
  - {{vary: seed, values: [{", ".join(SEEDS)}]}}
plots:
  - {{kind: lines, file: lines.svg, x: rate, y: flows.fct_p99_s, by: control, panels: senders, scale: 1e6, log: [x, y]}}
  - {{kind: bars, file: bars.svg, x: senders, y: flows.fct_p99_s, by: control, panels: rate, interval: 90 %}}
  - {{kind: stacked, file: stacked.svg, x: senders, where: {{control: HPCC}}, panels: rate, parts: [flows.fct_mean_s, flows.fct_p50_s]}}
  - {{kind: cdf, file: cdf.svg, table: flows.csv, value: fct_ps, scale: 1e-6, by: control, over: [rate, senders], log: [x]}}
  - {{kind: box, file: box.svg, x: senders, y: flows.fct_mean_s, by: control, over: [rate]}}
  - {{kind: pareto, file: pareto.svg, x: rate, y: flows.fct_p99_s, by: control, names: senders, better: {{x: less}}, log: [x]}}
  - {{kind: heat, file: heat.svg, x: rate, y: senders, value: flows.slowdown_mean, where: {{control: HPCC}}}}
"""
PICTURES = [f"{name}.svg" for name in ("lines", "heat", "bars", "stacked", "cdf", "box", "pareto")]


class SweepTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_sweep_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.write("star.yaml", STAR)
        self.write("incast.yaml", "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 20 KB\n")

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def command(self, *options, python=sys.executable, binary=BINARY):
        return [python, "-B", str(ROOT / "scripts" / "sweep.py"), str(self.folder / "sweep.yaml"), "--binary", binary,
                *[str(option) for option in options]]

    def sweep(self, *options, code=0, **how):
        done = subprocess.run(self.command(*options, **how), capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def table(self, out):
        with open(out / "results.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


    @staticmethod
    def kept(out):
        return len(list(out.glob("runs/[0-9a-f]*.json")))

    def wait_for(self, process, condition):
        """Waits until the condition holds for a sweep that must not end before."""
        while not condition():
            self.assertIsNone(process.poll(), "the sweep ended early")
            time.sleep(0.005)

    def gate(self):
        """A program in netsim's place whose runs wait for tickets, so that a sweep ends no sooner than a test wants."""
        (self.folder / "tickets").mkdir()
        gate = self.write("gate", f"""#!/bin/bash
case "$*" in *print-config*) exec {BINARY} "$@";; esac
until [[ -e {self.folder}/open ]]; do
  for ticket in {self.folder}/tickets/*; do [[ -e $ticket ]] && rm "$ticket" 2>/dev/null && break 2; done
  [[ -d {self.folder} ]] || exit 1  # the test is over, and its sweep was killed before this run began
  sleep 0.02
done
exec {BINARY} "$@"
""")
        gate.chmod(0o755)
        return str(gate)

    def allow(self, runs):
        """Lets so many runs pass the gate from now on; None: all."""
        if runs is None:
            (self.folder / "open").touch()
            return
        (self.folder / "open").unlink(missing_ok=True)
        for ticket in (self.folder / "tickets").iterdir():
            ticket.unlink()
        for number in range(runs):
            (self.folder / "tickets" / str(number)).touch()


class Running(SweepTest):
    def test_killed_again_and_again_it_ends_with_the_same_table(self):
        self.write("sweep.yaml", MANY)
        whole, killed = self.folder / "whole", self.folder / "killed"
        chance, gate = random.Random(9), self.gate()
        self.allow(None)
        self.sweep("--out", whole, "-j", 3, binary=gate)
        kept = [0]
        # Runs until the kill; 0: before the first one.
        for more in (0, 1, 3, 0, 5, 2, 4, 1, 0, 2, 0, 1, 0, 2, 1, 0, 3, 0, 1, 1) if FULL else (0, 1, 0):
            self.allow(more + 1)  # one may be running when the kill comes
            process = subprocess.Popen(self.command("--out", killed, "-j", 1 + chance.randrange(3), binary=gate),
                                       start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.wait_for(process, lambda more=more: self.kept(killed) >= kept[-1] + more)
            time.sleep(chance.uniform(0, 0.03 if more else 0.2))  # a moment of any kind
            os.killpg(process.pid, signal.SIGKILL)
            self.assertEqual(process.wait(), -signal.SIGKILL)
            self.assertGreaterEqual(self.kept(killed), kept[-1] + more)
            kept.append(self.kept(killed))
            self.assert_current(killed, whole)
        self.assertLess(kept[-1], RUNS, kept)
        self.allow(None)
        self.sweep("--out", killed, "-j", 2, binary=gate)
        self.assertEqual((whole / "results.csv").read_bytes(), (killed / "results.csv").read_bytes())
        self.assertEqual(list(killed.glob("**/.*partial")), [])
        self.assertEqual(list(json.loads((killed / "sweep.json").read_text())["files"]), ["results.csv"])
        rows = self.table(killed)
        self.assertEqual(len(rows), RUNS)
        self.assertEqual([(row["senders"], row["rate_Gbps"], row["control"], row["seed"]) for row in rows],
                         [(s, r, c, i) for s in "123"[:SENDERS] for r in RATES for c in CONTROLS for i in SEEDS])
        for row in rows:
            self.assertEqual((row["outcome"], row["message"], row["flows.count"]), ("done", "", row["senders"]))
        self.assertIn(f"{RUNS} kept, 0 to do", self.sweep("--out", killed, binary=gate).stderr)

    def assert_current(self, out, whole):
        """The table of a killed sweep has whole rows of finished runs, in their order. The last few may be missing."""
        if not (out / "results.csv").exists():  # before the first write, when nothing had ended
            self.assertEqual(self.kept(out), 0)
            return
        rows = self.table(out)
        self.assertTrue((out / "results.csv").read_bytes().endswith(b"\n"))
        finished = {path.stem for path in out.glob("runs/[0-9a-f]*.json")}
        self.assertLessEqual({row["run"] for row in rows}, finished)
        every = self.table(whole)
        self.assertEqual(rows, [row for row in every if row["run"] in {each["run"] for each in rows}])

    def test_the_table_is_current_while_the_sweep_runs(self):
        self.write("sweep.yaml", MANY)
        out, gate = self.folder / "out", self.gate()
        self.allow(3)
        process = subprocess.Popen(self.command("--out", out, "-j", 1, binary=gate), stderr=subprocess.DEVNULL)
        self.wait_for(process, lambda: (out / "results.csv").exists() and len(self.table(out)) == 3)
        self.assertEqual({row["run"] for row in self.table(out)}, {path.stem for path in out.glob("runs/[0-9a-f]*.json")})
        self.allow(None)
        self.assertEqual(process.wait(), 0)
        self.assertEqual(len(self.table(out)), RUNS)

    def test_a_picture_of_a_table_of_runs_keeps_that_table(self):
        self.write("sweep.yaml", BASE + "axes: [{vary: workload.senders, values: [1, 2]}]\n")
        out = self.folder / "out"
        self.sweep("--out", out)
        plot = "plots: [{{kind: cdf, file: a.svg, table: {}, value: slowdown, over: [senders]}}]\n"
        self.write("sweep.yaml", BASE + "axes: [{vary: workload.senders, values: [1, 2]}]\n" + plot.format("flows.csv"))
        self.assertIn("0 kept, 2 to do", self.sweep("--out", out).stderr)
        self.assertIn("2 kept, 0 to do", self.sweep("--out", out).stderr)
        kept = sorted(out.glob("runs/*.flows.csv"))
        self.assertEqual([path.name.split(".")[0] for path in kept], sorted(row["run"] for row in self.table(out)))
        self.assertEqual(sorted(len(path.read_text().splitlines()) for path in kept), [2, 3])
        self.write("sweep.yaml", BASE + "axes: [{vary: workload.senders, values: [1, 2]}]\n" + plot.format("flow.csv"))
        self.assertIn("wrote no table 'flow.csv' (it wrote bandwidths.csv, ", self.sweep("--out", out, code=1).stderr)

    def test_plugins_of_file_and_command_line_are_loaded_by_all_runs(self):
        # A program in netsim's place that notes its arguments and leaves plugins out.
        words = self.folder / "words"
        wrapper = self.write("netsim", f"""#!/bin/bash
echo "$*" >> {words}
given=()
while (($#)); do
  if [[ $1 == --plugin ]]; then shift 2; else given+=("$1"); shift; fi
done
exec {BINARY} "${{given[@]}}"
""")
        wrapper.chmod(0o755)
        named, added = self.write("named.so", "1"), self.write("added.so", "2")
        self.write("sweep.yaml", BASE + "  plugins: named.so\naxes: [{vary: workload.senders, values: [1, 2]}]\n")
        out = self.folder / "out"
        self.sweep("--out", out, "--plugin", added, binary=str(wrapper))
        calls = words.read_text().splitlines()
        self.assertEqual(len(calls), 4)
        for call in calls:
            self.assertIn(f"--plugin {named} --plugin {added} --config", call)
        self.assertIn("2 kept, 0 to do", self.sweep("--out", out, "--plugin", added, binary=str(wrapper)).stderr)
        # Another plugin may give another answer.
        added.write_text("3")
        self.assertIn("0 kept, 2 to do", self.sweep("--out", out, "--plugin", added, binary=str(wrapper)).stderr)
        self.assertIn("0 kept, 2 to do", self.sweep("--out", out, binary=str(wrapper)).stderr)
        self.write("sweep.yaml", BASE + "  plugins: [nowhere.so]\naxes: [{vary: workload.senders, values: [1, 2]}]\n")
        self.assertIn(f"sweep.yaml:4:13: there is no plugin '{self.folder}/nowhere.so'", self.sweep(code=2).stderr)
        self.write("sweep.yaml", BASE + "axes: [{vary: workload.senders, values: [1, 2]}]\n")
        self.assertIn("nowhere.so: No such file", self.sweep("--out", out, "--plugin", "nowhere.so", code=2).stderr)
        self.assertIn("is no plugin", self.sweep("--out", out, "--plugin", added, code=2).stderr)

    def test_only_what_changed_runs_again(self):
        self.write("sizes.cdf", "1000 50\n20000 100\n")
        self.write("incast.yaml", "kind: poisson\nrate: 100 Gbps\nload: 0.3\nduration: 20 us\ncdf: sizes.cdf\n")
        self.write("sweep.yaml", BASE + "axes: [{vary: workload.load, values: [0.3, 0.5]}]\n")
        out = self.folder / "out"
        self.assertIn("0 kept, 2 to do", self.sweep("--out", out).stderr)
        self.write("star.yaml", "# A remark changes nothing.\n" + STAR)
        self.assertIn("2 kept, 0 to do", self.sweep("--out", out).stderr)
        self.write("sweep.yaml", BASE + "axes: [{vary: workload.load, values: [0.5, 0.7]}]\n")
        self.assertIn("1 kept, 1 to do", self.sweep("--out", out).stderr)
        self.write("sizes.cdf", "1000 60\n20000 100\n")  # a file that the workload names
        self.assertIn("0 kept, 2 to do", self.sweep("--out", out).stderr)
        self.write("star.yaml", STAR + "transport: {mtu: 1000 B}\n")
        self.assertIn("0 kept, 2 to do", self.sweep("--out", out).stderr)

    def test_another_library_of_the_program_runs_all_again(self):
        library = self.write("libnetsim.so", "1")
        (self.folder / "bin").mkdir()
        self.write("bin/ldd", f"#!/bin/sh\necho '\tlibnetsim.so.0.1 => {library} (0x00007f18e8c00000)'\n").chmod(0o755)
        self.write("sweep.yaml", BASE + "axes: [{vary: seed, values: [1]}]\n")
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}"):
            self.assertIn("0 kept, 1 to do", self.sweep("--out", self.folder / "out").stderr)
            self.assertIn("1 kept, 0 to do", self.sweep("--out", self.folder / "out").stderr)
            library.write_text("2")
            self.assertIn("0 kept, 1 to do", self.sweep("--out", self.folder / "out").stderr)

    def test_ctrl_c_stops_it_and_the_same_command_goes_on(self):
        self.write("incast.yaml", "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 500 MB\n")  # seconds each
        self.write("sweep.yaml", BASE + f"  until: {UNTIL}\naxes: [{{vary: seed, range: {{from: 1, to: 10}}}}]\n")
        out, gate = self.folder / "out", self.gate()
        self.allow(4)
        process = subprocess.Popen(self.command("--out", out, "-j", 2, binary=gate), stderr=subprocess.PIPE, text=True)
        self.wait_for(process, lambda: self.kept(out) >= 1)
        process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("run the same command again to continue", errors)
        self.assertNotIn("Traceback", errors)
        seeds = [json.loads(path.read_text())["arguments"][-1] for path in out.glob("runs/[0-9a-f]*.json")]
        self.write("sweep.yaml", BASE + f"  until: {UNTIL}\naxes: [{{vary: seed, values: [{', '.join(seeds)}]}}]\n")
        self.assertIn(f"{len(seeds)} kept, 0 to do", self.sweep("--out", out, binary=gate).stderr)
        self.assertEqual({row["outcome"] for row in self.table(out)}, {"limit reached"})

    def test_a_changed_sweep_that_is_interrupted_leaves_no_row_of_the_old_one(self):
        self.write("sweep.yaml", BASE + "axes: [{vary: seed, values: [1]}]\n")
        out = self.folder / "out"
        self.sweep("--out", out)
        old = {row["run"] for row in self.table(out)}
        self.assertEqual(len(old), 1)
        self.write("incast.yaml", "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 500 MB\n")  # seconds each
        self.write("sweep.yaml", BASE + f"  until: {UNTIL}\naxes: [{{vary: seed, range: {{from: 1, to: 10}}}}]\n")
        gate = self.gate()
        self.allow(3)
        process = subprocess.Popen(self.command("--out", out, "-j", 2, binary=gate), stderr=subprocess.DEVNULL)
        self.wait_for(process, lambda: self.kept(out) >= 2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)
        self.assertEqual({row["run"] for row in self.table(out)}, {path.stem for path in out.glob("runs/[0-9a-f]*.json")} - old)

    def test_files_of_others_are_not_replaced(self):
        self.write("sweep.yaml", BASE + "axes: [{vary: seed, values: [1]}]\n")
        out = self.folder / "out"
        out.mkdir()
        mine, table = self.write("mine.csv", "mine\n"), out / "results.csv"
        table.write_text("mine\n")
        self.assertIn("results.csv: is not replaced", self.sweep("--out", out, code=2).stderr)
        self.assertEqual((table.read_text(), self.kept(out)), ("mine\n", 0))
        table.unlink()
        table.symlink_to(mine)
        self.assertIn("results.csv: is not replaced", self.sweep("--out", out, code=2).stderr)
        self.assertEqual(mine.read_text(), "mine\n")
        table.unlink()
        self.sweep("--out", out)
        self.sweep("--out", out)  # its own
        table.write_text(table.read_text() + "mine\n")
        self.assertIn("results.csv: is not replaced", self.sweep("--out", out, code=2).stderr)
        (out / "sweep.json").write_text("[]")
        self.assertIn("sweep.json: is not replaced", self.sweep("--out", out, code=2).stderr)
        for name in ("sweep.json", "results.csv"):
            (out / name).unlink()
        table.write_text("of a sweep of an older version")
        self.sweep("--out", out)
        self.assertEqual(len(self.table(out)), 1)
        (out / "lock").write_text("mine\n")
        self.sweep("--out", out)
        self.assertEqual((out / "lock").read_text(), "mine\n")

    def test_failures_are_kept_with_their_message_and_run_again_when_asked(self):
        # A program that fails for one seed until it is mended.
        fake = self.write("netsim", f"""#!/bin/sh
case "$*" in *print-config*) ;; *"--seed 2"*) [ -e {self.folder}/mended ] || {{ echo 'netsim: error: no room' >&2; exit 4; }};; esac
exec {BINARY} "$@"
""")
        fake.chmod(0o755)
        self.write("sweep.yaml", BASE + "axes:\n  - {vary: topology.hosts, values: [4, 3]}\n  - {vary: seed, values: [1, 2]}\n")
        out = self.folder / "out"
        done = self.sweep("--out", out, code=1, binary=str(fake))
        self.assertIn("failed: hosts=4, seed=2: no room", done.stderr)
        rows = self.table(out)
        self.assertEqual([row["outcome"] for row in rows], ["done", "failed", "failed", "failed"])
        self.assertEqual(rows[1]["message"], "no room")
        self.assertIn("4 ranks", rows[2]["message"])  # refused before it runs: a star of 3 has no host 3
        (self.folder / "mended").touch()
        self.assertIn("2 kept, 0 to do", self.sweep("--out", out, code=1, binary=str(fake)).stderr)
        self.assertIn("1 kept, 1 to do", self.sweep("--out", out, "--retry-failed", code=1, binary=str(fake)).stderr)
        self.assertEqual([row["outcome"] for row in self.table(out)], ["done", "done", "failed", "failed"])

    def test_one_sweep_at_a_time_has_a_folder(self):
        self.write("sweep.yaml", MANY)
        out = self.folder / "out"
        first = subprocess.Popen(self.command("--out", out, "-j", 1, binary=self.gate()), stderr=subprocess.DEVNULL)
        self.wait_for(first, lambda: list(out.glob("workloads/*.yaml")))
        self.assertIn("another sweep is running there", self.sweep("--out", out, code=2).stderr)
        self.allow(None)
        self.assertEqual(first.wait(), 0)

    def test_a_path_that_does_not_exist_is_refused_before_anything_runs(self):
        for axis, message in (("topology.rte", "unknown key 'rte', did you mean 'rate'?"),
                              ("workload.sender", "unknown key 'sender', did you mean 'senders'?")):
            self.write("sweep.yaml", BASE + f"axes: [{{vary: {axis}, values: [1, 2, 3]}}]\n")
            errors = self.sweep("--out", self.folder / "out", code=2).stderr
            self.assertIn("the first point", errors)
            self.assertIn(message, errors)
            self.assertEqual(len(errors.splitlines()), 1)
            self.assertEqual(list((self.folder / "out" / "runs").iterdir()), [])

    def test_dry_run_shows_and_runs_nothing(self):
        self.write("sweep.yaml", MANY)
        shown = self.sweep("--out", self.folder / "out", "--dry-run").stdout
        self.assertEqual(shown.count("to do"), RUNS)
        setting = "transport.congestion_control=" + ("{kind: dcqcn, profile: vendor}" if FULL else "hpcc")
        self.assertIn(shlex.join(["--set", setting]), shown)
        self.assertEqual(list((self.folder / "out" / "runs").iterdir()), [])

    def test_a_command_that_the_dry_run_shows_can_be_run_from_elsewhere(self):
        self.write("sweep.yaml", MANY)
        shown = self.sweep("--out", self.folder / "out", "--dry-run").stdout.splitlines()
        command = shown[-1].strip().replace("netsim", shlex.quote(str(BINARY)), 1)
        script = f"{shown[0]}\n{command} --print-config"
        done = subprocess.run(["bash", "-c", script], cwd="/", capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stderr}")

    def test_pictures_are_drawn_and_the_same_each_time(self):
        python = next((each for each in (sys.executable, "/usr/bin/python3") if subprocess.run(
            [each, "-c", FIND_LIBRARIES], capture_output=True, check=False).returncode == 0), None)
        if python is None:
            self.skipTest("no matplotlib")
        self.write("sweep.yaml", MANY)
        pictures = []
        for folder in ("one", "two"):
            self.sweep("--out", self.folder / "out", "--plot", self.folder / folder, python=python)
            pictures.append([(self.folder / folder / name).read_bytes() for name in PICTURES])
            self.assertTrue(all(b"<svg" in picture for picture in pictures[-1]))
        self.assertEqual(pictures[0], pictures[1])

    def test_pandas_reads_the_table(self):
        try:
            import pandas
        except ModuleNotFoundError:
            self.skipTest("no pandas")
        self.write("sweep.yaml", MANY)
        self.sweep("--out", self.folder / "out")
        table = pandas.read_csv(self.folder / "out" / "results.csv")
        means = table.groupby(["control", "senders"])["flows.fct_mean_s"].mean()
        self.assertEqual(len(means), SENDERS * len(CONTROLS))
        self.assertGreater(means["none", SENDERS], 0.6 * SENDERS * means["none", 1])
        self.assertEqual(table["rate_Gbps"].dtype.kind, "i")


class Compared(SweepTest):
    def test_netsim_compares_two_sweeps_point_by_point(self):
        axes = "axes:\n  - {vary: workload.senders, values: [2, 3]}\n  - {vary: seed, name: number, range: {from: 1, to: 3}}\n"
        for name, rate in (("slow", "25 Gbps"), ("fast", "100 Gbps")):
            self.write("sweep.yaml", f"{BASE}  set: {{topology.rate: {rate}}}\n{axes}")
            self.sweep("--out", self.folder / name)
        done = subprocess.run([BINARY, "compare", "slow", "fast", "--json", "all.json", "--out", "both"], cwd=self.folder,
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  topology.rate: 25 Gbps -> 100 Gbps\n", done.stdout)
        self.assertNotIn("Note:", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        whole = json.loads((self.folder / "all.json").read_text(encoding="utf-8"))
        self.assertEqual([point["axes"] for point in whole["points"]], [{"senders": "2"}, {"senders": "3"}])
        for point in whole["points"]:
            figure = next(each for each in point["figures"] if each["name"] == "flows.fct_mean_s")
            for side, name in (("a", "slow"), ("b", "fast")):
                values = [float(row["flows.fct_mean_s"]) for row in self.table(self.folder / name)
                          if row["senders"] == point["axes"]["senders"]]
                self.assertEqual(figure[side]["count"], len(values))
                self.assertAlmostEqual(figure[side]["mean"], statistics.mean(values), delta=1e-12)
                self.assertAlmostEqual(figure[side]["deviation"], statistics.stdev(values), delta=1e-12)
            self.assertTrue(figure["significant"], figure)
        with open(self.folder / "both" / "compare.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["senders"] for row in rows}, {"2", "3"})

    def test_a_torn_table_is_named_with_its_line(self):
        self.write("sweep.yaml", BASE + "axes: [{vary: seed, values: [1, 2]}]\n")
        self.sweep("--out", self.folder / "a")
        table = self.folder / "a" / "results.csv"
        *rows, last = table.read_text(encoding="utf-8").splitlines(keepends=True)
        table.write_text("".join(rows) + last[:40], encoding="utf-8")
        done = subprocess.run([BINARY, "compare", "a", "a"], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("a/results.csv:3:1: the row is torn", done.stderr)


class Files(SweepTest):
    def labels(self, axes):
        self.write("sweep.yaml", BASE + f"axes: [{axes}]\n")
        sweep = sweep_file.Sweep(self.folder / "sweep.yaml")
        return [[value.label for _, value in point.values] for point in sweep.points(self.folder / "w")]

    def test_axes(self):
        self.assertEqual(self.labels("{vary: seed, values: [3, 1]}"), [["3"], ["1"]])
        self.assertEqual(self.labels("{vary: workload.senders, log: {from: 2, to: 64, points: 6}}"),
                         [["2"], ["4"], ["8"], ["16"], ["32"], ["64"]])
        self.assertEqual(self.labels("{vary: topology.rate, log: {from: 10 Gbps, to: 1000 Gbps, points: 4}}"),
                         [["10 Gbps"], ["46.4 Gbps"], ["215 Gbps"], ["1000 Gbps"]])
        self.assertEqual(self.labels("{vary: workload.load, range: {from: 0.1, to: 0.35, step: 0.1}}"), [["0.1"], ["0.2"], ["0.3"]])
        self.assertEqual(self.labels("{name: a, cases: {x: {b: 1, c: {d: 2}}, y: {b: 3}}}"), [["x"], ["y"]])
        self.assertEqual(self.labels("{vary: a, values: [x, y]}, {zip: [{vary: b, values: [1, 2]}, {vary: c, values: [3, 4]}]}"),
                         [["x", "1", "3"], ["x", "2", "4"], ["y", "1", "3"], ["y", "2", "4"]])

    def test_a_case_sets_all_that_it_names(self):
        self.write("sweep.yaml", BASE + "axes: [{name: a, cases: {x: {b.c: 1, workload.senders: 2, seed: 7}, y: {b.c: {d: 2, e: 3}}}}]\n")
        sweep = sweep_file.Sweep(self.folder / "sweep.yaml")
        first, second = sweep.points(self.folder / "w")
        self.assertEqual((first.assignments, first.seed), (["b.c=1"], "7"))
        self.assertIn("senders: 2", pathlib.Path(first.workload).read_text())
        self.assertEqual((second.assignments, second.seed, second.workload), (["b.c={d: 2, e: 3}"], "1", "incast.yaml"))

    def test_excluded_points_are_left_out(self):
        axes = "{name: a, cases: {x: {b: 1}, y: {b: 2}}}, {vary: topology.rate, values: [1 Gbps, 2 Gbps]}, {vary: seed, values: [1, 2]}"
        self.write("sweep.yaml", BASE + f"axes: [{axes}]\nexclude: [{{a: x, rate: 2 Gbps}}, {{a: y, seed: 1}}]\n")
        sweep = sweep_file.Sweep(self.folder / "sweep.yaml")
        self.assertEqual([sweep.cells(point) for point in sweep.points(self.folder / "w")],
                         [["x", "1", "1"], ["x", "1", "2"], ["y", "1", "2"], ["y", "2", "2"]])

    def test_measured_curves_are_in_the_unit_of_the_axis(self):
        self.write("measured.csv", "machine,size,us\na,64 KiB,4\na,1 MiB,7\na,1 MiB,9\nb,1 MiB,1\na,2 MiB,\na\n")
        curve = "{file: measured.csv, where: {machine: a}, x: size, y: us, scale: 0.5, panel: 2 Gbps}"
        path = self.write("sweep.yaml", BASE + "axes: [{vary: workload.bytes, values: [16 KiB, 256 KiB, 4096 KiB]}, "
                          "{vary: topology.rate, values: [1 Gbps, 2 Gbps]}]\nplots:\n  - {kind: lines, file: a.svg, x: bytes, y: z, "
                          f"panels: rate, measured: [{curve}]}}\n")
        found, = sweep_plots.read_plots(sweep_file.Sweep(path))[0].measured
        self.assertEqual((found.points, found.panel, found.label), ([(64, 2), (1024, 4)], "2", "measured"))

    def test_a_panel_cuts_no_value_of_another(self):
        if subprocess.run([sys.executable, "-c", FIND_LIBRARIES], check=False).returncode != 0:
            self.skipTest("no matplotlib")
        self.write("measured.csv", "x,y\n1,5000\n2,7000\n")
        path = self.write("sweep.yaml", BASE + "axes: [{vary: a, values: [1, 2]}, {vary: b, values: [p, q]}]\nplots:\n"
                          "  - {kind: lines, file: a.svg, x: a, y: z, panels: b, log: [y], measured: [{file: measured.csv, x: x, y: y, panel: p}]}\n")
        plot = sweep_plots.read_plots(sweep_file.Sweep(path))[0]
        rows = [{"a": a, "b": b, "z": str(z), "outcome": "done"} for a, b, z in (("1", "p", 10), ("2", "p", 900), ("1", "q", 90), ("2", "q", 91))]
        figure = drawing.drawn(plot, rows, ["z"], None)
        for axes in figure.axes:
            low, high = axes.get_ylim()
            self.assertLess(low, 10)
            self.assertGreater(high, 7000)
        self.assertEqual([len(axes.lines) for axes in figure.axes], [2, 1])

    def test_samples_are_the_same_for_the_same_word(self):
        sample = ("{{sample: {}, points: {}, seed: {}, axes: [{{vary: a, uniform: {{from: 0, to: 1.0}}}}, "
                  "{{vary: b, log_uniform: {{from: 1 KB, to: 1000 KB}}}}, {{vary: c, values: [x, y]}}]}}")
        eight = self.labels(sample.format("random", 8, "one"))
        self.assertEqual(eight[0], ["0.0619", "3.437 KB", "x"])  # a change here changes everybody's samples
        self.assertEqual(self.labels(sample.format("random", 12, "one"))[:8], eight)
        self.assertNotEqual(self.labels(sample.format("random", 8, "two")), eight)
        hypercube = self.labels(sample.format("latin_hypercube", 8, "one"))
        self.assertEqual(sorted(int(float(a) * 8) for a, _, _ in hypercube), list(range(8)))
        self.assertEqual(sorted(int(math.log10(float(b.split()[0])) / 3 * 8) for _, b, _ in hypercube), list(range(8)))
        self.assertEqual(sorted(c for _, _, c in hypercube), ["x"] * 4 + ["y"] * 4)
        whole = self.labels("{sample: latin_hypercube, points: 6, seed: 1, axes: [{vary: a, uniform: {from: 1, to: 3}}]}, "
                            "{vary: seed, values: [1, 2]}")
        self.assertEqual(sorted(a for a, _ in whole), ["1"] * 4 + ["2"] * 4 + ["3"] * 4)

    def test_intervals_are_those_of_tables_of_students_t(self):
        for degrees, level, expected in ((1, 0.95, 12.706), (2, 0.95, 4.303), (4, 0.95, 2.776), (7, 0.99, 3.499), (30, 0.95, 2.042)):
            self.assertAlmostEqual(intervals.student_quantile(level, degrees), expected, places=3)
        low, high = intervals.Interval("95 %").ends([1.0, 2.0, 3.0])
        self.assertAlmostEqual(low, 2 - 4.3027 / math.sqrt(3), places=4)
        self.assertAlmostEqual(high, 2 + 4.3027 / math.sqrt(3), places=4)
        self.assertIsNone(intervals.Interval("95 %").ends([1.0]))
        self.assertEqual(intervals.Interval("range").ends([3.0, 1.0, 2.0]), (1.0, 3.0))

    def test_a_front_has_what_no_other_beats(self):
        points = [([1], [5]), ([2], [3]), ([2], [4]), ([3], [3]), ([4], [0, 2])]
        self.assertEqual(drawing.pareto_front(points, {"x": True, "y": True}), {0, 1, 4})
        self.assertEqual(drawing.pareto_front(points, {"x": False, "y": True}), {4})
        self.assertEqual(drawing.pareto_front(points, {"x": False, "y": False}), {0, 2, 3, 4})

    def test_steps_of_a_distribution(self):
        self.assertEqual(drawing.steps([1, 2, 2, 5]), ([1, 1, 2, 2, 5], [0, 0.25, 0.5, 0.75, 1]))
        x, y = drawing.steps(list(range(100_000)))
        self.assertLessEqual(len(x), drawing.MOST_STEPS + 2)
        self.assertEqual((x[-1], y[-1]), (99_999, 1))

    def test_descriptions_are_varied_in_depth_and_files_in_them_found(self):
        inner = self.folder / "inner"
        inner.mkdir()
        (inner / "s.cdf").write_text("1 100\n")
        (inner / "w.yaml").write_text("kind: flows\ncdf: s.cdf\nflows: [{from: 0, bytes: 1 MB}, {from: 1}]\n")
        self.write("sweep.yaml", "base: {config: c, workload: inner/w.yaml}\naxes: [{vary: workload.flows.1.bytes, values: [8 KB]}]\n")
        sweep = sweep_file.Sweep(self.folder / "sweep.yaml")
        point = next(sweep.points(self.folder / "w"))
        text = pathlib.Path(point.workload).read_text()
        self.assertIn("cdf: inner/s.cdf", text)
        self.assertIn("{from: 1, bytes: 8 KB}", text)

    def test_wrong_files_are_told_with_their_place(self):
        axis = "axes: [{vary: seed, values: [1]}]\n"
        plot = BASE + "axes: [{vary: seed, values: [1]}, {vary: topology.rate, name: r, values: [1 Gbps, 2 Gbps]}]\nplots:\n"
        curve = "  - {{kind: lines, file: a.svg, x: {x}, y: z, {where}measured: [{{{keys}}}]}}\n"

        def measured(keys, x="r", where=""):
            return plot + curve.format(x=x, where=where, keys=keys)
        self.write("measured.csv", "r,y\n1 Gbps,4\n")
        for text, place, message in (
                ("", "", "is empty"),
                ("a: [", "1:5", "expected the node content"),
                (axis, "1:1", "needs 'base'"),
                (BASE, "1:1", "needs 'axes'"),
                (BASE + axis + "axis: 3\n", "5:1", "unknown key 'axis' of a sweep, did you mean 'axes'?"),
                ("base: {workload: w}\n" + axis, "1:7", "base needs 'config'"),
                (BASE + "axes: []\n", "4:7", "a list that is not empty"),
                (BASE + "axes: [{values: [1]}]\n", "4:8", "an axis needs 'vary'"),
                (BASE + "axes: [{vary: seed}]\n", "4:8", "one of 'values', 'cases', 'log' and 'range'"),
                (BASE + "axes: [{vary: seed, values: [1, 1]}]\n", "4:29", "the value '1' is given twice"),
                (BASE + "axes: [{vary: seed, values: [a]}]\n", "4:30", "a seed is 'a'; a whole number"),
                (BASE + "axes: [{vary: seed, values: [[1]]}]\n", "4:30", "needs a label"),
                (BASE + "axes: [{vary: x.run, values: [1]}]\n", "4:15", "'run' cannot be a column"),
                (BASE + "axes: [{vary: a.b, values: [1]}, {vary: c.b, values: [1]}]\n", "4:34", "two axes with the name 'b'"),
                (BASE + "axes: [{vary: a, log: {from: 0, to: 2, points: 3}}]\n", "4:23", "ends above 0"),
                (BASE + "axes: [{vary: a, log: {from: 1 us, to: 2 ms, points: 3}}]\n", "4:40", "both need the same unit"),
                (BASE + "axes: [{vary: a, log: {from: 1, to: 2, points: x}}]\n", "4:48", "a whole number is expected"),
                (BASE + "axes: [{vary: a, range: {from: 3, to: 2}}]\n", "4:25", "goes upwards"),
                (BASE + "axes: [{zip: [{vary: a, values: [1]}, {vary: b, values: [1, 2]}]}]\n", "4:39", "'b' has 2 values"),
                (BASE + "axes: [{cases: {x: {a: 1}}}]\n", "4:8", "needs 'name'"),
                (BASE + "axes: [{name: a, cases: {x: 3}}]\n", "4:29", "the case 'x' is expected to be a mapping"),
                (BASE + "axes: [{name: a, cases: {x: {b: 1}}}, {vary: b, values: [1]}]\n", "4:39", "two axes with the path 'b'"),
                (BASE + "axes: [{sample: sobol, points: 4, seed: a, axes: []}]\n", "4:17", "(allowed: random, latin_hypercube)"),
                (BASE + "axes: [{sample: random, points: 4, axes: []}]\n", "4:8", "a sample needs 'seed'"),
                (BASE + "axes: [{sample: random, points: 4, seed: a, axes: [{vary: b, range: {from: 1, to: 2}}]}]\n", "4:62",
                 "unknown key 'range' of an axis"),
                (BASE + "axes: [{sample: random, points: 4, seed: a, axes: [{vary: seed, values: [1, 2]}]}]\n", "4:52",
                 "seeds repeat each point of a sample"),
                (BASE + "axes: [{sample: random, points: 4, seed: a, axes: [{vary: b, log_uniform: {from: 0, to: 2}}]}]\n", "4:75",
                 "from above 0"),
                (BASE + "  set: {a.b: 1}\naxes: [{vary: a.b, values: [1]}]\n", "4:14", "set here and varied"),
                (BASE + "axes: [{vary: a, values: [1]}]\nexclude: [{b: 1}]\n", "5:15", "'b' is no axis"),
                (BASE + "axes: [{vary: a, values: [1]}]\nexclude: [{a: 2}]\n", "5:15", "'a' has no value '2'"),
                (BASE + "axes: [{vary: a, values: [1]}]\nexclude: [{}]\n", "5:11", "at least one axis"),
                (BASE + "axes: [{vary: a, values: [1]}]\nexclude: [{a: 1}]\n", "5:10", "'exclude' leaves no point"),
                (measured("file: none.csv, x: r, y: y"), "6:62", "none.csv: cannot be read"),
                (measured("file: measured.csv, x: rr, y: y"), "6:62", "has no column 'rr', did you mean 'r'? (there are r, y)"),
                (measured("file: measured.csv, x: y, y: r"), "6:85", "measured.csv:2: '1 Gbps' is no number"),
                (measured("x: r, y: y, file: measured.csv, where: {y: 3}"), "6:74", "has no row with y = '3'"),
                (measured("file: measured.csv, x: r, y: y, panel: 3"), "6:95", "the picture has no 'panels'"),
                (measured("file: measured.csv, x: r, y: y", x="seed", where="where: {r: 1 Gbps}, "), "6:102",
                 "measured.csv:2: '1 Gbps' has another unit than the axis 'seed' (none)"),
                (plot + "  - {kind: bars, file: a.svg, x: r, y: z, measured: []}\n", "6:43", "unknown key 'measured' of a plot of kind bars"),
                (plot + "  - {kind: pie, file: a.svg, x: r, y: z}\n", "6:12", "'pie' is no kind of plot"),
                (plot + "  - {kind: bars, file: a.svg, x: r, y: z, log: [x]}\n", "6:48", "log: a list of y"),
                (plot + "  - {kind: bars, file: a.svg, x: r, y: z, interval: 95}\n", "6:53", "'95' is no interval"),
                (plot + "  - {kind: stacked, file: a.svg, x: r, parts: [a], by: r}\n", "6:52", "unknown key 'by' of a plot of kind stacked"),
                (plot + "  - {kind: cdf, file: a.svg, value: z}\n", "6:5", "axis 'r' is neither shown, named in 'over' nor fixed"),
                (plot + "  - {kind: cdf, file: a.svg, value: z, table: flows}\n", "6:47", "'flows' is no table that a run writes"),
                (plot + "  - {kind: pareto, file: a.svg, x: a, y: z, better: {x: most}}\n", "6:57", "(allowed: less, more)"),
                (plot + "  - {kind: lines, file: a.gif, x: r, y: z}\n", "6:25", "ends in .svg"),
                (plot + "  - {kind: lines, file: a.svg, x: rr, y: z}\n", "6:35", "'rr' is no axis, did you mean 'r'?"),
                (plot + "  - {kind: lines, file: a.svg, x: seed, y: z}\n", "6:5", "axis 'r' is neither shown nor fixed"),
                (plot + "  - {kind: lines, file: a.svg, x: r, y: z, where: {seed: 4}}\n", "6:58", "'seed' has no value '4'"),
        ):
            with self.subTest(text=text):
                path = self.write("sweep.yaml", text)
                with self.assertRaises(sweep_file.SweepError) as raised:
                    sweep_plots.read_plots(sweep_file.Sweep(path))
                self.assertIn(message, str(raised.exception))
                self.assertTrue(str(raised.exception).startswith(f"{path}:{place}"), raised.exception)
        self.write("sweep.yaml", "base: {config: c, workload: w.pb}\naxes: [{vary: workload.a, values: [1]}]\n")
        self.write("w.pb", "\0")
        with self.assertRaisesRegex(sweep_file.SweepError, "sweep.yaml:2:8: .*w.pb' is no description in YAML"):
            list(sweep_file.Sweep(self.folder / "sweep.yaml").points(self.folder / "w"))


if __name__ == "__main__":
    unittest.main()
