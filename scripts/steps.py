"""Shared by scripts that play training steps: jobs whose results are kept, and two shortcuts for long steps of large jobs.

A line: a step is affine in its microbatches from some rounds of the pipeline on, and in the layers of a model whose layers are all alike. So
it is played with few and with more, and the step of all lies on the line through both. By replica: replicas meet when all microbatches
are done, so few and more are those of one data-parallel replica, and what the others add is the difference that they make to a job of
even fewer and smaller microbatches, without interleaving: its gradients are the same, and so is what every stage does after its last
backward. A stage of one replica has to be whole hosts, or neighbours would share one that do not in the whole job.

Large packets: a job of more packet-hops than Player.most_hops (by --dry-run) carries what leaves hosts in packets of 64 KiB.
"""
import dataclasses
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile
import time

STREAMS = ("tp", "cp", "ep", "pp", "dp", "io")
LARGE_PACKETS = "transport.mtu=64 KiB"
CHUNKS, SIZE = "workload.parallel.virtual_stages", "workload.microbatch"
ALONE = ("workload.parallel.data=1", "gpus.overcommit_memory=true")  # an optimizer that is not divided needs not fit


class DoesNotFit(Exception):
    """The GPUs have less memory than the job needs."""


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


@dataclasses.dataclass(frozen=True)
class Line:
    key: str  # of the workload: what there is more and more of
    few: int
    more: int  # all three alike: nothing is left out
    every: int
    replicas: int = 0  # so many of them in the job of all replicas; 0: few and more are of all replicas

    def parts(self, job):
        """The jobs that are played for `job`: with few, with more, and by replica the short ones, of all replicas and of one.

        Chunks of a stage and a microbatch's size are overlays of their own (CHUNKS=N, SIZE=N), which the short ones do without.
        """
        few, more = ((f"_{number}", f"workload.{self.key}={number}") for number in (self.few, self.more))
        if not self.replicas:
            return job.also(*few), job.also(*more)
        short = job.without(CHUNKS).without(SIZE).without(f"workload.{self.key}").also("_short", f"workload.{self.key}={self.replicas}")
        return (*(job.also(*part).also("_alone", *ALONE) for part in (few, more)), short, short.also("_alone", *ALONE))

    def extended(self, few, more, replicas=None, one=None):
        """Of all: times as the results have them, nested or not."""
        if isinstance(few, dict):
            return {key: self.extended(*(None if part is None else part[key] for part in (few, more, replicas, one))) for key in few}
        share = (self.every - self.few) / (self.more - self.few) if self.every > self.few else 0
        return few + share * (more - few) + (0 if one is None else replicas - one)


def read_line(text):
    """KEY FEW MORE ALL [replicas N], or None for nothing; ValueError."""
    words = text.split()
    if not words:
        return None
    try:
        if len(words) not in (4, 6) or words[4:5] not in ([], ["replicas"]):
            raise ValueError
        line = Line(words[0], *(int(word) for word in (*words[1:4], *words[5:])))
        if not 0 < line.few < line.more <= line.every or line.replicas < (1 if words[4:] else 0):
            raise ValueError
    except ValueError:
        raise ValueError(f"line: '{text}' was given; KEY FEW MORE ALL, and perhaps 'replicas N', are expected") from None
    return line


def packet_hops(prediction):
    """As --dry-run prints them."""
    found = re.search(r"([\d.]+) ?([kMGT]?) packet-hops", prediction)
    if not found:
        raise SystemExit(f"no packet-hops in what --dry-run says:\n{prediction}")
    return float(found[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[found[2]]


class Player:
    """Plays jobs with one thread, and keeps what came out; None for `out`: keeps nothing."""

    def __init__(self, binary, out=None, again=False, most_hops=15e9, report=lambda text: None):
        self.binary, self.out, self.again, self.most_hops, self.report = str(binary), out, again, most_hops, report
        self.played = set()
        if out:
            out.mkdir(parents=True, exist_ok=True)

    def run(self, job, *options):
        """What netsim prints; DoesNotFit, or SystemExit with its error."""
        done = subprocess.run([*job.call(self.binary), "--threads", "1", *options], capture_output=True, text=True, check=False)
        if "does not fit into" in done.stderr:
            raise DoesNotFit(done.stderr.strip())
        if done.returncode != 0:
            raise SystemExit(f"{job.name}: netsim ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def key(self, job):
        """What a result depends on: the program, all files that netsim reads for it, and what is laid over them."""
        manifest = json.loads(self.run(job, "--print-config", "--json", "-"))
        version = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True).stdout
        parts = [version, manifest["configuration"], sorted(file["hash"] for file in manifest["inputs"]), job.overlays]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]

    def hops(self, job):
        """Packet-hops, as --dry-run predicts them; DoesNotFit."""
        kept = self.out and self.out / f"{self.key(job)}.hops"
        if kept and kept.is_file():
            return float(kept.read_text())
        found = packet_hops(self.run(job, "--dry-run"))
        if kept:
            kept.write_text(f"{found}\n")
        return found

    def sized(self, *jobs):
        """The jobs, with large packets if one of them has too many hops."""
        if any(self.hops(job) > self.most_hops for job in jobs):
            return tuple(job.also("_64k", LARGE_PACKETS) for job in jobs)
        return jobs

    def play(self, job):
        """Times of the job, a GPU's FLOPs, packet-hops: of an earlier run, or of one now."""
        key = self.key(job)
        kept = self.out and self.out / f"{key}.json"
        if kept and kept.is_file() and (not self.again or key in self.played):
            return json.loads(kept.read_text())
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            self.run(job, "--quiet", "--out", folder)
            summary = json.loads((pathlib.Path(folder) / "summary.json").read_text())
        of = summary["jobs"][0]
        result = {"name": job.name, "ranks": of["ranks"], "packet_hops": summary["packet_hops"]["total"],
                  "wall_s": round(time.monotonic() - begin, 1),
                  "times": {"step_s": of["iteration_time_s"], "compute_s": of["compute_s"], "idle_s": of["idle_s"],
                            "flops": of["tflops_per_gpu"] * 1e12 * of["iteration_time_s"],
                            "exposed_s": {stream: of["exposed_by"][stream] for stream in STREAMS}}}
        self.report(f"{job.name}: {of['ranks']} GPUs, {of['iteration_time_s']:.3f} s, "
                    f"{result['packet_hops'] / 1e9:.2f} G packet-hops in {result['wall_s']:.0f} s")
        self.played.add(key)
        if kept:
            unfinished = kept.with_suffix(".new")
            unfinished.write_text(json.dumps(result, indent=1) + "\n")
            unfinished.replace(kept)
        return result

    def alone(self, job, line=None):
        """Times of the step of one data-parallel replica."""
        if line is None:
            return self.play(*self.sized(job.also("_alone", *ALONE)))["times"]
        few, more = (self.play(part)["times"] for part in self.sized(*dataclasses.replace(line, replicas=1).parts(job)[:2]))
        return line.extended(few, more)

    def step(self, job, line=None):
        """Times of the whole step, by the shortcuts where there is a line; "ranks" is how many GPUs were played."""
        if line is None:
            result = self.play(*self.sized(job))
            return {**result["times"], "ranks": result["ranks"]}
        parts = line.parts(job)
        played = [self.play(part) for pair in (parts[2:], parts[:2]) for part in self.sized(*pair)]  # all replicas first: do they fit?
        return {**line.extended(*(result["times"] for result in (*played[-2:], *played[:-2]))), "ranks": played[0]["ranks"]}


def tflops(times):
    """Of a GPU, by the model's FLOPs."""
    return times["flops"] / times["step_s"] / 1e12
