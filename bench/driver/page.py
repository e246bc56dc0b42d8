# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""index.html: one file, plots within, no script, nothing from elsewhere."""

import html as markup

import overview
import plots
import record
import summary
import table

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2430; --soft: #5a6472;
  --grid: #d9dee5; --band: #f3f5f8; --good: #1a7f37; --bad: #b3261e;
  --c0: #4a5563; --c1: #8a94a3; --c2: #b08d57; --c3: #0b62c4; --c4: #c2410c; --c5: #0891a5;
  --c6: #15803d; --c7: #a21caf; --c8: #b45309; --c9: #be185d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e6e9ee; --soft: #a0a9b6;
  --grid: #333b47; --band: #1c222b; --good: #4cc273; --bad: #ff8078;
  --c0: #c3cad4; --c1: #8b96a5; --c2: #d8b981; --c3: #5aa9ff; --c4: #ff9a62; --c5: #3fc9dc;
  --c6: #58d68d; --c7: #e48af0; --c8: #f0b429; --c9: #ff7eb6; } }
body { margin: 0 auto; padding: 1.5rem; max-width: 92rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0 0 .4rem; font-weight: 600; }
p, li { max-width: 60rem; } .soft { color: var(--soft); }
nav a { margin-right: 1rem; } a { color: var(--c3); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr));
  gap: 1.5rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; }
svg text { font-family: "DejaVu Sans", Verdana, sans-serif; fill: var(--ink); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0 0 1.2rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--grid);
  white-space: nowrap; }
th { font-weight: 600; } tbody tr:nth-child(odd) { background: var(--band); }
.words :is(th, td):is(:first-child, :last-child) { text-align: left; }
.summary { font-size: 1.1rem; } dt { font-weight: 600; } summary { cursor: pointer; }
.yes { color: var(--good); } .no, .failed { color: var(--bad); font-weight: 600; }
"""

HOW = """Each number is the median of the rounds. In a round, all that stand in one row ran one
after the other, so what else the machine did weighed on all alike; a ratio (in brackets) is the
median of the rounds' own ratios to raw TCP. In the plots, the shade around a line is from the
least to the most of the rounds. Latency, CPU and memory are better when they are less, bandwidth
and rates when they are more."""


def escape(text):
    return markup.escape(str(text))


def html_table(caption, header, rows, kind=""):
    """rows hold cells: text, or (text, class)."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in header)
    body = "\n".join(f"<tr>{''.join(html_cell(each) for each in row)}</tr>" for row in rows)
    return (f'<div class="wide"><table{kind and f" class={chr(34)}{kind}{chr(34)}"}>'
            f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody></table></div>")


def html_cell(cell):
    text, kind = cell if isinstance(cell, tuple) else (cell, "failed" if cell == "failed" else "")
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def targets_table(found):
    rows = []
    for row in found["targets"]:
        *cells, verdict, note = table.target_cells(row)
        cells[1] = cells[1].replace(">=", "≥").replace("<=", "≤")
        shown = note or verdict
        kind = {True: "yes", False: "no", None: ""}[row["met"]]
        rows.append([*cells, (shown, kind)])
    return html_table("Ratios of the same rounds", ["target", "bound", "decides", "min .. max",
                                                    "verdict"], rows, "words")


def figure(drawing, heading):
    return f"<figure><h3>{escape(heading)}</h3>\n{drawing}</figure>"


def plots_section(found):
    figures = [figure(drawing, heading) for heading, drawing in plots.all_plots(found)]
    return '<div class="plots">' + "\n".join(figures) + "</div>"


def tables_section(found):
    return "\n".join(html_table(heading, header, rows)
                     for heading, _, _, header, rows in table.tables(found))


def troubles(found):
    """What did not run and what failed; nothing where all went well."""
    lines = [f"{each['what']} was skipped: {each['why']}" for each in found["skipped"]]
    lines += [f"{key} {name} failed: {why}" for key, name, why in record.failures(found)]
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<h2 id="troubles">Skipped and failed</h2><ul>{items}</ul>'


def overview_table(found):
    """The study's ratios, one row for each application and way."""
    kinds = {"helps": "yes", "costs": "no"}
    header, rows = overview.text_rows(found)
    shown = [[*row[:-1], (row[-1], kinds.get(row[-1], ""))] for row in rows]
    return html_table("Ratios of the same rounds", header, shown, "words")


STUDY = """Each application ran in turn: as it is, over TCP; under libanywarp-sockets.so left to TCP (pass-through),
on one host by a pair of the kernel's (auto), and over iWARP (iwarp); where it applies, by one-sided writes of extended sockets, by verbs, and over Open MPI's UCX on the verbs of the roce
persona (ucx-roce). What each application read, served or computed was compared; a run whose output is wrong counts as failed.
Processor time is that of all processes of a run. "unsure": at least one round says otherwise, or there were fewer than three. Speed is so turned that more is
better, and the processor time of the same work so that less is."""


def study_sections(found):
    figures = [figure(drawing, heading) for heading, drawing in plots.speeds_plot(overview.rows(found))]
    return f"""<p>{STUDY}</p>
<h2 id="overview">Where it helps, and what it costs</h2>
{"".join(figures)}
{overview_table(found)}"""


def summary_section(found):
    items = "".join(f"<li>{escape(line)}</li>" for line in summary.sentences(found))
    return f'<ul class="summary">{items}</ul>' if items else ""


def names_section(found):
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in summary.names(found))
    return f'<h2 id="names">Names of the series</h2><dl>{rows}</dl>'


def target_sections(found):
    return f"""<h2 id="targets">For developers: the targets</h2>
<details><summary>Which ratio anywarp is held to, and the figure that decides</summary>
{targets_table(found)}</details>"""


def html(found):
    """The whole page."""
    study = overview.is_study(found)
    heading = "Applications over iWARP, beside TCP" if study else "anywarp beside what carries it"
    first = '<a href="#overview">Overview</a>' if study else ""
    last = "" if study else '<a href="#names">Names</a><a href="#targets">Targets</a>'
    about = "<br>".join(escape(line) for line in table.about(found))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>anywarp bench</title><style>{STYLE}</style></head><body>
<h1>{heading}</h1>
<p class="soft">{about}<br><code>{escape(found['settings']['command'])}</code></p>
{"" if study else summary_section(found)}
<nav>{first}<a href="#plots">Plots</a><a href="#tables">Tables</a>{last}</nav>
<p>{HOW}</p>
{study_sections(found) if study else ""}
<h2 id="plots">Plots</h2>
{plots_section(found)}
<h2 id="tables">Tables</h2>
{tables_section(found)}
{"" if study else names_section(found) + target_sections(found)}
{troubles(found)}
</body></html>
"""
