"""Does CASSINI's rule (sim/scheduling/job/rules/cassini.h) find what a replay in Python finds, on random placements?

CASSINI_DRIVER names the program made of cassini_driver.cpp. With NETSIM_TEST_SIZE=full there are ten times as many placements.
"""

import fractions
import itertools
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import unittest

DRIVER = os.environ.get("CASSINI_DRIVER") or str(pathlib.Path(__file__).resolve().parent.parent.parent / "build/release/tests/netsim_cassini_driver")
CASES = 1500 if os.environ.get("NETSIM_TEST_SIZE") == "full" else 150
STEPS = 72
RESOLUTION = 1_000_000  # 1 us
MILLISECOND = 1_000_000_000


def circle(link):
    """The perimeter, and the iteration times on it."""
    resolution = RESOLUTION
    while True:
        times = [max(1, (demand["iteration"] + resolution // 2) // resolution) * resolution for demand in link["demands"]]
        perimeter = math.lcm(*times)
        if perimeter <= STEPS * min(times):
            return perimeter, times
        resolution *= 2


def score(link, shifts):
    """The score, by counting the demands at each place where one of them changes."""
    perimeter, times = circle(link)
    phases = []  # (begin, end, rate) on the circle
    for demand, time, shift in zip(link["demands"], times, shifts):
        for turn in range(perimeter // time):
            for begin, end, rate in demand["arcs"]:
                first, last = begin * time // demand["iteration"], end * time // demand["iteration"]
                start = (turn * time + shift + first) % perimeter
                phases += [(start, start + last - first, rate), (start - perimeter, start + last - first - perimeter, rate)]
    places = sorted({0, perimeter} | {place for begin, end, _ in phases for place in (begin, end) if 0 < place < perimeter})
    excess = sum((right - left) * max(0, sum(rate for begin, end, rate in phases if begin <= left < end) - link["capacity"])
                 for left, right in itertools.pairwise(places))
    return 1 - fractions.Fraction(excess, perimeter * link["capacity"])


def rotations(link):
    """The rotations that each job may have, as times."""
    perimeter, times = circle(link)
    fixed = times.index(max(times))
    return [[0] if i == fixed else [step * perimeter // STEPS for step in range(STEPS) if step * perimeter // STEPS < time]
            for i, time in enumerate(times)]


def best(link):
    """The best score of all rotations, and the first that have it."""
    return max(((score(link, shifts), shifts) for shifts in itertools.product(*rotations(link))), key=lambda found: found[0])


def distinct(links):
    return [link for i, link in enumerate(links) if len(link["demands"]) > 1 and link not in links[:i]]


def has_loop(links):
    """Whether an edge of the affinity graph joins what is joined already."""
    parent = {}

    def root(node):
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for number, link in enumerate(distinct(links)):
        for demand in link["demands"]:
            one, other = root(("link", number)), root(("job", demand["job"]))
            if one == other:
                return True
            parent[one] = other
    return False


def random_demand(draw, job, periods):
    period = periods.setdefault(job, draw.choice([20, 30, 40, 60, 80]) * MILLISECOND)
    cuts = sorted(draw.sample(range(1, 20), draw.choice([2, 2, 4])))
    arcs = [(begin * period // 20, end * period // 20, draw.choice([25, 50, 100]) * 10**9) for begin, end in zip(cuts[::2], cuts[1::2])]
    return {"job": job, "iteration": period, "arcs": arcs}


def random_candidate(draw, most_jobs):
    """Links of a cluster of six jobs, of which some have the same demands."""
    periods, links = {}, []
    for _ in range(draw.randint(1, 4)):
        jobs = sorted(draw.sample(range(6), draw.randint(1, most_jobs)))
        links.append({"capacity": 100 * 10**9, "demands": [random_demand(draw, job, periods) for job in jobs]})
        if draw.random() < 0.3:
            links.append(links[-1])
    return links


def numbers(value):
    """An instance as the driver reads it."""
    if isinstance(value, dict):
        if "capacity" in value:
            return [value["capacity"], *numbers(value["demands"])]
        arcs = value["arcs"]
        return [value["job"], value["iteration"], len(arcs), *(number for arc in arcs for number in arc)]
    return [len(value), *(number for item in value for number in numbers(item))]


def play(candidates, most=10_000):
    done = subprocess.run([DRIVER], input=" ".join(map(str, [most, *numbers(candidates)])), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Rotations(unittest.TestCase):
    def test_up_to_two_jobs_get_the_best_of_all_rotations(self):
        draw = random.Random("two")
        candidates = [random_candidate(draw, 2) for _ in range(CASES)]
        for links, found in zip(candidates, play(candidates)["links"]):
            for link, result in zip(links, found):
                with self.subTest(link=link):
                    expected, shifts = best(link)
                    self.assertTrue(result["all"])
                    self.assertAlmostEqual(result["score"], float(expected), delta=1e-12)
                    self.assertEqual(result["shifts"], list(shifts))
                    self.assertAlmostEqual(result["unshifted"], float(score(link, [0] * len(shifts))), delta=1e-12)

    def test_no_job_of_a_bounded_search_has_a_better_rotation(self):
        draw = random.Random("many")
        candidates = [random_candidate(draw, 4) for _ in range(CASES // 15)]
        for links, found in zip(candidates, play(candidates, most=1)["links"]):
            for link, result in zip(links, found):
                with self.subTest(link=link):
                    self.assertAlmostEqual(result["score"], float(score(link, result["shifts"])), delta=1e-12)
                    self.assertGreaterEqual(result["score"], result["unshifted"])
                    for i, choices in enumerate(rotations(link)):
                        for other in choices:
                            moved = [*result["shifts"][:i], other, *result["shifts"][i + 1:]]
                            self.assertLessEqual(float(score(link, moved)), result["score"] + 1e-12)

    def test_iteration_times_are_rounded_until_the_circle_is_small(self):
        times = [40_013_000_000, 39_991_200_000, 123_456_789]
        link = {"capacity": 10**11, "demands": [{"job": i, "iteration": time, "arcs": [(0, time // 3, 10**11)]} for i, time in enumerate(times)]}
        [[result]] = play([[link]], most=1)["links"]
        perimeter, rounded = circle(link)
        self.assertEqual(result["perimeter"], perimeter)
        self.assertLessEqual(perimeter, STEPS * min(rounded))
        self.assertAlmostEqual(result["unshifted"], float(score(link, [0, 0, 0])), delta=1e-12)


class Placements(unittest.TestCase):
    def setUp(self):
        draw = random.Random("placements")
        self.candidates = [random_candidate(draw, 3) for _ in range(CASES)]
        self.result = play(self.candidates, most=1)

    def test_those_without_loops_are_ranked_by_their_mean_score(self):
        means = {}
        for i, (links, found) in enumerate(zip(self.candidates, self.result["links"])):
            if not has_loop(links):
                scores = [result["score"] for link, result in zip(links, found) if len(link["demands"]) > 1]
                means[i] = sum(scores) / len(scores) if scores else 1
        self.assertTrue(0 < len(means) < len(self.candidates))  # some have loops
        ranked = self.result["ranked"]
        self.assertEqual({placement["candidate"] for placement in ranked}, set(means))
        for placement in ranked:
            self.assertAlmostEqual(placement["score"], means[placement["candidate"]], delta=1e-12)
        order = [(-placement["score"], placement["candidate"]) for placement in ranked]
        self.assertEqual(order, sorted(order))

    def test_the_shifts_of_jobs_give_every_link_its_score(self):
        for placement in self.result["ranked"]:
            shifts = dict(placement["shifts"])
            links, found = self.candidates[placement["candidate"]], self.result["links"][placement["candidate"]]
            self.assertEqual(set(shifts), {demand["job"] for link in distinct(links) for demand in link["demands"]})
            for link, result in zip(links, found):
                if len(link["demands"]) > 1:
                    own = [shifts[demand["job"]] for demand in link["demands"]]
                    self.assertAlmostEqual(float(score(link, own)), result["score"], delta=1e-12)


if __name__ == "__main__":
    if not os.path.exists(DRIVER):
        print(f"{DRIVER} is missing: it is built with the tests")
        sys.exit(77)
    unittest.main()
