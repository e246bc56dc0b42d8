# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""results.json: what a run leaves, and what the table, the page and the targets read.

{
  "schema": 1,
  "machine":  {"kernel", "cpu", "cores", "memory_octets", "governor" or null, "virtual" or null, "congestion_control" or null,
               "handover_ns": summary of all rounds (below), or null},
  "versions": {"anywarp", "build", "libfabric", "ucx", "openssl", "python"}: text, or null where not
               installed; build stands for the bytes of what was measured and of the driver,
  "settings": {"form": "full" | "default" | "short" | "apps" | "apps-short", "rounds", "seconds" of a timed run,
               "only": [text], "command", "started": ISO 8601, "took_seconds",
               "interrupted": bool, true also in what a run leaves that is killed},
  "points": [{
      "key": "GROUP/BED/X", "group", "bed": "loopback" | "veth-MTU" | "wan", "x": number or text,
      "complete": true, or absent where the run ended before the point did,
      "handover_ns": [what one CPU needed to hand a word to another before each round, or null],
      "series": [{
          "name", "program": "tcp" | "verbs" | "verbs-roce" | "verbs-host" | one of others.py, sockets.py or tls.py, "test", "keys": {key: value},
          "reference": name of the series that ratios are taken to, mostly raw TCP, or null,
          "rounds": [{"result": what the program printed} or {"failure": text}] in their order:
                    round N of every series of the point ran in turn,
          "skipped": text, only where it did not run,
          "summary": {value: {"median", "min", "max", "count"}},
          "ratio": the first value over the reference's of the same round, as above, or null
      }]}],
  "skipped": [{"what", "why"}],
  "targets": [see targets.py; of the application study none]
}

Of the application study ("form" is "apps" or "apps-short") "program" is "APPLICATION:WAY", a run's result has "checked": what
of the application's output was compared, and "cpu": {"both_seconds"} of all processes of the run while the load ran.

Times are microseconds but for *_ns and *_seconds; bandwidth is payload bytes a second, of both
ways together where both ways send."""

import json
import os

import overview
import points
import stats
import targets
from record import find_series, numbers

SCHEMA = 1


class Unreadable(Exception):
    """A file that is no results.json of ours; the text says why."""


def add_summaries(point):
    group = points.GROUPS[point["group"]]
    for series in point["series"]:
        found = {name: stats.summary([number for number in numbers(series, name)
                                      if number is not None]) for name in group.values}
        series["summary"] = {name: each for name, each in found.items() if each}
        series["ratio"] = ratio(point, series, group.values[0])


def ratio(point, series, value):
    reference = find_series(point, series["reference"])
    if not reference:
        return None
    return stats.summary(stats.paired_ratios(numbers(series, value), numbers(reference, value)))


def finish(results):
    """Adds all that follows from the rounds."""
    for point in results["points"]:
        add_summaries(point)
    results["machine"]["handover_ns"] = stats.summary([
        each for point in results["points"] for each in point.get("handover_ns", ()) if each is not None])
    results["targets"] = [] if overview.is_study(results) else targets.all_rows(results)
    return results


def save(results, path):
    """All or nothing: a run that is interrupted twice leaves no half of a file."""
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(part, path)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Unreadable(f"{path} is no JSON: {error}") from error
    if not isinstance(results, dict) or results.get("schema") != SCHEMA:
        raise Unreadable(f"{path} is no results.json of schema {SCHEMA}: make one with "
                         "'anywarp bench'")
    return finish(results)
