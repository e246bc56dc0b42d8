#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Holds a preloaded library to libc: aliases.py LIBRARY. Where libc has several names for one function, a
library that wraps one of them wraps them all, or a program that has another goes past it. Likewise the name
that a program has in it that was built with _FORTIFY_SOURCE."""
import os
import re
import subprocess
import sys

PRIVATE = "GLIBC_PRIVATE"
# What _FORTIFY_SOURCE makes of open, and of read.
FORTIFIED = re.compile(r"__(?:(open(?:at)?(?:64)?)_2|(\w+)_chk)$")


def exported(library):
    """{address: {(name, node)}} of a library's functions."""
    found = {}
    lines = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True, text=True,
                           env=dict(os.environ, LC_ALL="C"), stdout=subprocess.PIPE).stdout
    for line in lines.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ("FUNC", "IFUNC") and fields[6] != "UND":
            name, _, node = fields[7].partition("@")
            found.setdefault(int(fields[1], 16), set()).add((name, node.lstrip("@")))
    return found


def libc():
    """The one that this process has."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if re.search(r"/libc\.so\.6$", line))


def missing(ours, theirs):
    for names in theirs.values():
        public = {name for name, node in names if node != PRIVATE}
        if public & ours:
            yield from (f"{name}, which is {min(public & ours)}" for name in sorted(public - ours))
        for name in public - ours:
            plain = FORTIFIED.match(name)
            if plain and (plain[1] or plain[2]) in ours:
                yield f"{name}, which is a fortified {plain[1] or plain[2]}"


def main():
    ours = {name for names in exported(sys.argv[1]).values() for name, _ in names}
    wrong = sorted(missing(ours, exported(libc())))
    print("\n".join(f"not wrapped: {each}" for each in wrong))
    print(f"{len(ours)} functions, {len(wrong)} names of them missing")
    return 1 if wrong or not ours else 0


sys.exit(main())
