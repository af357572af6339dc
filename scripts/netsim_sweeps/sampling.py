"""Points of samples. They come from SHA-256 alone, so they are the same on every machine and with every Python.

The seed is a name: any word. The places of an axis depend on the seed, the name of the axis and the number of the point. So another axis
in the sample changes no axis that was there.
"""

import hashlib
import math
from decimal import Decimal


def fraction(*words):
    """Returns a number of [0, 1) that looks random, for these words."""
    digest = hashlib.sha256("\n".join(str(word) for word in words).encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def random_places(seed, name, points):
    """Returns independent places. More points keep those that were there."""
    return [fraction(seed, name, i) for i in range(points)]


def latin_hypercube_places(seed, name, points):
    """Returns a place in each of `points` equal parts of [0, 1), in a random order. M. D. McKay et al., Technometrics 21(2), 1979."""
    order = sorted(range(points), key=lambda i: (fraction(seed, name, "order", i), i))
    return [(part + fraction(seed, name, i)) / points for i, part in enumerate(order)]


KINDS = {"random": random_places, "latin_hypercube": latin_hypercube_places}


def between(first, last, place, logarithmic, whole):
    """Returns the number at a place of the range, as a Decimal of 4 digits, or a whole number of which all are equally likely."""
    if whole and not logarithmic:
        return first + min(int(place * (int(last - first) + 1)), int(last - first))
    low, high = float(first), float(last)
    exact = low * math.exp(place * math.log(high / low)) if logarithmic else low + place * (high - low)
    return Decimal(round(exact)) if whole else min(max(Decimal(f"{exact:.4g}"), first), last)
