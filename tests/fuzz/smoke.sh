#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# smoke.sh <build folder> <seconds> [target...]: runs each fuzz target for that long, from the
# corpora beside this script. What a failing run found is left in the build folder.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
build=${1:?usage: smoke.sh <build folder> <seconds> [target...]}
seconds=${2:?usage: smoke.sh <build folder> <seconds> [target...]}
shift 2
[ $# -gt 0 ] || set -- $(cd "$build/tests" && ls -1 fuzz_* | grep -v '\.')

for target in "$@"; do
	found=$(mktemp -d "$build/fuzz-smoke-XXXXXX")
	seeds=$here/corpus/${target#fuzz_}
	[ -d "$seeds" ] || seeds=""
	echo "$target for $seconds seconds"
	"$build/tests/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
		-print_final_stats=1 -verbosity=0 -artifact_prefix="$build/crash-$target-" \
		"$found" $seeds 2>&1 | tail -n 60
	rm -r "$found"
done
