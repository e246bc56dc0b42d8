# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Builds each preset, runs with it the suites that say something there, adds up the totals.

declare -A suites=(
	[release]='.*'
	[asan]='^(unit|prop|sim|fuzz|verbs|cm|stress|system)$'
	[tsan]='^(unit|verbs|cm|stress|system)$'
	[fuzz]='^fuzz$'
)
presets="release asan tsan fuzz"
only=""
filters=()

parse_filters() {
	while [ $# -gt 0 ]; do
		case $1 in
		--only) only=${2:?--only needs a label} && shift ;;
		--preset) presets=${2:?--preset needs a name} && shift ;;
		-R) filters+=(-R "${2:?-R needs a regular expression}") && shift ;;
		--unit | --prop | --sim | --fuzz | --verbs | --cm | --abi | --system | --stress | \
			--interop)
			only=${1#--}
			;;
		*) die "test: unknown argument '$1'; see './dev help'" ;;
		esac
		shift
	done
	[ -z "$only" ] || filters+=(-L "^$only\$")
}

# gcc's thread sanitizer wants its usual address layout; not every container allows asking.
fixed_layout() {
	if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then
		echo "setarch -R"
	fi
}

run_preset() {
	local preset=$1
	local labels=${suites[$preset]:-'.*'}
	if [ -n "$only" ] && ! [[ $only =~ $labels ]]; then
		return
	fi
	build_preset "$preset"
	say "testing $preset"
	rm -f "build/logs/test-$preset.xml"
	$(fixed_layout "$preset") ctest --test-dir "build/$preset" -L "$labels" "${filters[@]}" \
		-j "$(nproc)" --timeout 300 --no-tests=ignore --test-output-truncation head \
		--test-output-size-passed 100000 --test-output-size-failed 1000000 \
		--output-junit "$PWD/build/logs/test-$preset.xml" --output-log \
		"$PWD/build/logs/test-$preset.log" 2>/dev/null | grep -E 'Test +#|No tests' || true
	reports+=("build/logs/test-$preset.xml")
}

parse_filters "$@"
need_packages "$packages_test"
reports=()
for preset in $presets; do
	run_preset "$preset"
done
python3 tools/junit_totals.py "${reports[@]}"
