"""Goodput of one long flow over a path that loses data packets at random, independently of netsim: the share of
the time in which packets leave that are new. One packet takes one unit of time; its reply, which is never lost,
is back `round_trip` after its start.

Reads a JSON case a line, writes its share a line. The timer begins anew with each acknowledgement of something new."""
import json
import random
import sys
from collections import deque


def goodput(case):
    selective, cumulative, repeat_nack = (case[key] for key in ("selective", "cumulative", "repeat_nack"))
    packets, loss, round_trip, cap = (case[key] for key in ("packets", "loss", "round_trip", "cap"))
    draw = random.Random(case["seed"]).random
    now, acked, following, known, gaps_from, gaps_to = 0.0, 0, 0, set(), 0, 0  # the sender
    began, timer_end, last_sent = 0.0, 0, 0.0
    expected, kept, nacked, latest = 0, set(), False, 0  # the receiver
    replies = deque()  # (time, expected, packet out of order or None)
    while acked < packets:
        while replies and replies[0][0] <= now:
            _, upto, arrived = replies.popleft()
            if arrived is not None and selective:
                known.add(arrived)
                gaps_to = max(gaps_to, arrived)
            elif arrived is not None and upto >= acked:
                following = upto
            before = acked
            while acked < upto:
                known.discard(acked)
                acked += 1
            following = max(following, acked)
            if acked > before or acked == following:
                began, timer_end = now, following
        in_flight = following - acked - (0 if cumulative else len(known))
        timer = began + (case["low_timeout"] if selective and in_flight <= 3 else case["timeout"])
        if timer <= now:
            if selective:
                gaps_from, gaps_to = acked, following if now - last_sent > round_trip else timer_end
            else:
                following = acked
            began, timer_end = now, following
            continue
        gaps_from = max(gaps_from, acked)
        while gaps_from < gaps_to and gaps_from in known:
            gaps_from += 1
        if selective and gaps_from < gaps_to:
            psn, gaps_from = gaps_from, gaps_from + 1
        elif in_flight < cap:
            psn, following = following, following + 1
        else:
            now = min(timer, replies[0][0] if replies else timer)
            continue
        last_sent, back = now, now + round_trip
        now += 1
        if draw() < loss:
            continue
        if psn == expected:
            expected, nacked = expected + 1, False
            while expected in kept:
                kept.remove(expected)
                expected += 1
            replies.append((back, expected, None))
        elif psn < expected:
            replies.append((back, expected, None))
        elif selective:
            kept.add(psn)
            replies.append((back, expected, psn))
        else:
            if not nacked or (repeat_nack and psn <= latest):
                replies.append((back, expected, psn))
            nacked, latest = True, psn
    return packets / now


for text in sys.stdin:
    print(json.dumps(goodput(json.loads(text))))
