#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compares the system's verbs headers with a list: structs.py COMPILER LIST.

Every size and offset of the list becomes a _Static_assert, and the compiler checks them all. A
binary built elsewhere carries these numbers, so headers that differ would break it.
"""
import struct
import subprocess
import sys

HEADERS = "stddef.h infiniband/verbs.h infiniband/sa.h rdma/rdma_cma.h".split()
UNIONS = {"ibv_gid"}


def asserts(line):
    name, *facts = line.replace(":", " ").split()
    c_type = "%s %s" % ("union" if name in UNIONS else "struct", name)
    for fact in facts:
        if fact.startswith("size="):
            expression, number = "sizeof(%s)" % c_type, fact[5:]
        else:
            member, number = fact.split("@")
            expression = "offsetof(%s, %s)" % (c_type, member)
        yield '_Static_assert(%s == %s, "%s is %s");' % (expression, number, expression, number)


def main():
    compiler, path = sys.argv[1:]
    if struct.calcsize("P") != 8:
        print("the list is of a 64-bit machine")
        return 77
    with open(path, encoding="ascii") as lines:
        facts = [check for line in lines if not line.startswith("#") for check in asserts(line)]
    source = ["#include <%s>" % header for header in HEADERS] + facts
    done = subprocess.run([compiler, "-std=gnu17", "-fsyntax-only", "-x", "c", "-"],
                          input="\n".join(source) + "\n", text=True, check=False)
    print("%d sizes and offsets: %s" % (len(facts), "wrong" if done.returncode else "right"))
    return 1 if done.returncode or not facts else 0


sys.exit(main())
