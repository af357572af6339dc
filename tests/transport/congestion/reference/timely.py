"""TIMELY, independently of netsim: algorithm 1 of Mittal et al., SIGCOMM 2015, once per round trip, with the
choices of the ns-3 RDMA model that the component's header comment lists.

Reads one JSON trace a line, writes a line of [rate, window] after each of its records."""
import json
import sys


def rates_after(trace):
    p, line = trace["parameters"], trace["line_rate"]
    rate, diff, in_a_row = float(line), 0.0, 0
    rounds = []  # (rtt, first packet of the next round trip)
    for ack in trace["feedback"]:
        rtt = ack["rtt"] - ack["rtt"] % p["resolution"]
        if ack["rtt"] > 0 and (not rounds or ack["psn"] > rounds[-1][1]):
            if rounds:
                diff = diff + p["alpha"] * ((rtt - rounds[-1][0]) - diff)
                gradient = diff / p["minimum_rtt"]
                if rtt < p["t_low"]:
                    factor = None
                elif rtt > p["t_high"]:
                    factor = 1 - p["beta"] * (1 - p["t_high"] / rtt)
                else:
                    factor = None if gradient <= 0 else max(0, 1 - p["beta"] * gradient)
                if factor is None:
                    rate = min(line, rate + p["rate_ai" if in_a_row < p["hai_after"] else "rate_hai"])
                    in_a_row += 1
                else:
                    rate, in_a_row = min(line, max(p["minimum_rate"], rate * factor)), 0
            rounds.append((rtt, ack["next_psn"]))
        yield [rate, None]


for text in sys.stdin:
    print(json.dumps(list(rates_after(json.loads(text)))))
