"""Does `netsim convert` write workloads that run as the ones it read, and does `netsim describe-trace` say what they have?

NETSIM_BINARY names the program. The files of ../shared/samples are used where they exist; NETSIM_TEST_SIZE=full takes all of them.
"""

import csv
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import conversion_table

SHARED = pathlib.Path(os.environ.get("NETSIM_SHARED") or ROOT / "../shared") / "samples"
FULL = os.environ.get("NETSIM_TEST_SIZE") == "full"

STAR = """topology: {{kind: star, hosts: {ranks}, rate: 200 Gbps, delay: 1 us}}
host: single_nic
"""
# With paths to CPUs, for copies between GPUs and hosts, and a compute model for computations without a time.
SERVERS = """topology: {{kind: star, hosts: 16, rate: 200 Gbps, delay: 1 us}}
host: {{kind: dgx_a100, cpus: 2}}
"""
# A network on which GOAL's messages end as those of a collective: the library waits for nothing but messages.
PLAIN = """topology: {topology}
host: single_nic
transport: {{congestion_control: none}}
collectives: {{library: as_configured, base_latency_ring: 0, base_latency_tree: 0, hop_latency_net_ring: 0, hop_latency_net_tree: 0,
  scale_out_channels: 1, slots: 0}}
"""
# Messages take their delay only, so the order of messages that leave at the same time has no effect.
IDEAL = """topology: {{kind: star, hosts: {ranks}, rate: 100 Gbps, delay: 1 us}}
host: single_nic
network: {{kind: ideal, delay: 1 us}}
"""
RINGS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast"]
KINDS = RINGS + ["all_to_all", "reduce", "gather", "scatter"]
UNEVEN = "all_to_all_v"
ROOTED = {"broadcast", "reduce", "gather", "scatter"}


def random_counts(chance, members, most):
    """Counts of an uneven all-to-all. Some members send nothing to some others."""
    return [[chance.choice([0, chance.randint(1, most)]) or int((source, member) == (0, 1)) for member in range(members)] for source in range(members)]


def random_program(chance, kinds):
    """Ranks and a description of computations, collectives and messages that wait for earlier ones.

    A computation lies before each communication, so that few of them begin at the same time.
    """
    ranks, members_of, lines = chance.randint(2, 6), {}, []

    def add(name, members, keys):
        lines.append(f"  - {{name: {name}, {keys}}}")
        members_of[name] = set(members)

    for number in range(chance.randint(3, 12)):
        members = sorted(chance.sample(range(ranks), chance.randint(2, ranks)))
        earlier = [name for name, known in members_of.items() if set(members) <= known]
        after = ", ".join(chance.sample(earlier, min(len(earlier), chance.randint(0, 3))))
        what = chance.choice(["compute", "collective", "message"])
        if what == "message":
            members = chance.sample(members, 2)
        begin = f"c{number}"
        add(begin, members, f"compute: {chance.randint(100, 40000)} ns, on: {sorted(members)}, after: [{after}]")
        size = chance.choice([chance.randint(1, 5000), chance.randint(5000, 300000)])
        if what == "collective":
            kind = chance.choice(kinds)
            root = f", root: {chance.randrange(len(members))}" if kind in ROOTED else ""
            data = f"counts: {random_counts(chance, len(members), size)}" if kind == UNEVEN else f"bytes: {size} B"
            add(f"t{number}", members, f"collective: {kind}, {data}, on: {members}, after: {begin}{root}")
        elif what == "message":
            raw = ", raw: true" if chance.random() < 0.5 else ""
            add(f"t{number}", members, f"from: {members[0]}, to: {members[1]}, bytes: {size} B, after: {begin}{raw}")
    return ranks, f"kind: tasks\nranks: {ranks}\ntasks:\n" + "\n".join(lines) + "\n"


def uneven_star(chance, ranks):
    """A star whose links differ, so that hardly two events have the same time."""
    links = "".join(f"\n    - {{from: host{i}, to: s, rate: {chance.randint(50_000, 199_999)} Mbps, delay: {chance.randint(300_000, 3_000_000)} ps}}"
                    for i in range(ranks))
    return PLAIN.format(topology=f"\n  kind: custom\n  switches: [s]\n  links:{links}")


def netsim(*words):
    return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False)


class Conversions(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="netsim_convert_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def answer(self, *words):
        done = netsim(*words)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def described(self, workload, *words):
        return json.loads(self.answer("describe-trace", workload, *words, "--json", "-"))

    def config(self, ranks, text=STAR):
        path = self.folder / "star.yaml"
        path.write_text(text.format(ranks=max(ranks, 2)))
        return path

    def written(self, text, name="given.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def run_of(self, workload, ranks, text=STAR, *words):
        out = self.folder / "run"
        summary = json.loads(self.answer("--config", self.config(ranks, text), "--workload", workload, "--json", "-", "--out", out,
                                         "--report", "no", "--threads", "1", *words))
        self.assertEqual(summary["outcome"], "done")
        return summary

    def same_runs(self, workload, ending):
        """The summaries of the workload and of its conversion."""
        ranks = self.described(workload)["ranks"]
        config = SERVERS if ranks <= 16 else STAR
        before = self.run_of(workload, ranks, config)
        target = self.folder / "written" / f"trace{ending}"
        shutil.rmtree(target.parent, ignore_errors=True)
        target.parent.mkdir()
        # A workload may have as many ranks as the cluster has GPUs.
        self.answer("convert", workload, "--to", target, "--config", self.config(ranks, config))
        after = self.run_of(target.parent if ending == ".et" else target, ranks, config)
        return before, after

    def expect_same(self, workload):
        for ending in (".pb", ".et"):
            with self.subTest(workload=str(workload), ending=ending):
                before, after = self.same_runs(workload, ending)
                self.assertEqual(before["fingerprint"]["results"], after["fingerprint"]["results"])
                self.assertEqual(before["fingerprint"]["packets"], after["fingerprint"]["packets"])

    def rank_ends(self, summary):
        """When each rank is done. A send counts until it is handed over: in GOAL it ends with its acknowledgement."""
        del summary
        ends = {}
        with (self.folder / "run" / "tasks.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        for values in rows:
            end = int(values["start_ps" if values["kind"] == "send" else "end_ps"])
            ends[values["rank"]] = max(ends.get(values["rank"], 0), end)
        return {rank: end for rank, end in ends.items() if end > 0}

    def expect_same_ends(self, workload, config, ending=".bin"):
        """The run of a workload and of its conversion to GOAL by the run's library."""
        runs = []
        target = self.folder / f"converted{ending}"
        self.answer("convert", workload, "--to", target, "--config", config, "--gpu", "h100_sxm")
        for given in (workload, target):
            out = self.folder / "run"
            self.answer("--config", config, "--workload", given, "--out", out, "--report", "no", "--threads", "1", "--quiet")
            runs.append(self.rank_ends(None))
        self.assertEqual(*runs)

    def test_own_traces_run_alike(self):
        self.expect_same(ROOT / "configs/import/chakra/step.0.et")
        self.expect_same(ROOT / "configs/import/goal/steps.goal")

    def test_a_program_runs_alike(self):
        program = self.folder / "small.pb"
        self.answer("--compile", program, "--workload", ROOT / "configs/workloads/small_gpt_ptdp.yaml", "--set", "workload.iterations=1")
        ranks = self.described(program)["ranks"]
        config = ROOT / "configs/two_dgx.yaml" if ranks > 8 else self.config(ranks)
        runs = []
        self.answer("convert", program, "--to", self.folder / "again.pb")
        for workload in (program, self.folder / "again.pb"):
            runs.append(json.loads(self.answer("--config", config, "--workload", workload, "--json", "-"))["fingerprint"])
        self.assertEqual(runs[0], runs[1])

    def test_goal_has_the_same_ends(self):
        workload = ROOT / "configs/import/goal/steps.goal"
        ranks = self.described(workload)["ranks"]
        before = self.rank_ends(self.run_of(workload, ranks))
        target = self.folder / "written.goal"
        self.answer("convert", workload, "--to", target)
        self.assertEqual(before, self.rank_ends(self.run_of(target, ranks)))

    def test_goal_of_random_programs_has_the_same_ends(self):
        for seed in range(100 if FULL else 4):
            chance = random.Random(seed)
            ranks, text = random_program(chance, KINDS)
            with self.subTest(seed=seed, network="ideal", program=text):
                self.expect_same_ends(self.written(text), self.config(ranks, IDEAL))
            # A rank's messages to two others share its NIC, and GOAL does not tell whose packet is first. In rings a rank sends to one.
            ranks, text = random_program(chance, RINGS)
            with self.subTest(seed=seed, network="packet", program=text):
                self.expect_same_ends(self.written(text), self.written(uneven_star(chance, ranks), "star.yaml"), ".goal")

    def test_random_programs_run_alike(self):
        for seed in range(60 if FULL else 3):
            _, text = random_program(random.Random(1000 + seed), [*KINDS, UNEVEN])
            self.expect_same(self.written(text))

    def test_a_runs_own_trace_takes_as_long(self):
        workload = ROOT / "configs/import/chakra/step.0.et"
        ranks = self.described(workload)["ranks"]
        first = self.run_of(workload, ranks, STAR + "output: {{sinks: [{{kind: chakra}}]}}\n")
        trace = self.folder / "trace"
        trace.mkdir()
        for path in (self.folder / "run").glob("chakra.*"):
            shutil.copy(path, trace)
        again = self.run_of(trace, ranks)
        self.assertEqual(first["jobs"][0]["jct_s"], again["jobs"][0]["jct_s"])
        self.assertEqual(first["fingerprint"]["results"], again["fingerprint"]["results"])

    def test_own_traces_of_experts_have_uneven_all_to_alls(self):
        """Each rank's tokens take other parts to each expert. A dispatch sends each token once to a host."""
        for exchange in ("all_to_all", "dispatch"):
            workload = self.written("kind: ptdp\nmodel: {kind: llama, layers: 2, hidden: 64, heads: 4, groups: 4, inner: 96, sequence: 64, vocabulary: 128,\n"
                                    "  experts: {count: 16, top_k: 2}}\nrecompute: none\nparallel: {data: 8, expert: 8, expert_exchange: "
                                    f"{exchange}}}\ndispatch: {{ranks_per_host: 1}}\nmicrobatches: 2\nrouter: {{kind: zipf}}\n")
            first = self.run_of(workload, 8, STAR + "compute: a100_80gb\noutput: {{sinks: [{{kind: chakra}}]}}\n")
            trace = self.folder / exchange
            trace.mkdir()
            for path in (self.folder / "run").glob("chakra.*"):
                shutil.copy(path, trace)
            again = self.run_of(trace, 8, STAR + "compute: a100_80gb\n")
            self.assertEqual(first["fingerprint"]["results"], again["fingerprint"]["results"], exchange)
            given, again = self.kineto_of_a_run(self.config(8, STAR + "compute: a100_80gb\n"), workload)
            self.assertEqual(given, again, exchange)

    def kineto_of_a_run(self, config, workload):
        """Times of the job in a run, and in a run of the Kineto trace that it wrote."""
        out, trace = self.folder / "kineto_run", self.folder / "kineto_trace"
        shutil.rmtree(trace, ignore_errors=True)
        trace.mkdir()
        times = []
        for given, more in ((workload, ["--set", "output.sinks=[{kind: kineto}]"]), (trace, [])):
            summary = json.loads(self.answer("--config", config, "--workload", given, "--out", out, "--report", "no", "--json", "-", *more))
            times.append(summary["jobs"][0]["jct_s"])
            for path in out.glob("kineto_rank_*.json"):
                shutil.copy(path, trace)
        return times

    def test_a_runs_own_kineto_trace_takes_as_long_within_microseconds(self):
        for name, workload in (("chakra", "chakra/step.0.et"), ("kineto", "kineto")):
            with self.subTest(workload=workload):
                given, again = self.kineto_of_a_run(ROOT / f"configs/import/{name}.yaml", ROOT / "configs/import" / workload)
                self.assertAlmostEqual(given, again, delta=1e-6)

    def test_a_kineto_trace_has_the_holds_of_a_task_scheduler(self):
        """The scheduler holds the second all-reduce until the first one has ended. Its trace runs alike without a scheduler."""
        workload = self.written("kind: tasks\nranks: 2\ntasks:\n"
                                "  - {name: a, compute: 50 us}\n"
                                "  - {name: g, collective: all_reduce, bytes: 4 MB, queue: 1, after: a}\n"
                                "  - {name: h, collective: all_reduce, bytes: 4 MB, queue: 2, after: a}\n"
                                "  - {name: c, compute: 30 us, after: [h, g]}\n")
        held = self.written(STAR.format(ranks=2) + "scheduling: {latency: 1 ns, tasks: {kind: credit, part: 4 MB, credit: 4 MB}}\n", "held.yaml")
        free = self.config(2)
        times = [self.kineto_of_a_run(config, workload)[0] for config in (free, held)]
        again = json.loads(self.answer("--config", free, "--workload", self.folder / "kineto_trace", "--json", "-"))["jobs"][0]["jct_s"]
        self.assertGreater(abs(times[1] - times[0]), 2e-6)
        self.assertAlmostEqual(again, times[1], delta=2e-6)

    def test_receives_posted_ahead_follow_the_order_of_messages(self):
        """DualPipe posts receives of both directions before others of the same pair of ranks begin."""
        given, again = self.kineto_of_a_run(ROOT / "configs/two_dgx.yaml", ROOT / "configs/pipeline/small_gpt_dual_pipe.yaml")
        self.assertAlmostEqual(given, again, delta=2e-6)

    def test_the_kineto_trace_of_a_random_program_takes_as_long_within_microseconds(self):
        for seed in range(60 if FULL else 3):
            _, text = random_program(random.Random(seed), [*KINDS, UNEVEN, UNEVEN])
            # Kineto counts elements of equal parts, and has no messages without a library.
            text = re.sub(r"bytes: (\d+) B", lambda found: f"bytes: {int(found[1]) * 120} B", text.replace(", raw: true", ""))
            with self.subTest(seed=seed, program=text):
                given, again = self.kineto_of_a_run(self.config(6), self.written(text))
                self.assertAlmostEqual(given, again, delta=2e-6)

    def test_a_kineto_trace_of_a_run_replays_on_another_network(self):
        """The trace records what waits for what, so it tells the time on a slower network too."""
        workload = self.written("kind: tasks\nranks: 2\ntasks:\n"
                                "  - {name: a, compute: 50 us, on: [0, 1]}\n"
                                "  - {name: g, collective: all_reduce, bytes: 4 MB, on: [0, 1], after: a}\n"
                                "  - {name: b, compute: 20 us, on: [0, 1], after: a}\n"
                                "  - {name: c, compute: 30 us, on: [0, 1], after: [b, g]}\n")
        fast, slow = self.config(2), self.written(STAR.format(ranks=2).replace("200 Gbps", "25 Gbps"), "slow.yaml")
        self.kineto_of_a_run(fast, workload)
        times = [json.loads(self.answer("--config", slow, "--workload", given, "--json", "-"))["jobs"][0]["jct_s"]
                 for given in (workload, self.folder / "kineto_trace")]
        self.assertGreater(times[0], 1e-3)
        self.assertAlmostEqual(*times, delta=1e-6)

    def test_the_library_of_a_run_tells_the_messages(self):
        workload = self.written("{kind: collective, collective: all_reduce, ranks: 4, bytes: 4 MB}\n")
        # 4 ranks send 6 parts in 2 slices each, or 4 parts on 2 channels.
        for library, sends in (("{library: as_configured, all_reduce: ring, scale_out_channels: 1, slots: 0}", 48),
                               ("{library: as_configured, all_reduce: halving_doubling, scale_out_channels: 2, slots: 0}", 64)):
            config = self.written(STAR.format(ranks=4) + f"collectives: {library}\n", "star.yaml")
            target = self.folder / "library.goal"
            self.answer("convert", workload, "--to", target, "--config", config)
            kinds = {kind["kind"]: kind for kind in self.described(target)["kinds"]}
            self.assertEqual((kinds["send"]["calls"], kinds["send"]["bytes"]), (sends, 24e6), library)
        for words, code, message in ((["--algorithm", "all_reduce=ring"], 2, "--algorithm and --config exclude each other"),
                                     ([], 3, "4 ranks, but the cluster has 2 GPUs")):
            done = netsim("convert", workload, "--to", self.folder / "a.goal", "--config", self.config(2), *words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(message, done.stderr)

    def test_a_collective_becomes_the_messages_of_its_algorithm(self):
        workload = self.folder / "collective.yaml"
        workload.write_text("{kind: collective, collective: all_reduce, ranks: 4, bytes: 4 MB}\n")
        target = self.folder / "ring.goal"
        self.answer("convert", workload, "--to", target, "--algorithm", "all_reduce=ring")
        facts = self.described(target)
        # Each of 4 ranks sends 1 MB to the next one in 2 (4 - 1) steps.
        self.assertEqual([(kind["kind"], kind["tasks"], kind["bytes"]) for kind in facts["kinds"]],
                         [("receive", 24, 0), ("send", 24, 24e6)])
        # The steps follow each other: 6 messages of 1 MB at 1 GB/s.
        self.assertAlmostEqual(self.described(target, "--rate", "8Gbps")["critical_path"]["time_s"], 6e-3, places=9)

    def test_what_if(self):
        trace = ROOT / "configs/import/chakra/step.0.et"
        workload = self.folder / "what_if.yaml"
        base = f"kind: trace\nfile: {trace}\n"

        def facts(text, *words):
            workload.write_text(base + text)
            return self.described(workload, *words)

        self.assertEqual(facts("")["critical_path"]["time_s"], 2.5e-3)
        self.assertEqual(facts("compute: 0.5\n")["critical_path"]["time_s"], 1.25e-3)
        self.assertEqual(facts("", "--set", "compute=2")["critical_path"]["time_s"], 5e-3)
        # The two backward computations of 800 us take a quarter of that.
        quarter = facts("kernels: [{name: 'backward*', factor: 0.25}]\n")
        self.assertAlmostEqual(quarter["critical_path"]["time_s"], 1.3e-3, places=12)
        self.assertIn("the times of the kernels 'backward*' are multiplied by 0.25", quarter["notes"])
        for text, message in (("kernels: [{name: gemm, factor: 2}]\n", "no kernel of the trace fits 'gemm'"),
                              ("kernels: [{name: '*'}]\n", "an entry has one of these: a factor"),
                              ("kernels: [{name: '*', factor: 2}, {name: optimizer, factor: 3}]\n",
                               "all kernels that fit 'optimizer' fit the entry '*' before it"),
                              ("replicas: 2\n", "'data' is missing: the ranks of one data-parallel group of the trace"),
                              ("data: [0, 1]\n", "'replicas' is 0 or missing"),
                              ("replicas: 2\ndata: [0, 1, 3]\n", "its ranks are 0, 1, 3; allowed: ranks a constant number apart"),
                              ("kernels: [{name: a, m: 2}]\n", "m is 2, n 0 and k 0; allowed: three sides")):
            workload.write_text(base + text)
            done = netsim("describe-trace", workload)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(message, done.stderr)

    def test_what_if_by_recorded_shapes(self):
        events = [
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 2,
             "args": {"External id": 1, "Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 1}},
            {"ph": "X", "cat": "kernel", "name": "sm80_xmma_gemm_bf16", "pid": 0, "tid": 7, "ts": 5, "dur": 1000,
             "args": {"External id": 1, "correlation": 1, "stream": 7}}]
        self.written(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}), "rank0.json")
        workload = self.written("kind: trace\nfile: rank0.json\nkernels: [{name: '*gemm*', recorded: true}]\n", "shape.yaml")
        self.assertEqual([row["stream"] for row in self.described(workload)["streams"]], ["compute", "cpu"])
        # 2 x 4096^3 operations at no more than the 989 TFLOP/s of an H100, and at no less than half of them.
        time = self.described(workload, "--gpu", "h100_sxm")["least_compute_s"]
        self.assertTrue(2 * 4096**3 / 989e12 <= time <= 4 * 4096**3 / 989e12, time)
        notes = self.described(workload, "--gpu", "h100_sxm")["notes"]
        self.assertTrue(any("by their recorded shapes: products as they are" in note for note in notes), notes)
        for keys, message in (("{name: '*gemm*', recorded: true, factor: 2}", "an entry has one of these: a factor, the shape"),
                              ("{name: other, recorded: true}", "has a recorded shape that tells its work (PyTorch's profiler: record_shapes)")):
            self.written(f"kind: trace\nfile: rank0.json\nkernels: [{keys}]\n", "shape.yaml")
            done = netsim("describe-trace", workload)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(message, done.stderr)
        events[0]["name"] = "aten::convolution"
        self.written(json.dumps({"schemaVersion": 1, "traceEvents": events}), "rank0.json")
        self.written("kind: trace\nfile: rank0.json\nkernels: [{name: '*', recorded: true}]\n", "shape.yaml")
        self.assertIn("such as 'sm80_xmma_gemm_bf16' of aten::convolution([4096, 4096], [4096, 4096])",
                      netsim("describe-trace", workload).stderr)

    def test_more_data_parallel_replicas(self):
        trace = ROOT / "configs/import/chakra/step.0.et"
        before = self.described(trace)
        workload = self.folder / "replicas.yaml"
        workload.write_text(f"kind: trace\nfile: {trace}\nreplicas: 4\ndata: [0, 2]\n")
        after = self.described(workload)
        self.assertEqual((before["ranks"], after["ranks"]), (4, 8))
        self.assertEqual(after["tasks"], 2 * before["tasks"])
        self.assertEqual(after["critical_path"]["time_s"], before["critical_path"]["time_s"])
        calls = {kind["kind"]: kind["calls"] for kind in after["kinds"]}
        # Groups of tensor parallelism double, and those over replicas only grow.
        self.assertEqual(calls["all_reduce"], 2 * {kind["kind"]: kind["calls"] for kind in before["kinds"]}["all_reduce"])
        self.assertEqual(calls["reduce_scatter"], {kind["kind"]: kind["calls"] for kind in before["kinds"]}["reduce_scatter"])
        self.run_of(workload, 8)

    def test_large_traces_are_loaded_within_their_limits(self):
        """Parts of the standing benchmark: a tenth of the ranks with a tenth of the nodes, and a hundredth of the file. Only memory is
        bounded, and loosely where NETSIM_TEST_SIZE=few tells that a sanitizer needs some of its own."""
        script = [sys.executable, ROOT / "scripts/large_trace.py", "--binary", BINARY]
        gib = "4" if os.environ.get("NETSIM_TEST_SIZE") == "few" else "0.3"
        done = subprocess.run([*script, "--ranks", "304", "--nodes", "100", "--megabytes", "10", "--seconds", "600", "--gib", gib],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("304 ranks, 30400 tasks", done.stdout)
        self.assertIn("8 ranks", done.stdout.splitlines()[1])
        done = subprocess.run([*script, "chakra", "--ranks", "8", "--nodes", "10", "--gib", "0.001"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_traces_are_described(self):
        facts = self.described(ROOT / "configs/import/goal/steps.goal")
        self.assertEqual(facts["ranks"], 3)
        text = self.answer("describe-trace", ROOT / "configs/import/chakra/step.0.et")
        self.assertIn("critical path on the ideal network", text)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)

    def test_no_cluster_limits_the_ranks(self):
        workload = self.folder / "shift.yaml"
        workload.write_text("{kind: permutation, ranks: 512, bytes: 1 MB}\n")
        self.assertEqual(self.described(workload)["ranks"], 512)
        workload.write_text("{kind: permutation, bytes: 1 MB}\n")
        self.assertEqual(self.described(workload)["ranks"], 8)

    def test_the_rate_counts_what_each_rank_sends(self):
        workload = self.folder / "collective.yaml"
        workload.write_text("{kind: collective, collective: all_reduce, ranks: 4, bytes: 8 MB}\n")
        done = netsim("describe-trace", workload, "--rate", "80Gbps", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        # 2 (4 - 1) / 4 of 8 MB at 10 GB/s.
        self.assertAlmostEqual(json.loads(done.stdout)["critical_path"]["time_s"], 1.2e-3, places=9)

    def test_wrong_command_lines(self):
        trace = ROOT / "configs/import/goal/steps.goal"
        for words, message in (
                (["convert", trace], "--to is missing"), (["convert", "--to", "a.pb"], "the workload is missing"),
                (["convert", trace, "--to", "a.txt"], "allowed are names that end in .pb, .et (Chakra), .goal, or .bin"),
                (["convert", trace, "--to", self.folder / "a.goal", "--algorithm", "ring"], "allowed is KIND=PLAN"),
                (["describe-trace"], "the workload is missing"), (["describe-trace", trace, "--jso", "-"], "did you mean '--json'?"),
                (["describe-trace", trace, "--json", "x"], "only - (stdout) is allowed")):
            done = netsim(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def simulated_ps(self, config, workload):
        return round(json.loads(self.answer("--config", config, "--workload", workload, "--json", "-"))["simulated_time_s"] * 1e12)

    def test_goals_examples_take_what_loggops_says(self):
        if not SHARED.exists():
            self.skipTest(f"no {SHARED}")
        config = self.written("topology: {kind: star, hosts: 8, rate: 100 Gbps, delay: 1 us, overhead: 0}\nhost: single_nic\n"
                              "transport: {congestion_control: none, mtu: 4096 B, acknowledge: {every: 256}}\n", "loggops.yaml")
        # L is 2 us and a packet's G 332,640 ps. The first packet of a message has 16 B more, and is sent twice on its way.
        packet, first, latency, acknowledgement = 332_640, 1280, 2_000_000, 5280

        def message(size):
            return (-(-size // 4096) + 1) * packet + 2 * first + latency

        parts = [524288, 262144, 131072, 131072, 262144, 524288]
        # A rank acknowledges a step before it sends the next one. In the all-to-all the NIC sends seven messages in turns.
        expected = {"allreduce_ring": 14 * message(131072) + 13 * acknowledgement,
                    "allreduce_recdoub": sum(message(size) for size in parts) + 5 * acknowledgement,
                    "dissemination": 3 * message(1 << 20) + 2 * acknowledgement,
                    "linear_alltoall": (7 * 256 + 1) * packet + 8 * first + latency}
        for name, time in expected.items():
            for ending in ("goal", "bin"):
                self.assertEqual(self.simulated_ps(config, SHARED / f"goal/{name}.8r.1MB.{ending}"), time, name)

    def test_astra_sims_examples_take_the_closed_forms(self):
        if not SHARED.exists():
            self.skipTest(f"no {SHARED}")
        # The configuration and the closed forms of tests/scenarios/declared/astra_sim.yaml, with the files of ASTRA-sim.
        config = self.written("topology: {kind: torus, sizes: [4], rate: 400 Gbps, delay: 500 ns, overhead: 0}\nhost: single_nic\n"
                              "network: {switch: {marker: none}}\ntransport: {congestion_control: none, mtu: 4096 B, acknowledge: {every: 256}}\n"
                              "collectives: {library: as_configured, all_reduce: ring, all_gather: ring, reduce_scatter: ring, all_to_all: pairwise, "
                              "slice: 1 MiB, slices_per_chunk: 1, slots: 0, scale_out_channels: 1, base_latency_ring: 0, hop_latency_net_ring: 0}\n",
                              "ring.yaml")
        for name, microseconds in (("all_gather", 65.36784), ("reduce_scatter", 17.46768), ("all_reduce", 34.93536), ("all_to_all", 22.79024)):
            folder = SHARED / f"chakra_et/astra-sim_examples/{name}_4npus_1MB"
            self.assertAlmostEqual(self.simulated_ps(config, folder / f"{name}.0.et") / (microseconds * 1e6), 1, delta=5e-4, msg=name)

    def samples(self):
        """A file of each trace that netsim reads, with its facts, and in a quick run a few of them."""
        if not SHARED.exists():
            self.skipTest(f"no {SHARED}")
        patterns = {"chakra_et": "*.0.et", "goal": "*.goal", "kineto": "*.json*", "simai_txt": "*.txt", "aicb_csv": "*.csv", "simgrid": "*.txt",
                    "htsim_cm": "*.[ct]m"}
        for folder, pattern in patterns.items():
            paths = [path for path in sorted((SHARED / folder).rglob(pattern)) if path.name != "workload_analytical.txt"  # its 80 million tasks take minutes
                     and path.stat().st_size < (400_000 if FULL else 20_000)]
            for path in paths if FULL else paths[1::9]:
                done = netsim("describe-trace", path, "--json", "-")
                if done.returncode == 0 and json.loads(done.stdout)["tasks"] < (20_000 if FULL else 1000):
                    yield path, json.loads(done.stdout)

    def test_samples_run_alike(self):
        runs = conversion_table.Runs(BINARY, self.folder)
        for path, facts in self.samples():
            with self.subTest(sample=str(path)):
                row = conversion_table.sample_row(runs, SHARED, [path], facts)
                self.assertEqual((row["pb"], row["chakra"]), ("same", "same"), row)
                # GOAL has no copies, rounds to nanoseconds, and computations there share no GPU.
                self.assertRegex(row["goal"], "^same$|no place for a task of kind copy|rounded to GOAL|share it, in GOAL they do not")

    def test_triggers_of_flows_run_alike(self):
        """A flow waits for another one, whose rank it leaves: the conversion must keep that."""
        text = ("Nodes 4\nConnections 3\nTriggers 2\n0->1 id 1 start 0 size 200000 send_done_trigger 1\n0->2 id 2 trigger 1 size 200000 "
                "recv_done_trigger 2\n2->3 id 3 trigger 2 size 200000\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n")
        self.expect_same(self.written(text, "triggers.cm"))
        # The third flow begins after the first of two.
        text = ("Nodes 4\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 200000 send_done_trigger 1\n0->2 id 2 start 0 size 100000 "
                "send_done_trigger 1\n0->3 id 3 trigger 1 size 200000\ntrigger id 1 oneshot\n")
        done = netsim("convert", self.written(text, "first.cm"), "--to", self.folder / "first.pb")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("begin at other events than the ends of all tasks that they wait for", done.stderr)
        summary = self.run_of(self.folder / "first.cm", 4, STAR + "output: {{sinks: [{{kind: chakra}}]}}\n")
        self.assertTrue(any("`chakra` wrote no trace: tasks of it begin" in note for note in summary["notes"]), summary["notes"])
        self.assertFalse(list((self.folder / "run").glob("chakra.*")))

    def test_own_traces_run_alike_where_times_vary(self):
        """GPUs of several speeds with jitter, and a scheduler that reorders the communications of a queue."""
        model = "kind: ptdp\nmodel: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 4096}\nmicrobatches: 2\n"
        runs = conversion_table.Runs(BINARY, self.folder)
        servers = "topology: {kind: star, hosts: 16, rate: 200 Gbps, delay: 1 us}\nhost: {kind: dgx_a100, cpus: 2}\n"
        for section, workload in (
                ("gpus: {variation: 0.02, jitter: 0.02, stragglers: [{gpu: host0/gpu3, slowdown: 1.3}]}\n", "parallel: {tensor: 2, pipeline: 2, data: 2}\n"),
                ("scheduling: {tasks: {kind: compiler_overlap, prefetch: 2, in_flight: 1 GB}}\n",
                 "parallel: {data: 8}\noptimizer: distributed_adam\nsharding: {what: parameters}\n"),
                ("", "parallel: {tensor: 2, data: 4}\noptimizer: distributed_adam\nsharding: {what: gradients}\n"
                     "offload: {optimizer: 1, gradients: true, activations: 0.5}\n")):
            with self.subTest(section=section, workload=workload):
                config, given = self.written(servers + section, "servers.yaml"), self.written(model + workload)
                row = conversion_table.run_row(runs, config, "", given)
                self.assertEqual((row["pb"], row["chakra"], row["own_chakra"]), ("same", "same", "same"), row)
                if not section:
                    self.assertRegex(row["own_kineto"], r"^[+-]0\.\d+ us")


if __name__ == "__main__":
    unittest.main()
