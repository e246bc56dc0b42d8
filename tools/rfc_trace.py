#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Holds docs/rfc/<number>.toml against the RFC's own text: every requirement has an entry that
names the code that keeps it and the test that would go red, or an exception with its reason.
Prints the table; exits 1 on a hole. See docs/rfc/README.md."""

import argparse
import gzip
import os
import re
import signal
import sys
import textwrap
import tomllib

import rfc_trace_text
import rfc_trace_tree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RFCS = ("5040", "5041", "5042", "5044", "6581", "7306")
KEYS = {"id", "text", "binds", "code", "test", "exception", "note"}
BINDS = {"sender", "receiver", "initiator", "responder", "both", "ulp", "local", "other"}
REASON_WORDS_MIN = 4


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


def shape_problems(entry):
    """The problems of an entry by itself."""
    problems = [f"unknown key '{key}'" for key in sorted(entry.keys() - KEYS)]
    if entry.get("binds") not in BINDS:
        problems.append(f"binds '{entry.get('binds')}', not one of {', '.join(sorted(BINDS))}")
    code, test = entry.get("code", []), entry.get("test", [])
    if not isinstance(code, list) or not isinstance(test, list):
        return problems + ["code and test are lists"]
    if bool(code) != bool(test):
        problems.append("code without a test" if code else "a test without its code")
    if not code and "exception" not in entry:
        problems.append("neither code and test nor an exception")
    if "exception" in entry and len(entry["exception"].split()) < REASON_WORDS_MIN:
        problems.append("an exception without a reason")
    return problems


def reference_problems(entry, tree):
    found = [tree.code_problem(reference) for reference in entry.get("code", [])]
    found += [tree.test_problem(reference) for reference in entry.get("test", [])]
    return [problem for problem in found if problem]


def check(wanted, entries, tree):
    """wanted: the RFC's requirements; entries: the table's. Returns [problem]."""
    texts = {requirement.id: requirement.text for requirement in wanted}
    problems, seen = [], set()
    for entry in entries:
        name = entry.get("id", "an entry without id")
        if name in seen:
            problems.append(f"{name}: a second entry")
        elif name not in texts:
            problems.append(f"{name}: the RFC has no such requirement")
        elif one_line(entry.get("text", "")) != texts[name]:
            problems.append(f"{name}: the text is not the RFC's, which is: {texts[name]}")
        seen.add(name)
        problems += [f"{name}: {problem}" for problem in shape_problems(entry)]
        problems += [f"{name}: {problem}" for problem in reference_problems(entry, tree)]
    return problems + [f"{name}: no entry" for name in texts if name not in seen]


def show(entry, out):
    text = textwrap.shorten(one_line(entry.get("text", "")), 96, placeholder=" ...")
    out.write(f"{entry['id']}  {text}\n")
    for key in ("code", "test"):
        if entry.get(key):
            out.write(f"    {key:9}  {'  '.join(entry[key])}\n")
    if "exception" in entry:
        out.write(textwrap.fill(one_line(entry["exception"]), 96, initial_indent="    exception  ",
                                subsequent_indent=" " * 15) + "\n")


def skeleton(requirement):
    """An entry to be filled in."""
    text = textwrap.fill(requirement.text, 90, break_long_words=False, break_on_hyphens=False)
    text = text.replace("\\", "\\\\")
    return f'[[rule]]\nid = "{requirement.id}"\ntext = """\n{text}"""\nbinds = ""\n'


def read_text(number):
    path = os.path.join(ROOT, "docs", "rfc", "text", f"rfc{number}.txt.gz")
    with gzip.open(path, "rt", encoding="latin-1", newline="\n") as file:
        return file.read()


def read_rfc(number):
    return rfc_trace_text.requirements(number, read_text(number))


def read_table(number):
    path = os.path.join(ROOT, "docs", "rfc", f"{number}.toml")
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return tomllib.load(file).get("rule", [])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rfc", nargs="*", default=RFCS, help="numbers; all of them by default")
    parser.add_argument("--build", default="build/release", help="a configured build, for ctest")
    parser.add_argument("--quiet", action="store_true", help="only the totals and the holes")
    parser.add_argument("--new", action="store_true", help="print skeletons of missing entries")
    return parser.parse_args()


def print_new(number):
    have = {entry.get("id") for entry in read_table(number)}
    print("\n".join(skeleton(r) for r in read_rfc(number) if r.id not in have))


def trace(number, tree, quiet):
    """One RFC: prints its table; returns its line of the totals and its problems."""
    wanted, entries = read_rfc(number), read_table(number)
    problems = check(wanted, entries, tree)
    if not quiet:
        for entry in entries:
            show(entry, sys.stdout)
    tested = sum(1 for entry in entries if entry.get("test"))
    partly = sum(1 for entry in entries if "exception" in entry and entry.get("test"))
    excepted = sum(1 for entry in entries if "exception" in entry) - partly
    holes = len({problem.partition(":")[0] for problem in problems})
    return (number, len(wanted), tested, partly, excepted, holes), problems


def print_totals(rows):
    print("\nRFC     requirements  tested  of these in part  exceptions  holes")
    for row in rows + [("all", *(sum(column) for column in list(zip(*rows))[1:]))]:
        print(f"{row[0]:6}{row[1]:14}{row[2]:8}{row[3]:18}{row[4]:12}{row[5]:7}")


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the table may go to a pager
    args = parse_arguments()
    if args.new:
        for number in args.rfc:
            print_new(number)
        return 0
    tree = rfc_trace_tree.Tree(ROOT, rfc_trace_tree.ctest_tests(ROOT, args.build))
    rows, problems = [], []
    for number in args.rfc:
        row, found = trace(number, tree, args.quiet)
        rows.append(row)
        problems += found
    print_totals(rows)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
