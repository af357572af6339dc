"""Random task graphs for the tests of task schedulers: as workloads of netsim, and as nodes with edges for replays in Python.

A graph runs on two ranks. Times are in ps, and a communication is estimated by its bytes over the rate of a link.
"""

import dataclasses
import functools
import itertools
import random

PS_PER_BYTE = 80  # of 100 Gb/s
NS = 1000
PACKET = 4096


@dataclasses.dataclass(frozen=True)
class Task:
    """A line of a `kind: tasks` workload. `size` is the time of a computation, or the bytes of a communication."""
    name: str
    kind: str  # compute, message, or the kind of a collective
    size: int
    after: tuple = ()
    after_previous: tuple = ()
    rank: int | None = None  # of a computation; None: it is at both ranks
    ordered: bool = True  # a computation that follows the one before it at its rank

    def line(self):
        line = {"name": self.name}
        if self.kind == "compute":
            line["compute"] = f"{self.size // NS} ns"
            if self.rank is not None:
                line["on"] = self.rank
            if not self.ordered:
                line["ordered"] = False
        elif self.kind == "message":
            line.update({"from": 0, "to": 1, "bytes": f"{self.size} B", "raw": True, "channel": 1})
        else:
            line.update({"collective": self.kind, "bytes": f"{self.size} B"})
        if self.after:
            line["after"] = list(self.after)
        if self.after_previous:
            line["after_previous"] = list(self.after_previous)
        return line


@dataclasses.dataclass
class Node:
    """A task of rank 0, of both ranks where they have the same tasks, or a computation or receive of rank 1."""
    task: Task
    kind: str  # compute, collective, send or receive
    rank: int
    time: int  # of a computation; estimate of a collective or send; 0 for a receive
    before: list = dataclasses.field(default_factory=list)  # nodes of the same iteration that it waits for
    previous: list = dataclasses.field(default_factory=list)  # nodes of the iteration before that it waits for
    behind: int | None = None  # of a computation: the one before it at its rank


@dataclasses.dataclass
class Graph:
    name: str
    tasks: list
    iterations: int = 1

    def workload(self):
        return {"kind": "tasks", "ranks": 2, "iterations": self.iterations, "tasks": [task.line() for task in self.tasks]}

    def communications(self):
        return [task for task in self.tasks if task.kind != "compute"]

    def ends(self, task):
        """The tasks of ranks as which a task runs: kind and rank."""
        if task.kind == "message":
            return (("send", 0), ("receive", 1))
        return (("compute" if task.kind == "compute" else "collective", task.rank or 0),)

    @functools.cached_property
    def nodes(self):
        """The nodes of an iteration, in an order in which each follows those that it waits for."""
        nodes, at, last = [], {}, {}
        for task in self.tasks:
            for kind, rank in self.ends(task):
                node = Node(task, kind, rank, estimate(task, kind))
                if kind == "receive":
                    node.before = [len(nodes) - 1]
                else:
                    node.before = [at[name, rank] for name in task.after]
                if kind == "compute" and task.ordered:
                    node.behind = last.get(rank)
                    last[rank] = len(nodes)
                at[task.name, rank] = len(nodes)
                nodes.append(node)
        continues = any(task.after_previous for task in self.tasks)
        for node in nodes:
            node.previous = [] if node.kind == "receive" else [at[name, node.rank] for name in node.task.after_previous]
            first = node.kind == "compute" and node.task.ordered and node.behind is None
            if (node.kind == "receive" or not node.before) and not (continues and (node.previous or node.behind is not None)):
                node.previous = [index for index, other in enumerate(nodes) if other.rank == node.rank]
            elif continues and first:
                node.previous.append(last[node.rank])
            if node.behind is not None:
                node.before.append(node.behind)
        return nodes


def estimate(task, kind):
    """The time of a node as task schedulers plan with it. Two ranks send the bytes of an all-reduce once, and half of those of an all-to-all."""
    if kind == "receive":
        return 0
    if kind == "compute":
        return task.size
    return task.size * PS_PER_BYTE // (2 if task.kind == "all_to_all" else 1)


def random_bytes(draw):
    return PACKET * draw.choice((1, 2, 4, 5, 8, 16, 17, 32, 50, 64, 100))


def random_time(draw):
    return NS * draw.randint(500, 20_000)


def training(name, draw):
    """Layers as a random graph: forwards, backwards in reverse, and a gradient of each layer, which its next forward waits for. Some gradients
    wait for another communication of their layer, too, so that they become ready in another order than they are computed."""
    count = draw.randint(2, 7)
    tasks, readers = [], {layer: set() for layer in range(count)}
    for layer in range(count):
        reads = {layer - 1} if layer else set()
        reads |= {other for other in range(layer - 1) if draw.random() < 0.2}
        for other in reads:
            readers[other].add(layer)
        tasks.append(Task(f"f{layer}", "compute", random_time(draw), tuple(f"f{other}" for other in sorted(reads)), (f"g{layer}",)))
    for layer in reversed(range(count)):
        after = tuple(f"b{other}" for other in sorted(readers[layer])) or (f"f{layer}",)
        tasks.append(Task(f"b{layer}", "compute", random_time(draw), after))
        waits = (f"b{layer}",)
        if draw.random() < 0.35:
            tasks.append(Task(f"x{layer}", "all_to_all", random_bytes(draw), waits))
            waits = (f"b{layer}", f"x{layer}")
        tasks.append(Task(f"g{layer}", "all_reduce", random_bytes(draw), waits))
    return Graph(name, tasks, draw.randint(2, 4))


def mixed(name, draw):
    """Computations, all-reduces and all-to-alls in any order, each of which waits for some earlier ones."""
    tasks = [Task("t0", "compute", random_time(draw))]
    for index in range(1, draw.randint(6, 18)):
        after = tuple(sorted({f"t{draw.randrange(index)}" for _ in range(draw.randint(1, 3))}))
        kind = draw.choice(("compute", "all_reduce", "all_to_all", "all_reduce"))
        tasks.append(Task(f"t{index}", kind, random_time(draw) if kind == "compute" else random_bytes(draw), after))
    return Graph(name, tasks, draw.randint(1, 2))


def three_kinds(name, draw):
    """A graph of mixed() in which a third of the all-reduces are messages."""
    graph = mixed(name, draw)
    tasks = [dataclasses.replace(task, kind="message") if task.kind == "all_reduce" and draw.random() < 0.33 else task for task in graph.tasks]
    return Graph(name, tasks, graph.iterations)


def served(name, draw, delayed=0.3):
    """Messages of a server, rank 0, and computations of a worker, rank 1, each of which waits for some messages and earlier computations. So many
    of the messages wait for a computation of the server."""
    count, tasks = draw.randint(2, 7), []
    for message in range(count):
        after = ()
        if draw.random() < delayed:
            tasks.append(Task(f"p{message}", "compute", random_time(draw), rank=0))
            after = (f"p{message}",)
        tasks.append(Task(f"r{message}", "message", random_bytes(draw), after))
    unused = list(range(count))
    draw.shuffle(unused)
    for index in range(count + draw.randint(0, 4)):
        needs = {f"r{draw.randrange(count)}" for _ in range(draw.randint(0, 2))} | {f"r{unused.pop()}" for _ in range(1 if unused else 0)}
        needs |= {f"c{draw.randrange(index)}" for _ in range(draw.randint(0, 2)) if index}
        tasks.append(Task(f"c{index}", "compute", random_time(draw), tuple(sorted(needs)), rank=1))
    return Graph(name, tasks)


def unordered(graph):
    """One iteration of the graph, with computations that share their GPU with others that are ready."""
    tasks = [dataclasses.replace(task, ordered=False) if task.kind == "compute" else task for task in graph.tasks]
    return Graph(graph.name, tasks)


def served_branches(name, draw):
    """A graph of served() whose messages can all be sent at once, at most six, with computations in no order of the program."""
    while True:
        graph = served(name, draw, 0)
        if len(graph.communications()) <= 6:
            return unordered(graph)


def mixed_branches(name, draw):
    """A graph of mixed() with two to six communications and computations in no order of the program."""
    while True:
        graph = mixed(name, draw)
        if 2 <= len(graph.communications()) <= 6:
            return unordered(graph)


def chain(name, draw, most=7):
    """Layers that read the layer before, in one iteration and the next."""
    count, tasks = draw.randint(2, most), []
    for layer in range(count):
        tasks.append(Task(f"f{layer}", "compute", random_time(draw), (f"f{layer - 1}",) if layer else (), (f"g{layer}",)))
    for layer in reversed(range(count)):
        tasks.append(Task(f"b{layer}", "compute", random_time(draw), (f"b{layer + 1}" if layer + 1 < count else f"f{layer}",)))
        tasks.append(Task(f"g{layer}", "all_reduce", random_bytes(draw), (f"b{layer}",)))
    return Graph(name, tasks, 2)


def served_chain(name, draw):
    """A computation for each message of a server, which also waits for the computation before. The program sends in another order."""
    count = draw.randint(2, 7)
    messages = [Task(f"r{index}", "message", random_bytes(draw)) for index in range(count)]
    draw.shuffle(messages)
    computations = []
    for index in range(count):
        needs = (f"r{index}", f"c{index - 1}") if index else (f"r{index}",)
        computations.append(Task(f"c{index}", "compute", random_time(draw), needs, rank=1))
    return Graph(name, messages + computations)


def random_graphs(count, seed, families):
    """So many graphs, of the families in turn."""
    makers = itertools.islice(itertools.cycle(families), count)
    return [make(f"{make.__name__}{index}", random.Random(f"{seed} {index}")) for index, make in enumerate(makers)]
