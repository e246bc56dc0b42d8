# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The plots, each one inline SVG that takes its colours from the page, so that light and dark both
read well: matplotlib draws with stand-in colours, which become CSS variables."""

import io
import re

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

import overview
import points
import table
import values
from values import KI, MI

WIDTH_INCHES, HEIGHT_INCHES = 6.6, 4.1
BAR_INCHES, AROUND_BARS_INCHES = 0.42, 0.7
INK, GRID = "#010101", "#020202"
# Stand-ins for the page's --c0 ... --c9.
COLOURS = [f"#0{number}0304" for number in range(10)]
MARKERS = "os^Dv<>PX*"
# The same look on every plot, and what is compared with what in one hue.
LOOKS = {
    "tcp": (0, "-"), "tcp-block": (0, "-"), "tcp-spin": (1, "-"), "tcp-epoll": (2, "-"),
    "tcp-batch16": (2, "-"), "tcp-1": (0, "-"), "tcp-2": (1, "-"),
    "send": (3, "-"), "send-spin": (3, "-"), "send-event": (5, "--"), "send-batch16": (3, "--"),
    "send-1": (3, "-"), "send-2": (5, "-"),
    "write": (4, "-"), "write-cq": (7, "-"), "write-event": (7, "--"), "write-batch16": (4, "--"),
    "send-roce": (5, "-"), "send-done-roce": (5, "-"), "write-roce": (7, "-"), "read-roce": (6, "--"), "write-cq-roce": (8, "-"),
    "read": (6, "-"), "read-event": (6, "--"), "verbs": (3, "-"), "send-over-tcp": (8, "-"),
    "libfabric-msg": (8, "-"), "libfabric-rdm": (8, "--"),
    "ucx-tag_lat": (9, "-"), "ucx-put_lat": (9, "--"), "ucx-tag_bw": (9, "-"),
    "ucx-put_bw": (9, "--"),
    "libfabric-shm": (2, "-"), "ucx-shm-tag_lat": (9, "-"), "ucx-shm-put_lat": (9, "--"), "ucx-shm-tag_bw": (9, "-"),
    "ucx-shm-put_bw": (9, "--"),
    "pass-through": (1, "-"), "auto": (2, "-"), "iwarp": (5, "-"), "one-sided": (4, "-"), "ucx-roce": (6, "-"), "verbs-roce": (6, "-"),
}
# What an axis of many sizes is marked with.
TICKS_BYTES = (1, 8, 64, KI, 8 * KI, 64 * KI, MI, 16 * MI)
TICKS_MAX = 8
# Beyond this, from the least to the most, an axis is logarithmic; below, it starts at zero.
LINEAR_SPAN_MAX = 12
SETTINGS = {"svg.fonttype": "none", "font.size": 10,
            "font.family": ["DejaVu Sans"], "axes.spines.top": False, "axes.spines.right": False}


def new_axes(height=HEIGHT_INCHES):
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    FigureCanvasSVG(figure)
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    axes.grid(True, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both")
    for spine in axes.spines.values():
        spine.set_color(INK)
    return figure, axes


def ticks_of(x_name, xs):
    """At most TICKS_MAX of them; the last x is always among them."""
    if len(xs) <= TICKS_MAX:
        return xs
    if x_name == "bytes":
        return [each for each in TICKS_BYTES if xs[0] <= each <= xs[-1]]
    return xs[::-1][::2][::-1]


def set_x(axes, x_name, xs):
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks_of(x_name, xs)))
    axes.xaxis.set_minor_locator(NullLocator())
    in_bytes = x_name == "bytes"
    axes.xaxis.set_major_formatter(FuncFormatter(
        lambda x, _: values.octets(round(x)) if in_bytes else f"{round(x):,}"))
    axes.set_xlabel("message size, bytes" if in_bytes else x_name, color=INK)


def set_y(axes, unit, drawn):
    """drawn: every number that a line goes through."""
    low, high = min(drawn), max(drawn)
    if low > 0 and high / low > LINEAR_SPAN_MAX:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1,) if high / low > 1000 else (1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))
    axes.set_ylabel(unit, color=INK)


def lines_of(found, value):
    """{series: [(x, median, min, max)]} in the unit for people."""
    lines = {}
    for point in sorted(found, key=lambda point: point["x"]):
        for series in point["series"]:
            summary = series["summary"].get(value)
            if summary:
                scale = values.VALUES[value].scale
                lines.setdefault(series["name"], []).append(
                    (point["x"], *(summary[name] * scale for name in ("median", "min", "max"))))
    return lines


def draw_line(axes, name, line, number):
    colour, style = LOOKS.get(name, (number % len(COLOURS), "-"))
    xs, medians, lows, highs = zip(*line)
    axes.plot(xs, medians, style, color=COLOURS[colour], marker=MARKERS[number % len(MARKERS)],
              markersize=5, linewidth=1.7, label=name)
    axes.fill_between(xs, lows, highs, color=COLOURS[colour], alpha=0.12, linewidth=0)


def by_x(found, value):
    """A plot of one value by x; None where there are not two x to draw a line between."""
    lines = lines_of(found, value)
    xs = sorted({x for line in lines.values() for x, *_ in line})
    if len(xs) < 2:
        return None
    group = points.GROUPS[found[0]["group"]]
    figure, axes = new_axes()
    for number, (name, line) in enumerate(lines.items()):
        draw_line(axes, name, line, number)
    set_x(axes, group.x, xs)
    set_y(axes, values.VALUES[value].unit,
          [median for line in lines.values() for _, median, *_ in line])
    add_legend(axes)
    return figure


def add_legend(axes):
    legend = axes.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="upper left",
                         bbox_to_anchor=(1.0, 1.0))
    legend.set_zorder(3)


def bars(point, value):
    """One point's series as bars, for what has but one x."""
    rows = [(series["name"], series["summary"][value]) for series in point["series"]
            if value in series["summary"]]
    if not rows:
        return None
    scale = values.VALUES[value].scale
    figure, axes = new_axes(AROUND_BARS_INCHES + BAR_INCHES * len(rows))
    for number, (name, found) in enumerate(rows):
        middle = found["median"] * scale
        axes.barh(number, middle, color=COLOURS[LOOKS.get(name, (number % 10,))[0]], height=0.6,
                  xerr=[[middle - found["min"] * scale], [found["max"] * scale - middle]],
                  error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 3})
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_xlim(left=0)
    axes.set_xlabel(values.VALUES[value].unit, color=INK)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    return figure


def with_css_colours(text):
    text = text.replace(INK, "var(--ink)").replace(GRID, "var(--grid)")
    for number, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{number})")
    return text


def own_ids(text, prefix):
    """Ids are of the whole page, and matplotlib gives every figure the same."""
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    return re.sub(r"url\(#", f"url(#{prefix}-", text)


def svg(figure, prefix, label):
    """The figure as an <svg> element with its alternative text."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": prefix}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None,
                                                    "Type": None})
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1, flags=re.S)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1, flags=re.S)
    text = text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return own_ids(with_css_colours(text), prefix)


def describe(found, value):
    """The alternative text: what is drawn, and the last number of each line."""
    last = {name: line[-1] for name, line in lines_of(found, value).items()}
    group = points.GROUPS[found[0]["group"]]
    unit = values.VALUES[value].unit
    shown = ", ".join(f"{name} {values.text(value, each[1] / values.VALUES[value].scale)}"
                      for name, each in last.items())
    at = max((each[0] for each in last.values()), default=0)
    at_text = values.octets(at) if group.x == "bytes" else str(at)
    return f"{group.title}, in {unit} by {group.x}. At {at_text} {group.x}: {shown}."


# What is drawn: the value of each group. By bars, one plot for each x, where the point is which of
# several is ahead and not how it goes on.
DRAWN = (
    ("latency", "latency"), ("bandwidth", "bandwidth"), ("bandwidth-bi", "bandwidth"),
    ("bandwidth", "cpu_per_gb"), ("window", "bandwidth"), ("window-small", "rate"),
    ("rate", "rate"), ("rate", "cpu_per_million"), ("threads", "rate"), ("streams", "bandwidth"),
    ("hotspot", "latency"), ("fan-in", "bandwidth"), ("fan-out", "bandwidth"),
    ("connect", "connect"), ("connect-at-once", "first_octet"), ("idle", "memory"), ("roce-latency", "latency"),
    ("roce-done", "latency_whole"), ("roce-rate", "rate"), ("host-latency", "latency"), ("host-bandwidth", "bandwidth"),
    ("host-rate", "rate"),
    ("engines", "bandwidth"), ("others-latency", "latency_mean"), ("others-bandwidth", "bandwidth"),
    ("app-ftp", "bandwidth"), ("app-ftp", "cpu_per_gb"), ("app-rpc", "latency_whole"), ("app-rpc", "cpu_per_operation"),
    ("app-grpc-unary", "latency_whole"), ("app-grpc-stream", "bandwidth"), ("app-gmond", "latency_whole"),
    ("app-gmond", "cpu_per_operation"), ("app-gmetad", "latency_whole"), ("app-redis", "requests"),
    ("app-redis", "cpu_per_operation"), ("app-nginx", "requests"), ("app-memcached", "requests"), ("app-pgbench", "requests"),
    ("app-mpi-latency", "latency"), ("app-mpi-bandwidth", "bandwidth"), ("app-mpi-allreduce", "latency_whole"),
    ("app-mpi-sort", "keys"), ("app-tiles", "bandwidth"), ("app-ceph", "bandwidth"), ("app-ceph", "bandwidth_read"), ("app-engine", "bandwidth"),
    ("app-engine", "bandwidth_read"), ("app-pipeline", "updates"), ("app-pipeline", "partial"),
    ("app-pipeline-bound", "updates"), ("app-balance", "reaction"), ("app-balance", "work_seconds"),
)
BY_BARS = ("roce-latency", "roce-done", "roce-rate", "host-latency", "host-bandwidth", "host-rate", "others-latency", "others-bandwidth", "app-pgbench", "app-nginx", "app-ceph",
           "app-engine", "app-pipeline-bound")


# Of the application study: a speed beyond these is drawn at the edge.
SPEED_LEAST, SPEED_MOST = 1 / 8, 8
WAY_INCHES, APPLICATION_INCHES = 0.13, 0.17


def speeds(rows):
    """One row of dots for each application: the speed of each way beside TCP, with its spread; None where nothing is known.
    rows: overview.rows."""
    known = [row for row in rows if row["speed"]]
    names = list(dict.fromkeys(overview.name_of(row["point"]) for row in known))
    if not names:
        return None
    ways = list(dict.fromkeys(row["series"]["name"] for row in known))
    figure, axes = new_axes(AROUND_BARS_INCHES + 0.4 + len(names) * (APPLICATION_INCHES + WAY_INCHES * len(ways) / 4))
    for number, way in enumerate(ways):
        draw_speeds(axes, names, [row for row in known if row["series"]["name"] == way], (way, (number + 1) / (len(ways) + 1) - 0.5))
    axes.axvline(1, color=INK, linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xlim(SPEED_LEAST, SPEED_MOST)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.3g}"))
    axes.set_xlabel("speed beside TCP: to the right of 1 is faster", color=INK)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_ylim(len(names) - 0.5, -0.5)
    add_legend(axes)
    return figure


def draw_speeds(axes, names, rows, of_way):
    way, offset = of_way
    colour, _ = LOOKS.get(way, (7, "-"))
    at = [names.index(overview.name_of(row["point"])) + offset for row in rows]
    low, middle, high = ([min(max(row["speed"][name], SPEED_LEAST), SPEED_MOST) for row in rows] for name in ("min", "median", "max"))
    axes.hlines(at, low, high, color=COLOURS[colour], linewidth=1, alpha=0.6)
    axes.plot(middle, at, "o", color=COLOURS[colour], markersize=4, label=way)


def speeds_plot(rows):
    """(heading, svg), or nothing."""
    with matplotlib.rc_context(SETTINGS):
        drawn = speeds(rows)
        if not drawn:
            return []
        told = "; ".join(f"{overview.name_of(row['point'])} {row['series']['name']} {row['speed']['median']:.2f}" for row in rows if row["speed"])
        return [("Speed beside TCP, medians, least and most", svg(drawn, "speeds", f"Speed beside TCP: {told}."))]


def figures(found, value):
    """(heading's end, points, figure) of one group in one bed."""
    if found[0]["group"] not in BY_BARS:
        lines = by_x(found, value)
        if lines:
            return [("", found, lines)]
    group = points.GROUPS[found[0]["group"]]
    return [(f", {table.x_text(point['group'], point['x'])} {group.x}", [point],
             bars(point, value)) for point in found]


def all_plots(results):
    """(heading, svg) of everything that is drawn and was measured."""
    made = []
    with matplotlib.rc_context(SETTINGS):
        for group_name, value in DRAWN:
            group = points.GROUPS[group_name]
            for bed in points.BEDS:
                found = [each for each in results["points"]
                         if each["group"] == group_name and each["bed"] == bed]
                heading = table.title(group, value, bed, group.values.index(value))
                made += [(heading + end, svg(drawn, f"p{len(made)}-{number}", describe(some, value)))
                         for number, (end, some, drawn) in enumerate(
                             figures(found, value) if found else []) if drawn]
    return made
