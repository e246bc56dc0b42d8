# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""python3 -m anywarp: the command, also where its folder is not in PATH."""

from anywarp import main

main()
