# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Builds each preset, runs with it the suites that say something there, adds up the totals.

declare -A suites=(
	[release]='.*'
	[asan]='^(unit|prop|sim|fuzz|verbs|cm|faults|stress|system|hostile)$'
	[tsan]='^(unit|verbs|cm|stress|system)$'
	[fuzz]='^fuzz$'
)
# Of each other machine: what needs no emulator's help with Linux's rarer calls.
for machine in $machines; do
	suites[$machine]='^(unit|prop|sim|arch)$'
done
# The suites that another distribution can break.
suites_distro="(distro|system)"
# Under --full: the suites that take longer, too.
suites_kernel_full="(kernel|kernel-full)"
# Both of those that boot kernels.
suites_uml="(interop|kernel)"
presets="release asan tsan fuzz"
labels="unit prop sim fuzz verbs cm faults abi check system stress hostile interop ecosystem kernel package distro"
only=""
full=""
distro=""
arch=""
part="" # with -R: not all tests of a suite run
filters=()

# Every argument is looked at before anything is installed or built.
parse_filters() {
	local word
	while [ $# -gt 0 ]; do
		case $1 in
		--only | --preset | -R | --distro) [ -n "${2:-}" ] || die "test: $1 needs a value; see './dev help test'" ;;
		esac
		case $1 in
		--only) only=$2 && shift ;;
		--preset) presets=$2 && shift ;;
		-R) part=part filters+=(-R "$2") && shift ;;
		--unit | --prop | --sim | --fuzz | --verbs | --cm | --faults | --abi | --system | --stress | \
			--hostile | --interop | --ecosystem | --kernel | --package)
			only=${1#--}
			;;
		--full) full=yes ;;
		--arch) arch=$machines ;;
		--arch=*) arch=${1#--arch=} && arch=${arch//,/ } ;;
		--distro) distro=$2 && shift ;;
		*) refuse test "$1" --only --preset -R --full --arch --distro ${labels// / --} ;;
		esac
		shift
	done
	for word in ${only//[()|]/ }; do
		pick test suite "$word" $labels
	done
	for word in $presets; do
		pick test preset "$word" release debug asan tsan fuzz
	done
	for word in $arch; do
		pick test machine "$word" $machines
	done
	[[ $distro =~ ^[a-z]*$ ]] || die "test: '$distro' is no name of a release of Debian, as trixie is"
	[ -z "$part" ] || grep -qE -e "${filters[1]}" /dev/null 2>/dev/null || [ $? -eq 1 ] ||
		die "test: '${filters[1]}' is no regular expression"
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

# What ctest is told of the tests that are wanted.
select_tests() {
	# Kernels, other people's programs, packages and another Debian take many minutes: only who asks for
	# them by name waits for them.
	selected=(--test-dir "build/$1" -L "${suites[$1]:-.*}" -LE '^(interop|ecosystem|distro|package|kernel|kernel-full)$' "${filters[@]}")
	! asked_by_name || selected=(--test-dir "build/$1" -L "${suites[$1]:-.*}" "${filters[@]}")
}

# The presets that have tests of those that are wanted. A configuration, which takes seconds, tells the tests' names.
choose_presets() {
	local preset
	wanted=()
	for preset in $presets; do
		is_tested "$preset" || continue
		select_tests "$preset"
		[ ${#filters[@]} -eq 0 ] || for_preset "$preset" configure_preset
		[ ${#filters[@]} -eq 0 ] || ! ctest "${selected[@]}" -N 2>/dev/null | grep -q 'Total Tests: 0' || continue
		wanted+=("$preset")
	done
	[ ${#wanted[@]} -gt 0 ] || die "test: no test has that name, suite and preset"
}

# Tests end at limits that are there for programs that hang: they are longer on a slow machine, and on one that does much else.
set_limits() {
	ANYWARP_SLOWNESS=$(python3 -B tools/slowness.py "$1")
	export ANYWARP_SLOWNESS
	say "this machine is $ANYWARP_SLOWNESS times as slow as the limits are made for: a test may take $((300 * ANYWARP_SLOWNESS)) s"
}

test_preset() {
	local preset=$1
	local report=build/logs/test-$preset
	! asked_by_name || report=build/logs/test-${only//[^a-z]/}
	! is_kernel || report=build/logs/test-kernel
	# Most tests wait for two thirds of their time; fuzzers, and kernels that run as processes, do not.
	local jobs=$(($(nproc) * 3))
	[ "$preset" != fuzz ] && ! boots_kernels && [ -z "$arch" ] || jobs=$(nproc)
	set_limits "$jobs"
	say "testing $preset"
	rm -f "$report.xml"
	select_tests "$preset"
	ctest "${selected[@]}" --show-only=json-v1 >"$report.json" 2>/dev/null
	$(fixed_layout "$preset") ctest "${selected[@]}" \
		-j "$jobs" --timeout $((300 * ANYWARP_SLOWNESS)) --no-tests=ignore --test-output-truncation head \
		--test-output-size-passed 100000 --test-output-size-failed 1000000 \
		--output-junit "$PWD/$report.xml" --output-log "$PWD/$report.log" 2>/dev/null |
		python3 -B tools/test_progress.py "$report.json" || true
	reports+=("$report.xml")
}

is_kernel() {
	[ "$only" = kernel ] || [ "$only" = "$suites_kernel_full" ]
}

boots_kernels() {
	is_kernel || [ "$only" = interop ] || [ "$only" = "$suites_uml" ]
}

asked_by_name() {
	boots_kernels || [[ $only =~ ^(ecosystem|package)$ ]] || [ "$only" = "$suites_distro" ]
}

# make_root DIR SUITE [PACKAGES]: tests/distro/build-root, whose log is that of debootstrap.
make_root() {
	mkdir -p build/logs
	watched build/logs/root.log $as_root tests/distro/build-root "$@" || { tail -n 3 build/logs/root.log >&2 && return 1; }
}

# Another Debian, in build/distro; ./dev runs in it and installs there what it needs. The build of this machine
# is taken along: its binaries are to run there.
test_in_distro() {
	local as_root dir=build/distro/$distro
	as_root=$(root_prefix)
	[ "$as_root" != no ] ||
		die "--distro needs root, for debootstrap, mount and chroot: run './dev test --distro $distro' as root"
	need_packages "$packages_distro"
	[ -e "/usr/share/debootstrap/scripts/$distro" ] || die "test: debootstrap knows no release '$distro'"
	build_preset release
	[ -e "$dir/root" ] || { say "making a root of Debian $distro" && refresh_package_lists; }
	# Beside what ./dev installs there.
	make_root "$dir" "$distro" ca-certificates,ibverbs-providers ||
		die "no Debian $distro, no tests there; its log is in $dir"
	say "testing in Debian $distro"
	$as_root tests/distro/enter "$dir" ./dev test --preset release --only "$suites_distro" "${filters[@]}"
}

# What other machines' builds need.
prepare_machines() {
	local machine
	for machine in $arch; do
		say "unpacking Debian's packages for $machine, unless they are there"
		build_sysroot "$machine"
	done
}

# With what pip builds an sdist in a Debian that reaches no index.
fetch_wheelhouse() {
	[ -d build/package/wheelhouse ] ||
		watched build/logs/wheelhouse.log build/wheel-tools/bin/pip download --dest build/package/wheelhouse scikit-build-core ||
		die "the sdist's build tools cannot be fetched; see build/logs/wheelhouse.log"
}

# The packages, and Debians without anything in which they are tried.
make_packages() {
	local as_root suite
	as_root=$(root_prefix)
	[ "$as_root" != no ] || die "--package needs root, for debootstrap and mount: run './dev test --package' as root"
	./dev package
	./dev package wheel
	fetch_wheelhouse
	./dev release amd64
	watched build/logs/spdx.log build/wheel-tools/bin/pip install spdx-tools || say "not here: spdx-tools"
	rm -rf build/package/release
	cp -r build/dist build/package/release
	refresh_package_lists
	for suite in bookworm trixie; do
		say "making a root of Debian $suite, unless there is one"
		make_root "build/package-roots/$suite" "$suite" ||
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
	watched build/logs/rust.log cargo build --manifest-path examples/rust/Cargo.toml --target-dir build/rust ||
		say "examples/rust is not built: see build/logs/rust.log"
}

# InfiniStore was built for the libuv of uvloop 0.21.
get_engines() {
	install_engines mooncake-transfer-engine-non-cuda nixl nixl-cu12 infinistore || return 0
	watched build/logs/engine-needs.log build/engines/bin/pip install 'uvloop<0.22' fastapi uvicorn pybind11 ||
		say "not here: some of what transfer engines need; see build/logs/engine-needs.log"
}

# A program with the crate async-rdma. Of what the crate needs one release is withdrawn, and later ones do not fit, so that only
# the lock file in the crate leads there; the crate has no example "none", and is unpacked all the same.
make_async_rdma() {
	local dir=$1
	cargo install --locked --example none --root "$dir" async-rdma --version 0.5.0 || true
	cp "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/async-rdma-0.5.0/Cargo.lock "$dir" &&
		cargo build --manifest-path "$dir/Cargo.toml" --target-dir "$dir/target"
}

build_async_rdma() {
	local dir=build/async-rdma
	mkdir -p build/logs "$dir"
	say "building with async-rdma in $dir"
	rm -rf "$dir/target/debug/blocks" "$dir/Cargo.lock"
	cp -r tests/ecosystem/async_rdma/. "$dir"
	watched build/logs/async-rdma.log make_async_rdma "$dir" ||
		say "the program with async-rdma is not built: see build/logs/async-rdma.log"
}

# Of a newer kernel that is built for this release of Debian: tools of another release's headers want its C library.
fetch_newer_headers() {
	local suite
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")-backports
	watched build/logs/headers.log tests/kernel/fetch-headers build/kernel/headers-backports "$suite" ||
		say "no headers of $suite: $(tail -n 1 build/logs/headers.log)"
}

# libuv's own tests, in build/libuv; they are skipped where their sources cannot be fetched.
build_libuv() {
	[[ "${wanted[*]}" == *release* && "${only:-system}" == system ]] || return 0
	mkdir -p build/logs
	say "building libuv's tests, unless they are there"
	watched build/logs/libuv.log tests/sockets/build-libuv build/libuv ||
		say "no tests of libuv: $(tail -n 1 build/logs/libuv.log)"
}

parse_filters "$@"
# Some tests have a thousand connections, and the limit of Debian's users is 1024 fds unless they raise it.
fds=$(ulimit -Hn)
[ "$fds" != unlimited ] && [ "$fds" -le 20000 ] || fds=20000
[ "$(ulimit -Sn)" = unlimited ] || [ "$(ulimit -Sn)" -ge "$fds" ] || ulimit -Sn "$fds"
if [ -n "$distro" ]; then
	test_in_distro
	exit
fi
reports=()
wanted=()
libuv=""
[ -z "$arch" ] || presets=$arch
! asked_by_name || presets=release
if [ -n "$arch" ]; then
	prepare_machines
elif boots_kernels; then
	need_packages "$packages_kernel"
elif [ "$only" = package ]; then
	need_packages "$packages_test_package"
elif [ "$only" = ecosystem ]; then
	need_packages "$packages_run python3-pytest"
else
	need_packages "$packages_test"
fi
choose_presets
if boots_kernels; then
	configuration=${full:+full}
	build_kernel ${configuration:=base}
	[ -z "$full" ] || fetch_newer_headers
	[ -z "$full" ] || { build_smp && build_tls; }
	export ANYWARP_KERNEL=$configuration
elif [ -n "$arch" ]; then
	build_preset release # the peer of their programs
elif [ "$only" = package ]; then
	make_packages
elif [ "$only" = ecosystem ]; then
	get_ecosystem
	build_rust
	get_engines
	build_async_rdma
else
	# Most of it waits for the network. What it tells comes when it is over.
	mkdir -p build/logs
	build_libuv >build/logs/libuv.told 2>&1 &
	libuv=$!
fi
# While a preset is tested the next one is built, in a session of its own, to which no Ctrl-C comes. A build that fails is
# done again, and reported, when its turn comes.
behind=""
trap '[ -z "$behind" ] || kill -- "-$behind" 2>/dev/null || true' EXIT
for i in "${!wanted[@]}"; do
	build_preset "${wanted[i]}"
	[ -z "$libuv" ] || { wait "$libuv" && libuv="" && cat build/logs/libuv.told; }
	next=${wanted[i + 1]:-}
	if [ -n "$next" ]; then
		tools/run-idle ./dev build "$next" >build/logs/behind.log 2>&1 &
		behind=$!
	fi
	test_preset "${wanted[i]}"
	[ -z "$behind" ] || tail -n 1 -f --pid="$behind" build/logs/behind.log
	wait
	behind=""
done
if [ "$only" = ecosystem ]; then
	python3 tests/ecosystem/table.py build/release/ecosystem docs/programs.md $part || table=wrong
fi
python3 tools/junit_totals.py "${reports[@]}"
[ "${table:-right}" = right ]
