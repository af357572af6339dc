"""Do the commands of README.md and of all pages below docs/ work, and do their links lead somewhere?

What ends soon runs, in a scratch folder that looks like a clone; what takes long is asked for its manifest (netsim), its points
(sweeps) or its options (other scripts); what builds or installs is compared with the files that define it. NETSIM_BINARY names
the program. With NETSIM_TEST_SIZE=full commands of a second and those that ShippedConfigs runs are run here, too, and each point
of each sweep is asked for its manifest. Scripts are then asked for their options, which otherwise are looked up in their source.
"""

import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import reference

FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
# With NETSIM_TEST_SIZE=few, as builds with a sanitizer set it, each fourth of those commands runs that write no file.
WRITES = re.compile(r" --(out|compile|draw|json)\b|>")
COMMAND_STEP = 4 if os.environ.get("NETSIM_TEST_SIZE") == "few" else 1
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"(?:/usr/bin/time -v )?(?:netsim|scripts/[\w.]+|build/\S+|cmake|ninja|ctest|apt|sudo|python3?|git)(?=\s|$)")
# Commands that take minutes. Their manifest shows that all files, paths and values are right.
LONG = re.compile(r"traces/gpt3_ptdp\.pb|configs/bench/|web_search|deepseek_v3_optimizer|topologies/gb200.*collectives/all_reduce")
# Commands that take more than half a second.
SECONDS = re.compile(r"validation/line_rate|workload\.bytes=1GB|strategies/moe/|nvls_sizes|nccl_tests\.yaml|small_llama_fsdp\.yaml"
                     r"|two_jobs\.yaml|validation/loss|collectives/dispatch|_offload|layers/vgg_19\.yaml|workloads/task_graph\.yaml"
                     r"|timelines\.yaml")
# Configuration and workload of each command that ShippedConfigs runs.
SHIPPED = {tuple(f"configs/{name}" for name in pair) for pair in re.findall(
    r'Case\{"([^"]+)", "([^"]+)"[,}]', (ROOT / "tests/scenarios/components_test.cpp").read_text(encoding="utf-8"))}
# Points of a sweep of which the quick suite asks for the manifest, besides the first and the last one.
SOME_POINTS = 3
# Names that the pages give to files of the reader.
STAND_INS = {
    "C.yaml": "topology: {kind: fat_tree, k: 4}\nhost: single_nic\ntransport: {congestion_control: {kind: dcqcn, profile: vendor}}\n",
    "W": "kind: incast\nsenders: 3\nreceiver: 3\nbytes: 100 KB\n",
    "H.yaml": "topology: {kind: star, hosts: 8}\nhosts: 1\nhost: dgx_a100\n",
    "W.yaml": "kind: collective\ncollective: all_reduce\nbytes: 1 MiB\n",
    "my.yaml": "topology: {kind: fat_tree, k: 8}\nhost: single_nic\n",
    "fat_tree_1024.topo": ROOT / "configs/import/htsim/tree.topo",
    "perm_1024n.cm": ROOT / "configs/import/htsim/connections.cm",
    "perm_128n_128c_2MB.cm": ROOT / "configs/import/htsim/connections.cm",
    "mix": ROOT / "configs/import/ns3",
    "monday.csv": "source,destination,bytes,start\n0,1,100 KB,0\n",
    "tuesday.csv": "source,destination,bytes,start\n1,2,100 KB,10 us\n",
    "week/monday.csv": "source,destination,bytes,start\n0,1,100 KB,0\n",
    "week/tuesday.csv": "source,destination,bytes,start\n1,2,100 KB,10 us\n",
}


class Found:
    def __init__(self, page, number, line, command):
        self.where = f"{page.relative_to(ROOT)}:{number}"
        self.rest = line
        # README names the program by the path that exists after the first build.
        self.command = re.sub(r"\s{2,}#.*", "", command).strip().replace("build/run/netsim ", "netsim ", 1)

    def __str__(self):
        return f"{self.where}: {self.command}"

    def expected(self):
        said = re.search(r"exit code (\d+)", self.rest)
        return int(said.group(1)) if said else 0


def lines_of(page):
    """Yields (number, line) of a page without its fenced blocks: outputs, drawings, and what tests/consumer compiles and runs."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors_of(page):
    """Returns the anchors that GitHub gives the headings of a page."""
    anchors = []
    for _, line in lines_of(page):
        if heading := re.match(r"#+ +(.*)", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
            anchor = reference.anchor(text)
            anchors.append(anchor if anchor not in anchors else f"{anchor}-{anchors.count(anchor)}")
    return anchors


def commands(page):
    for number, line in lines_of(page):
        if line.startswith("    ") and COMMAND.match(line.strip()):
            for part in line.strip().split(" && "):
                yield Found(page, number, line, part)
        for quoted in re.findall(r"`([^`]+)`", line) if not line.startswith("    ") else []:
            if COMMAND.match(quoted) and " " in quoted:
                yield Found(page, number, line, quoted)
            elif re.fullmatch(r"scripts/[\w.]+", quoted):
                yield Found(page, number, line, quoted)


def options_of(words):
    return [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]


class Documentation(unittest.TestCase):
    looked_at = set()  # sweeps, and commands that several pages have
    help = {}  # by script

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_documentation_"))
        for name in ("configs", "traces", "scripts", "docs"):
            if name != "traces":
                (cls.folder / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "traces", cls.folder / "traces")  # a command writes there
        for name, content in STAND_INS.items():
            (cls.folder / name).parent.mkdir(exist_ok=True)
            if isinstance(content, str):
                (cls.folder / name).write_text(content)
            else:
                (cls.folder / name).symlink_to(content)
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin" / "netsim").symlink_to(pathlib.Path(BINARY).resolve())
        cls.environment = dict(os.environ, PATH=f"{cls.folder / 'bin'}:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def shell(self, command, expected=0):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, timeout=120)
        self.assertEqual(done.returncode, expected, f"{command}\n{done.stderr[-2000:]}")
        return done.stdout

    @staticmethod
    def is_long(command):
        if "--compile" in command:
            return False
        named = re.search(r"--config (\S+) --workload (\S+)$", command)
        return LONG.search(command) or not FULL and (SECONDS.search(command) or named and named.groups() in SHIPPED)

    def check_netsim(self, found):
        command = found.command.removeprefix("/usr/bin/time -v ")
        if command in self.looked_at:
            return
        self.looked_at.add(command)
        if len(self.looked_at) % COMMAND_STEP != 0 and "--config" in command and not WRITES.search(command):
            return
        if self.is_long(command):
            command = re.sub(r" --(quiet|dry-run|json -|out \S+)", "", command)
            json.loads(self.shell(command + " --print-config --json -"))
        else:
            self.shell(command, found.expected())

    def check_script(self, found, words):
        path = ROOT / words[0]
        self.assertTrue(os.access(path, os.X_OK), f"{found}: no such script")
        if path.name == "run.sh" and len(words) > 1:
            self.check_netsim(Found(ROOT / "README.md", 0, found.rest, found.command.replace(words[0], "netsim", 1)))
        elif path.name == "sweep.py" and len(words) > 1 and words[1].endswith(".yaml"):
            self.sweep(words)
        elif path.suffix == ".py":
            self.options_exist(self.help_of(words[0]), found, words)
        else:
            self.shell(f"bash -n {words[0]}")
            self.options_exist(path.read_text(), found, words)

    def help_of(self, script):
        if script not in self.help:
            if FULL:
                self.help[script] = self.shell(f"{sys.executable} {script} --help")
            else:  # the source that defines the options is enough
                sources = [ROOT / script, *sorted((ROOT / "scripts" / "netsim_runs").glob("*.py"))]
                self.help[script] = "\n".join(path.read_text(encoding="utf-8") for path in sources)
        return self.help[script]

    def sweep(self, words):
        try:
            from netsim_sweeps import plots as sweep_plots
            from netsim_sweeps import sweep_file
        except ModuleNotFoundError:
            return
        self.options_exist(self.help_of(words[0]), None, words)
        if words[1] in self.looked_at:
            return
        self.looked_at.add(words[1])
        if FULL:
            self.shell(shlex.join([sys.executable, words[0], words[1], "--dry-run", "--binary", BINARY]))
            return
        sweep = sweep_file.Sweep(ROOT / words[1])
        sweep_plots.read_plots(sweep)
        points = list(sweep.points(self.folder / "points" / pathlib.Path(words[1]).stem))
        self.assertGreater(len(points), 1, words[1])
        some = random.Random(1).sample(points, min(SOME_POINTS, len(points)))
        for point in {id(point): point for point in (points[0], points[-1], *some)}.values():
            done = subprocess.run([BINARY, *point.arguments(), "--print-config", "--json", "-"], cwd=sweep.folder, env=self.environment,
                                  capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, f"{words[1]}: {point.arguments()}\n{done.stderr}")
            json.loads(done.stdout)

    def options_exist(self, text, found, words):
        before = words[:words.index("--")] if "--" in words else words
        for option in options_of(before[1:]):
            self.assertRegex(text, rf"(?<![\w-]){re.escape(option)}(?![\w-])", f"{found}: no option {option}")

    def check_build(self, found, words):
        if words[:2] == ["cmake", "--install"]:
            self.assertIn(words[2], ("build/run", "build/release"), found)
        elif words[0] == "cmake":
            presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
            self.assertIn(words[words.index("--preset") + 1], [preset["name"] for preset in presets], found)
        elif words[0] in ("ninja", "ctest"):
            self.assertIn("build/release", words, found)
        elif words[:3] == ["sudo", "apt-get", "install"] or words[:2] == ["npm", "install"]:
            pass  # what one test needs beside what scripts/test.sh installs
        elif words[0] == "apt":
            known = (ROOT / "scripts" / "lib.sh").read_text().split()
            for package in words[2:]:
                self.assertIn(package, [word.strip("()") for word in known], found)
        elif words[0].startswith("build/"):
            name = pathlib.Path(words[0]).name
            lists = [path.read_text() for path in (ROOT / "CMakeLists.txt", ROOT / "bench" / "CMakeLists.txt")]
            self.assertTrue(any(f"add_executable({name} " in text for text in lists), f"{found}: nothing builds it")
        else:
            self.fail(f"{found}: not known what this is")

    def test_all_commands(self):
        checked = 0
        for page in PAGES:
            for found in commands(page):
                with self.subTest(str(found)):
                    checked += 1
                    words = shlex.split(found.command)
                    if "netsim" in words[:3]:
                        self.check_netsim(found)
                    elif words[0].startswith("scripts/"):
                        self.check_script(found, words)
                    else:
                        self.check_build(found, words)
        self.assertGreater(checked, 40)

    def test_the_sweeps_that_come_with_netsim(self):
        for path in sorted((ROOT / "configs").glob("*/*.yaml")):
            if path.parent.name in ("examples", "sweeps") and "axes:" in path.read_text():
                self.sweep(["scripts/sweep.py", f"configs/{path.parent.name}/{path.name}"])

    def test_blocks_that_name_a_file_of_the_repository_are_that_file(self):
        checked = 0
        for page in PAGES:
            for name, text in re.findall(r"^```\w+ (\w+/\S+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
                with self.subTest(f"{page.relative_to(ROOT)}: {name}"):
                    checked += 1
                    self.assertEqual(text, (ROOT / name).read_text(encoding="utf-8"))
        self.assertGreater(checked, 0)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for number, line in lines_of(page):
                for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", line):
                    with self.subTest(f"{page.relative_to(ROOT)}:{number}: {target}#{anchor}"):
                        path = page.parent / target if target else page
                        self.assertTrue(path.exists(), "no such file")
                        if anchor and path.suffix == ".md":
                            self.assertIn(anchor, anchors_of(path))


class Helpers(unittest.TestCase):
    """What the commands rely on: the program that scripts find, and the commit that it names."""

    def test_the_program_built_last_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
            find = [sys.executable, "-B", "-c", "from netsim_runs import execution; print(execution.find_binary())"]

            def found():
                return subprocess.run(find, cwd=root / "scripts", capture_output=True, text=True, check=False)
            self.assertIn("scripts/run.sh --version builds it", found().stderr)
            for age, build in enumerate(("run", "release", "run")):
                path = root / "build" / build / "netsim"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("#!/bin/sh\n")
                path.chmod(0o755)
                os.utime(path, (1000 + age, 1000 + age))
                self.assertEqual(found().stdout.strip(), str(path.resolve()))

    def test_the_commit_is_that_of_the_source(self):
        if shutil.which("cmake") is None or shutil.which("git") is None:
            self.skipTest("no cmake or no git")
        with tempfile.TemporaryDirectory() as name:
            source, output = pathlib.Path(name) / "source", pathlib.Path(name) / "commit.cpp"
            (source / "inner").mkdir(parents=True)

            def commit(folder):
                subprocess.run(["cmake", f"-DSOURCE={folder}", f"-DOUTPUT={output}", "-P", ROOT / "cmake" / "commit.cmake"],
                               check=True)
                return re.search(r'return "(.*)"', output.read_text()).group(1)

            def git(*words):
                subprocess.run(["git", "-C", source, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                               capture_output=True)
            self.assertEqual(commit(source), "")
            git("init")
            (source / "file").write_text("1")
            git("add", "file")
            git("commit", "-m", "one")
            self.assertRegex(commit(source), r"^[0-9a-f]{12}$")
            written = output.stat().st_mtime_ns
            commit(source)
            self.assertEqual(output.stat().st_mtime_ns, written)  # nothing to compile
            self.assertEqual(commit(source / "inner"), "")  # inside another repository
            (source / "file").write_text("2")
            self.assertRegex(commit(source), r"^[0-9a-f]{12}-dirty$")


if __name__ == "__main__":
    unittest.main()
