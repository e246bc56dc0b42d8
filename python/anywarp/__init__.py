# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The anywarp command of a wheel: what CMake installs is in the folder prefix/, and finds its parts by itself."""

import os
import pathlib
import sys

COMMAND = pathlib.Path(__file__).resolve().parent / "prefix" / "bin" / "anywarp"


def main():
    """Becomes the command, with the arguments of this program."""
    os.execv(COMMAND, ["anywarp", *sys.argv[1:]])
