"""Interleaved measurements: every work once, then every work again, so that what else the machine does hits all alike."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Work:
    """One thing to measure: who does what, on how many rows or stores, in which format."""

    by: str
    what: str
    size: int
    format: str = "plain"

    def __str__(self):
        return f"{self.by} {self.what}, {size_name(self.size)}, {self.format}"


@dataclasses.dataclass(frozen=True)
class Sample:
    """What one round measured. `value` is in seconds unless the row says otherwise."""

    value: float
    peak_mb: float = 0


@dataclasses.dataclass(frozen=True)
class Summary:
    minimum: float
    median: float
    maximum: float

    @staticmethod
    def of(values):
        return Summary(min(values), statistics.median(values), max(values))

    def json(self):
        return {"min": self.minimum, "median": self.median, "max": self.maximum}


class Failure(Exception):
    """A work that could not be done, with the reason for a person."""


class Results:
    """The samples and failures of all works."""

    def __init__(self):
        self.samples = {}
        self.failures = {}

    def failure(self, works):
        return next((self.failures[work] for work in works if work in self.failures), None)

    def summary(self, works, quantity="value"):
        """Sums the works round by round."""
        rounds = zip(*(self.samples[work] for work in works))
        return Summary.of([sum(getattr(sample, quantity) for sample in samples) for samples in rounds])


def interleave(works, rounds, measure, note):
    """Calls `measure` for each work, `rounds` times in turn. A work that fails once is not measured again."""
    results = Results()
    for number in range(rounds):
        for work in works:
            if work in results.failures:
                continue
            note(f"round {number + 1} of {rounds}: {work}")
            try:
                results.samples.setdefault(work, []).append(measure(work))
            except Failure as failure:
                results.failures[work] = str(failure)
                note(f"failed: {work}: {failure}")
    return results


def size_name(size):
    for limit, letter in ((1_000_000, "m"), (1_000, "k")):
        if size >= limit and size % limit == 0:
            return f"{size // limit}{letter}"
    return str(size)
