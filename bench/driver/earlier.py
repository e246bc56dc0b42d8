# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""An earlier run that ended before it was over: what of it stays, and what is still to be measured. It is
continued only as what it was, on the machine and with the programs that it had."""

import sys
import time

import points
import results

# What must be as it was. A commit that changes no program gives another version, but the same build.
SAME = {"settings": ("form", "rounds", "seconds", "only"), "versions": ("build", "libfabric", "ucx", "python"),
        "machine": ("kernel", "cpu", "cores", "memory_octets", "governor", "virtual")}


def proceed(path, found):
    """Takes into found, which is the beginning of a run, what the file has of it."""
    old = results.load(path)
    for part, names in SAME.items():
        for name in names:
            was, now = old[part].get(name), found[part][name]
            if was != now:
                raise results.Unreadable(f"{path} cannot be continued: {name} was {was} and is {now}: "
                                         "run without --continue to measure all anew")
    found["points"] += [point for point in old["points"] if point.get("complete")]
    for name in ("started", "took_seconds"):
        found["settings"][name] = old["settings"][name]


def put_aside(folder):
    """Renames the files of the run that folder has, by the time at which it was last saved: a run replaces none."""
    if not (folder / "results.json").exists():
        return
    when = time.strftime("%Y%m%d-%H%M%S", time.localtime((folder / "results.json").stat().st_mtime))
    for name, ending in (("results", "json"), ("index", "html")):
        if (folder / f"{name}.{ending}").exists():
            (folder / f"{name}.{ending}").rename(folder / f"{name}-{when}.{ending}")
    print(f"anywarp bench: the run that was in {folder} is now {folder / f'results-{when}.json'}", file=sys.stderr)


def missing(wanted, found):
    """The points that are still to be measured: all of one that ended in its midst, so that the rounds
    of its series stand beside each other."""
    there = {point["key"] for point in found["points"]}
    return [point for point in wanted if points.key(point) not in there]
