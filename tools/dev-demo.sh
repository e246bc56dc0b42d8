# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
[ $# -eq 0 ] || refuse demo "$1"
need_packages "$packages_run"
# The command and the libraries: most of the rest are tests.
rooms=$(echo src/*/CMakeLists.txt)
build_targets=${rooms//CMakeLists.txt/all}
build_preset release
cc -O2 -o build/release/tcp_yardstick tools/demo/tcp_yardstick.c
build/release/bin/anywarp doctor || die "demo: programs do not run here; 'anywarp doctor' says why"
say "Debian's own programs over anywarp"
python3 -B tools/demo/demo.py build/release build/release/tcp_yardstick
