#!/usr/bin/env python3
"""When does one iteration of a pipeline end, if a transfer between stages takes a constant time?

An oracle for the pipeline tests, written from the published schedules and sharing nothing with the simulator:
  1f1b         PipeDream-Flush (Narayanan et al., ICML 2021); Megatron-LM "without interleaving"
  interleaved  Narayanan et al., SC 2021, section 2.2.2; Megatron-LM "with interleaving"

Each argument, or each line of the standard input if there is none, is one pipeline:
    SCHEDULE STAGES CHUNKS MICROBATCHES FORWARD BACKWARD DELAY
(separated by spaces or colons). FORWARD and BACKWARD are the times of one microbatch in one model chunk, DELAY is
added wherever the next part of the model is on another stage; integers of any unit. One line each is printed: the end
of the last backward.

The recurrence is max-plus: an operation starts at the maximum of the end of the operation before it on its stage and
of the arrival of its input, and ends a constant later.
"""
import sys


def order_1f1b(stage, stages, chunks, microbatches):
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


def order_interleaved(stage, stages, chunks, microbatches):
    assert microbatches % stages == 0
    groups = [range(first, first + stages) for first in range(0, microbatches, stages)]
    forwards = [("F", c, j) for group in groups for c in range(chunks) for j in group]
    backwards = [("B", c, j) for group in groups for c in reversed(range(chunks)) for j in group]
    ahead = 2 * (stages - 1 - stage) + (chunks - 1) * stages
    if microbatches == stages or ahead > len(forwards):
        ahead = len(forwards)
    yield from forwards[:ahead]
    for forward, backward in zip(forwards[ahead:], backwards):
        yield forward
        yield backward
    yield from backwards[len(forwards) - ahead:]


ORDERS = {"1f1b": order_1f1b, "interleaved": order_interleaved}


def completion(schedule, stages, chunks, microbatches, forward, backward, delay):
    duration = {"F": forward, "B": backward}
    todo = [list(ORDERS[schedule](s, stages, chunks, microbatches)) for s in range(stages)]
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


def main():
    for line in sys.argv[1:] or sys.stdin:
        schedule, *numbers = line.replace(":", " ").split()
        print(completion(schedule, *map(int, numbers)))


if __name__ == "__main__":
    main()
