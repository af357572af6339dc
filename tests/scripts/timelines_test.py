"""Are the files of the sinks perfetto, kineto and nccl_inspector well-formed, and do they agree with the tables of their run?

The trace of Perfetto is decoded here from the wire format with the numbers that Perfetto publishes (protos/perfetto/trace in
github.com/google/perfetto). The traces of ranks are read as Holistic Trace Analysis reads them (hta/common/trace_parser.py).
NETSIM_BINARY names the program.
"""

import collections
import csv
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
INTERVAL = 20_000_000  # ps between samples
ASSIGNMENTS = ["workload.model.sequence=128", "workload.model.layers=4", "workload.model.hidden=512", "workload.model.vocabulary=1024",
               "workload.microbatches=2", "workload.iterations=2", "output.sample.interval=20 us"]
ELEMENT_SIZES = {"BFloat16": 2, "Half": 2, "Float": 4, "Byte": 1}
REQUIRED_ARGUMENTS = ("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group Name",
                      "Process Group Ranks")
MARKS = ("microbatch", "chunk", "layer")
SEND_KERNEL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def fields_of(data):
    """Yields number, wire type and value of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: lambda: 8, 2: varint, 5: lambda: 4}[kind]()
            value = data[at:at + size]
            if len(value) != size:
                raise ValueError("a field is cut")
            at += size
        yield number, kind, value


def message_of(data):
    """Returns the values of each field by its number."""
    fields = collections.defaultdict(list)
    for number, _, value in fields_of(data):
        fields[number].append(value)
    return fields


class PerfettoReader:
    """Reads a trace: tracks by uuid, and events in order of time."""

    def __init__(self, data):
        self.tracks, self.events, self.resets = {}, [], 0
        self.interned = {1: {}, 2: {}, 3: {}}  # InternedData: categories, names, names of annotations
        for number, kind, value in fields_of(data):
            if (number, kind) != (1, 2):
                raise ValueError("a packet is expected")
            self.packet(message_of(value))
        self.events.sort(key=lambda event: event["time"])  # as trace_processor does: events of one time keep their order

    def packet(self, packet):
        if packet[10] != [1]:
            raise ValueError("all packets are of sequence 1")
        flags = packet[13][0]
        if not flags & 2:
            raise ValueError("a packet needs the state of its sequence")
        if flags & 1:
            self.resets += 1
            self.interned = {1: {}, 2: {}, 3: {}}
        elif not self.resets:
            raise ValueError("the first packet clears the state")
        for data in packet[12]:
            self.intern(message_of(data))
        for data in packet[60]:
            self.track(message_of(data))
        for data in packet[11]:
            self.event(packet[8][0], message_of(data))

    def intern(self, data):
        for index, known in self.interned.items():
            for entry in map(message_of, data[index]):
                if entry[1][0] in known:
                    raise ValueError("an id is given twice")
                known[entry[1][0]] = entry[2][0].decode()

    def track(self, descriptor):
        uuid = descriptor[1][0]
        parent = descriptor[5][0] if descriptor[5] else None
        if uuid in self.tracks or (parent is not None and parent not in self.tracks):
            raise ValueError("a track is new and its parent is known")
        process = message_of(descriptor[3][0]) if descriptor[3] else None
        name = process[6][0] if process else descriptor[2][0]
        self.tracks[uuid] = {"name": name.decode(), "parent": parent, "pid": process[1][0] if process else None,
                             "counter": bool(descriptor[8])}

    def event(self, time, event):
        found = {"time": time, "type": event[9][0], "track": event[11][0], "begins": self.flows(event[47]), "ends": self.flows(event[48])}
        if found["track"] not in self.tracks:
            raise ValueError("an event has a track")
        if event[10]:
            found["name"] = self.interned[2][event[10][0]]
            found["category"] = self.interned[1][event[3][0]]
        if event[44]:
            found["value"] = struct.unpack("<d", event[44][0])[0]
        found["arguments"] = dict(map(self.annotation, event[4]))
        self.events.append(found)

    @staticmethod
    def flows(values):
        return [struct.unpack("<Q", value)[0] for value in values]

    def annotation(self, data):
        fields = message_of(data)
        return self.interned[3][fields[1][0]], fields[4][0] if fields[4] else fields[6][0].decode()

    def path(self, track):
        """Returns the names of a track and of those above it, the process first."""
        names = []
        while track is not None:
            names.insert(0, self.tracks[track]["name"])
            track = self.tracks[track]["parent"]
        return tuple(names)

    def slices(self):
        """Returns the slices. Those of a track may not overlap."""
        open_slices, closed = {}, []
        for event in self.events:
            if event["type"] == 1:
                if event["track"] in open_slices:
                    raise ValueError(f"slices overlap: {event}")
                open_slices[event["track"]] = event
            elif event["type"] == 2:
                begin = open_slices.pop(event["track"])
                closed.append({**begin, "end": event["time"], "ends": event["ends"]})
        if open_slices:
            raise ValueError("a slice has no end")
        return closed


def marks_in(arguments):
    return {key: arguments[key] for key in MARKS if key in arguments}


def marks_in_row(row):
    return {key: int(row[key]) for key in MARKS if row[key]}


def read_table(folder, name):
    with open(folder / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class TimelinesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_timelines_"))
        sets = [word for text in ASSIGNMENTS for word in ("--set", text)]
        subprocess.run([BINARY, "--config", str(ROOT / "configs/timelines.yaml"), "--workload",
                        str(ROOT / "configs/workloads/small_gpt_ptdp.yaml"), *sets, "--quiet", "--out", str(cls.folder / "out")],
                       check=True, timeout=300)
        out = cls.folder / "out"
        cls.tasks, cls.flows, cls.ranks = (read_table(out, name) for name in ("tasks.csv", "flows.csv", "ranks.csv"))
        cls.collectives = {row["communication"]: row for row in read_table(out, "collectives.csv")}
        cls.samples = read_table(out, "link_samples.csv")
        cls.trace = PerfettoReader((out / "timeline.pftrace").read_bytes())
        cls.slices = cls.trace.slices()
        cls.kineto = {rank: json.loads((out / f"kineto_rank_{rank}.json").read_text(encoding="utf-8")) for rank in (0, 8)}
        cls.files = sorted(path.name for path in out.glob("kineto_rank_*"))
        cls.inspector = [json.loads(line) for line in (out / "nccl_inspector.jsonl").read_text(encoding="utf-8").splitlines()]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def tasks_of(self, rank):
        return [row for row in self.tasks if row["rank"] == str(rank)]

    # ---- Perfetto
    def test_slices_of_streams_are_the_tasks(self):
        found = sorted((s["arguments"]["rank"], s["arguments"]["task"], s["name"], s["category"], s["time"], s["end"],
                        s["arguments"]["start_ps"], s["arguments"]["end_ps"]) for s in self.slices if s["category"] != "message")
        expected = sorted((int(row["rank"]), int(row["task"].split(".")[1]), row["name"], row["kind"], int(row["start_ps"]) // 1000,
                           int(row["end_ps"]) // 1000, int(row["start_ps"]), int(row["end_ps"])) for row in self.tasks)
        self.assertEqual(found, expected)

    def test_streams_are_below_their_gpu_and_host(self):
        hosts = {row["rank"]: row["nic"].split("/")[0] for row in self.ranks}
        for found in self.slices:
            if found["category"] != "message":
                arguments, path = found["arguments"], self.trace.path(found["track"])
                rank = arguments["rank"]
                self.assertEqual(path, (hosts[str(rank)], f"gpu{rank % 8}", f"rank {rank} {arguments['stream']}"))
        processes = {track["name"]: track["pid"] for track in self.trace.tracks.values() if track["pid"]}
        self.assertEqual(processes, {"host0": 1, "host1": 2, "network": 2_000_000_000})

    def test_sums_of_computations_are_those_of_the_ranks(self):
        sums = collections.Counter()
        for found in self.slices:
            if found["category"] == "compute":
                sums[str(found["arguments"]["rank"])] += found["arguments"]["end_ps"] - found["arguments"]["start_ps"]
        self.assertEqual(sums, {row["rank"]: int(row["compute_ps"]) for row in self.ranks})

    def test_collectives_say_how_the_library_ran_them(self):
        checked = 0
        for found in self.slices:
            if found["category"] == "collective":
                row = self.collectives[found["arguments"]["communication"]]
                for key in ("algorithm", "protocol", "channels", "bytes"):
                    self.assertEqual(str(found["arguments"].get(key, "")), row[key])
                checked += 1
        self.assertGreater(checked, 0)

    def test_slices_say_what_they_work_for(self):
        found = {(s["arguments"]["rank"], s["arguments"]["task"]): marks_in(s["arguments"]) for s in self.slices if s["category"] != "message"}
        self.assertEqual(found, {(int(row["rank"]), int(row["task"].split(".")[1])): marks_in_row(row) for row in self.tasks})

    def test_layers_are_those_of_the_stage(self):
        # Two stages of two chunks: chunk c of stage s has the layer 2 c + s. A forward of a layer has two sums.
        sums = collections.Counter()
        for row in self.tasks:
            if row["layer"]:
                self.assertEqual(int(row["layer"]), 2 * int(row["chunk"]) + int(row["rank"]) // 8)
            if row["name"] == "tp_forward":
                sums[(row["rank"], row["layer"], row["iteration"], row["microbatch"])] += 1
        self.assertEqual(len(sums), 16 * 2 * 2 * 2)  # ranks, layers of each, iterations, microbatches
        self.assertEqual(set(sums.values()), {2})

    def test_arrows_lead_from_sends_to_receives(self):
        begins, ends = {}, {}
        for found in self.slices:
            if found["category"] == "send":
                begins.update({flow: found for flow in found["begins"]})
            if found["category"] == "receive":
                ends.update({flow: found for flow in found["ends"]})
        self.assertEqual(len(begins), sum(row["kind"] == "send" for row in self.tasks))
        self.assertEqual(begins.keys(), ends.keys())
        for flow, begin in begins.items():
            self.assertEqual(begin["arguments"]["communication"], ends[flow]["arguments"]["communication"])
            self.assertLess(begin["time"], ends[flow]["end"])

    def test_messages_are_at_both_nics(self):
        for side, key in (("sends", "source"), ("receives", "destination")):
            found, expected = collections.Counter(), collections.Counter()
            for slice_ in self.slices:
                path = self.trace.path(slice_["track"])
                if slice_["category"] == "message" and path[-1].endswith(side):
                    nic = f"{path[0]}/{path[-1].split()[0]}"
                    found[(nic, slice_["arguments"]["bytes"], slice_["time"], slice_["end"])] += 1
            for row in self.flows:
                expected[(row[key], int(row["bytes"]), int(row["start_ps"]) // 1000, int(row["end_ps"]) // 1000)] += 1
            self.assertEqual(found, expected)
        arrows = [set(flow for s in self.slices if s["category"] == "message" for flow in s[side]) for side in ("begins", "ends")]
        self.assertEqual(arrows[0], arrows[1])
        self.assertEqual(len(arrows[0]), len(self.flows))

    def test_counters_are_the_samples(self):
        values = collections.defaultdict(list)
        for event in self.trace.events:
            if event["type"] == 4:
                self.assertTrue(self.trace.tracks[event["track"]]["counter"])
                values[self.trace.tracks[event["track"]]["name"]].append((event["time"], event["value"]))
        self.assertTrue(self.samples)
        ends = {}
        for row in self.samples:
            begin = (int(row["time_ps"]) - 1) // INTERVAL * INTERVAL // 1000
            close = [value for time, value in values[row["link"] + " utilisation"] if time == begin]
            self.assertAlmostEqual(close[-1], 100 * float(row["utilisation"]), delta=1e-4)
            ends[row["link"]] = int(row["time_ps"]) // 1000
        for link, end in ends.items():
            self.assertEqual(values[link + " utilisation"][-1], (end, 0))

    # ---- Kineto
    def test_only_the_named_ranks_have_files(self):
        self.assertEqual(self.files, ["kineto_rank_0.json", "kineto_rank_8.json"])

    def test_traces_of_ranks_name_rank_and_groups(self):
        for rank, trace in self.kineto.items():
            info = trace["distributedInfo"]
            self.assertEqual((info["rank"], info["world_size"], info["backend"]), (rank, 16, "nccl"))
            self.assertEqual(info["pg_count"], len(info["pg_config"]))
            for group in info["pg_config"]:
                self.assertIn(rank, group["ranks"])
                self.assertEqual(group["pg_size"], len(group["ranks"]))
            self.assertEqual(info["pg_config"][0]["ranks"], list(range(16)))

    def events_of(self, rank, *categories):
        return [event for event in self.kineto[rank]["traceEvents"] if event["ph"] == "X" and event["cat"] in categories]

    def test_kernels_are_the_tasks_of_the_rank(self):
        for rank in self.kineto:
            found = sorted((event["args"]["Task"], round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000),
                            sorted(marks_in(event["args"]).items())) for event in self.events_of(rank, "kernel"))
            expected = sorted((int(row["task"].split(".")[1]), int(row["start_ps"]) // 1000, int(row["end_ps"]) // 1000,
                               sorted(marks_in_row(row).items())) for row in self.tasks_of(rank))
            self.assertEqual(found, expected)

    def test_kernels_of_a_stream_do_not_overlap(self):
        for rank in self.kineto:
            ends = collections.defaultdict(int)
            for event in sorted(self.events_of(rank, "kernel"), key=lambda e: (e["ts"], e["dur"])):
                self.assertEqual(event["tid"], event["args"]["stream"])
                self.assertGreaterEqual(round(event["ts"] * 1000), ends[event["tid"]])
                ends[event["tid"]] = round((event["ts"] + event["dur"]) * 1000)
            compute = {event["tid"] for event in self.events_of(rank, "kernel") if "Collective name" not in event["args"]}
            self.assertEqual(compute, {7})

    def test_each_kernel_has_one_launch_before_it(self):
        for rank in self.kineto:
            launches = {event["args"]["correlation"]: event for event in self.events_of(rank, "cuda_runtime") if "Event" not in event["name"]}
            kernels = {event["args"]["correlation"]: event for event in self.events_of(rank, "kernel")}
            self.assertEqual(launches.keys(), kernels.keys())
            for correlation, kernel in kernels.items():
                self.assertLessEqual(launches[correlation]["ts"], kernel["ts"])
            arrows = collections.Counter(event["ph"] for event in self.kineto[rank]["traceEvents"])
            self.assertEqual((arrows["s"], arrows["f"]), (len(kernels), len(kernels)))

    def test_waits_between_streams_are_recorded(self):
        for rank in self.kineto:
            calls = {event["args"]["correlation"]: event for event in self.events_of(rank, "cuda_runtime")}
            kernels = {event["args"]["correlation"]: event for event in self.events_of(rank, "kernel")}
            syncs = self.events_of(rank, "cuda_sync")
            self.assertGreater(len(syncs), 0)
            self.assertEqual(self.kineto[rank]["netsim"], {"waits": True})
            for event in syncs:
                arguments = event["args"]
                self.assertEqual(calls[arguments["correlation"]]["name"], "cudaStreamWaitEvent")
                record = arguments["wait_on_cuda_event_record_corr_id"]
                self.assertEqual(calls[record]["name"], "cudaEventRecord")
                # The event is recorded right behind the launch that it stands for.
                waited = kernels[record - 1]
                self.assertEqual(waited["tid"], arguments["wait_on_stream"])
                self.assertNotEqual(waited["tid"], arguments["stream"])
                waiting = min(number for number, kernel in kernels.items() if number > arguments["correlation"])
                self.assertEqual(kernels[waiting]["tid"], arguments["stream"])
                self.assertLessEqual(round((waited["ts"] + waited["dur"]) * 1000), round(kernels[waiting]["ts"] * 1000))

    def test_nccl_kernels_have_their_arguments(self):
        for rank in self.kineto:
            groups = {group["pg_name"]: group["ranks"] for group in self.kineto[rank]["distributedInfo"]["pg_config"]}
            rows = {int(row["task"].split(".")[1]): row for row in self.tasks_of(rank)}
            called = 0
            for event in self.events_of(rank, "kernel"):
                arguments, row = event["args"], rows[event["args"]["Task"]]
                self.assertEqual(event["name"].startswith("nccl"), row["stream"] != "compute")
                if row["stream"] == "compute":
                    self.assertEqual(event["name"], row["name"])
                    continue
                called += 1
                for key in REQUIRED_ARGUMENTS:
                    self.assertIn(key, arguments)
                size = ELEMENT_SIZES[arguments["dtype"]]
                self.assertEqual(max(arguments["In msg nelems"], arguments["Out msg nelems"]) * size, int(row["bytes"]))
                ranks = groups[arguments["Process Group Name"]]
                self.assertEqual(arguments["Group size"], len(ranks))
                self.assertEqual(arguments["Process Group Ranks"], str(ranks))
                if row["kind"] in ("send", "receive"):
                    self.assertEqual(arguments["Dst Rank" if row["kind"] == "send" else "Src Rank"], int(row["peer"]))
                    self.assertEqual(event["name"], SEND_KERNEL)
                if row["collective"] == "all_reduce":
                    self.assertEqual(event["name"], "ncclDevKernel_AllReduce_Sum_bf16_RING_SIMPLE(ncclDevKernelArgsStorage<4096ul>)")
                if row["collective"] == "all_gather":
                    self.assertEqual(arguments["In msg nelems"] * len(ranks), arguments["Out msg nelems"])
            self.assertGreater(called, 0)

    def test_holistic_trace_analysis_finds_the_steps(self):
        for rank in self.kineto:
            steps = {}
            for event in self.events_of(rank, "user_annotation"):
                # HTA rounds beginnings up and ends down, to microseconds.
                begin, end = math.ceil(event["ts"]), math.floor(event["ts"] + event["dur"])
                steps[event["name"]] = (begin, end)
            self.assertEqual(sorted(steps), ["ProfilerStep#0", "ProfilerStep#1"])
            self.assertLessEqual(steps["ProfilerStep#0"][1], steps["ProfilerStep#1"][0])
            for event in self.events_of(rank, "cpu_op"):
                begin, end = steps[f"ProfilerStep#{event['args']['Iteration']}"]
                self.assertTrue(begin <= event["ts"] < end)
                self.assertEqual(event["ts"], math.ceil(event["ts"]))
                self.assertEqual(event["dur"], 0)

    # ---- NCCL Inspector
    def test_inspector_has_a_record_for_each_communication_of_a_rank(self):
        found = collections.Counter()
        for record in self.inspector:
            self.assertEqual(record["metadata"]["inspector_output_format_version"], "v4.0")
            self.assertIn(record["metadata"]["hostname"], ("host0", "host1"))
            rank = record["metadata"]["pid"] - 1000
            perf = record.get("coll_perf") or record.get("p2p_perf")
            kind = "coll" if "coll_perf" in record else "p2p"
            self.assertEqual(perf[f"{kind}_timing_source"], "kernel_gpu")
            found[(rank, perf[kind], perf[f"{kind}_exec_time_us"], record["metadata"]["dump_timestamp_us"])] += 1
        names = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter", "": ""}
        kinds = {"send": "Send", "receive": "Recv"}
        expected = collections.Counter()
        for row in self.tasks:
            name = kinds.get(row["kind"]) or names[row["collective"]]
            if name:
                time = (int(row["end_ps"]) - int(row["start_ps"])) // 1_000_000
                expected[(int(row["rank"]), name, time, int(row["end_ps"]) // 1_000_000)] += 1
        self.assertEqual(found, expected)

    def test_inspector_counts_calls_and_gives_bandwidths(self):
        numbers = collections.defaultdict(list)
        for record in self.inspector:
            header, perf = record["header"], record.get("coll_perf")
            self.assertLess(header["rank"], header["n_ranks"])
            self.assertLessEqual(header["nnodes"], 2)
            if perf is None:
                continue
            numbers[(header["id"], header["rank"], perf["coll"])].append(perf["coll_sn"])
            ranks = header["n_ranks"]
            factor = {"AllReduce": 2 * (ranks - 1) / ranks}.get(perf["coll"], (ranks - 1) / ranks)
            self.assertAlmostEqual(perf["coll_busbw_gbs"], perf["coll_algobw_gbs"] * factor, delta=1e-5 * (1 + perf["coll_algobw_gbs"]))
        for found in numbers.values():
            self.assertEqual(found, list(range(len(found))))


if __name__ == "__main__":
    unittest.main()
