"""Confidence intervals of means over seeds, by Student's t distribution."""

import math
import statistics


def student_within(angle, degrees):
    """Returns P(|T| <= sqrt(degrees) tan(angle)) of Student's t: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    term = total = math.cos(angle) if degrees % 2 else 1.0
    for k in range(3 if degrees % 2 else 2, degrees - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        total += term
    if degrees % 2 == 0:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + (math.sin(angle) * total if degrees > 1 else 0))


def student_quantile(level, degrees):
    """Returns the t that |T| exceeds with the probability 1 - level, by bisection."""
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        if student_within(middle, degrees) < level:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)


def confidence_interval(values, level):
    """Returns the ends of the interval that holds the mean of such values with the probability `level`; None for fewer than two."""
    if len(values) < 2:
        return None
    half = student_quantile(level, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values) - half, statistics.fmean(values) + half


class Interval:
    """What a picture shows around means: a confidence interval, the least to the largest value, or nothing."""

    def __init__(self, word):
        self.word = word
        self.level = float(word.rstrip("% ")) / 100 if word.endswith("%") else None

    def ends(self, values):
        """Returns the ends, or None where nothing is shown."""
        if self.level:
            return confidence_interval(values, self.level)
        return (min(values), max(values)) if self.word == "range" and len(values) > 1 else None

    def note(self, counts):
        """Returns the sentence below a picture; "" where all means have one value. `counts`: how many values they have."""
        several = sorted({count for count in counts if count > 1})
        if not several:
            return ""
        seeds = f"{several[0]}" if len(several) == 1 else f"{several[0]} to {several[-1]}"
        what = {"range": ", least to largest", "none": ""}.get(self.word, f", {self.word} confidence intervals (Student's t)")
        return f"means of {seeds} seeds{what}"
