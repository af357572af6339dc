"""InfiniBand congestion control at the channel adapter, independently of netsim: annex A10 of the InfiniBand
Architecture Specification, volume 1.

Reads one JSON trace a line, writes a line of [rate, window] after each of its records."""
import json
import sys


def entry(i, p):
    """(multiplier, shift): an injection delay of multiplier / 2^shift packet times."""
    step = p["delay_step"]
    delay = {"linear": step * i, "quadratic": step * i**2, "exponential": (1 + step) ** i - 1}[p["table"]]
    fitting = [(int(delay * 2**shift + 0.5), shift) for shift in (3, 2, 1, 0) if delay * 2**shift + 0.5 < 2**14]
    return fitting[0] if fitting else (2**14 - 1, 0)


def rates_after(trace):
    p, line = trace["parameters"], trace["line_rate"]
    table = [entry(i, p) for i in range(p["ccti_limit"] + 1)]
    ccti, running_since = p["ccti_min"], None
    for record in trace["feedback"]:
        now = record["time"]
        if running_since is not None:
            elapsed = (now - running_since) // p["ccti_timer"]
            fallen = min(elapsed, ccti - p["ccti_min"])
            ccti -= fallen
            running_since = running_since + fallen * p["ccti_timer"] if ccti > p["ccti_min"] else None
        if record["kind"] == "cnp":
            ccti = min(ccti + p["ccti_increase"], p["ccti_limit"])
            if running_since is None and ccti > p["ccti_min"]:
                running_since = now
        multiplier, shift = table[ccti]
        yield [line * 2**shift / (2**shift + multiplier), None]


for text in sys.stdin:
    print(json.dumps(list(rates_after(json.loads(text)))))
