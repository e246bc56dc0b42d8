#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# long.sh <build folder> <CPU minutes> [target...]: fuzzes each target for that much CPU time from
# the corpora beside this script, keeps there what is needed for the coverage reached, and tells
# executions, edges, and the lines of src/wire and src/core that the kept corpus runs through.
set -euo pipefail

usage="usage: long.sh <build folder> <CPU minutes> [target...]"
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")
build=$(readlink -f "${1:?$usage}")
minutes=${2:?$usage}
shift 2
[ $# -gt 0 ] || set -- fuzz_startup fuzz_rx fuzz_pair
length_max=2048 # octets: what a corpus keeps is replayed by every test run

cpu_seconds() { # of this script's children that have ended: proc(5), cutime and cstime
	awk -v ticks="$(getconf CLK_TCK)" '{ print int(($16 + $17) / ticks) }' "/proc/$$/stat"
}

stat_of() { # of libFuzzer's final statistics
	awk -v name="stat::$1:" '$1 == name { sum += $2 } END { print sum + 0 }' "$2"
}

# In slices, since libFuzzer counts wall-clock time: others may use the machine too.
fuzz() {
	local target=$1 work=$2 until
	until=$(($(cpu_seconds) + minutes * 60))
	while [ "$(cpu_seconds)" -lt "$until" ]; do
		"$build/tests/$target" -max_total_time=60 -timeout=20 -rss_limit_mb=2048 \
			-max_len=$length_max -print_final_stats=1 -verbosity=0 \
			-artifact_prefix="$build/crash-$target-" "$work/found" \
			>>"$work/log" 2>&1 || { tail -n 60 "$work/log"; return 1; }
	done
}

# The smallest set of inputs with the same coverage takes the place of the old corpus.
merge() {
	local target=$1 work=$2 corpus=$here/corpus/${1#fuzz_}
	mkdir "$work/kept"
	"$build/tests/$target" -merge=1 -max_len=$length_max "$work/kept" "$corpus" "$work/found" \
		>"$work/merge" 2>&1
	rm -rf "$corpus"
	mkdir "$corpus"
	cp "$work/kept"/* "$corpus/"
}

# Source lines, by a build without libFuzzer that replays the corpus.
line_coverage() {
	local name=${1#fuzz_} work=$2 llvm
	llvm=$(dirname "$(readlink -f "$(command -v clang)")")
	cmake -S "$root" -B "$build/coverage" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
		-DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS="-fprofile-instr-generate \
		-fcoverage-mapping" >/dev/null
	ninja -C "$build/coverage" "replay_$name" >/dev/null
	LLVM_PROFILE_FILE=$work/profile "$build/coverage/tests/replay_$name" \
		"$here/corpus/$name" >/dev/null
	"$llvm/llvm-profdata" merge -o "$work/profile.merged" "$work/profile"
	"$llvm/llvm-cov" report "$build/coverage/tests/replay_$name" \
		-instr-profile="$work/profile.merged" "$root/src/core" "$root/src/wire" |
		awk '$1 == "TOTAL" { print $10 }'
}

for target in "$@"; do
	work=$(mktemp -d "$build/fuzz-long-XXXXXX")
	mkdir "$work/found"
	: >"$work/log"
	cp "$here/corpus/${target#fuzz_}"/* "$work/found/"
	start=$(cpu_seconds)
	fuzz "$target" "$work"
	spent=$(($(cpu_seconds) - start))
	merge "$target" "$work"
	echo "$target: CPU seconds $spent, executions $(stat_of number_of_executed_units \
		"$work/log"), $(grep -o 'cov: [0-9]* ft: [0-9]*' "$work/merge" | tail -n 1)," \
		"corpus $(ls "$here/corpus/${target#fuzz_}" | wc -l) files of" \
		"$(du -sb "$here/corpus/${target#fuzz_}" | cut -f1) octets, lines of src/core and" \
		"src/wire $(line_coverage "$target" "$work")"
	rm -r "$work"
done
