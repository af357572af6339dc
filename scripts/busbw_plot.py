#!/usr/bin/env python3
"""Bus bandwidth over size: what netsim says, beside what nccl-tests measured.

    netsim --config configs/two_dgx.yaml --workload configs/collectives/nccl_tests.yaml --out results/two_dgx
    scripts/busbw_plot.py results/two_dgx --measured all_reduce_perf.txt --out busbw.svg

Simulated curves come from a run's directory or its summary.json (a workload of kind `collective` with `sizes`), one for each kind of
collective, number of ranks and algorithm that the workload names; measured ones from what nccl-tests and rccl-tests print, in-place columns unless --out-of-place says
otherwise. A name may go before each: "tuned=results/second". A table shows time and error at each size that both have, and the geometric
mean of the errors, exp(mean |ln(netsim / measured)|) - 1. Measured and simulated curves whose ratio of bus bandwidth to algorithm
bandwidth differs are of other collectives or numbers of ranks, and are not compared. The picture needs python3-matplotlib.

Exit codes: 0 done, 2 wrong command line or input.
"""

import argparse
import csv
import dataclasses
import json
import math
import pathlib
import re
import sys

from netsim_runs import pictures

FACTOR_DIFFERS = 0.02  # of what is rounded to two digits in a table


class PlotError(Exception):
    """What is wrong with an input, in one line with its place."""


@dataclasses.dataclass
class Curve:
    name: str
    factor: float  # bus bandwidth / algorithm bandwidth
    times: dict  # seconds by bytes

    def busbw(self, size):
        return size / self.times[size] * self.factor * 1e-9


# ---- Reading

def named(text):
    """("tuned", "results/second") of "tuned=results/second"; a path alone names itself."""
    name, separator, path = text.partition("=")
    return (name, path) if separator and name and not pathlib.Path(text).exists() else (text, text)


def read_text(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlotError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_simulated(text):
    name, given = named(text)
    path = pathlib.Path(given)
    path = path / "summary.json" if path.is_dir() else path
    try:
        summary = json.loads(read_text(path))
        rows = [(row["collective"], row["ranks"], row.get("own_algorithm"), row["bytes"], row["time_s"], row["algbw_GBps"],
                 row["busbw_GBps"])
                for row in summary["collectives"]]
    except (ValueError, KeyError, TypeError):
        raise PlotError(f"{path}: is no summary.json of netsim with collectives") from None
    curves = {}
    for collective, ranks, own, size, seconds, algbw, busbw in rows:
        if algbw > 0:
            curve = curves.setdefault((collective, ranks, own), Curve(name, busbw / algbw, {}))
            curve.times[size] = seconds
    if not curves:
        raise PlotError(f"{path}: no collective has ended in it; a workload of kind `collective` with `sizes` gives a curve")
    for (collective, ranks, own), curve in curves.items():
        curve.name += f" ({collective}, {ranks} ranks{f', {own}' if own else ''})"
    return list(curves.values())


def measured_row(words, in_place):
    """(bytes, seconds, algbw, busbw) of a line's words: size, count, type, redop, root (rccl-tests of old has none), and twice
    time in us, algbw, busbw and wrong elements."""
    first = len(words) - (4 if in_place else 8)
    size, seconds, algbw, busbw = int(words[0]), float(words[first]) * 1e-6, float(words[first + 1]), float(words[first + 2])
    if size < 0 or not 0 < seconds < math.inf:
        raise ValueError
    return size, seconds, algbw, busbw


def read_measured(text, in_place):
    name, path = named(text)
    times, fastest = {}, (0, 0)
    for number, line in enumerate(read_text(path).splitlines(), 1):
        line = re.sub(r"^\s*\[[^]]*\]\s*<\w+>:", "", line)  # mpirun --tag-output
        words = line.split()
        if len(words) not in (12, 13) or not words[0].isdigit() or not words[1].isdigit():
            continue  # a header, or what a library logs
        try:
            size, seconds, algbw, busbw = measured_row(words, in_place)
        except ValueError:
            raise PlotError(f"{path}:{number}: no row of nccl-tests: {line.strip()[:60]}") from None
        times.setdefault(size, []).append(seconds)
        fastest = max(fastest, (algbw, busbw))
    times = {size: sum(each) / len(each) for size, each in times.items() if size > 0}
    if not times:
        raise PlotError(f"{path}: holds no rows of nccl-tests (size, count, type, redop, root, time, algbw, busbw, wrong, ...)")
    if fastest[0] <= 0:
        raise PlotError(f"{path}: all bandwidths are 0: of larger messages one can tell what is measured")
    return Curve(name, fastest[1] / fastest[0], times)


# ---- Comparing

@dataclasses.dataclass
class Comparison:
    measured: Curve
    simulated: Curve

    def sizes(self):
        return sorted(self.measured.times.keys() & self.simulated.times.keys())

    def error(self, size):
        return self.simulated.times[size] / self.measured.times[size] - 1

    def mean(self):
        logs = [abs(math.log1p(self.error(size))) for size in self.sizes()]
        return math.expm1(sum(logs) / len(logs))


def compare(measured, simulated):
    """Those of the same factor and with a size in common."""
    pairs = [Comparison(m, s) for m in measured for s in simulated if abs(s.factor / m.factor - 1) < FACTOR_DIFFERS]
    return [pair for pair in pairs if pair.sizes()]


def quantity(value):
    """Four significant digits, and no fewer than the whole number."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def table(pair):
    lines = [f"measured: {pair.measured.name}", f"netsim:   {pair.simulated.name}", "",
             f"{'size (B)':>12} {'measured us':>12} {'netsim us':>12} {'error':>9} {'measured GB/s':>14} {'netsim GB/s':>12}"]
    for size in pair.sizes():
        cells = [quantity(curve.times[size] * 1e6) for curve in (pair.measured, pair.simulated)]
        busbw = [quantity(curve.busbw(size)) for curve in (pair.measured, pair.simulated)]
        lines.append(f"{size:>12} {cells[0]:>12} {cells[1]:>12} {100 * pair.error(size):>+7.1f} % {busbw[0]:>14} {busbw[1]:>12}")
    worst = max(pair.sizes(), key=lambda size: abs(math.log1p(pair.error(size))))
    lines += ["", f"geometric mean of the errors {100 * pair.mean():.1f} %, largest {100 * pair.error(worst):+.1f} % at {worst} B, "
              f"{100 * pair.error(pair.sizes()[-1]):+.1f} %", f"at the largest size; {len(pair.sizes())} sizes"]
    return "\n".join(lines) + "\n"


def write_csv(pairs, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["measured", "simulated", "bytes", "measured_time_s", "simulated_time_s", "error", "measured_busbw_GBps",
                         "simulated_busbw_GBps"])
        for pair in pairs:
            for size in pair.sizes():
                writer.writerow([pair.measured.name, pair.simulated.name, size, pair.measured.times[size],
                                 pair.simulated.times[size], pair.error(size), pair.measured.busbw(size),
                                 pair.simulated.busbw(size)])


# ---- Drawing

def size_text(size):
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def size_axis(axes, sizes):
    from matplotlib import ticker
    axes.set_xscale("log", base=2)
    span = math.log2(max(sizes) / min(sizes))
    axes.xaxis.set_major_locator(ticker.LogLocator(base=2 ** max(1, round(span / 6)), numticks=20))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda size, _: size_text(size)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.tick_params(axis="x", rotation=30)
    axes.set_xlabel("size")
    axes.grid(alpha=0.3, linewidth=0.5)


def draw(measured, simulated, pairs, path, logarithmic):
    pyplot = pictures.pyplot()
    figure, panels = pyplot.subplots(1, 2 if pairs else 1, figsize=(10 if pairs else 5.5, 4), squeeze=False, layout="constrained")
    bandwidth = panels[0][0]
    sizes = [size for curve in measured + simulated for size in curve.times]
    for i, curve in enumerate(measured):
        bandwidth.plot(sorted(curve.times), [curve.busbw(size) for size in sorted(curve.times)], label=f"measured: {curve.name}",
                       linestyle="--", **{**pictures.style(i), "color": "black", "markerfacecolor": "white"})
    for i, curve in enumerate(simulated):
        bandwidth.plot(sorted(curve.times), [curve.busbw(size) for size in sorted(curve.times)], label=curve.name, **pictures.style(i))
    if logarithmic:
        bandwidth.set_yscale("log")
    else:
        bandwidth.set_ylim(bottom=0)
    bandwidth.set_ylabel("bus bandwidth (GB/s)")
    size_axis(bandwidth, sizes)
    bandwidth.legend(fontsize=8, frameon=False)
    if pairs:
        draw_errors(panels[0][1], simulated, pairs)
    pictures.save(figure, path)


def draw_errors(axes, simulated, pairs):
    for pair in pairs:
        label = f"{pair.simulated.name}: {100 * pair.mean():.1f} % in the geometric mean"
        label += f"\nagainst {pair.measured.name}" if len({id(other.measured) for other in pairs}) > 1 else ""
        axes.plot(pair.sizes(), [100 * pair.error(size) for size in pair.sizes()], label=label,
                  **pictures.style(simulated.index(pair.simulated)))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylabel("time, netsim against measured (%)")
    size_axis(axes, [size for pair in pairs for size in pair.sizes()])
    axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))


# ---- The command line

def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simulated", nargs="*", metavar="[NAME=]RESULTS", help="a run's directory, or its summary.json")
    parser.add_argument("--measured", action="append", default=[], metavar="[NAME=]FILE", help="what nccl-tests printed; may be repeated")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="the picture: .svg, .png or .pdf")
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE", help="the table as CSV")
    parser.add_argument("--out-of-place", action="store_true", help="compare with nccl-tests' out-of-place columns")
    parser.add_argument("--log", action="store_true", help="a logarithmic axis of bandwidth")
    options = parser.parse_args(arguments)
    if not options.simulated and not options.measured:
        parser.error("nothing to draw: name a run's directory, and --measured files")
    if options.out and options.out.suffix not in pictures.ENDINGS:
        parser.error(f"--out: {options.out}: a picture's name ends in {', '.join(pictures.ENDINGS)}")
    if options.out and not pictures.available():
        parser.error(f"--out needs matplotlib, which {sys.executable} does not have: apt install python3-matplotlib")
    if options.csv and not (options.simulated and options.measured):
        parser.error("--csv: the table compares; name a run's directory and a --measured file")
    return options


def work(options):
    simulated = [curve for text in options.simulated for curve in read_simulated(text)]
    measured = [read_measured(text, not options.out_of_place) for text in options.measured]
    pairs = compare(measured, simulated)
    if simulated and measured and not pairs:
        factors = "; ".join(f"{curve.name}: {curve.factor:.3f}" for curve in measured + simulated)
        raise PlotError(f"no measured curve is of a simulated collective, ranks and size; busbw / algbw: {factors}")
    print("\n".join(table(pair) for pair in pairs), end="")
    try:
        if options.csv:
            write_csv(pairs, options.csv)
        if options.out:
            draw(measured, simulated, pairs, options.out, options.log)
    except OSError as error:
        raise PlotError(f"{error.filename}: cannot be written: {error.strerror}") from None


def main(arguments=None):
    try:
        work(parse_arguments(arguments))
    except PlotError as error:
        print(f"busbw_plot.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
