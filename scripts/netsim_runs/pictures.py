"""Shared by the scripts that draw: colours, and how matplotlib is set up so that the same values give the same bytes."""

import importlib.util
import os

ENDINGS = (".svg", ".png", ".pdf")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d31")  # Okabe and Ito's
MARKERS = "osD^vPX*"


def style(i):
    """How the i-th curve of a picture is drawn."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "markersize": 4}


def available():
    return importlib.util.find_spec("matplotlib") is not None


def pyplot():
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "netsim", "svg.fonttype": "path", "font.size": 9, "axes.grid": False})
    from matplotlib import pyplot as plot
    return plot


def save(figure, path):
    """`path`: a pathlib.Path that ends in one of ENDINGS."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")  # no half a picture, however the process ends
    figure.savefig(beside, format=path.suffix[1:], dpi=110, metadata={"Date": None} if path.suffix == ".svg" else {})
    os.replace(beside, path)
    pyplot().close(figure)
