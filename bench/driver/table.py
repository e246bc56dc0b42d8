# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The tables of a terminal, and the targets as markdown. A cell is the median of the rounds and,
after it, the ratio to raw TCP of the same run."""

import overview
import points
import record
import summary
import values
import wan

BED_NAMES = {"loopback": "loopback", "veth-1500": "veth, MTU 1500", "veth-9000": "veth, MTU 9000", "wan": wan.NAME}
FAILURES_SHOWN_MAX = 20
MET = {True: "met", False: "NOT met", None: "-"}


def x_text(group, x):
    return values.octets(x) if points.GROUPS[group].x == "bytes" else str(x)


def cell(series, value):
    """What stands in a table of one series' value."""
    found = series["summary"].get(value)
    if not found:
        if "skipped" in series:
            return "skipped"
        return "failed" if record.has_failed(series) else "-"
    return values.text(value, found["median"])


def cells(group, series):
    """The first value with its ratio, then the other values."""
    first, *rest = points.GROUPS[group].values
    text = cell(series, first)
    if series["ratio"]:
        text += f" ({series['ratio']['median']:.2f})"
    return [text, *(cell(series, value) for value in rest)]


def tables(results):
    """(title, value, bed, column names, rows) of each value of each group in each bed."""
    for group_name, group in points.GROUPS.items():
        for bed in points.BEDS:
            found = [each for each in results["points"]
                     if each["group"] == group_name and each["bed"] == bed]
            for number, value in enumerate(group.values if found else ()):
                table = one_table(group_name, found, number)
                if number == 0 or any(each.strip("-") for row in table[1] for each in row[1:]):
                    yield (title(group, value, bed, number), value, bed, *table)


def title(group, value, bed, number):
    kind = "" if number == 0 else f": {VALUE_NAMES.get(value, value)}"
    return f"{group.title}{kind}, {values.VALUES[value].unit}, {BED_NAMES[bed]}"


VALUE_NAMES = {"latency_p99": "99 % below", "latency_p99_whole": "99 % below", "latency": "median", "cpu_per_gb": "CPU per GB",
               "cpu_per_million": "CPU per million messages", "first_octet": "to the first byte",
               "connects_per_second": "a second", "rate": "messages a second",
               "poll": "poll_cq", "poll_busy10": "poll_cq with 10 busy",
               "idle_cpu": "CPU of a process", "cpu_per_operation": "CPU for each operation", "cpu_per_connection": "CPU for each connection", "latency_whole": "median",
               "requests": "a second", "latency_mean": "mean", "partial": "partial update, median", "bandwidth_read": "read back",
               "work_seconds": "until all is done"}


def one_table(group, found, number):
    names = list(dict.fromkeys(series["name"] for point in found for series in point["series"]))
    rows = []
    for point in sorted(found, key=lambda point: point["x"]):
        by_name = {series["name"]: cells(group, series)[number] for series in point["series"]}
        rows.append([x_text(group, point["x"]), *(by_name.get(name, "-") for name in names)])
    return [points.GROUPS[group].x, *names], rows


def layout(header, rows, words=()):
    """words: the columns that begin on one line."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    return ["  ".join(text.ljust(width) if at in words else text.rjust(width)
                      for at, (text, width) in enumerate(zip(line, widths))).rstrip()
            for line in (header, *rows)]


def number_text(number, unit=""):
    if number is None:
        return "-"
    return f"{number:.{0 if number >= 1000 else 3 if number < 0.1 else 2}f}{unit}"


def target_cells(row):
    measured = number_text(row["decides"], row["unit"])
    spread = "-"
    if row["median"] is not None:
        spread = f"{number_text(row['min'])} .. {number_text(row['max'])}"
    verdict = MET[row["met"]]
    return [row["what"], row["bound"], measured, spread, verdict, row["note"]]


def target_lines(results):
    header = ["target", "bound", "decides", "min .. max", "verdict"]
    cells_of = [target_cells(row) for row in results["targets"]]
    widths = [max(len(line[i]) for line in (header, *cells_of)) for i in range(len(header))]
    lines = []
    for line in (header + [""], *cells_of):
        text = line[0].ljust(widths[0]) + "".join(
            "  " + each.rjust(width) for each, width in zip(line[1:4], widths[1:4]))
        lines.append(f"{text}  {line[4]:{widths[4]}}  {line[5]}".rstrip())
    return lines


def handover(ns):
    """Two CPUs that share no cache, or not always the same two, explain many a number."""
    if ns:
        yield (f"from one CPU to another {ns['median']:.0f} ns "
               f"({ns['min']:.0f} .. {ns['max']:.0f})")


def about(results):
    machine, versions, settings = results["machine"], results["versions"], results["settings"]
    names = [f"{name} {version}" for name, version in versions.items() if version]
    return [
        f"{machine['cpu']}, {machine['cores']} cores"
        + (", virtual" if machine.get("virtual") else "")
        + (f", governor {machine['governor']}" if machine.get("governor") else "")
        + f"; {machine['kernel']}"
        + (f"; TCP by {machine['congestion_control']}" if machine.get("congestion_control") else ""),
        *handover(machine.get("handover_ns")),
        "; ".join(names),
        f"{settings['form']} form, {settings['rounds']} rounds in turn of {settings['seconds']} s; "
        f"{settings['started']}, took {settings['took_seconds'] / 60:.1f} min"
        + ("; INTERRUPTED" if settings.get("interrupted") else ""),
    ]


def text(results):
    """All of it, for a terminal."""
    lines = [*about(results), *("" if overview.is_study(results) else ("", *summary.sentences(results)))]
    for heading, _, _, header, rows in tables(results):
        lines += ["", heading, *layout(header, rows)]
    lines += ["", "Medians of the rounds; in brackets the ratio to raw TCP of the same rounds."]
    if results["targets"]:
        lines += ["", "Targets: ratios of the same rounds", *target_lines(results)]
    if overview.is_study(results):
        lines += ["", overview.HEADING, *layout(*overview.text_rows(results), words=(0, 1, 7))]
    lines += [f"skipped: {each['what']}: {each['why']}" for each in results["skipped"]]
    return "\n".join([*lines, *failure_lines(results)])


def failure_lines(results):
    failed = record.failures(results)
    lines = [f"FAILED: {key} {name}: {why}" for key, name, why in failed[:FAILURES_SHOWN_MAX]]
    if len(failed) > FAILURES_SHOWN_MAX:
        lines.append(f"FAILED: {len(failed) - FAILURES_SHOWN_MAX} more: see results.json")
    return lines


def markdown(results):
    """The targets table, for docs/performance.md; of the application study the ratios, for docs/applications.md."""
    if overview.is_study(results):
        header, rows = overview.pivot(results)
        return "\n".join([*(f"{line}  " for line in about(results)), "",
                          *(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))])
    lines = [*(f"{line}  " for line in about(results)), "",
             "| target | bound | median | min | max | verdict |", "|---|---|---|---|---|---|"]
    for row in results["targets"]:
        verdict = MET[row["met"]] if not row["note"] else row["note"]
        numbers = " | ".join(number_text(row[name], row["unit"] if name == "median" else "")
                             for name in ("median", "min", "max"))
        lines.append(f"| {row['what']} | {row['bound']} | {numbers} | {verdict} |")
    return "\n".join(lines)
