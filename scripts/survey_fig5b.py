#!/usr/bin/env python3
"""Simulates figure 5(b) of a survey (arXiv 2403.07585) and prints the completion times of its two jobs beside the hand calculation.

    scripts/survey_fig5b.py [--rows ROW...] [--networks NETWORK...] [--scale SHARE] [--release UNITS] [--csv TABLE.csv]
                            [--picture FILE.svg] [--out DIR] [--jobs N] [--binary NETSIM] [--study STUDY.yaml] [--iterations COUNT]

The study (configs/studies/survey_fig5b/study.yaml) has a row for each co-design: none, vertical, horizontal (the flows of job 1 first,
those of job 2 first, another placement, a shift in time), intra-inter, host-net, pairs of these, and all. Each runs on each network. On
max_min a flow scheduler sets the rates of all flows; it is left out where the program has no flow schedulers. In the row intra-inter
a flow splitter divides F1 between the two NICs of its host.

The hand calculation is max-min fair sharing of fluids, with strict levels where a row has an order. --scale 0.1 makes all sizes
and computations ten times smaller. --release says when job 2 arrives, in units of 80 ms x scale; 0.5 is that of the figure.
--iterations 10 lets both jobs repeat their tasks; the times are then those of an iteration, without a hand calculation.
Every run is checked: no job may be faster than its longest path allows, no link faster than its rate, and every receiver gets its bytes.

--picture draws the shares of the flows in links (1) and (2) over time, for the rows none and all on the first network. It makes no table.
"""
import argparse
import collections
import concurrent.futures
import csv
import dataclasses
import fractions
import json
import pathlib
import sys
import tempfile

from netsim_runs import execution, pictures

STUDY = execution.ROOT / "configs" / "studies" / "survey_fig5b" / "study.yaml"
UNIT = 80  # ms: 1 GB at 100 Gb/s
PACKET = 4096  # payload, bytes
FLOW = 239349  # packets of a flow
SHORTEST = (240, 160)  # ms: a flow alone and the computations behind it
LINK_2 = "agg_1->tor_b"
RECEIVERS = {"job 1's F1": "tor_b->host3", "job 1's F2": "tor_a2->host4", "job 2": "tor_b->host7"}  # the last link to each
HALF = fractions.Fraction(1, 2)
# In steady state flows send before their first decision. Barriers have a level of their own, before those of the flows.
STEADY = {"max_min": {"new_flows": "send"}, "strict": {"new_flows": "send", "levels": 3}}
HEADER = ("row", "network", "jct_1_ms", "jct_2_ms", "hand_1_ms", "hand_2_ms", "excess_1_percent", "excess_2_percent")


# ---- The hand calculation. The unit of rates is 100 Gb/s, that of sizes 1 GB, and that of times 80 ms.
@dataclasses.dataclass
class Fluid:
    links: frozenset
    level: int = 0  # flows of lower levels go first
    left: fractions.Fraction = fractions.Fraction(1)
    released: fractions.Fraction = fractions.Fraction(0)
    end: fractions.Fraction = None


def max_min(flows):
    """The rates of flows, level by level: all flows of a level rise alike until a link of theirs is full."""
    room = {link: fractions.Fraction(1) for flow in flows for link in flow.links}
    rates = [fractions.Fraction(0)] * len(flows)
    for level in sorted({flow.level for flow in flows}):
        rising = {i for i, flow in enumerate(flows) if flow.level == level}
        while rising:
            users = {link: sum(link in flows[i].links for i in rising) for link in room}
            step = min(room[link] / count for link, count in users.items() if count)
            for i in rising:
                rates[i] += step
            room = {link: room[link] - step * users[link] for link in room}
            rising = {i for i in rising if all(room[link] for link in flows[i].links)}
    return rates


def drain(flows):
    """Sets the ends of all flows."""
    now = fractions.Fraction(0)
    while waiting := [flow for flow in flows if flow.end is None]:
        active = [flow for flow in waiting if flow.released <= now]
        rates = max_min(active)
        until = [now + flow.left / rate for flow, rate in zip(active, rates) if rate]
        later = min(until + [flow.released for flow in waiting if flow.released > now])
        for flow, rate in zip(active, rates):
            flow.left -= rate * (later - now)
            if not flow.left:
                flow.end = later
        now = later


def hand_calculation(release=HALF, *, f2=0, job_1=0, job_2=0, split=False, elsewhere=False, shift=0, aggregate=False):
    """Ends of F1, F2 and job 2's flows, and both completion times, from the levels of F2 and of the jobs and what else a row does."""
    into_b, into_d = {"agg_1-tor_b", "tor_b-host_6"}, {"agg_1-tor_d", "tor_d-host_7"}
    f1_end = {"agg_1-tor_b", "tor_b-host_2"}
    by_a, by_a2 = frozenset({"nic_0", "tor_a-agg_0"} | f1_end), frozenset({"nic_1", "tor_a2-agg_0"} | f1_end)
    f1 = [Fluid(by_a, job_1, HALF), Fluid(by_a2, job_1, HALF)] if split else [Fluid(by_a, job_1)]
    second = Fluid(frozenset({"host_1-tor_a", "tor_a-agg_0", "agg_0-tor_a2", "tor_a2-host_3"}), job_1 + f2)
    into = frozenset({"tor_c-agg_1"} | (into_d if elsewhere else into_b))
    senders = ["tor_c"] if aggregate else ["host_4", "host_5"]
    gradients = [Fluid(into | {sender}, job_2, released=release + shift) for sender in senders]
    drain([*f1, second, *gradients])
    f1_done, f2_done, j_done = (max(flow.end for flow in flows) for flows in (f1, [second], gradients))
    return f1_done, f2_done, j_done, max(f1_done + 2, f2_done + 1), j_done + 1 - release


# Each row of the study has these arguments of the hand calculation.
BY_HAND = {
    "none": {},
    "vertical": {"f2": 1},
    "horizontal_job_1": {"job_2": 1},
    "horizontal_job_2": {"job_1": 1},
    "horizontal_placement": {"elsewhere": True},
    "horizontal_shift": {"shift": 1},
    "intra_inter": {"split": True},
    "vertical_horizontal": {"f2": 1, "job_2": 1},
    "host_net": {"aggregate": True},
    "vertical_host_net": {"f2": 1, "aggregate": True},
    "intra_host_net": {"split": True, "aggregate": True},
    "horizontal_host_net": {"job_2": 1, "aggregate": True},
    "all": {"f2": 1, "job_2": 1, "split": True, "aggregate": True},
}


# ---- The runs
@dataclasses.dataclass(frozen=True)
class Run:
    row: str
    network: str
    workload: str  # name of a file of the study, without its ending
    settings: tuple  # of (path, value)


@dataclasses.dataclass(frozen=True)
class Study:
    folder: pathlib.Path
    config: str
    networks: dict
    rows: dict

    def runs(self, rows, networks):
        for row in rows:
            for network in networks:
                settings = self.networks[network]["set"] | self.rows[row].get("set", {})
                if self.networks[network].get("schedules_flows"):
                    settings["scheduling.flows"] = self.rows[row]["flows"]
                yield Run(row, network, self.rows[row].get("workload", row), tuple(settings.items()))


def read_study(path=STUDY):
    import yaml
    with open(path, encoding="utf-8") as lines:
        study = yaml.safe_load(lines)
    unknown = set(study["rows"]) - set(BY_HAND)
    if unknown:
        raise SystemExit(f"{path}: no hand calculation of the row '{min(unknown)}' (there are {', '.join(BY_HAND)})")
    return Study(path.parent, study["config"], study["networks"], study["rows"])


def milliseconds(text):
    number, unit = text.split()
    assert unit == "ms", text
    return fractions.Fraction(number)


def rescale(jobs, folder, scale, release, iterations):
    """The jobs of a row with smaller sizes and times, another arrival of job 2, and iterations; paths become absolute."""
    for job in jobs["jobs"]:
        job["placement"]["file"] = str((folder / job["placement"]["file"]).resolve())
        if iterations > 1:
            job["workload"]["iterations"] = iterations
            job["workload"]["ranks"] = len(pathlib.Path(job["placement"]["file"]).read_text(encoding="utf-8").splitlines()) - 1
            ends = [task["name"] for task in job["workload"]["tasks"]]
            job["workload"]["tasks"].append({"name": "end", "collective": "barrier", "after": ends, "priority": 2})
        if "arrival" in job:
            job["arrival"] = f"{float(release * UNIT * scale)} ms"
        for task in job["workload"]["tasks"]:
            if True in task:  # PyYAML reads the key `on` so
                task["on"] = task.pop(True)
            for key in ("compute", "earliest"):
                if key in task:
                    task[key] = f"{float(milliseconds(task[key]) * scale)} ms"
            if "bytes" in task:
                payload = int(task["bytes"].split()[0])
                task["bytes"] = f"{max(1, round(payload * scale / PACKET)) * PACKET} B" if scale != 1 else task["bytes"]
    return jobs


def read_table(path):
    with open(path, encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def expected_packets(run, scale, iterations):
    """Packets of data over the last link to each receiver, and over link (2), without those that chunks may add."""
    by_hand = BY_HAND[run.row]
    flow = max(1, round(FLOW * scale)) * iterations
    second = flow if by_hand.get("aggregate") else 2 * flow
    into_b = [flow] if by_hand.get("elsewhere") else [flow, second]
    last = dict(zip(RECEIVERS.values(), (flow, flow, second)))
    if by_hand.get("elsewhere"):
        last["tor_d->host8"] = last.pop("tor_b->host7")
    return last | {LINK_2: sum(into_b)}


def broken_bounds(run, times, links, scale, iterations):
    """What cannot be: sentences about `times` (ms at the whole size) and the rows of links.csv."""
    broken = [f"job {job} takes {time:.2f} ms, but at least {shortest} are needed"
              for job, (time, shortest) in enumerate(zip(times, SHORTEST), 1) if time < shortest * (1 - rounding(scale))]
    broken += [f"link {link['link']} has a use of {link['utilisation']}" for link in links if float(link["utilisation"]) > 1]
    packets = {link["link"]: int(link["data_packets"]) for link in links}
    for link, expected in expected_packets(run, scale, iterations).items():
        most = expected * 1.01 + 16 if iterations == 1 else packets[link]  # barriers have packets of their own
        if not expected <= packets[link] <= most:
            broken.append(f"link {link} carried {packets[link]} packets of data, but {expected} are expected")
    return broken


def rounding(scale):
    """The share of a flow by which its size may be smaller, because sizes are rounded to packets."""
    return 0.5 / float(FLOW * scale)


def simulate(study, run, binary, out, scale, release, iterations, sample=None):
    """The folder of the results of a run, with samples of links in intervals of `sample`, a time, if one is given."""
    import yaml
    folder = out / run.network / run.row
    folder.mkdir(parents=True, exist_ok=True)
    jobs = yaml.safe_load((study.folder / f"{run.workload}.yaml").read_text(encoding="utf-8"))
    execution.write_json(folder / "jobs.yaml", rescale(jobs, study.folder, scale, release, iterations))
    settings = dict(run.settings)
    if sample:
        settings["output.sample"] = {"interval": sample, "queues": False, "flows": False, "aggregation": False,
                                     "ports": [link for flows in PASSING.values() for _, link in flows.values()]}
    if iterations > 1 and "scheduling.flows" in settings:  # the barrier's messages share queue pairs with the flows
        settings["scheduling.flows"] = settings["scheduling.flows"] | STEADY[settings["scheduling.flows"]["kind"]]
    overlays = [part for path, value in settings.items() for part in ("--set", f"{path}={value if isinstance(value, str) else json.dumps(value)}")]
    execution.run([str(binary), "--config", str(study.folder / study.config), "--workload", str(folder / "jobs.yaml"), *overlays,
                   "--quiet", "--out", str(folder / "results")])
    return folder / "results"


def completion_times(results, run, scale, iterations):
    """The completion times of both jobs in ms, in units of the whole size; with iterations, the mean time of one."""
    summary = json.loads((results / "summary.json").read_text(encoding="utf-8"))
    times = [job["jct_s"] * 1000 / float(scale) / iterations for job in summary["jobs"]]
    broken = broken_bounds(run, times, read_table(results / "links.csv"), scale, iterations)
    if broken:
        raise SystemExit(f"row '{run.row}' on '{run.network}': {'; '.join(broken)}")
    return times


def measure(study, run, binary, out, given):
    results = simulate(study, run, binary, out, given.scale, given.release, given.iterations)
    return completion_times(results, run, given.scale, given.iterations)


def table_row(run, measured, release, iterations):
    if iterations > 1:
        return dict(zip(HEADER, (run.row, run.network, *(f"{number:.2f}" for number in measured), "", "", "", "")))
    by_hand = [float(time * UNIT) for time in hand_calculation(release, **BY_HAND[run.row])[3:]]
    excess = [100 * (time / hand - 1) for time, hand in zip(measured, by_hand)]
    return dict(zip(HEADER, (run.row, run.network, *(f"{number:.2f}" for number in (*measured, *by_hand, *excess)))))


def print_table(rows):
    cells = [["row", "network", "JCT 1", "JCT 2", "by hand", "by hand", "excess", "excess"]]
    cells += [[*row.values()][:6] + [row[key] and f"{row[key]} %" for key in HEADER[6:]] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADER))]
    for line in cells:
        print("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))).rstrip())


# ---- The picture
PICTURED = {"none": "no co-design", "all": "all co-designs"}  # rows, and how the picture calls them
SAMPLE = 2  # ms
# For each link, the flows in it, their colours, and a link that only they pass.
PASSING = {"(1)": {"F1 of job 1": (0, "host0/nic0(0)->tor_a"), "F2 of job 1": (4, "tor_a2->host4")},
           "(2)": {"F1 of job 1": (0, "tor_b->host3"), "job 2": (1, "tor_b->host7")}}


def draw(path, results, scale):
    """A column for each of PICTURED, whose results are in `results`, and a row of panels for each of PASSING."""
    pyplot = pictures.pyplot()
    figure, grid = pyplot.subplots(len(PASSING), len(results), sharex=True, sharey=True, figsize=(8.4, 3.9), squeeze=False)
    for row, column in zip(results, grid.T):
        use = collections.defaultdict(dict)
        for sample in read_table(results[row] / "link_samples.csv"):
            use[int(sample["time_ps"])][sample["link"]] = float(sample["utilisation"])
        times = sorted(use)
        for (link, flows), axes in zip(PASSING.items(), column):
            parts = [[0, *(use[time].get(own, 0) for time in times)] for _, own in flows.values()]
            axes.stackplot([0, *(time / 1e9 / float(scale) for time in times)], *parts, step="pre", linewidth=0, labels=[*flows],
                           colors=[pictures.COLOURS[colour] for colour, _ in flows.values()])
            axes.set_title(f"link {link}, {PICTURED[row]}", fontsize=9)
            axes.tick_params(labelsize=7.5)
    for axes in grid[:, 0]:
        axes.set_ylabel("share of the link", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("time, ms", fontsize=8)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, None)
    handles = {label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles, loc="lower center", ncol=len(handles), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    pictures.save(figure, path)


def make_picture(path, study, network, binary, out, given):
    """Simulates the rows of PICTURED with samples, and draws them."""
    sample = f"{float(SAMPLE * given.scale)} ms"
    results = {}
    for run in study.runs(PICTURED, [network]):
        results[run.row] = simulate(study, run, binary, out, given.scale, given.release, 1, sample)
        completion_times(results[run.row], run, given.scale, 1)
    draw(path, results, given.scale)


def has_flow_schedulers(binary):
    return "flow_scheduler" in execution.run([str(binary), "--list"]).output.splitlines()


def choose(given, known, what):
    for name in given or ():
        if name not in known:
            raise SystemExit(f"no {what} '{name}' (there are {', '.join(known)})")
    return list(given or known)


def positive(text):
    try:
        number = fractions.Fraction(text)
    except (ValueError, ZeroDivisionError):
        number = 0
    if not 0 < number <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}' was given; a number above 0 and up to 1000 is expected")
    return number


def count(text):
    number = int(text) if text.isdecimal() else 0
    if not 0 < number <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}' was given; a whole number from 1 to 1000 is expected")
    return number


def read_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="rows of the study (default: all)")
    parser.add_argument("--networks", nargs="+", metavar="NETWORK", help="networks of the study (default: all that the program can simulate)")
    parser.add_argument("--scale", type=positive, default=fractions.Fraction(1), help="share of the figure's sizes and times (default: 1)")
    parser.add_argument("--release", type=positive, default=HALF, metavar="UNITS", help="arrival of job 2 in units (default: 0.5)")
    parser.add_argument("--iterations", type=count, default=1, metavar="COUNT", help="iterations of both jobs (default: 1)")
    parser.add_argument("--csv", type=pathlib.Path, metavar="TABLE.csv", help="file for the table")
    parser.add_argument("--picture", type=pathlib.Path, metavar="FILE.svg", help="draw who holds the links over time (python3-matplotlib)")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="folder in which the results are kept (default: none)")
    parser.add_argument("--study", type=pathlib.Path, default=STUDY, metavar="STUDY.yaml")
    execution.add_jobs(parser, "runs")
    execution.add_binary(parser)
    given = parser.parse_args(arguments)
    if given.picture and given.picture.suffix not in pictures.ENDINGS:
        parser.error(f"--picture: {given.picture}: a picture's name ends in {', '.join(pictures.ENDINGS)}")
    if given.picture and (given.rows or given.csv or given.iterations > 1):
        parser.error("--picture draws one iteration of the rows none and all, and takes no --rows, --csv or --iterations")
    return given


def main(arguments=None):
    given = read_arguments(arguments)
    study = read_study(given.study)
    binary = execution.find_binary(given.binary)
    rows, networks = choose(given.rows, study.rows, "row"), choose(given.networks, study.networks, "network")
    scheduled = [network for network in networks if study.networks[network].get("schedules_flows")]
    if scheduled and not has_flow_schedulers(binary):
        if given.networks:
            raise SystemExit(f"{binary} has no flow schedulers, which the network '{scheduled[0]}' needs")
        print(f"left out: {', '.join(scheduled)}, because {binary} has no flow schedulers", file=sys.stderr)
        networks = [network for network in networks if network not in scheduled]
    runs = list(study.runs(rows, networks))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        out = (given.out or pathlib.Path(folder)).resolve()
        if given.picture:
            make_picture(given.picture, study, networks[0], binary, out, given)
            return 0
        measured = pool.map(lambda run: measure(study, run, binary, out, given), runs)
        table = [table_row(run, times, given.release, given.iterations) for run, times in zip(runs, measured)]
    print_table(table)
    if given.csv:
        with open(given.csv, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, HEADER, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
