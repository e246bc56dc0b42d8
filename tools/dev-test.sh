# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Builds each preset, runs with it the suites that say something there, adds up the totals.

declare -A suites=(
	[release]='.*'
	[asan]='^(unit|prop|sim|fuzz|verbs|cm|faults|stress|system|hostile)$'
	[tsan]='^(unit|verbs|cm|stress|system)$'
	[fuzz]='^fuzz$'
)
# Of each other machine, under qemu-user: what needs no emulator's help with Linux's rarer calls.
machines="arm64 armhf i386 riscv64 s390x"
for machine in $machines; do
	suites[$machine]='^(unit|prop|sim|arch)$'
done
# The suites that another distribution can break.
suites_distro="(distro|system)"
# Under --full: the suites that take longer, too.
suites_kernel_full="(kernel|kernel-full)"
presets="release asan tsan fuzz"
only=""
full=""
distro=""
arch=""
part="" # with -R: not all tests of a suite run
filters=()

parse_filters() {
	while [ $# -gt 0 ]; do
		case $1 in
		--only) only=${2:?--only needs a label} && shift ;;
		--preset) presets=${2:?--preset needs a name} && shift ;;
		-R) part=part filters+=(-R "${2:?-R needs a regular expression}") && shift ;;
		--unit | --prop | --sim | --fuzz | --verbs | --cm | --faults | --abi | --system | --stress | \
			--hostile | --interop | --ecosystem | --kernel | --package)
			only=${1#--}
			;;
		--full) full=yes ;;
		--arch) arch=$machines ;;
		--arch=*) arch=${1#--arch=} && arch=${arch//,/ } ;;
		--distro) distro=${2:?--distro needs the name of a release of Debian: trixie} && shift ;;
		*) die "test: unknown argument '$1'; see './dev help'" ;;
		esac
		shift
	done
	[ -z "$full" ] || [ "$only" = kernel ] || die "test: --full is for --kernel"
	[ -z "$full" ] || only=$suites_kernel_full
	[ -z "$only" ] || filters+=(-L "^$only\$")
}

# gcc's thread sanitizer wants its usual address layout; not every container allows asking.
fixed_layout() {
	if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then
		echo "setarch -R"
	fi
}

# ThreadSanitizer holds each process at its end, and looks for races with the threads that are left: for a second by default, which
# was half of the time of all its tests. What can run on another thread then does so within 100 ms.
export TSAN_OPTIONS="atexit_sleep_ms=100${TSAN_OPTIONS:+:$TSAN_OPTIONS}"

# Whether a suite that was asked for runs with the preset.
is_tested() {
	local labels=${suites[$1]:-'.*'}
	[ -z "$only" ] || [[ $only =~ $labels ]]
}

test_preset() {
	local preset=$1
	local labels=${suites[$preset]:-'.*'}
	# Kernels, other people's programs, packages and another Debian take many minutes: only who asks for
	# them by name waits for them.
	local except=(-LE '^(interop|ecosystem|distro|package|kernel|kernel-full)$')
	! asked_by_name || except=()
	local report=build/logs/test-$preset
	! asked_by_name || report=build/logs/test-${only//[^a-z]/}
	! is_kernel || report=build/logs/test-kernel
	# Most tests wait for half of their time; fuzzers, and kernels that run as processes, do not.
	local jobs=$(($(nproc) * 2))
	[ "$preset" != fuzz ] && [ "$only" != interop ] && ! is_kernel && [ -z "$arch" ] || jobs=$(nproc)
	say "testing $preset"
	rm -f "$report.xml"
	$(fixed_layout "$preset") ctest --test-dir "build/$preset" -L "$labels" "${except[@]}" "${filters[@]}" \
		-j "$jobs" --timeout 300 --no-tests=ignore --test-output-truncation head \
		--test-output-size-passed 100000 --test-output-size-failed 1000000 \
		--output-junit "$PWD/$report.xml" --output-log "$PWD/$report.log" 2>/dev/null |
		grep -E 'Test +#|No tests' || true
	reports+=("$report.xml")
}

is_kernel() {
	[ "$only" = kernel ] || [ "$only" = "$suites_kernel_full" ]
}

asked_by_name() {
	is_kernel || [[ $only =~ ^(interop|ecosystem|package)$ ]] || [ "$only" = "$suites_distro" ]
}

# Another Debian, in build/distro; ./dev runs in it and installs there what it needs. The build of this machine
# is taken along: its binaries are to run there.
test_in_distro() {
	local as_root dir=build/distro/$distro
	as_root=$(root_prefix)
	[ "$as_root" != no ] ||
		die "--distro needs root, for debootstrap, mount and chroot: run './dev test --distro $distro' as root"
	[[ $distro =~ ^[a-z]+$ ]] || die "test: '$distro' is no name of a release of Debian, as trixie is"
	need_packages "$packages_distro"
	build_preset release
	[ -e "$dir/root" ] || { say "making a root of Debian $distro" && refresh_package_lists; }
	# Beside what ./dev installs there.
	$as_root tests/distro/build-root "$dir" "$distro" ca-certificates,ibverbs-providers ||
		die "no Debian $distro, no tests there; its log is in $dir"
	say "testing in Debian $distro"
	$as_root tests/distro/enter "$dir" ./dev test --preset release --only "$suites_distro" "${filters[@]}"
}

# Other machines' builds, and this one's, which is the peer of their programs.
prepare_machines() {
	local machine
	for machine in $arch; do
		[[ " $machines " == *" $machine "* ]] || die "test: no machine '$machine'; there are $machines"
		say "unpacking Debian's packages for $machine, unless they are there"
		build_sysroot "$machine"
	done
	build_preset release
}

# With what pip builds an sdist in a Debian that reaches no index.
fetch_wheelhouse() {
	[ -d build/package/wheelhouse ] ||
		build/wheel-tools/bin/pip download --dest build/package/wheelhouse scikit-build-core >>build/logs/wheel.log 2>&1 ||
		die "the sdist's build tools cannot be fetched; see build/logs/wheel.log"
}

# The packages, and Debians without anything in which they are tried.
make_packages() {
	local as_root suite
	as_root=$(root_prefix)
	[ "$as_root" != no ] || die "--package needs root, for debootstrap and mount: run './dev test --package' as root"
	need_packages "$packages_test_package"
	./dev package
	./dev package wheel
	fetch_wheelhouse
	refresh_package_lists
	for suite in bookworm trixie; do
		say "making a root of Debian $suite, unless there is one"
		$as_root tests/distro/build-root "build/package-roots/$suite" "$suite" ||
			die "no Debian $suite, no tests there; its log is in build/package-roots/$suite"
	done
	export ANYWARP_PACKAGES=$PWD/build/package ANYWARP_ROOTS=$PWD/build/package-roots ANYWARP_AS_ROOT=$as_root
}

# Packages one by one: what a distribution does not have is a row that says so.
get_ecosystem() {
	local package
	for package in $packages_ecosystem; do
		package_is_installed "$package" || (install_packages "$package") ||
			say "not here: $package"
	done
	rm -rf build/release/ecosystem
}

# Crates that are to be fetched take the time they take: no test waits for them. Debian's newest cargo, in
# cargo-web, replaces an older one, so that it is installed only where there is none.
build_rust() {
	mkdir -p build/logs
	say "building examples/rust"
	rm -f build/rust/debug/note
	command -v cargo >/dev/null || (install_packages cargo-web) || say "not here: cargo-web"
	cargo build --manifest-path examples/rust/Cargo.toml --target-dir build/rust >build/logs/rust.log 2>&1 ||
		say "examples/rust is not built: see build/logs/rust.log"
}

# InfiniStore was built for the libuv of uvloop 0.21.
get_engines() {
	install_engines mooncake-transfer-engine-non-cuda nixl nixl-cu12 infinistore || return 0
	build/engines/bin/pip install 'uvloop<0.22' fastapi uvicorn pybind11 >>build/logs/engines.log 2>&1 ||
		say "not here: some of what transfer engines need; see build/logs/engines.log"
}

# A program with the crate async-rdma. Of what the crate needs one release is withdrawn, and later ones do not fit, so that only
# the lock file in the crate leads there; the crate has no example "none", and is unpacked all the same.
build_async_rdma() {
	local dir=build/async-rdma log=$PWD/build/logs/async-rdma.log crate="async-rdma --version 0.5.0"
	mkdir -p build/logs "$dir"
	say "building with async-rdma in $dir"
	rm -rf "$dir/target/debug/blocks" "$dir/Cargo.lock"
	cp -r tests/ecosystem/async_rdma/. "$dir"
	cargo install --locked --example none --root "$dir" $crate >"$log" 2>&1 || true
	cp "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/async-rdma-0.5.0/Cargo.lock "$dir" >>"$log" 2>&1 &&
		cargo build --manifest-path "$dir/Cargo.toml" --target-dir "$dir/target" >"$log" 2>&1 ||
		say "the program with async-rdma is not built: see build/logs/async-rdma.log"
}

# Of a newer kernel that is built for this release of Debian: tools of another release's headers want its C library.
fetch_newer_headers() {
	local suite
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")-backports
	tests/kernel/fetch-headers build/kernel/headers-backports "$suite" >>build/logs/kernel.log 2>&1 ||
		say "no headers of $suite: $(tail -n 1 build/logs/kernel.log)"
}

# libuv's own tests, in build/libuv; they are skipped where their sources cannot be fetched.
build_libuv() {
	[[ "$presets" == *release* && "${only:-system}" == system ]] || return 0
	mkdir -p build/logs
	tests/sockets/build-libuv build/libuv >build/logs/libuv.log 2>&1 ||
		say "no tests of libuv: $(tail -n 1 build/logs/libuv.log)"
}

parse_filters "$@"
if [ -n "$distro" ]; then
	test_in_distro
	exit
fi
if [ "$only" = interop ] || is_kernel; then
	presets=release
	configuration=${full:+full}
	build_kernel ${configuration:=base}
	[ -z "$full" ] || fetch_newer_headers
	[ -z "$full" ] || build_smp
	export ANYWARP_KERNEL=$configuration
elif [ -n "$arch" ]; then
	presets=$arch
	prepare_machines
elif [ "$only" = package ]; then
	presets=release
	make_packages
elif [ "$only" = ecosystem ]; then
	presets=release
	get_ecosystem
	build_rust
	get_engines
	build_async_rdma
else
	need_packages "$packages_test"
	build_libuv
fi
reports=()
wanted=()
for preset in $presets; do
	! is_tested "$preset" || wanted+=("$preset")
done
# While a preset is tested the next one is built, in a session of its own, to which no Ctrl-C comes. A build that fails is
# done again, and reported, when its turn comes.
behind=""
trap '[ -z "$behind" ] || kill -- "-$behind" 2>/dev/null || true' EXIT
for i in "${!wanted[@]}"; do
	build_preset "${wanted[i]}"
	next=${wanted[i + 1]:-}
	if [ -n "$next" ]; then
		tools/run-idle ./dev build "$next" >/dev/null 2>&1 &
		behind=$!
	fi
	test_preset "${wanted[i]}"
	wait
	behind=""
done
if [ "$only" = ecosystem ]; then
	python3 tests/ecosystem/table.py build/release/ecosystem docs/programs.md $part || table=wrong
fi
python3 tools/junit_totals.py "${reports[@]}"
[ "${table:-right}" = right ]
