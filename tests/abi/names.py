#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compares what a library exports with a list: names.py LIST LIBRARY.

Every name at its node, as the default or for old binaries only, function or object; no name and
no node beyond the list, but for our own ANYWARP_PRIVATE_1. Also the SONAME, the link without a
number that dlopen callers use, and that nodes come in the list's chain.
"""
import os
import re
import subprocess
import sys

OWN_NODE = "ANYWARP_PRIVATE_1"
OWN_NAME = re.compile(r"(aw|avb)_\w+$")


def readelf(*args):
    env = dict(os.environ, LC_ALL="C")
    return subprocess.run(["readelf", "-W", *args], check=True, text=True, env=env,
                          stdout=subprocess.PIPE).stdout


def listed(path):
    """{(node, name): (type, kind)} of a .syms file."""
    facts = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            if not line.startswith("#"):
                node, name, kind_of_symbol, kind = line.split()
                facts[node, name] = (kind_of_symbol, kind)
    return facts


def exported(library):
    """{(node, name): (type, kind)} of a library's defined dynamic symbols."""
    found = {}
    for line in readelf("--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) != 8 or fields[6] in ("Ndx", "UND", "ABS"):
            continue
        name, at, node = fields[7].partition("@")
        kind = "default" if node.startswith("@") else "compat"
        found[node.lstrip("@"), name] = (fields[3], kind if at else "unversioned")
    return found


def nodes_of(library):
    """{node: parent or None}, without the library's own name."""
    nodes, last = {}, None
    text = readelf("-V", library).partition("Version definition")[2].partition("Version needs")[0]
    for line in text.splitlines():
        if match := re.search(r"Flags: (\w+) .*Name: (\S+)$", line):
            last = match[2] if match[1] == "none" else None
            if last:
                nodes[last] = None
        elif match := re.search(r"Parent 1: (\S+)$", line):
            nodes[last] = match[1]
    return nodes


def nodes_wanted(facts):
    """rdma-core's public nodes follow one another; a private one stands alone, and so do ours."""
    wanted, previous = {}, None
    for node in dict.fromkeys(node for node, _ in facts):
        alone = "PRIVATE" in node or node.startswith("ANYWARP")
        wanted[node] = None if alone else previous
        previous = previous if alone else node
    return wanted


def wrong_names(want, have):
    for key, fact in want.items():
        if key not in have:
            yield "missing: %s@%s" % (key[1], key[0])
        elif have[key] != fact:
            yield "%s@%s is %s, not %s" % (key[1], key[0], " ".join(have[key]), " ".join(fact))
    for node, name in have.keys() - want.keys():
        if node != OWN_NODE or not OWN_NAME.match(name):
            yield "not in the list: %s@%s" % (name, node)


def wrong_nodes(want, have):
    own = {OWN_NODE: None} if OWN_NODE in have else {}
    for node in sorted(set(want) | set(have)):
        if {**want, **own}.get(node, "absent") != have.get(node, "absent"):
            yield "node %s follows %s, not %s" % (
                node, have.get(node, "absent"), want.get(node, "absent"))


def wrong_files(library):
    soname = re.search(r"soname: \[(.*)\]", readelf("-d", library))
    if not soname or soname[1] != os.path.basename(library):
        yield "SONAME is %s" % (soname and soname[1])
    link = re.sub(r"\.so\.1$", ".so", library)
    if link == library or not os.path.exists(link) or not os.path.samefile(link, library):
        yield "no link %s" % os.path.basename(link)


def main():
    facts, library = listed(sys.argv[1]), sys.argv[2]
    wrong = [*wrong_names(facts, exported(library)),
             *wrong_nodes(nodes_wanted(facts), nodes_of(library)),
             *wrong_files(library)]
    print("\n".join(wrong))
    print("%s: %d names in %d nodes listed, %d wrong" % (
        os.path.basename(library), len(facts), len(nodes_wanted(facts)), len(wrong)))
    return 1 if wrong or not facts else 0


sys.exit(main())
