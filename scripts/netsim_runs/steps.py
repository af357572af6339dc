"""Shared by scripts that play training steps: jobs whose results are kept, and two shortcuts for long steps of large jobs.

A line: a step is affine in its microbatches from some rounds of the pipeline on, and in the layers of a model whose layers are all alike. So
it is played with few and with more, and the step of all lies on the line through both. By replica: replicas meet when all microbatches
are done, so few and more are those of one data-parallel replica (or of so many that share experts), and what the others add is the
difference that they make to a short job. That may be the one of few microbatches, or one of even fewer and smaller ones without
interleaving: its gradients are the same, and so is what every stage does after its last backward. A stage of one replica has to be whole
hosts, or neighbours would share one that do not in the whole job. Where GPUs are not alike (gpus.variation) all replicas wait for the one of the slowest GPU,
so that is the one that is played, where it is in the whole job.

Large packets: a job of more packet-hops than Player.most_hops (by --dry-run) carries what leaves hosts in packets of 64 KiB.
"""
import copy
import csv
import dataclasses
import hashlib
import json
import pathlib
import subprocess
import tempfile
import threading
import time

from netsim_runs import execution
from netsim_runs.results_cache import ResultsCache, run_key
from netsim_runs.streams import STREAMS

LARGE_PACKETS = "transport.mtu=64 KiB"
CHUNKS, SIZE, DATA = "workload.parallel.virtual_stages", "workload.microbatch", "workload.parallel.data"


class DoesNotFit(Exception):
    """The GPUs have less memory than the job needs."""


class NotPlayed(Exception):
    """There is no result of a job, and none shall be made."""


@dataclasses.dataclass(frozen=True)
class Job:
    name: str  # for messages
    config: pathlib.Path
    workload: pathlib.Path
    overlays: tuple = ()

    def call(self, binary):
        return [str(binary), "--config", str(self.config), "--workload", str(self.workload),
                *(part for overlay in self.overlays for part in ("--set", overlay))]

    def also(self, suffix, *overlays):
        return dataclasses.replace(self, name=self.name + suffix, overlays=(*self.overlays, *overlays))

    def without(self, path):
        """Without what is laid over the value at `path` by itself."""
        return dataclasses.replace(self, overlays=tuple(overlay for overlay in self.overlays if not overlay.startswith(path + "=")))

    def alone(self, replicas=1):
        """Of so many replicas; an optimizer that is not divided needs not fit."""
        return self.also("_alone", f"{DATA}={replicas}", "gpus.overcommit_memory=true")


@dataclasses.dataclass(frozen=True)
class Line:
    key: str  # key of the workload that is varied
    few: int
    more: int  # all three alike: nothing is left out
    every: int
    replicas: int = 0  # that few and more are of; 0: of all, and there are no other jobs
    short: int = 0  # number of them in a separate short job; 0: the short job is that of few

    def parts(self, job):
        """The jobs that are played for `job`: with few and with more, and by replica the short ones, of all replicas and of few.

        Chunks of a stage and a microbatch's size are overlays of their own (CHUNKS=N, SIZE=N), which short jobs of their own do without.
        """
        few, more = ((f"_{number}", f"workload.{self.key}={number}") for number in (self.few, self.more))
        if not self.replicas:
            return job.also(*few), job.also(*more)
        short = job.also(*few)
        if self.short:
            short = job.without(CHUNKS).without(SIZE).without(f"workload.{self.key}").also("_short", f"workload.{self.key}={self.short}")
        return (*(job.also(*part).alone(self.replicas) for part in (few, more)), short, short.alone(self.replicas))

    def extended(self, few, more, replicas=None, one=None):
        """Of all: times as the results have them, nested or not."""
        if isinstance(few, dict):
            return {key: self.extended(*(None if part is None else part[key] for part in (few, more, replicas, one))) for key in few}
        share = (self.every - self.few) / (self.more - self.few) if self.every > self.few else 0
        return few + share * (more - few) + (0 if one is None else replicas - one)


@dataclasses.dataclass(frozen=True)
class Grid:
    """Where the ranks of a job are: rank r on GPU r, the ranks of a stage of one replica first, then replicas, then stages."""
    per_host: int  # GPUs
    data: int  # replicas
    inner: int  # ranks of a stage of one replica

    def of_replicas(self, rank, replicas, ranks):
        """The ranks of so many replicas, of `ranks` in all, that `rank` is of."""
        first = rank // self.inner % self.data // replicas * replicas
        return [other for other in range(ranks) if first <= other // self.inner % self.data < first + replicas]


def read_line(text):
    """KEY FEW MORE ALL [replicas N [short N]], or None for nothing; ValueError."""
    words = text.split()
    if not words:
        return None
    try:
        if len(words) not in (4, 6, 8) or words[4::2] != ["replicas", "short"][:len(words[4::2])]:
            raise ValueError
        line = Line(words[0], *(int(word) for word in (*words[1:4], *words[5::2])))
        if not 0 < line.few < line.more <= line.every or any(int(word) < 1 for word in words[5::2]):
            raise ValueError
    except ValueError:
        raise ValueError(f"line: '{text}' was given; KEY FEW MORE ALL, perhaps 'replicas N', and then perhaps 'short N' are expected") from None
    return line


class Player:
    """Plays jobs, and keeps what came out; None for `out`: keeps nothing.

    `threads` of netsim, 0: one per core. `most_hops`: see above; None: nothing is played, results of either kind count.
    """

    def __init__(self, binary, out=None, again=False, most_hops=15e9, report=lambda text: None, threads=1):
        self.binary, self.out, self.again, self.most_hops, self.report = str(binary), out, again, most_hops, report
        self.threads = ["--threads", str(threads)] if threads else []
        self.version = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True).stdout
        self.played, self.keys = set(), {}
        self.playing = {}  # locks by key: no thread simulates a job that another is simulating
        self.results = ResultsCache(out)
        if out:
            out.mkdir(parents=True, exist_ok=True)

    def with_most_hops(self, most_hops):
        """A player of the same jobs with another limit of packet-hops."""
        other = copy.copy(self)
        other.most_hops = most_hops
        return other

    def run(self, job, *options):
        """What netsim prints; DoesNotFit, or SystemExit with its error."""
        done = subprocess.run([*job.call(self.binary), *self.threads, *options], capture_output=True, text=True, check=False)
        if "does not fit into" in done.stderr:
            raise DoesNotFit(done.stderr.strip())
        if done.returncode != 0:
            raise SystemExit(f"{job.name}: netsim ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def key(self, job):
        """What a result depends on: the program, all files that netsim reads for it, and what is laid over them; as it was when first asked."""
        if job not in self.keys:
            self.keys[job] = self.find_key(job)
        return self.keys[job]

    def find_key(self, job):
        manifest = json.loads(self.run(job, "--print-config", "--json", "-"))
        # Placements are files in the folder of the results, and are named by what is in them.
        folder = str(self.out.resolve()) if self.out else ""
        overlays = [overlay.replace(folder, "") if folder else overlay for overlay in job.overlays]
        return run_key(self.version, manifest, overlays, blank=folder)

    def predict(self, job):
        """Packet-hops and minutes, without playing it; DoesNotFit."""
        key = self.key(job)
        kept = self.results.kept(key, ".prediction")
        if kept is not None:
            return kept
        report = json.loads(self.run(job, "--dry-run", "--quiet", "--json", "-"))
        found = {"packet_hops": report["packet_hops"]["total"], "minutes": report["minutes"]}
        self.results.keep(key, found, ".prediction")
        return found

    def hops(self, job):
        return self.predict(job)["packet_hops"]

    def sized(self, *jobs):
        """The jobs, with large packets if one of them has too many hops."""
        large = any(self.kept(job) is None if self.most_hops is None else self.hops(job) > self.most_hops for job in jobs)
        return tuple(with_packets(job, large) for job in jobs)

    def kept(self, job):
        """The result of an earlier run; None where there is none."""
        return self.results.kept(self.key(job))

    def play(self, job):
        """Times of the job, a GPU's FLOPs, packet-hops: of an earlier run, or of one now; NotPlayed."""
        key = self.key(job)
        with self.playing.setdefault(key, threading.Lock()):
            result = self.kept(job)
            if result and (not self.again or key in self.played):
                return result
            if self.most_hops is None:
                raise NotPlayed(job.name)
            begin = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                self.run(job, "--quiet", "--set", "output.max_rows=0", "--out", folder)
                result = read_result(job, pathlib.Path(folder))
            result["wall_s"] = round(time.monotonic() - begin, 1)
            self.report(f"{job.name}: {result['ranks']} GPUs, {result['times']['step_s']:.3f} s, "
                        f"{result['packet_hops'] / 1e9:.2f} G packet-hops in {result['wall_s']:.0f} s")
            self.played.add(key)
            self.results.keep(key, result)
            return result

    def tables(self, job, *options):
        """The folder with what netsim writes about the job: of an earlier run, or of one now."""
        key = self.key(job)
        folder = self.out / f"{job.name}.{key}"
        if self.again and key not in self.played or not (folder / "summary.json").is_file():
            self.report(f"plays {job.name}")
            self.run(job, "--quiet", "--out", str(folder), *options)
            self.played.add(key)
        return folder

    def alone(self, job, line=None):
        """Times of the step of one data-parallel replica."""
        if line is None:
            return self.play(*self.sized(job.alone()))["times"]
        few, more = (self.play(part)["times"] for part in self.sized(*dataclasses.replace(line, replicas=1, short=0).parts(job)[:2]))
        return line.extended(few, more)

    def step(self, job, line=None, grid=None):
        """Times of the whole step, by the shortcuts where there is a line; "ranks" is how many GPUs were played, and "large_packets" whether
        all of them, or those of the short job, had such. `grid`: where GPUs are not alike."""
        if line is None:
            played = [self.play(*self.sized(job))]
            times = played[0]["times"]
        elif not line.replicas:
            played = [self.play(part) for part in self.sized(*line.parts(job))]
            times = line.extended(*(result["times"] for result in played))
        else:
            few, more, short, one = line.parts(job)
            played = [self.play(*self.sized(short))]  # all replicas first: do they fit?
            large = played[0]["large_packets"]
            few, more, one = (part.also("", *self.placed(played[0], line.replicas, grid)) for part in (few, more, one))
            lines = (with_packets(part, large) for part in (few, more)) if not line.short else self.sized(few, more)
            played += [self.play(part) for part in (with_packets(one, large), *lines)]
            whole, one, few, more = (result["times"] for result in played)
            times = line.extended(few, more, whole, one)
        return {**times, "ranks": played[0]["ranks"], "large_packets": played[0]["large_packets"]}

    def placed(self, whole, replicas, grid):
        """What puts a job of so many replicas where those with the slowest GPU of the whole job are."""
        if grid is None:
            return ()
        there = grid.of_replicas(whole["slowest"], replicas, whole["ranks"])
        text = "rank,host,gpu\n" + "".join(f"{rank},{gpu // grid.per_host},{gpu % grid.per_host}\n" for rank, gpu in enumerate(there))
        path = self.out.resolve() / f"placement-{hashlib.sha256(text.encode()).hexdigest()[:12]}.csv"
        execution.write_whole(path, text)
        return (f"placement={{kind: file, file: {path}}}",)


def with_packets(job, large):
    return job.also("_64k", LARGE_PACKETS) if large else job


def read_result(job, folder):
    """Of what netsim wrote."""
    summary = json.loads((folder / "summary.json").read_text())
    of = summary["jobs"][0]
    times = {"step_s": of["iteration_time_s"], "compute_s": of["compute_s"], "idle_s": of["idle_s"],
             "flops": of["tflops_per_gpu"] * 1e12 * of["iteration_time_s"], "exposed_s": {stream: of["exposed_by"][stream] for stream in STREAMS}}
    if of["critical_path"]:
        times["critical_s"] = {what: of["critical_path"][f"{what}_s"] for what in ("compute", "held", *STREAMS)}
    with open(folder / "ranks.csv", encoding="utf-8") as lines:
        slowest = max(csv.DictReader(lines), key=lambda rank: int(rank["compute_ps"]))
    return {"name": job.name, "ranks": of["ranks"], "packet_hops": summary["packet_hops"]["total"], "large_packets": LARGE_PACKETS in job.overlays,
            "slowest": int(slowest["rank"]), "times": times}


def tflops(times):
    """Of a GPU, by the model's FLOPs."""
    return times["flops"] / times["step_s"] / 1e12
