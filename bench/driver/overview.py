# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The application study on one page: what each way makes of each application, beside TCP in the same rounds. A speed of 1.5 is
half as much again of what is wanted, or the same in two thirds of the time; a cost of 1.5 is half as much again of the
processors' time for the same work."""

import points
import record
import stats
import values

HEADING = "Beside TCP in the same rounds: speed (more is better) and processor time for the same work (less is better)"
# A median within so much of TCP's, or a spread with TCP's on both sides, tells nothing.
SAME = 0.05
ROUNDS_FOR_SURE = 3
WHY_SHOWN_MAX = 100
COSTS = ("cpu_per_gb", "cpu_per_operation")
HEADER = ("application", "way", "TCP", "this", "speed", "min .. max", "CPU", "")


def is_study(results):
    return results["settings"]["form"].startswith("apps")


def name_of(point):
    """application, bed and size, for people."""
    shown = values.octets(point["x"]) if points.GROUPS[point["group"]].x == "bytes" else point["x"]
    return f"{point['group'].removeprefix('app-')}, {point['bed']}, {shown}"


def speeds(point, series, value):
    """Of each round, so that more is better."""
    ratios = stats.paired_ratios(record.numbers(series, value),
                                 record.numbers(record.find_series(point, series["reference"]), value))
    return [1 / each for each in ratios if each] if values.VALUES[value].better == "less" else ratios


def verdict(found):
    """helps, costs, the same; or unsure, where a round says otherwise, or there were few."""
    if abs(found["median"] - 1) <= SAME:
        return "same"
    helps = found["median"] > 1
    sure = found["count"] >= ROUNDS_FOR_SURE and (found["min"] > 1 if helps else found["max"] < 1)
    return ("helps" if helps else "costs") + ("" if sure else ", unsure")


def rows(results):
    """{"point", "series", "value", "tcp", "this", "speed", "cpu", "verdict", "why"} of every way but TCP."""
    made = []
    for point in results["points"]:
        group = points.GROUPS[point["group"]]
        for series in point["series"]:
            if series["reference"]:
                made.append(row(point, series, group))
    return made


def row(point, series, group):
    value = group.values[0]
    tcp = record.find_series(point, series["reference"])
    cost = next((each for each in group.values if each in COSTS), None)
    speed = stats.summary(speeds(point, series, value))
    cpu = stats.summary([1 / each for each in speeds(point, series, cost)]) if cost else None
    return {"point": point, "series": series, "value": value, "speed": speed, "cpu": cpu,
            **{name: each["summary"].get(value) for name, each in (("tcp", tcp), ("this", series))},
            "verdict": verdict(speed) if speed else "", "why": why_nothing(series) if not speed else ""}


def why_nothing(series):
    """Why there is no number."""
    if "skipped" in series:
        return f"skipped: {series['skipped']}"
    failed = [each["failure"] for each in series["rounds"] if "failure" in each]
    return f"failed: {failed[0]}" if failed else "nothing to compare with"


def number(summary, value):
    return values.text(value, summary["median"]) if summary else "-"


def text_of(each):
    value, speed, cpu = each["value"], each["speed"], each["cpu"]
    shown = [name_of(each["point"]), each["series"]["name"],
             f"{number(each['tcp'], value)} {values.VALUES[value].unit}", number(each["this"], value)]
    if not speed:
        return [*shown, "-", "-", "-", each["why"][:WHY_SHOWN_MAX]]
    return [*shown, f"{speed['median']:.2f}", f"{speed['min']:.2f} .. {speed['max']:.2f}",
            f"{cpu['median']:.2f}" if cpu else "-", each["verdict"]]


def text_rows(results):
    """(header, rows) for a table."""
    return list(HEADER), [text_of(each) for each in rows(results)]


PIVOT_WAYS = ("pass-through", "auto", "iwarp")


def cell_of(each):
    """Its median, speed with spread, and processor time."""
    if not each["speed"]:
        return each["why"][:WHY_SHOWN_MAX]
    cpu = f", CPU {each['cpu']['median']:.2f}" if each["cpu"] else ""
    speed = each["speed"]
    return f"{number(each['this'], each['value'])}: **{speed['median']:.2f}** ({speed['min']:.2f} .. {speed['max']:.2f}){cpu}"


def pivot(results):
    """(header, rows): a row for each application, which is shorter."""
    by_point = {}
    for each in rows(results):
        by_point.setdefault(each["point"]["key"], []).append(each)
    made = []
    for found in by_point.values():
        cells = {each["series"]["name"]: cell_of(each) for each in found}
        first = found[0]
        others = [f"{name} {text}" for name, text in cells.items() if name not in PIVOT_WAYS]
        made.append([name_of(first["point"]), f"{number(first['tcp'], first['value'])} {values.VALUES[first['value']].unit}",
                     *(cells.get(name, "") for name in PIVOT_WAYS), "; ".join(others)])
    return ["application", "TCP", *PIVOT_WAYS, "other ways"], made
