"""HPCC, independently of netsim: algorithm 1 of Li et al., SIGCOMM 2019, in windows, with the choices of the
authors' simulator that the component's header comment lists.

Reads one JSON trace a line, writes a line of [rate, window] after each of its records."""
import json
import sys


def fields(hop, p):
    """Time in ps, bytes sent and queued, in the units of the INT header where it is quantised."""
    time, sent, queue, _ = hop
    if not p["quantise"]:
        return time, sent, queue
    multi = p["unit_multiplier"]
    return time // 1000 & 0xFFFFFF, sent // (128 * multi) & 0xFFFFF, queue // (80 * multi) & 0x1FFFF


def windows_after(trace):
    p, line = trace["parameters"], trace["line_rate"]
    T = p["base_rtt"] or trace["base_rtt"]
    seconds = T * 1e-12
    w_max, w_min, w_ai = (r * seconds / 8 for r in (line, p["minimum_rate"], p["rate_ai"]))
    queue_unit = 80 * p["unit_multiplier"] if p["quantise"] else 1
    window, before, last_update = w_max, None, None
    U, Wc, stage = [1.0] * 5, [w_max] * 5, [0] * 5

    def differences(hop, old):
        if not p["quantise"]:
            return hop[0] - old[0], hop[1] - old[1]
        return (hop[0] - old[0]) % 2**24 * 1000, (hop[1] - old[1]) % 2**20 * 128 * p["unit_multiplier"]

    def compute(i, u, tau, update):
        tau = min(tau, T)
        U[i] = (1 - tau / T) * U[i] + tau / T * u
        if U[i] >= p["eta"] or stage[i] >= p["max_stage"]:
            W, inc = (Wc[i] / (U[i] / p["eta"]) if U[i] > 0 else float("inf")) + w_ai, 0
        else:
            W, inc = Wc[i] + w_ai, stage[i] + 1
        W = min(max(W, w_min), w_max)
        if update:
            Wc[i], stage[i] = W, inc
        return W

    for ack in trace["feedback"]:
        update = last_update is None or ack["psn"] > last_update
        if update or p["fast_reaction"]:
            now = [fields(hop, p) for hop in ack["hops"]]
            usable = before is not None and len(before) == len(now)
            deltas = [differences(a, b) for a, b in zip(now, before)] if usable else []
            if usable and all(tau > 0 and sent >= 0 for tau, sent in deltas):
                load = []
                for (tau, sent), new, old, hop in zip(deltas, now, before, ack["hops"]):
                    B = hop[3] / 8
                    load.append((min(new[2], old[2]) * queue_unit / (B * seconds) + sent / (tau * 1e-12) / B, tau))
                if p["rates"] == "per_hop":
                    window = min([w_max] + [compute(i, u, tau, update) for i, (u, tau) in enumerate(load)])
                else:
                    window = compute(0, *max(load, key=lambda pair: pair[0]), update)
            before = now
            if update:
                last_update = max(last_update or 0, ack["next_psn"])
        yield [window * 8 / seconds, window]


for text in sys.stdin:
    print(json.dumps(list(windows_after(json.loads(text)))))
