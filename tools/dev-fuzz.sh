# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

# A target is a file of tests/fuzz or of tests/prop.
targets=$(cd tests && echo fuzz/fuzz_*.c prop/prop_*.c)
targets=" ${targets//.c/}"
targets=${targets// fuzz\/fuzz_/ } && targets=${targets// prop\/prop_/ }
target=""
seconds=60
long=""
for argument in "$@"; do
	case $argument in
	--long) long=1 && seconds=30 ;; # then they are CPU minutes, and the corpora are renewed
	-*) refuse fuzz "$argument" --long ;;
	*[!0-9]*) pick fuzz target "${argument#fuzz_}" $targets && target=fuzz_${argument#fuzz_} ;;
	*) seconds=$argument ;;
	esac
done
need_packages "$packages_fuzz"

build_preset fuzz
fuzzers=$(cd build/fuzz/tests && ls -1 fuzz_* 2>/dev/null | grep -v '\.' || true)
[ -n "$fuzzers" ] || die "fuzz: no fuzz target is built"
fuzzers=${target:-$fuzzers}

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
