# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Builds the release preset and measures it; 'anywarp help bench' tells what the arguments are.
need_packages "$packages_bench"
build_preset release
exec build/release/bin/anywarp bench --out build/bench-results "$@"
