# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs the series of each point in turn: A B C A B C ..., so that what else the machine does
weighs on all of them alike. A run that fails is recorded, and the rest goes on."""

import collections

import beds
import pair
import points
import wan

# A series that failed this often in a row is not tried again at that point: time-outs are long.
FAILURES_MAX = 2

# Before this part of the limit is over, nobody knows how fast this machine is.
UNKNOWN_PART = 1 / 4

# limit: the seconds that all of it may take, about; None for no limit. workers: the folder of our programs.
Settings = collections.namedtuple("Settings", "form rounds seconds limit workers", defaults=(None, ""))


def open_bed(name, workers=""):
    """A context manager that gives the Bed."""
    if name == "loopback":
        return Loopback()
    if name == "wan":
        return wan.WanBed(workers)
    return beds.VethBed(int(name.split("-")[1]))


class Loopback:
    """Always there."""

    def __enter__(self):
        return beds.LOOPBACK

    def __exit__(self, *_):
        pass


def series_seconds(point, settings):
    """The guess at one run of it."""
    return settings.seconds + point.run_seconds


def guess(wanted, settings):
    """(runs, seconds) of all of it."""
    runs = sum(len(point.series) for point in wanted) * settings.rounds
    seconds = sum(len(point.series) * series_seconds(point, settings) for point in wanted)
    return runs, seconds * settings.rounds


def new_record(point):
    return {"key": points.key(point), "group": point.group, "bed": point.bed, "x": point.x,
            "handover_ns": [], "series": [{"name": series.name, "program": series.program, "test": series.test,
                        "keys": series.keys, "reference": series.reference, "rounds": []}
                       for series in point.series]}


class Runner:
    """programs: {name: what has missing() and run(bed, series, seconds)}. What was measured is in
    records and what was not in skipped at any time, also after an interrupt; records may have points
    of an earlier run, which are not measured again. handover() measures the machine, before each
    round; saved() is called after each point."""

    def __init__(self, settings, programs, progress, handover=lambda: None, saved=lambda: None):
        self.settings, self.programs, self.progress = settings, programs, progress
        self.handover, self.saved = handover, saved
        self.records = []
        self.skipped = []
        self.late = False
        self.missing = {name: why for name, each in programs.items() if (why := each.missing())}

    def run(self, wanted):
        for name, why in self.missing.items():
            if any(series.program == name for point in wanted for series in point.series):
                self.skip(name, why)
        for bed_name in dict.fromkeys(point.bed for point in wanted):
            self.run_bed(bed_name, [point for point in wanted if point.bed == bed_name])

    def run_bed(self, name, wanted):
        try:
            with open_bed(name, self.settings.workers) as bed:
                for point in wanted:
                    self.run_point(bed, point)
        except beds.NotAllowed as error:
            self.skip(name, f"{error} (run as root, or allow user namespaces)")
            for point in wanted:
                self.progress.done(*guess([point], self.settings))

    def skip(self, what, why):
        self.skipped.append({"what": what, "why": why})
        self.progress.say(f"skipped: {what}: {why}")

    def run_point(self, bed, point):
        record = new_record(point)
        self.records.append(record)
        for row, series in zip(record["series"], point.series):
            if series.program in self.missing:
                row["skipped"] = self.missing[series.program]
        for number in range(self.settings.rounds):
            if number and self.is_late():
                self.progress.done(len(point.series), len(point.series) *
                                   series_seconds(point, self.settings))
                continue
            record["handover_ns"].append(self.handover())
            for row, series in zip(record["series"], point.series):
                self.run_once(bed, (point, series, number), row)
        record["complete"] = True
        self.saved()

    def is_late(self):
        """Whether the limit asks for fewer rounds: each point has one at least."""
        limit, elapsed = self.settings.limit, self.progress.elapsed()
        if not limit or elapsed < limit * UNKNOWN_PART:
            return False
        if elapsed + self.progress.left() < limit:
            return False
        if not self.late:
            self.late = True
            self.progress.say(f"this machine is slow or busy: fewer than {self.settings.rounds} "
                              "rounds of some points")
        return True

    def run_once(self, bed, which, row):
        point, series, number = which
        if "skipped" not in row and not given_up(row):
            self.progress.running(f"{points.key(point)} {series.name}, "
                                  f"round {number + 1} of {self.settings.rounds}")
            row["rounds"].append(self.outcome(bed, series))
        self.progress.done(1, series_seconds(point, self.settings))

    def outcome(self, bed, series):
        try:
            return {"result": self.programs[series.program].run(bed, series,
                                                                self.settings.seconds)}
        except pair.Failure as failure:
            return {"failure": str(failure)}


def given_up(row):
    """Whether it failed too often in a row."""
    last = row["rounds"][-FAILURES_MAX:]
    return len(last) == FAILURES_MAX and all("failure" in each for each in last)
