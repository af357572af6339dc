"""PowerTCP and theta-PowerTCP, independently of netsim: algorithms 1 and 2 of Addanki et al., NSDI 2022, in bytes and
seconds, with the choices of the authors' simulator that the component's header comment lists.

Reads one JSON trace a line, writes a line of [rate, window] after each of its records."""
import json
import sys


def windows_after(trace):
    p, line = trace["parameters"], trace["line_rate"]
    in_band = p["form"] == "int"
    tau = (p["base_rtt"] or trace["base_rtt"]) * 1e-12
    w_max, w_min, beta = (r * tau / 8 for r in (line, p["minimum_rate"], p["rate_ai"]))
    cwnd = cwnd_old = w_max
    smooth, last_updated, prev_int, prev_rtt, prev_time = 1.0, None, None, 0, 0

    def power_of_ports(hops):
        """(normalised power, dt) of the port with the most; None where the readings cannot be compared."""
        if prev_int is None or len(prev_int) != len(hops):
            return None
        found = []
        for (time, sent, queue, rate), (time0, sent0, queue0, _) in zip(hops, prev_int):
            dt, b = (time - time0) * 1e-12, rate / 8
            if dt <= 0 or b * dt >= 2**32:
                return None
            current = max((queue - queue0) + (sent - sent0), 0) / dt
            voltage = queue + b * tau
            found.append((current * voltage / (b * b * tau), dt))
        return max(found, key=lambda pair: pair[0])

    for ack in trace["feedback"]:
        whole_rtt = last_updated is None or ack["psn"] > last_updated
        power = None
        if in_band:
            power = power_of_ports(ack["hops"])
            prev_int = ack["hops"]
        elif ack["rtt"] > 0:
            if prev_rtt > 0:
                dt = (ack["time"] - prev_time) * 1e-12
                slope = max((ack["rtt"] - prev_rtt) * 1e-12 / dt + 1, 0.5)
                power = slope * ack["rtt"] * 1e-12 / (p["rtt_margin"] * tau), dt
            prev_rtt, prev_time = ack["rtt"], ack["time"]
        if power is not None:
            dt = min(power[1], tau)
            smooth = (smooth * (tau - dt) + power[0] * dt) / tau
            if in_band or whole_rtt:
                relative = smooth / p["eta"] if in_band else smooth
                wanted = cwnd_old / relative if relative > 0 else float("inf")
                cwnd = p["gamma"] * (wanted + beta) + (1 - p["gamma"]) * cwnd
                cwnd = min(max(cwnd, w_min), w_max)
        if whole_rtt:
            cwnd_old, last_updated = cwnd, max(last_updated or 0, ack["next_psn"])
        yield [cwnd * 8 / tau, cwnd]


for text in sys.stdin:
    print(json.dumps(list(windows_after(json.loads(text)))))
