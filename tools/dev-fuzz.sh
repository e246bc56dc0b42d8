# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
need_packages "$packages_fuzz"

target=""
seconds=60
long=""
for argument in "$@"; do
	case $argument in
	--long) long=1 && seconds=30 ;; # then they are CPU minutes, and the corpora are renewed
	*[!0-9]*) target=$argument ;;
	*) seconds=$argument ;;
	esac
done

build_preset fuzz
fuzzers=$(cd build/fuzz/tests && ls -1 fuzz_* 2>/dev/null | grep -v '\.' || true)
[ -n "$fuzzers" ] || die "fuzz: no fuzz target is built"
if [ -n "$target" ]; then
	target=fuzz_${target#fuzz_}
	[ -x "build/fuzz/tests/$target" ] ||
		die "fuzz: no target '$target'; there are: $(echo $fuzzers)"
	fuzzers=$target
fi

if [ -n "$long" ]; then
	exec tests/fuzz/long.sh build/fuzz "$seconds" ${target:+"$target"}
fi

# Inputs that the fuzzer finds stay in build/fuzz/corpus; the seeds under tests/ are only read.
for fuzzer in $fuzzers; do
	corpus=build/fuzz/corpus/$fuzzer
	seeds=tests/fuzz/corpus/${fuzzer#fuzz_}
	mkdir -p "$corpus"
	[ -d "$seeds" ] || seeds=""
	say "$fuzzer for $seconds seconds"
	"build/fuzz/tests/$fuzzer" -max_total_time="$seconds" -timeout=10 \
		-artifact_prefix="build/fuzz/crash-$fuzzer-" "$corpus" $seeds
done
