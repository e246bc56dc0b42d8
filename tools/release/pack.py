#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pack.py MACHINE STAGE OUT VERSION GLIBC: an archive, a wheel and Debian packages of what is installed in STAGE, into OUT. Fails where
that needs a C library newer than GLIBC."""

import pathlib
import sys

import archive
import debs
import stage
import wheel


def main(machine, folder, out, version, newest):
    made = stage.Stage(folder, machine, version)
    if made.glibc() > tuple(map(int, newest.split("."))):
        sys.exit(f"pack.py: needs glibc {'.'.join(map(str, made.glibc()))}, newer than {newest}")
    for maker in (archive, wheel, debs):
        maker.make(made, pathlib.Path(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
