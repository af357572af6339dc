"""Do Varys' and Sincronia's rules decide as replays in Python do, which were written from the papers alone?

NETSIM_FLOW_RULES names the program that asks the rules (tests/rules/flow_rules.cpp). The test is skipped without it. With
NETSIM_TEST_SIZE=full there are 1,000 instances for each rule instead of 100.
"""

import dataclasses
import fractions
import itertools
import os
import random
import subprocess
import sys
import unittest

BINARY = os.environ.get("NETSIM_FLOW_RULES")
INSTANCES = 1000 if os.environ.get("NETSIM_TEST_SIZE") == "full" else 100
Fraction = fractions.Fraction


@dataclasses.dataclass
class Flow:
    left: int
    coflow: int
    links: tuple  # its way out of a host, its way into another


@dataclasses.dataclass
class Instance:
    capacity: list
    weights: list
    flows: list

    @staticmethod
    def draw(seed):
        draw = random.Random(seed)
        hosts, coflows = draw.randint(2, 5), draw.randint(2, 5)
        capacity = [draw.choice((1, 2, 4)) * 10**9 for _ in range(2 * hosts)]
        flows = [Flow(1000 * draw.randint(1, 1000), coflow, (draw.randrange(hosts), hosts + draw.randrange(hosts)))
                 for coflow in range(coflows) for _ in range(draw.randint(1, 5))]
        draw.shuffle(flows)
        return Instance(capacity, [draw.randint(1, 9) for _ in range(coflows)], flows)

    def line(self):
        numbers = [len(self.capacity), len(self.weights), len(self.flows), *self.capacity, *self.weights]
        for flow in self.flows:
            numbers += [flow.left, flow.coflow, *flow.links]
        return " ".join(map(str, numbers))

    def coflow(self, number):
        return [flow for flow in self.flows if flow.coflow == number]

    def bottleneck(self, coflow, room):
        """Gamma in seconds; None where it is infinite, 0 without bytes."""
        largest = Fraction(0)
        for link, capacity in enumerate(room):
            load = sum(flow.left for flow in self.coflow(coflow) if link in flow.links)
            if load and not capacity:
                return None
            if load:
                largest = max(largest, Fraction(8 * load, capacity))
        return largest


@dataclasses.dataclass
class Answer:
    sebf: list
    madd: list
    backfilled: list
    bssi: list
    bound: float


def ask(instances):
    """The answers of the rules to all instances."""
    text = "".join(instance.line() + "\n" for instance in instances)
    done = subprocess.run([BINARY], input=text, capture_output=True, text=True, check=True)
    answers = []
    for instance, line in zip(instances, done.stdout.splitlines(), strict=True):
        numbers = iter(line.split())
        take = lambda count: [int(next(numbers)) for _ in range(count)]
        coflows, flows = len(instance.weights), len(instance.flows)
        answers.append(Answer(take(coflows), take(flows), take(flows), take(coflows), float(next(numbers))))
    return answers


def sebf(instance):
    gamma = [instance.bottleneck(coflow, instance.capacity) for coflow in range(len(instance.weights))]
    return sorted(range(len(gamma)), key=lambda coflow: (gamma[coflow], coflow))


def madd(instance, order, backfill):
    room, rates = list(instance.capacity), [0] * len(instance.flows)

    def give(index, rate):
        rates[index] += rate
        for link in instance.flows[index].links:
            room[link] -= rate

    for coflow in order:
        gamma = instance.bottleneck(coflow, room)
        if gamma:
            for index, flow in enumerate(instance.flows):
                if flow.coflow == coflow:
                    give(index, int(8 * flow.left / gamma))
    if backfill:
        for coflow in order:
            for index, flow in enumerate(instance.flows):
                if flow.coflow == coflow:
                    give(index, min(room[link] for link in flow.links))
    return rates


def bssi(instance):
    """The order and the value of the dual, with exact fractions."""
    unplaced, weights, order, dual = set(range(len(instance.weights))), [Fraction(w) for w in instance.weights], [], Fraction(0)
    while unplaced:
        def time(coflow, link):
            return Fraction(8 * sum(flow.left for flow in instance.coflow(coflow) if link in flow.links), instance.capacity[link])
        loads = [sum(time(coflow, link) for coflow in unplaced) for link in range(len(instance.capacity))]
        link = max(range(len(loads)), key=lambda number: (loads[number], -number))
        at_link = {coflow: time(coflow, link) for coflow in unplaced if time(coflow, link)}
        last = min(at_link, key=lambda coflow: (weights[coflow] / at_link[coflow], -coflow))
        ratio = weights[last] / at_link[last]
        dual += ratio * (loads[link] ** 2 + sum(value**2 for value in at_link.values())) / 2
        for coflow, value in at_link.items():
            weights[coflow] -= ratio * value
        unplaced.remove(last)
        order.insert(0, last)
    return order, dual


def advance(instance, rates, ends, now):
    """Goes on to the next end of a flow. Bytes are rounded up, so that they stay whole."""
    step = min(Fraction(8 * flow.left, rate) for flow, rate in zip(instance.flows, rates) if flow.left and rate)
    for flow, rate in zip(instance.flows, rates):
        if flow.left:
            flow.left = max(0, -int(-(flow.left - rate * step / 8) // 1))
            if not flow.left:
                ends[flow.coflow] = now + step
    return now + step


def cost(instance, order):
    """The weighted sum of ends where every flow gets all that flows of coflows before it in the order leave."""
    place = {coflow: index for index, coflow in enumerate(order)}
    by_priority = sorted(range(len(instance.flows)), key=lambda index: place[instance.flows[index].coflow])
    played = Instance(instance.capacity, instance.weights, [dataclasses.replace(flow) for flow in instance.flows])
    ends, now = [Fraction(0)] * len(order), Fraction(0)
    while any(flow.left for flow in played.flows):
        room, rates = list(played.capacity), [0] * len(played.flows)
        for index in by_priority:
            flow = played.flows[index]
            if flow.left:
                rates[index] = min(room[link] for link in flow.links)
                for link in flow.links:
                    room[link] -= rates[index]
        now = advance(played, rates, ends, now)
    return sum(weight * end for weight, end in zip(instance.weights, ends))


class FlowRules(unittest.TestCase):
    def test_sebf_and_madd_at_every_end_of_a_flow(self):
        instances = [Instance.draw(seed) for seed in range(INSTANCES)]
        ends = [[Fraction(0)] * len(instance.weights) for instance in instances]
        now = [Fraction(0)] * len(instances)
        asked = 0
        while active := [index for index, instance in enumerate(instances) if any(flow.left for flow in instance.flows)]:
            for index, answer in zip(active, ask([instances[index] for index in active])):
                instance = instances[index]
                order = sebf(instance)
                self.assertEqual(answer.sebf, order, index)
                self.assertEqual(answer.madd, madd(instance, order, False), index)
                self.assertEqual(answer.backfilled, madd(instance, order, True), index)
                now[index] = advance(instance, answer.backfilled, ends[index], now[index])
                asked += 1
        self.assertGreater(asked, 5 * len(instances))

    def test_sincronia_costs_at_most_four_times_its_dual(self):
        instances = [Instance.draw(10**6 + seed) for seed in range(INSTANCES)]
        worst = 0
        for index, (instance, answer) in enumerate(zip(instances, ask(instances))):
            order, dual = bssi(instance)
            self.assertEqual(answer.bssi, order, index)
            self.assertAlmostEqual(answer.bound / float(dual), 1, 9)
            found = cost(instance, answer.bssi)
            self.assertLessEqual(found, 4 * dual, index)
            worst = max(worst, found / dual)
            if index % 10 == 0:  # no order costs less than the bound
                for other in itertools.permutations(range(len(order))):
                    self.assertGreaterEqual(float(cost(instance, other)), float(dual) * (1 - 1e-6), index)
        print(f"Sincronia's cost is at most {float(worst):.3f} times its dual", file=sys.stderr)


if __name__ == "__main__":
    if not BINARY:
        print("NETSIM_FLOW_RULES is not set")
        sys.exit(77)
    unittest.main()
