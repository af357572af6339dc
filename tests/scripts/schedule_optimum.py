"""The ends of schedules of a graph (task_graphs.py) on one channel, and the best of all orders, to judge the rules of TicTac and PACE.

Computations run as netsim runs them: in the order of the program, or, where they are in none, sharing the GPU equally.
"""

import itertools
import math

from task_graphs import PS_PER_BYTE


def served_end(graph, priority):
    """preemptive_end() of a server's messages that are all ready at once, for computations in the order of the program."""
    arrival, now = {}, 0
    for name in sorted(priority, key=priority.get):
        now += next(node.time for node in graph.nodes if node.task.name == name and node.kind == "send")
        arrival[name] = now
    ends = {}
    for index, node in enumerate(graph.nodes):
        begin = max((ends[other] for other in node.before if other in ends), default=0)
        ends[index] = arrival[node.task.name] if node.kind == "receive" else begin + (node.time if node.kind == "compute" else 0)
    return max(ends.values())


def preemptive_end(graph, priority):
    """When an iteration has ended, if at every instant the ready communication with the least `priority`, by name, runs."""
    nodes, now = graph.nodes, 0
    left = [node.time for node in nodes]
    waits = [set(node.before) for node in nodes]

    def end(ended):
        left[ended] = 0
        for index, others in enumerate(waits):
            if ended in others:
                others.discard(ended)
                if not others and nodes[index].kind == "receive":
                    end(index)

    while True:
        ready = [index for index, time in enumerate(left) if time > 0 and not waits[index]]
        computing = [index for index in ready if nodes[index].kind == "compute"]
        channel = min((index for index in ready if nodes[index].kind != "compute"), key=lambda index: priority[nodes[index].task.name], default=None)
        shares = {index: len(computing) for index in computing} | ({} if channel is None else {channel: 1})
        if not shares:
            return now
        step = min(left[index] * share for index, share in shares.items())
        now += step
        for index, share in shares.items():
            left[index] -= step / share
            if left[index] < 0.5:  # ps
                end(index)


def groupings(names):
    """All ways to cut a list into consecutive groups."""
    for cuts in itertools.product((False, True), repeat=len(names) - 1):
        groups = [[names[0]]]
        for name, cut in zip(names[1:], cuts):
            if cut:
                groups.append([])
            groups[-1].append(name)
        yield groups


def fused_end(tensors, startup, groups):
    """The latest end of a tail, if at every instant the ready group with the longest tail runs. A group takes `startup` and its transfers.
    `tensors` has the task, the time at which it is ready and the tail of each tensor."""
    of = {task.name: (ready, task.size * PS_PER_BYTE, tail) for task, ready, tail in tensors}
    jobs = []
    for group in groups:
        ready, transfer, tail = zip(*(of[name] for name in group))
        jobs.append([max(ready), startup + sum(transfer), max(tail)])
    now = end = 0
    while jobs:
        ready = [job for job in jobs if job[0] <= now]
        later = min((job[0] for job in jobs if job[0] > now), default=math.inf)
        if not ready:
            now = later
            continue
        job = max(ready, key=lambda job: job[2])
        step = min(job[1], later - now)
        now += step
        job[1] -= step
        if job[1] == 0:
            end = max(end, now + job[2])
            jobs.remove(job)
    return end


def chain_end(graph, priority):
    """When the next forward of a chain of layers has ended, if the gradients are exchanged preemptively by `priority`."""
    nodes = {node.task.name: node for node in graph.nodes}
    layers = sum(name.startswith("f") for name in nodes)
    now = sum(nodes[f"f{layer}"].time for layer in range(layers))
    released = []
    for layer in reversed(range(layers)):
        now += nodes[f"b{layer}"].time
        released.append((now, f"g{layer}"))
    end, left, now = {}, {name: nodes[name].time for _, name in released}, 0
    while left:
        ready = [name for time, name in released if time <= now and name in left]
        later = min((time for time, _ in released if time > now), default=math.inf)
        if not ready:
            now = later
            continue
        name = min(ready, key=priority.get)
        step = min(left[name], later - now)
        now += step
        left[name] -= step
        if left[name] == 0:
            end[name] = now
            del left[name]
    now = 0
    for layer in range(layers):
        now = max(now, end[f"g{layer}"]) + nodes[f"f{layer}"].time
    return now


def best(graph, end):
    """The least end over all orders of the communications. `end` takes the graph and the places of the communications by name."""
    names = [task.name for task in graph.communications()]
    return min(end(graph, {name: place for place, name in enumerate(order)}) for order in itertools.permutations(names))
