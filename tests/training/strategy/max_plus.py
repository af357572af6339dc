#!/usr/bin/env python3
"""When does one iteration of a pipeline end, if a transfer between stages takes a constant time?

An oracle for the pipeline tests, written from the published schedules and sharing nothing with the simulator:
  1f1b         PipeDream-Flush (Narayanan et al., ICML 2021); Megatron-LM "without interleaving"
  interleaved  Narayanan et al., SC 2021, section 2.2.2; Megatron-LM "with interleaving"

Or, for any other schedule, a replay of its steps, from what one stage after the other computes and where the parts of
the model are.

Each argument, or each line of the standard input if there is none, is one pipeline:
    SCHEDULE STAGES CHUNKS MICROBATCHES FORWARD BACKWARD DELAY [GROUP]
(separated by spaces or colons). FORWARD and BACKWARD are the times of one microbatch in one model chunk, DELAY is
added wherever the next part of the model is on another stage; integers of any unit. GROUP: of interleaved, Megatron-
Core's microbatch_group_size_per_vp_stage. One line each is printed: the end of the last backward.

    max_plus.py --replay FILE
Each line of the file is a pipeline in JSON: `placement` (looped, v_shaped, bidirectional), `stages`, `chunks`,
`microbatches`, `times` of F, B, I, W and & in one part of the model, `delay` between stages, `waits` (whether a stage
waits for what it has sent), and `steps`: a list of texts ("F0", "I1.1", "F2.0&B1.1") for each stage. Of steps that
communicate "SF0", "RF0", "SB0", "RB0" send and receive where they stand, "G.1" reduces the gradients of a chunk; the
stage waits for those with a "!". `replicas`: of the pipeline; `reduces`: whether gradients are reduced at all, at the
end those that no step reduces. Reductions are those of two ranks, in two messages one after the other. `ordered`: all
messages of a stage are in one stream of calls. "any": behind a step its sends and what the next step receives are one
call; "direction": what the next step of the same direction receives (Megatron-LM's interleaved schedule).

The recurrence is max-plus: an operation starts at the maximum of the end of the operation before it on its stage and
of the arrival of its input, and ends a constant later.
"""
import json
import re
import sys


def order_1f1b(stage, stages, chunks, microbatches, _group=None):
    """Yields ('F' or 'B', chunk, microbatch) in the order of one stage."""
    assert chunks == 1
    ahead = min(stages - 1 - stage, microbatches)
    forwards = iter(range(microbatches))
    for _ in range(ahead):
        yield "F", 0, next(forwards)
    for backward in range(microbatches):
        forward = next(forwards, None)
        if forward is not None:
            yield "F", 0, forward
        yield "B", 0, backward


def order_interleaved(stage, stages, chunks, microbatches, group=None):
    group = group or stages
    groups = [range(first, min(first + group, microbatches)) for first in range(0, microbatches, group)]
    assert all(len(one) >= stages for one in groups)
    forwards = [("F", c, j) for group in groups for c in range(chunks) for j in group]
    backwards = [("B", c, j) for group in groups for c in reversed(range(chunks)) for j in group]
    ahead = 2 * (stages - 1 - stage) + (chunks - 1) * group
    if microbatches == stages or ahead > len(forwards):
        ahead = len(forwards)
    yield from forwards[:ahead]
    for forward, backward in zip(forwards[ahead:], backwards):
        yield forward
        yield backward
    yield from backwards[len(forwards) - ahead:]


ORDERS = {"1f1b": order_1f1b, "interleaved": order_interleaved}


def completion(schedule, stages, chunks, microbatches, forward, backward, delay, group=None):
    duration = {"F": forward, "B": backward}
    todo = [list(ORDERS[schedule](s, stages, chunks, microbatches, group)) for s in range(stages)]
    position = [0] * stages
    free = [0] * stages
    ends = {}  # (direction, part of the model, microbatch) -> time

    def arrival(direction, part, microbatch):
        """Of the input; None if what makes it has not been timed yet."""
        last = stages * chunks - 1
        if direction == "F":
            if part == 0:
                return 0
            source = ("F", part - 1, microbatch)
        elif part == last:
            source = ("F", part, microbatch)
        else:
            source = ("B", part + 1, microbatch)
        if source not in ends:
            return None
        return ends[source] + (delay if source[1] % stages != part % stages else 0)

    progress = True
    while progress:
        progress = False
        for stage in range(stages):
            while position[stage] < len(todo[stage]):
                direction, chunk, microbatch = todo[stage][position[stage]]
                part = chunk * stages + stage
                ready = arrival(direction, part, microbatch)
                if ready is None:
                    break
                free[stage] = max(free[stage], ready) + duration[direction]
                ends[direction, part, microbatch] = free[stage]
                position[stage] += 1
                progress = True
    if any(position[s] < len(todo[s]) for s in range(stages)):
        raise SystemExit("deadlock: %s %d %d %d" % (schedule, stages, chunks, microbatches))
    return max(free)


class Reductions:
    """Of each stage one after the other; each half of the gradients goes to the other member, which adds its own to
    it, and comes back."""

    def __init__(self, stages, delay):
        self.delay = delay
        self.todo = [[] for _ in range(stages)]  # by stage: [members, key, when it may begin, its begin, its end]

    def add(self, stage, members, key, ready):
        self.todo[stage].append([members, key, ready, None, None])

    def entry(self, stage, key):
        return next((one for one in self.todo[stage] if one[1] == key), None)

    def settle(self):
        for entries in self.todo:
            free = 0
            for one in entries:
                if one[3] is None:
                    if free is None:
                        break
                    one[3] = max(one[2], free)
                free = one[4]
        progress = False
        for stage, entries in enumerate(self.todo):
            for one in entries:
                if one[3] is None or one[4] is not None:
                    continue
                others = [self.entry(member, one[1]) for member in one[0] if member != stage] or [one]
                if any(other is None or other[3] is None for other in others):
                    continue
                (other,) = others
                one[4] = max(other[3], one[3] + self.delay) + self.delay
                progress = True
        return progress


class Replay:
    """A stage's steps run in order; a step runs when what it needs has arrived."""

    def __init__(self, case):
        self.case = case
        p, v = case["stages"], case["chunks"]
        ways = {"looped": [[part % p for part in range(p * v)]],
                "v_shaped": [[min(part, 2 * p - 1 - part) for part in range(2 * p)]],
                "bidirectional": [list(range(p)), list(range(p - 1, -1, -1))]}[case["placement"]]
        self.way = {}  # (stage, chunk) -> the stages of its way, its place there
        held = [0] * p
        for stages in ways:
            for place, stage in enumerate(stages):
                self.way[stage, held[stage]] = (stages, place)
                held[stage] += 1
        self.held = held
        self.copies = {}  # place -> the stages that have it
        for (stage, _), (_, place) in self.way.items():
            self.copies.setdefault(place, set()).add(stage)
        self.arrived = {}  # (what, way, place, microbatch) -> time
        self.end = [0] * p
        self.named = [set(word.rstrip("!") for word in steps) for steps in case["steps"]]
        self.delivered = {}  # (stage, text of a send) -> time
        self.reductions = Reductions(p, case["delay"])

    def needs(self, stage, what, chunk, microbatch):
        """The keys in `arrived` that a computation waits for."""
        stages, place = self.way[stage, chunk]
        way = tuple(stages)
        if what == "F":
            return [("F", way, place, microbatch)] if place else []
        if what == "W":
            return [("own I", way, place, microbatch)]
        keys = [("own F", way, place, microbatch)]
        return keys + ([("B", way, place, microbatch)] if place + 1 < len(stages) else [])

    def send(self, stage, what, chunk, microbatch, begin):
        """Returns when it is there; "F" or "B"."""
        stages, place = self.way[stage, chunk]
        other = place + 1 if what == "F" else place - 1
        if not 0 <= other < len(stages):
            return begin
        there = begin + (self.case["delay"] if stages[other] != stage else 0)
        self.arrived[what, tuple(stages), other, microbatch] = there
        return there

    def publish(self, stage, what, chunk, microbatch, end):
        """Notes what others may use, and returns when the stage has sent it."""
        stages, place = self.way[stage, chunk]
        if what == "W":
            return end
        self.arrived["own " + {"F": "F"}.get(what, "I"), tuple(stages), place, microbatch] = end
        direction = "F" if what == "F" else "B"
        text = "S%s%d" % (direction, microbatch) + (".%d" % chunk if chunk else "")
        return end if text in self.named[stage] else self.send(stage, direction, chunk, microbatch, end)

    def communicate(self, stage, text, begin):
        """When the stage goes on; None if it waits for something that is not known yet."""
        kind, microbatch, chunk, waits = re.fullmatch(r"([SR][FB]|G)(\d*)(?:\.(\d+))?(!?)", text).groups()
        chunk = int(chunk or 0)
        if kind == "G":
            place = self.way[stage, chunk][1]
            known = self.reductions.entry(stage, place)
            if not known:
                if not self.reduces(place):
                    return begin
                self.reductions.add(stage, self.copies[place], place, begin)
                known = self.reductions.entry(stage, place)
            if not waits:
                return begin
            return None if known[4] is None else max(begin, known[4])
        name, microbatch = (stage, text.rstrip("!")), int(microbatch)
        if kind[0] == "S" and name not in self.delivered:
            self.delivered[name] = self.send(stage, kind[1], chunk, microbatch, begin)
        if not waits:
            return begin
        if kind[0] == "S":
            return max(begin, self.delivered[name])
        stages, place = self.way[stage, chunk]
        there = self.arrived.get((kind[1], tuple(stages), place, microbatch))
        return None if there is None else max(begin, there)

    def reduces(self, place):
        return self.case.get("reduces") and len(self.copies[place]) * self.case["replicas"] > 1

    def step(self, stage, text, begin):
        """The end of the step and of its sends; None if it cannot begin yet."""
        if text[0] in "SRG":
            end = self.communicate(stage, text, begin)
            return None if end is None else (None, end, end)
        parts = [(k, int(c or 0), int(m)) for k, m, c in re.findall(r"([FBIW])(\d+)(?:\.(\d+))?", text)]
        keys = [key for k, c, m in parts for key in self.needs(stage, k, c, m)]
        if any(key not in self.arrived for key in keys):
            return None
        begin = max([begin] + [self.arrived[key] for key in keys])
        end = begin + self.case["times"]["&" if "&" in text else text[0]]
        return end, end, max(self.publish(stage, k, c, m, end) for k, c, m in parts)

    def reduce_rest(self, stage, ready):
        places = sorted(self.way[stage, chunk][1] for chunk in range(self.held[stage]))
        for place in places:
            if self.reduces(place) and not self.reductions.entry(stage, place):
                self.reductions.add(stage, self.copies[place], place, ready)

    def run(self):
        todo = [list(steps) for steps in self.case["steps"]]
        free = [0] * len(todo)
        progress = True
        while progress:
            progress = self.reductions.settle()
            for stage, steps in enumerate(todo):
                while steps:
                    done = self.step(stage, steps[0], free[stage])
                    if done is None:
                        break
                    computed, end, sent = done
                    if computed is not None:
                        self.end[stage] = computed
                    free[stage] = sent if self.case["waits"] else end
                    steps.pop(0)
                    progress = True
                    if not steps:
                        # The end of an iteration waits for no send of the last step.
                        self.reduce_rest(stage, end)
        if any(todo) or any(one[4] is None for entries in self.reductions.todo for one in entries):
            raise SystemExit("deadlock: %s" % self.case)
        return max(self.end + [one[4] for entries in self.reductions.todo for one in entries])


class OrderedReplay(Replay):
    """The same where all messages of a stage are in one stream. A call ends when all of its messages are there, and the
    next one is launched then, if what it waits for is computed."""

    def __init__(self, case):
        super().__init__(case)
        self.steps = [[re.findall(r"([FBIW])(\d+)(?:\.(\d+))?", text) for text in steps] for steps in case["steps"]]
        # By stage: [steps that are done before, sends, receives, when it is launched, when it ends].
        self.calls = [self.line_up(stage) for stage in range(len(self.steps))]
        self.ends = [[] for _ in self.steps]  # by stage, of its steps
        self.received = {}  # (stage, key) -> its call

    def messages(self, stage, step, sent):
        """The keys in `arrived` of what a step sends to other stages, or receives."""
        keys = []
        for what, microbatch, chunk in step:
            if what == "W":
                continue
            stages, place = self.way[stage, int(chunk or 0)]
            other = place + (1 if (what == "F") == sent else -1)
            if 0 <= other < len(stages) and stages[other] != stage:
                keys.append(("F" if what == "F" else "B", tuple(stages), other if sent else place, int(microbatch)))
        return keys

    def line_up(self, stage):
        steps = self.steps[stage]
        receives = [[] for _ in range(len(steps) + 1)]
        for i, step in enumerate(steps):
            for key in self.messages(stage, step, False):
                behind = i
                if self.case["ordered"] == "direction":
                    same = [j for j in range(i) if any((what == "F") == (key[0] == "F") for what, _, _ in steps[j])]
                    behind = same[-1] + 1 if same else max(i - 1, 0)
                receives[behind].append(key)
        sends = [[]] + [self.messages(stage, step, True) for step in steps]
        return [[i, sends[i], receives[i], None, None] for i in range(len(steps) + 1) if sends[i] or receives[i]]

    def settle_calls(self, stage):
        free, progress = 0, False
        for call in self.calls[stage]:
            behind, sends, receives, launched, end = call
            if launched is None:
                if len(self.ends[stage]) < behind:
                    break
                call[3] = launched = max(free, self.ends[stage][behind - 1] if behind else 0)
                for key in sends:
                    self.arrived[key] = launched + self.case["delay"]
                for key in receives:
                    self.received[stage, key] = call
                progress = True
            if end is None:
                if any(key not in self.arrived for key in receives):
                    break
                call[4] = end = max([launched + (self.case["delay"] if sends else 0)] +
                                    [self.arrived[key] for key in receives])
                progress = True
            free = end
        return progress

    def compute(self, stage):
        """Computes the next step; False if it cannot begin yet."""
        done = len(self.ends[stage])
        if done == len(self.steps[stage]):
            return False
        begin = self.ends[stage][-1] if done else 0
        step = self.steps[stage][done]
        for key in self.messages(stage, step, False):
            call = self.received.get((stage, key))
            if call is None or key not in self.arrived:
                return False
            begin = max(begin, call[3], self.arrived[key])
        if self.case["waits"] and done:
            for call in self.calls[stage]:
                if call[0] == done and call[1]:
                    if call[3] is None:
                        return False
                    begin = max(begin, call[3] + self.case["delay"])
        text = self.case["steps"][stage][done]
        self.ends[stage].append(begin + self.case["times"]["&" if "&" in text else text[0]])
        return True

    def run(self):
        progress = True
        while progress:
            progress = False
            for stage in range(len(self.steps)):
                progress = self.settle_calls(stage) or self.compute(stage) or progress
        if any(len(ends) < len(steps) for ends, steps in zip(self.ends, self.steps)):
            raise SystemExit("deadlock: %s" % self.case)
        return max(ends[-1] for ends in self.ends)


def main():
    if sys.argv[1:2] == ["--replay"]:
        with open(sys.argv[2]) as lines:
            for line in lines:
                case = json.loads(line)
                print((OrderedReplay if case.get("ordered") else Replay)(case).run())
        return
    for line in sys.argv[1:] or sys.stdin:
        schedule, *numbers = line.replace(":", " ").split()
        print(completion(schedule, *map(int, numbers)))


if __name__ == "__main__":
    main()
