"""Do includes go downward, through the folders' public headers, and do third-party headers stay where they belong?

docs/concepts/architecture.md gives the order of the folders. PUBLIC_HEADERS lists the headers of a folder that other folders may
include; all others are private. A header is added to the list when other folders may rely on it.
"""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The public headers of each folder that has private ones. All headers of core and report are public; the program's are for main only.
PUBLIC_HEADERS = {
    "topology": {"boxes.h", "graph.h", "routes.h", "aggregation_tree.h", "channel_dependencies.h", "hop_ordered_routes.h", "topology.h", "partition.h",
                 "link_names.h", "linked_gpus.h", "structure.h", "parts.h", "ethernet.h", "fabric_sections.h", "up_routes.h", "files/ns3_topology.h"},
    "network": {"aggregation/aggregation_counters.h", "aggregation/aggregation_pool.h", "aggregation/aggregator_table.h", "aggregation/key_table.h", "aggregation/number_format.h", "aggregation/switch_sums.h", "fabric.h", "faults.h", "fabric_shard.h", "policies.h", "counters.h", "path.h", "packet_trace.h", "telemetry.h"},
    "transport": {"circuit_control.h", "network_counters.h", "endpoint.h", "forwarding_endpoint.h", "message_delays.h", "packet_network.h", "ideal_endpoint.h",
                  "port_passage.h", "transfer_traits.h", "sender/timer_queue.h", "congestion/congestion_control.h", "reliability/reliability.h"},
    "scheduling": {"placement.h", "job_facts.h", "job_traffic.h", "scheduling_intervals.h", "scheduling_parameters.h", "job/job_scheduler.h", "task/task_scheduler.h",
                   "task/communication_times.h", "task/job_profile.h", "task/operation_graph.h", "views.h", "view_history.h", "view_keeper.h", "network_view.h",
                   "network_reader.h", "demand_view.h", "flow/flow_scheduler.h", "flow/flow_summary.h", "flow/flow_splitter.h",
                   "flow/scheduled_endpoint.h", "flow/split_endpoint.h", "job/phase_book.h", "job/phase_recorder.h"},
    "collectives": {"plan.h", "schedule.h", "algorithm.h", "own_algorithm.h", "collective_kind.h", "collective_names.h", "block_counts.h", "protocol.h", "execution/executor.h",
                    "execution/communication.h", "execution/message_steps.h", "execution/transfer_record.h", "execution/library_choice.h", "library/nvls_groups.h", "programs/named_plan.h",
                    "programs/program_file.h", "programs/program_plan.h"},
    "compute": {"kernel.h", "gpu_models.h", "compute_model.h", "compute_devices.h", "compute_times.h", "gpu_variation.h", "roofline.h"},
    "workload": {"task.h", "task_source.h", "task_window.h", "workload.h", "memory_plan.h", "readers/ns3_flows.h",
                 "convert/convert.h", "convert/listed_rank.h", "convert/workload_facts.h", "trace/chakra_writer.h", "trace/trace_blocks.h",
                 "program/iteration_edges.h", "program/program.h", "program/program_file.h", "program/rank_grid.h", "program/role_program_source.h",
                 "routing/experts.h", "routing/router.h", "routing/token_counts.h", "traffic/simple_source.h", "traffic/traffic.h"},
    "training": {"memory/memory_ledger.h", "checkpoint/checkpoint.h"},
    "jobs": {"demand_reader.h", "make_task_scheduler.h", "job.h", "job_manager.h", "job_set.h", "managed_job.h", "path_step.h", "planned_operations.h", "recovery.h", "task_request.h"},
    "import": {"ns3_config.h"},
    "configuration": {"configuration.h", "load_run.h"},
    "simulation": {"used_views.h", "simulation.h", "system.h", "decisions.h", "worth_runs.h"},
}

# Third-party headers and the only files that may include them. fmt may be used by every .cpp.
THIRD_PARTY = {
    r"fmt/": r".*\.cpp",
    r"yaml-cpp/": r"core/config_loader\.cpp",
    r"boost/graph/": r"topology/(graph|structure|matching)\.cpp",
    r"boost/pending/": r"topology/parts\.cpp",
    r"boost/program_options": r"main/command_words\.h",
    r"boost/math/": r"report/compare/welch\.cpp",
    r"sanitizer/": r"topology/matching\.cpp",
    r"google/protobuf/|sim/workload/program/workload\.pb\.h": r"workload/program/program_(file|message|from_message|to_message)\.cpp",
    r"sim/collectives/programs/chakra_et\.pb\.h": r"collectives/programs/chakra_trace\.cpp",
    r"zlib\.h": r"core/(recognise|input_set)\.cpp",
    r"nlohmann/": r"core/schema\.cpp|report/[\w/]+\.cpp|workload/(readers|trace|job_traces)/\w+\.cpp",
    r"spdlog/": r"core/log\.cpp",
    r"flatbuffers/": r"workload/trace/task_graph_file\.cpp",
    r"pugixml\.hpp": r"report/canvas\.cpp|core/xml\.cpp",
}
# The compiler's and the system's; written out, so that nothing new slips in.
SYSTEM = re.compile(r"[a-z_]+|sys/\w+\.h|linux/\w+\.h|(unistd|fcntl|dlfcn|dirent)\.h")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def order_of_folders(page):
    """From the sentence "Includes run downward only: core <- ... <- main."."""
    chain = re.search(r"Includes run downward only: ([\w\s<-]+?main)\.", page).group(1)
    return [folder.strip() for folder in chain.split("<-")]


def folder_of(path):
    """`path`: below sim/."""
    parts = pathlib.PurePosixPath(path).parts
    return parts[0] if len(parts) > 1 else "no folder"


def inside_of(path):
    """`path` below its folder."""
    return "/".join(pathlib.PurePosixPath(path).parts[1:])


def third_party_fault(where, header):
    for pattern, files in THIRD_PARTY.items():
        if re.match(pattern, header):
            return None if re.fullmatch(files, where) else f"{where}: <{header}> belongs in {files} only"
    return None if SYSTEM.fullmatch(header) else f"{where}: <{header}> is nowhere in THIRD_PARTY"


def own_fault(where, header, folders, files):
    """What is wrong with an include of our own `header`, both below sim/."""
    if header.endswith(".cpp"):
        return f"{where}: includes {header}: a component has no header, and nobody includes it"
    if header not in files:
        return None if header == "core/interface_version.h" else f"{where}: there is no sim/{header}"
    here, there = folder_of(where), folder_of(header)
    if here == there:
        return None
    if there not in folders:
        return f"{where}: includes {header}: the folder {there} is not in the order of docs/concepts/architecture.md"
    if folders.index(there) > folders.index(here):
        return f"{where}: includes {header}: {there} is above {here}"
    if there in PUBLIC_HEADERS and inside_of(header) not in PUBLIC_HEADERS[there]:
        return f"{where}: includes {header}, which is no public header of {there} (PUBLIC_HEADERS in this test)"
    return None


def faults(source, folders):
    files = {path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.suffix in (".h", ".cpp")}
    found = []
    for where, path in sorted(files.items()):
        if folder_of(where) not in folders:
            found.append(f"{where}: the folder {folder_of(where)} is not in the order of docs/concepts/architecture.md")
            continue
        for quoted, angled in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if angled or quoted.endswith(".pb.h"):
                found.append(third_party_fault(where, angled or quoted))
            elif quoted.startswith("sim/"):
                found.append(own_fault(where, quoted.removeprefix("sim/"), folders, files))
            else:
                found.append(f'{where}: "{quoted}" does not begin with sim/')
    return [fault for fault in found if fault]


def types_of(text):
    """(namespace, name) of each type that a header defines outside of others."""
    types, inside = [], []
    for line in text.splitlines():
        if opened := re.match(r"namespace ([\w:]*) ?\{", line):
            inside.append(opened.group(1))
        elif re.match(r"\}\s+// namespace", line):
            inside.pop()
        elif named := re.match(r"(?:class|struct|enum class|enum)(?: alignas\(\d+\))? ([\w:]*\w)(?: final)?[^;{]*\{", line):
            types.append(("::".join(inside), named.group(1)))
    return types


def twice_named(source):
    """Types of one name in one namespace, defined by two headers: the linker would mix them up without a word."""
    where = {}
    for path in sorted(source.rglob("*.h")):
        for name in types_of(path.read_text(encoding="utf-8")):
            where.setdefault(name, []).append(path.relative_to(source).as_posix())
    return {"::".join(name): paths for name, paths in where.items() if len(paths) > 1}


class IncludeGraph(unittest.TestCase):
    folders = order_of_folders((ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8"))

    def test_the_tree_keeps_to_it(self):
        self.assertGreater(len(self.folders), 8)
        self.assertEqual(faults(ROOT / "sim", self.folders), [])

    def test_a_name_has_one_meaning(self):
        self.assertEqual(twice_named(ROOT / "sim"), {})
        with tempfile.TemporaryDirectory() as name:
            for folder, text in (("a", "namespace n {\nstruct T {\n"), ("b", "namespace n {\nclass T final : U {\n"),
                               ("c", "namespace m {\nstruct T {\n"), ("d", "namespace n {\nstruct T;\n"),
                               ("e", "namespace n {\nstruct T::U {\n")):
                (pathlib.Path(name) / f"{folder}.h").write_text(text)
            self.assertEqual(twice_named(pathlib.Path(name)), {"n::T": ["a.h", "b.h"]})

    def test_every_public_header_is_there(self):
        for folder, headers in PUBLIC_HEADERS.items():
            for header in headers:
                self.assertTrue((ROOT / "sim" / folder / header).exists(), f"{folder}/{header}")

    def faults_of(self, **files):
        with tempfile.TemporaryDirectory() as name:
            source = pathlib.Path(name)
            for path, text in {"core/units.h": "", "network/fabric.h": "", "network/fabric_state.h": "",
                               "transport/endpoint.h": "", "simulation/simulation.h": "", **files}.items():
                (source / path).parent.mkdir(parents=True, exist_ok=True)
                (source / path).write_text(text)
            return faults(source, self.folders)

    def test_what_it_refuses(self):
        for path, text, part in (
                ("network/a.cpp", '#include "sim/transport/endpoint.h"\n', "transport is above network"),
                ("core/a.h", '#include "sim/simulation/simulation.h"\n', "simulation is above core"),
                ("transport/a.cpp", '#include "sim/network/fabric_state.h"\n', "no public header of network"),
                ("main/main.cpp", '#include "sim/network/a.cpp"\n', "nobody includes it"),
                ("network/a.h", "#include <fmt/format.h>\n", "belongs in"),
                ("network/a.cpp", "#include <yaml-cpp/yaml.h>\n", "belongs in"),
                ("core/a.cpp", "#include <eigen3/Eigen/Core>\n", "nowhere in THIRD_PARTY"),
                ("core/a.cpp", '#include "units.h"\n', "does not begin with sim/"),
                ("core/a.cpp", '#include "sim/core/gone.h"\n', "there is no sim/core/gone.h"),
                ("cellar/a.cpp", "", "not in the order"),
                ("a.cpp", "", "not in the order")):
            with self.subTest(part):
                found = self.faults_of(**{path: text})
                self.assertEqual(len(found), 1, found)
                self.assertIn(part, found[0])

    def test_what_it_allows(self):
        self.assertEqual(self.faults_of(**{
            "transport/a.cpp": '#include <fmt/format.h>\n#include <sys/mman.h>\n#include "sim/network/fabric.h"\n',
            "network/a.cpp": '#include "sim/network/fabric_state.h"\n#include "sim/core/units.h"\n',
            "core/log.cpp": "#include <spdlog/logger.h>\n",
            "main/main.cpp": '#include "sim/simulation/simulation.h"\n#include <csignal>\n'}), [])


if __name__ == "__main__":
    unittest.main()
