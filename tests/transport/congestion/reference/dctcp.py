"""DCTCP, independently of netsim: section 3.1 of Alizadeh et al., SIGCOMM 2010 (form window), and its rate form
in the ns-3 RDMA model.

Reads one JSON trace a line, writes a line of [rate, window] after each of its records."""
import json
import sys


def sizes_after(trace):
    p, line, mtu = trace["parameters"], trace["line_rate"], trace["mtu"]
    by_window = p["form"] == "window"
    if by_window:
        size, least, most, step = p["initial_window"] or line * trace["base_rtt"] / 8e12, mtu, float("inf"), mtu
        size = max(size, least)
    else:
        size, least, most, step = float(line), p["minimum_rate"], line, p["rate_ai"]
    alpha, window_end, reduced_until = 1.0, None, None
    acks = []  # of the current window of data: (packets, marked ones)
    for ack in trace["feedback"]:
        acks.append((ack["packets"], ack["marked"]))
        new_window = window_end is None or ack["psn"] > window_end
        if new_window:
            if window_end is not None:
                packets, marks = (sum(column) for column in zip(*acks))
                alpha += p["g"] * (min(1.0, marks / max(1, packets)) - alpha)
                acks = []
            window_end = ack["next_psn"]
        if reduced_until is not None and ack["psn"] > reduced_until:
            reduced_until = None
        in_flight = (ack["next_psn"] - ack["psn"] + ack["packets"]) * mtu
        if ack["marked"] and reduced_until is None:
            size = min(most, max(least, size * (1 - alpha / 2)))
            reduced_until = ack["next_psn"]
        elif new_window and reduced_until is None and (in_flight + mtu > size or not by_window):
            size = min(most, max(least, size + step))
        yield [line, size] if by_window else [size, None]


for text in sys.stdin:
    print(json.dumps(list(sizes_after(json.loads(text)))))
