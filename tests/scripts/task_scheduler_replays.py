"""Replays of task schedulers in Python, written from their published rules and not from netsim's code.

A rule orders the communications of a graph (task_graphs.py), cuts and fuses them, and picks the next one at rank 0, which decides. `replay`
runs the graph at that rank. It gets the measured time of each part in flight, so that it predicts when each part is launched.
"""

import collections
import dataclasses
import functools
import heapq
import itertools
import math

from task_graphs import PS_PER_BYTE


# ---- Orders of need

def uses(graph):
    """P3 and ByteScheduler: by name, iteration and position of the first computation that waits for a communication."""
    position, count = {}, collections.Counter()
    for index, node in enumerate(graph.nodes):
        position[index] = count[node.rank]
        count[node.rank] += 1

    def first_use(begin):
        seen, todo, found = set(), [(begin, 0)], []
        while todo:
            index, iteration = todo.pop()
            for other, node in enumerate(graph.nodes):
                for later in ([iteration] if index in node.before else []) + ([iteration + 1] if index in node.previous and not iteration else []):
                    if node.kind == "compute":
                        found.append((later, position[other]))
                    elif (other, later) not in seen:
                        seen.add((other, later))
                        todo.append((other, later))
        return min(found, default=(2, 0))

    return {node.task.name: first_use(index) for index, node in enumerate(graph.nodes) if node.kind in ("collective", "send")}


def tails(graph):
    """PACE: by name, the longest path from the end of a communication to the end of the next iteration, negative."""
    @functools.cache
    def tail(index, iteration):
        longest = 0
        for other, node in enumerate(graph.nodes):
            if index in node.before:
                longest = max(longest, node.time + tail(other, iteration))
            if index in node.previous and iteration == 0:
                longest = max(longest, node.time + tail(other, 1))
        return longest

    return {node.task.name: -tail(index, 0) for index, node in enumerate(graph.nodes) if node.kind in ("collective", "send")}


def demands(graph):
    """TicTac: the times of the communications that a rank receives, by name, and for each computation of this iteration and the next one its time
    and those of them that it waits for. A server's messages are ordered by the worker."""
    rank = 1 if any(node.kind == "receive" for node in graph.nodes) else 0
    waits, computations, times = {}, [], {}
    for iteration in (0, 1):
        for index, node in enumerate(graph.nodes):
            if node.rank != rank:
                continue
            needs = set().union(*(waits.get((other, iteration), ()) for other in node.before))
            if iteration:
                needs |= set().union(*(waits[other, 0] for other in node.previous if (other, 0) in waits))
            if node.kind == "compute":
                computations.append((node.task.size, frozenset(needs)))
            elif not iteration:
                needs.add(node.task.name)
                times[node.task.name] = node.time or graph.nodes[index - 1].time
            waits[index, iteration] = needs
    return times, computations


def properties(times, computations, outstanding):
    """TicTac's P and M+ of each outstanding receive (common.py, _update_properties)."""
    alone, together = dict.fromkeys(outstanding, 0), dict.fromkeys(outstanding, math.inf)
    for time, needs in computations:
        left = needs.intersection(outstanding)
        if len(left) == 1:
            alone[min(left)] += time
        elif left:
            total = sum(times[receive] for receive in left)
            for receive in left:
                together[receive] = min(together[receive], total)
    return alone, together


def tac(times, computations):
    """TicTac's TAC (tac.py): by name, its place."""
    outstanding, order = list(times), []
    while outstanding:
        alone, together = properties(times, computations, outstanding)

        def is_after(one, other, alone=alone, together=together):
            ahead, behind = min(alone[other], times[one]), min(alone[one], times[other])
            if ahead != behind:
                return -1 if ahead < behind else 1
            return (together[one] > together[other]) - (together[one] < together[other])

        order.append(min(outstanding, key=functools.cmp_to_key(is_after)))
        outstanding.remove(order[-1])
    return {receive: place for place, receive in enumerate(order)}


def tic(times, computations):
    """TicTac's TIC (tic.py): every receive takes 1, and the key is M+."""
    return properties(dict.fromkeys(times, 1), computations, list(times))[1]


# ---- Fusion

def fusible(graph):
    """gradients() with the tail of each (tails())."""
    after = tails(graph)
    return [(task, begin, -after[task.name]) for task, begin in gradients(graph)]


def gradients(graph):
    """The all-reduces that no other all-reduce waits for, with the times at which they can begin if nothing contends, in that order."""
    begin, reaches = {}, set()
    for index, node in enumerate(graph.nodes):
        begin[index] = max((begin[other] + graph.nodes[other].time for other in node.before), default=0)
    for index in reversed(range(len(graph.nodes))):
        for other, node in enumerate(graph.nodes):
            if index in node.before and (other in reaches or node.task.kind == "all_reduce"):
                reaches.add(index)
    free = [index for index, node in enumerate(graph.nodes) if node.task.kind == "all_reduce" and index not in reaches]
    free.sort(key=lambda index: begin[index])
    return [(graph.nodes[index].task, begin[index]) for index in free]


def mg_wfbp(graph, alpha):
    """MG-WFBP's merge (distributed_optimizer.py, _generate_groups_mgwfbp), with its arrays in the order of the backward."""
    tasks = gradients(graph)
    size, ready = [task.size for task, _ in tasks], [begin for _, begin in tasks]
    time = [alpha + bytes_ * PS_PER_BYTE for bytes_ in size]
    groups, group = [], []
    for index, (task, _) in enumerate(tasks):
        start = []
        for other in range(len(tasks)):
            start.append(max(ready[other], start[-1] + time[other - 1]) if other else ready[0])
        group.append(task.name)
        later = ready[index + 1] if index + 1 < len(tasks) else math.inf
        if later < start[index] + time[index] and (start[index] > later or later - start[index] < alpha):
            size[index + 1] += size[index]
            time[index], time[index + 1] = 0, alpha + size[index + 1] * PS_PER_BYTE
        else:
            groups.append(group)
            group = []
    return groups


def ddp(graph, first, other):
    """PyTorch's buckets as its reducer rebuilds them: gradients in the order in which they came, until the limit is reached."""
    buckets, bucket, size = [], [], 0
    for task, _ in gradients(graph):
        bucket.append(task.name)
        size += task.size
        if size >= (other if buckets else first):
            buckets.append(bucket)
            bucket, size = [], 0
    return buckets + ([bucket] if bucket else [])


# ---- Rules

@dataclasses.dataclass
class Candidate:
    """A communication, or a bucket, that is ready and not launched whole."""
    names: list
    iteration: int
    kind: str
    ready: int
    program: int  # its place in the program
    need: object  # its place in the order of need
    parts: list  # bytes of the parts that are left
    launched: int = 0

    @property
    def lane(self):
        """What a bound is for: the collectives of the two ranks, or the messages of the rank."""
        return self.kind == "message"


@dataclasses.dataclass
class Rule:
    """A scheduler with the section of the configuration that chooses it. `pick` takes candidates and the kinds, lanes and bytes in flight."""
    section: dict
    pick: object
    order: object = lambda graph: {}  # by name
    part: object = lambda kind: 0  # bytes of a part, 0: whole
    buckets: object = lambda graph: []
    in_order: bool = False  # buckets are launched in their order
    at_once: tuple = ()  # kinds of collectives that every rank launches by itself, without an agreement


def by_ready(one):
    return (one.ready, one.iteration, one.program)


def by_need(one):
    return (one.iteration, one.need, one.program)


def one_at_a_time(key, most=1):
    """Launches the first by `key` while less than `most` parts of its lane are in flight."""
    def pick(candidates, flight):
        free = [one for one in candidates if sum(lane == one.lane for _, lane, _ in flight) < most]
        return min(free, key=key, default=None)
    return pick


def credit(most):
    """BytePS's queue (scheduled_queue.cc): the first entry by priority, then key, whose length is at most the credit. Each part is an entry."""
    def pick(candidates, flight):
        for one in sorted(candidates, key=by_need):
            free = most - sum(part for _, lane, part in flight if lane == one.lane)
            number = next((number for number, part in enumerate(one.parts) if part <= free), None)
            if number is not None:
                one.parts.insert(0, one.parts.pop(number))
                return one
        return None
    return pick


def lina(candidates, flight):
    """Lina: an all-to-all at once; a micro-operation of the others if no all-to-all waits or is in flight, one after the other."""
    preferred = [one for one in candidates if one.kind == "all_to_all"]
    if preferred:
        return min(preferred, key=by_ready)
    if any(kind == "all_to_all" for kind, _, _ in flight):
        return None
    return one_at_a_time(by_ready)(candidates, flight)


def trirace(candidates, flight):
    """TriRace: a message at once, then an all-to-all; a part of an all-reduce, by need, while no message and no all-to-all is in flight."""
    for kind in ("message", "all_to_all"):
        free = [one for one in candidates if one.kind == kind]
        if free:
            return min(free, key=by_need)
    if any(kind != "all_reduce" for kind, _, _ in flight):
        return None
    return one_at_a_time(by_need)(candidates, flight)


KIB = 1024
MERGE_STARTUP = 3_000_000  # ps
RULES = {
    "fifo": Rule({"kind": "fifo"}, one_at_a_time(by_ready)),
    "fifo_parts": Rule({"kind": "fifo", "part": "64 KiB", "in_flight": 2}, one_at_a_time(by_ready, 2), part=lambda kind: 64 * KIB),
    "p3": Rule({"kind": "priority", "order": "use", "part": "64 KiB"}, one_at_a_time(by_need), uses, lambda kind: 64 * KIB),
    "pace": Rule({"kind": "priority", "order": "tail", "part": "32 KiB"}, one_at_a_time(by_need), tails, lambda kind: 32 * KIB),
    "tic": Rule({"kind": "priority", "order": "tic", "part": "0 B"}, one_at_a_time(by_need), lambda graph: tic(*demands(graph))),
    "tac": Rule({"kind": "priority", "order": "tac", "part": "0 B"}, one_at_a_time(by_need), lambda graph: tac(*demands(graph))),
    "credit": Rule({"kind": "credit", "part": "64 KiB", "credit": "160 KiB"}, credit(160 * KIB), uses, lambda kind: 64 * KIB),
    "preferred": Rule({"kind": "preferred", "part": "64 KiB"}, lina, part=lambda kind: 0 if kind == "all_to_all" else 64 * KIB,
                      at_once=("all_to_all",)),
    "trirace": Rule({"kind": "trirace", "part": "64 KiB"}, trirace, uses, lambda kind: 64 * KIB if kind == "all_reduce" else 0,
                    at_once=("all_to_all",)),
    "merge": Rule({"kind": "merge", "startup": "3 us"}, one_at_a_time(by_ready), buckets=lambda graph: mg_wfbp(graph, MERGE_STARTUP)),
    "ddp": Rule({"kind": "ddp", "first_bucket": "64 KiB", "bucket": "300 KiB"}, one_at_a_time(by_ready),
                buckets=lambda graph: ddp(graph, 64 * KIB, 300 * KIB), in_order=True),
}


# ---- The run of rank 0

def cut(size, part):
    if not part or part >= size:
        return [size]
    return [part] * (size // part) + ([size % part] if size % part else [])


class Replay:
    """Rank 0 of a graph under a rule. `time_of(name, iteration, part)` is the time of a part in flight, by the first name of a bucket,
    and that of an unordered computation without a part."""

    def __init__(self, graph, rule, time_of):
        self.graph, self.rule, self.time_of = graph, rule, time_of
        self.nodes = {index: node for index, node in enumerate(graph.nodes) if node.rank == 0}
        self.program = {node.task.name: place for place, node in enumerate(self.nodes.values())}
        self.need = rule.order(graph)
        self.buckets = rule.buckets(graph)
        self.turn = 0  # launches of buckets, where they are launched in order
        self.left, self.members = {}, collections.defaultdict(list)
        self.computations = collections.deque((index, iteration) for iteration in range(graph.iterations)
                                              for index, node in self.nodes.items() if node.kind == "compute" and node.task.ordered)
        self.ready_computations, self.computing = set(), False
        self.candidates, self.waiting, self.flight, self.events, self.number = [], [], [], [], itertools.count()
        self.launches = []  # (time, first name, iteration, part)

    def run(self):
        for iteration in range(self.graph.iterations):
            for index, node in self.nodes.items():
                self.left[index, iteration] = len(node.before) + (len(node.previous) if iteration else 0)
        for instance in sorted(instance for instance, left in self.left.items() if left == 0):
            self.become_ready(0, instance)
        self.serve(0)
        while self.events:
            now, _, act = heapq.heappop(self.events)
            act(now)
            self.serve(now)
        return self.launches

    def become_ready(self, now, instance):
        index, iteration = instance
        node = self.nodes[index]
        if node.kind == "compute" and not node.task.ordered:
            self.after(now + self.time_of(node.task.name, iteration, None), lambda time: self.end(time, instance))
            return
        if node.kind == "compute":
            self.ready_computations.add(instance)
            return
        name = node.task.name
        number = next((number for number, bucket in enumerate(self.buckets) if name in bucket), None)
        bucket = [name] if number is None else self.buckets[number]
        self.members[bucket[0], iteration].append(index)
        indexes = sorted(self.members[bucket[0], iteration])
        if len(indexes) < len(bucket):
            return
        tasks = [self.nodes[index].task for index in indexes]
        kind, size = tasks[0].kind, sum(task.size for task in tasks)
        need = min((self.need[task.name] for task in tasks), default=0) if self.need else 0
        names = [task.name for task in tasks]
        one = Candidate(names, iteration, kind, now, self.program[names[0]], need, cut(size, self.rule.part(kind)))
        if self.rule.in_order and number is not None:
            self.waiting.append((iteration * len(self.buckets) + number, one))
        else:
            self.candidates.append(one)

    def serve(self, now):
        """Begins the next computation, and launches what the rule picks."""
        while self.computations and not self.computing and self.computations[0] in self.ready_computations:
            instance = self.computations.popleft()
            self.computing = True
            self.after(now + self.nodes[instance[0]].time, functools.partial(self.end_computation, instance))
        while True:
            self.candidates += [one for turn, one in self.waiting if turn == self.turn]
            self.waiting = [(turn, one) for turn, one in self.waiting if turn != self.turn]
            one = self.rule.pick(self.candidates, self.flight)
            if one is None:
                return
            self.launch(now, one)

    def launch(self, now, one):
        part = one.launched
        flying = (one.kind, one.lane, one.parts.pop(0))
        one.launched += 1
        self.launches.append((now, one.names[0], one.iteration, part))
        self.flight.append(flying)
        if not one.parts:
            self.candidates.remove(one)
        if part == 0 and self.rule.in_order and any(one.names[0] in bucket for bucket in self.buckets):
            self.turn += 1
        ended = not one.parts
        self.after(now + self.time_of(one.names[0], one.iteration, part), functools.partial(self.end_part, one, flying, ended))

    def end_part(self, one, flying, _, now):
        self.flight.remove(flying)
        one.ended = getattr(one, "ended", 0) + 1
        if one.ended == one.launched and not one.parts:
            for name in one.names:
                self.end(now, (next(index for index, node in self.nodes.items() if node.task.name == name), one.iteration))

    def end_computation(self, instance, now):
        self.computing = False
        self.end(now, instance)

    def end(self, now, instance):
        ended, iteration = instance
        for index, node in self.nodes.items():
            later = [(index, iteration)] * node.before.count(ended)
            if iteration + 1 < self.graph.iterations:
                later += [(index, iteration + 1)] * node.previous.count(ended)
            for other in later:
                self.left[other] -= 1
                if self.left[other] == 0:
                    self.become_ready(now, other)

    def after(self, time, act):
        heapq.heappush(self.events, (time, next(self.number), act))
