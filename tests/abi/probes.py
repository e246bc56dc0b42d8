#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Holds a library's static probes to the table of docs/probes.md: probes.py LIBRARY DOCUMENT. The notes of the library name
each probe and its arguments, as perf and bpftrace read them."""
import os
import re
import subprocess
import sys

PROVIDER = "anywarp"


def noted(library):
    """{name: the set of how many arguments its places have}."""
    lines = subprocess.run(["readelf", "-W", "--notes", library], check=True, text=True,
                           env=dict(os.environ, LC_ALL="C"), stdout=subprocess.PIPE).stdout
    found = {}
    for provider, name, arguments in re.findall(r"Provider: (.*)\n\s+Name: (.*)\n.*\n\s+Arguments: (.*)", lines):
        if provider == PROVIDER:
            found.setdefault(name, set()).add(len(re.findall(r"-?\d+@", arguments)))
    return found


def documented(path):
    """The same, of the rows '| `name` | arguments, with commas between | ...'."""
    with open(path, encoding="utf-8") as document:
        rows = re.findall(r"(?m)^\| `(\w+)` \| ([^|]*) \|", document.read())
    return {name: {len(arguments.split(","))} for name, arguments in rows}


def main():
    ours, wanted = noted(sys.argv[1]), documented(sys.argv[2])
    for name in sorted(ours.keys() | wanted.keys()):
        if ours.get(name) != wanted.get(name):
            print(f"{name}: {ours.get(name)} arguments, and {wanted.get(name)} in the document")
    print(f"{len(ours)} probes")
    return 0 if ours and ours == wanted else 1


sys.exit(main())
