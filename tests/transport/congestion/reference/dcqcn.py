"""DCQCN, independently of netsim: equations (1) to (4) of Zhu et al., SIGCOMM 2015 (profile sigcomm15), and the
NIC vendor's rules as the ns-3 RDMA model has them (profile vendor), by walking through every tick.

Reads one JSON trace a line, writes a line of [rate, window] after each of its records."""
import json
import sys


def rates_after(trace):
    p, line = trace["parameters"], trace["line_rate"]
    vendor = p["profile"] == "vendor"
    rc = rt = float(line)
    alpha, g = 1.0, p["g"]
    seen_alpha = seen_decrease = started = risen = False
    by_timer = by_bytes = sent = 0
    next_alpha = next_cut = next_rise = float("inf")

    def rise():
        nonlocal rc, rt, risen
        risen, f = True, p["fast_recovery_steps"]
        if p["byte_counter"] and p["increase_timer"]:
            most, hyper = max(by_timer, by_bytes), min(by_timer, by_bytes) > f
        else:
            most, hyper = by_timer + by_bytes, by_timer + by_bytes > f + 1
        if most > f:
            rt = min(line, rt + (p["rate_hai"] if hyper else p["rate_ai"]))
        rc = max(p["minimum_rate"], (rc + rt) / 2)

    def cut(now):
        nonlocal rc, rt, risen, by_timer, by_bytes, sent, next_rise
        if risen or not vendor:
            rt = rc
        rc = max(p["minimum_rate"], rc * (1 - alpha / 2))
        risen, by_timer, by_bytes, sent = False, 0, 0, 0
        next_rise = now + p["increase_timer"] if p["increase_timer"] else float("inf")

    last_cut = 0
    for record in trace["feedback"]:
        now = record["time"]
        while min(next_alpha, next_cut, next_rise) <= now:
            tick = min(next_alpha, next_cut, next_rise)
            if tick == next_rise:
                by_timer, next_rise = by_timer + 1, next_rise + p["increase_timer"]
                rise()
            elif tick == next_alpha:
                alpha, seen_alpha = (1 - g) * alpha + (g if seen_alpha else 0), False
                next_alpha += p["alpha_timer"]
            else:
                if seen_decrease:
                    cut(tick)
                seen_decrease, next_cut = False, next_cut + p["decrease_interval"]
        if record["kind"] == "cnp" and vendor:
            if not started:
                next_alpha, next_cut = now + p["alpha_timer"], now + 1000 + p["decrease_interval"]
            seen_alpha, seen_decrease, started = started, True, True
        elif record["kind"] == "cnp" and (not started or now - last_cut >= p["decrease_interval"]):
            cut(now)
            alpha, started, last_cut = (1 - g) * alpha + g, True, now
            next_alpha = now + p["alpha_timer"]
        elif record["kind"] == "sent" and p["byte_counter"] and started and round(rc) < line:
            sent += record["bytes"]
            if sent >= p["byte_counter"]:
                sent, by_bytes = sent - p["byte_counter"], by_bytes + 1
                rise()
        yield [rc, None]


for text in sys.stdin:
    print(json.dumps(list(rates_after(json.loads(text)))))
