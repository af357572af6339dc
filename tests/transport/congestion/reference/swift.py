"""Swift, independently of netsim: algorithm 1 and section 3.5 of Kumar et al., SIGCOMM 2020, without losses and
endpoint delay.

Reads one JSON trace a line, writes a line of [rate, window] after each of its records."""
import json
import sys


def windows_after(trace):
    p, line, mtu = trace["parameters"], trace["line_rate"], trace["mtu"]
    bdp = p["initial_window"] or line * trace["base_rtt"] / 8e12
    cwnd = min(p["max_cwnd"], max(1.0, bdp / mtu))
    alpha = p["fs_range"] / (p["fs_min_cwnd"] ** -0.5 - p["fs_max_cwnd"] ** -0.5)
    beta = -alpha * p["fs_max_cwnd"] ** -0.5
    rtt, last_decrease = max(1, trace["base_rtt"]), float("-inf")
    for ack in trace["feedback"]:
        if ack["rtt"] > 0:
            rtt, previous = ack["rtt"], cwnd
            scaling = max(0.0, min(alpha / cwnd**0.5 + beta, p["fs_range"]))
            target = p["base_target"] + max(0, trace["hops"] - 1) * p["per_hop"] + scaling
            can_decrease = ack["time"] - last_decrease >= rtt
            if rtt < target:
                cwnd += p["ai"] * ack["packets"] / max(1.0, cwnd)
            elif can_decrease:
                cwnd *= 1 - min(p["beta"] * (rtt - target) / rtt, p["max_mdf"])
            cwnd = min(max(p["min_cwnd"], cwnd), p["max_cwnd"])
            if cwnd < previous:
                last_decrease = ack["time"]
        pacing_delay = rtt / cwnd if cwnd < 1 else 0
        yield [min(line, mtu * 8e12 / pacing_delay) if pacing_delay else line, cwnd * mtu]


for text in sys.stdin:
    print(json.dumps(list(windows_after(json.loads(text)))))
