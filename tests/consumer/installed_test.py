"""Does netsim serve others where it is installed: find_package, pkg-config, plugins, and all that docs/how-to/extend.md says?

    installed_test.py BUILD_DIRECTORY SCRATCH_DIRECTORY CXX_FLAGS

Installs the build into the scratch directory, writes the files of docs/how-to/extend.md out, builds them and tests/consumer
with what is installed, and runs them. Needs pkg-config. With NETSIM_TEST_SIZE=full all components of the page and all plugins
are built, otherwise those that show how; netsim_extending_tests has compiled and run the others.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import documented

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD, SCRATCH = pathlib.Path(), pathlib.Path()
CXX_FLAGS = ""
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"
# Components of the page, by source file: kind and name.
COMPONENTS = {"halving": "congestion_control", "twin_stars": "topology", "through_root": "collective_algorithm", "one_copy": "collective_algorithm", "always": "collective_library",
              "backwards": "placement", "shortest_first": "queue_discipline", "flow_lines": "result_sink", "layer_check": "strategy",
              "named_flows": "workload_reader", "smallest_first": "task_scheduler", "one_at_a_time": "flow_scheduler",
              "few_gpus_first": "job_scheduler"}
# The quick suite builds these, without optimization: the first one of the page, and the one that the page's program uses.
QUICK_COMPONENTS = ("halving", "twin_stars")
# A file in the page's command for a component, where its name is not that of the component.
COMMAND_FILES = {"named_flows": "flows.txt"}
# In the quick suite each n-th header is compiled.
HEADER_STEP = 1 if FULL else 40
LAUNCHER = "ccache" if shutil.which("ccache") else ""  # as the build: nothing is compiled twice

STAR = "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\n"
TREE = "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n"
EXCHANGE = "{kind: collective, collective: all_to_all, bytes: 1 MB}\n"
INCAST = "{kind: incast, senders: 2, receiver: 2, bytes: 1 MB}\n"


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        cls.prefix = SCRATCH / "moved"
        cls.run_checked(["cmake", "--install", BUILD, "--prefix", SCRATCH / "prefix"])
        (SCRATCH / "prefix").rename(cls.prefix)  # nothing in it may know where it was
        libraries = next(cls.prefix.rglob("libnetsim.so")).parent  # lib, lib64 or lib/x86_64-linux-gnu
        cls.environment = dict(os.environ, CMAKE_PREFIX_PATH=str(cls.prefix), PKG_CONFIG_PATH=str(libraries / "pkgconfig"),
                               LD_LIBRARY_PATH=str(libraries), CXXFLAGS=CXX_FLAGS,
                               PATH=f"{cls.prefix / 'bin'}:{os.environ['PATH']}", CMAKE_CXX_COMPILER_LAUNCHER=LAUNCHER)
        cls.consumer = SCRATCH / "consumer"
        cls.run_checked(["cmake", "-G", "Ninja", "-S", HERE, "-B", cls.consumer, f"-DNETSIM_POLICIES={'ON' if FULL else 'OFF'}"],
                        env=cls.environment)
        cls.run_checked(["cmake", "--build", cls.consumer], env=cls.environment)
        cls.pages = SCRATCH / "extending"
        cls.commands = documented.write(ROOT / "docs" / "how-to" / "extend.md", cls.pages)
        if not FULL:
            cls.leave_components_out()
            cls.commands = [command.replace("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_BUILD_TYPE=None") for command in cls.commands]
        (cls.pages / "star.yaml").write_text(STAR)
        (cls.pages / "two.yaml").write_text(INCAST)
        # The page's own commands, in its order; the program of one's own is compiled with the flags of this build.
        cls.said = []
        for command in cls.commands:
            if command.startswith("g++"):
                command = command.replace("g++", f"{LAUNCHER} {os.environ.get('CXX', 'g++')} {CXX_FLAGS}", 1)
            cls.said.append((command, cls.run_checked(["bash", "-c", command], cwd=cls.pages, env=cls.environment)))

    @classmethod
    def leave_components_out(cls):
        """Takes components that the quick suite does not build out of the page's plugin and commands."""
        lists = cls.pages / "CMakeLists.txt"
        for name in COMPONENTS:
            if name not in QUICK_COMPONENTS:
                lists.write_text(lists.read_text().replace(f" {name}.cpp", ""))
                cls.commands = [command for command in cls.commands if COMMAND_FILES.get(name, f"{name}.yaml") not in command]

    @staticmethod
    def run_checked(words, **more):
        done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def netsim(self, *words, code=0):
        done = subprocess.run([self.prefix / "bin" / "netsim", *words], cwd=self.pages, capture_output=True, text=True,
                              check=False, env=self.environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def refused(self, plugin, *parts):
        error = self.netsim("--plugin", plugin, "--list", code=2)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("netsim: error: "), error)
        for part in (pathlib.Path(plugin).name, *parts):
            self.assertIn(part, error)

    def test_the_consumer_gets_the_same_results_as_the_program(self):
        consumer = self.run_checked([self.consumer / "consumer", "star.yaml", "two.yaml"], cwd=self.pages, env=self.environment)
        summary = json.loads(self.netsim("--config", "star.yaml", "--workload", "two.yaml", "--json", "-", "--quiet"))
        self.assertEqual(consumer.strip().zfill(16), summary["fingerprint"]["results"])

    def test_the_consumer_uses_its_own_component_and_a_plugins(self):
        for control, plugins in (("fraction", []), ("halving", ["build/libmine.so"])):
            (self.pages / "own.yaml").write_text(STAR + f"transport: {{congestion_control: {control}}}\n")
            words = [self.consumer / "consumer", *plugins, "own.yaml", "two.yaml"]
            self.run_checked(words, cwd=self.pages, env=self.environment)
        error = self.netsim("--config", "own.yaml", "--workload", "two.yaml", code=2)
        self.assertIn("unknown congestion_control 'halving'", error)

    def test_the_pages_commands_say_what_they_should(self):
        text = "\n".join(output for _, output in self.said)
        self.assertGreater(len(self.said), 6 if FULL else 4)
        self.assertIn("congestion_control.halving", text)
        self.assertIn("what a mark leaves of the window", text)
        self.assertIn("flows            4 done", text)
        self.assertRegex(self.said[-1][1], r"^8 flows, the longest took \d+ ps\n$")

    def test_a_plugins_components_are_shown(self):
        plugin = ("--plugin", "build/libmine.so")
        listed = self.netsim(*plugin, "--list")
        schema = json.loads(self.netsim(*plugin, "--schema"))
        for component in COMPONENTS if FULL else QUICK_COMPONENTS:
            kind = COMPONENTS[component]
            self.assertIn(component, listed)
            self.assertIn(f"{kind}.{component}", schema["$defs"])
            self.assertIn(component, self.netsim(*plugin, "--describe", component))
            self.assertNotIn(component, self.netsim("--list", kind))

    @unittest.skipUnless(FULL, "netsim_extending_tests runs them in the quick suite")
    def test_policies_that_are_called_for_each_packet_run_alike_in_any_number_of_threads(self):
        for name, section in (("codel", "network: {switch: {marker: codel}}"),
                              ("flowlets", "network: {switch: {routing: flowlets}}\ntransport: {reliability: irn}"),
                              ("timed_acks", "transport: {reliability: {kind: timed_acks, every: 8}}")):
            (self.pages / "policy.yaml").write_text(TREE + section + "\n")
            (self.pages / "exchange.yaml").write_text(EXCHANGE)
            prints = [json.loads(self.netsim("--plugin", str(self.consumer / f"lib{name}.so"), "--config", "policy.yaml",
                                             "--workload", "exchange.yaml", "--json", "-", "--quiet", "--threads", threads))
                      ["fingerprint"] for threads in ("1", "2", "4")]
            self.assertEqual(prints[1:], prints[:-1], name)

    def test_the_manifest_names_the_plugins(self):
        self.netsim("--plugin", "build/libmine.so", "--config", "halving.yaml", "--workload", "incast.yaml", "--quiet",
                    "--out", "out")
        manifest = json.loads((self.pages / "out" / "manifest.json").read_text())
        self.assertEqual([plugin["path"] for plugin in manifest["plugins"]], ["build/libmine.so"])
        self.assertRegex(manifest["plugins"][0]["hash"], r"^[0-9a-f]{16}$")
        self.assertNotIn("build/libmine.so", [entry["path"] for entry in manifest["inputs"]])

    def test_several_plugins_load_and_a_name_taken_by_one_is_refused(self):
        other = self.pages / "other.so"
        shutil.copy(self.pages / "build" / "libmine.so", other)  # the same components once more
        error = self.netsim("--plugin", "build/libmine.so", "--plugin", str(other), "--list", code=2)
        self.assertRegex(error, r"'\w+' is registered twice: \S+\.cpp:\d+ and \S+\.cpp:\d+")
        self.netsim("--plugin", "build/libmine.so", "--plugin", str(self.consumer / "libbroken.so"), "--list")

    def test_what_is_no_plugin_of_this_version_is_refused(self):
        self.refused(str(self.consumer / "libno_mark.so"), "is no plugin of netsim", "NETSIM_PLUGIN")
        version = (self.prefix / "include/netsim/sim/core/interface_version.h").read_text()
        version = re.search(r'"(0\.1\.0-[0-9a-f]{12})"', version).group(1)
        self.refused(str(self.consumer / "libold_version.so"), "0.0.9-0123456789ab", version)
        self.refused(str(self.consumer / "libunresolved.so"), "cannot be loaded", "nowhere_to_be_found")
        self.refused("nowhere.so", "cannot be read")
        self.refused("star.yaml", "is no plugin of netsim")

    def test_a_name_that_netsim_has_is_refused_with_both_places(self):
        error = self.netsim("--plugin", str(self.consumer / "libtaken_name.so"), "--list", code=2)
        self.assertRegex(error, r"congestion_control 'dcqcn' is registered twice: "
                                r"\S*sim/transport/congestion/dcqcn\.cpp:\d+ and \S*taken_name\.cpp:\d+")

    def test_a_check_that_fails_is_a_bug_with_a_way_to_see_it_again(self):
        (self.pages / "broken.yaml").write_text(STAR + "transport: {congestion_control: broken}\n")
        for threads in ("1", "2"):
            words = ["--plugin", str(self.consumer / "libbroken.so"), "--config", "broken.yaml", "--workload", "two.yaml",
                     "--quiet", "--threads", threads]
            error = self.netsim(*words, code=1)
            self.assertRegex(error, r"(?s)^netsim: this is a bug in netsim: \S*broken\.cpp:\d+: 'f\.packets == 0' does not "
                                    r"hold: two and two are five\nreproduce with: netsim --plugin .*--threads \d\n$")

    def test_public_headers_need_nothing_else(self):
        """Every header compiles alone, with no third-party header in reach but the standard library's."""
        headers = sorted(path.relative_to(self.prefix / "include/netsim") for path in
                         (self.prefix / "include/netsim").rglob("*.h"))
        self.assertGreater(len(headers), 80)
        for name in ("allocation.h", "commit.h", "options.h"):
            self.assertNotIn(pathlib.Path("sim") / name, headers)
        allowed = re.compile(r'#include (<[a-z_]+(\.h)?>|<(sys|linux)/\w+\.h>|"sim/[\w/]+\.h")')
        for header in headers:
            for line in (self.prefix / "include/netsim" / header).read_text().splitlines():
                if line.startswith("#include"):
                    self.assertRegex(line, allowed, str(header))
        source = SCRATCH / "all_headers.cpp"
        source.write_text("".join(f'#include "{header}"\n' for header in headers[::HEADER_STEP]))
        self.run_checked([os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                          f"-I{self.prefix / 'include/netsim'}", source])


if __name__ == "__main__":
    if shutil.which("pkg-config") is None:
        print("skipped: pkg-config is not installed")
        sys.exit(77)
    BUILD, SCRATCH = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    CXX_FLAGS = sys.argv[3] if len(sys.argv) > 3 else ""
    unittest.main(argv=sys.argv[:1])
