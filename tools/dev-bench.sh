# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Builds the release preset and measures it; 'anywarp help bench' tells what the arguments are. With --apps there are
# more programs to install. With --kernel it is the kernel module that is measured; with --apps behind it, NFS and NVMe over
# Fabrics on the module; under User Mode Linux or, with --vm behind these, in a virtual machine. bench/kernel/rows.py tells what
# the arguments are then.

bench_seconds_max=7200

# crc32c-intel for User Mode Linux, which has none: the kernel's own code, and around it bench/kernel/crc32c. One
# instruction of it takes the module for one of the lowest 2 GB, where a kernel on a machine has them.
build_crc() {
	local kernel=$1 out=$2
	mkdir -p "$out"
	cp bench/kernel/crc32c/* "$out"
	sed 's/mov\tjump_table(,%rax,8), %bufp/lea jump_table(%rip), %bufp; mov (%bufp, %rax, 8), %bufp/' \
		"$kernel/source/arch/x86/crypto/crc32c-pcl-intel-asm_64.S" >"$out/crc32c-pcl-intel-asm_64.S"
	make -C "$kernel" ARCH=um M="$PWD/$out" modules
}

build_kernel_bench() {
	mkdir -p build/logs
	say "building a kernel under User Mode Linux (bench): minutes, the first time"
	watched build/logs/kernel.log tests/kernel/build-uml build/kernel/bench base.config consumers.config bench.config ||
		die "no kernel to measure in: $(tail -n 3 build/logs/kernel.log)"
	say "building anywarp.ko"
	watched build/logs/kmod.log tools/build-kmod build/kernel/bench/build build/kmod/uml-bench ARCH=um -j"$(nproc)" &&
		watched build/logs/crc.log build_crc build/kernel/bench/build build/kmod/uml-bench/crc32c ||
		die "the module did not build: $(tail -n 20 build/logs/kmod.log)"
}

# The applications' packages: one that cannot be installed is told, and its rows of the page say so.
want_packages() {
	local package
	(need_packages "$@") || for package in $*; do
		(need_packages "$package") >/dev/null 2>&1 || say "not installed: $package"
	done
}

# On one processor, and before everything else on it, where we may: all of User Mode Linux is one processor.
quietly() {
	if chrt -f 10 true 2>/dev/null; then
		chrt -f 10 taskset -c "$(($(nproc) - 1))" "$@"
	else
		"$@"
	fi
}

# Linux's siw, which Debian's kernels are without, of the same sources.
build_siw() {
	local kernel=$1 out=$2
	rm -rf "$out"
	mkdir -p "$out"
	tar -C "$out" -xJf "$(find /usr/src -name 'linux-source-*.tar.xz' | sort -V | tail -n 1)" --strip-components=5 \
		--wildcards 'linux-source-*/drivers/infiniband/sw/siw'
	make -C "$kernel" M="$PWD/$out" CC=gcc CONFIG_RDMA_SIW=m modules
}

# bench_uml PROGRAM ARGUMENTS...: PROGRAM is of bench/kernel. ANYWARP_MB is of apps.py: the MiB that a row moves.
bench_uml() {
	local kernel=build/kernel/bench/build program=$1
	shift
	build_kernel_bench
	quietly python3 tests/kernel/uml.py "$kernel/linux" "$bench_seconds_max" \
		env "ANYWARP_KERNEL_TREE=$PWD/$kernel" "ANYWARP_MB=${ANYWARP_MB:-256}" \
		python3 "$PWD/bench/kernel/$program" "$PWD/build/release" \
		"$PWD/build/kmod/uml-bench/src/kmod:$PWD/build/kmod/uml-bench/crc32c:$PWD/$kernel/drivers/infiniband/sw/siw:$PWD/$kernel/lib" "$@"
}

bench_vm() {
	local program=$1 release
	shift
	need_packages "$packages_kernel_full"
	build_smp
	release=$(<build/kernel-smp/release)
	watched build/logs/siw.log build_siw "/usr/src/linux-headers-$release" build/kmod/smp-siw ||
		die "siw did not build: $(tail -n 20 build/logs/siw.log)"
	python3 tests/kernel/smp.py --counted build/kernel-smp "$bench_seconds_max" \
		env "ANYWARP_KERNEL_TREE=$PWD/build/kernel-smp/kernel/lib/modules/$release" "ANYWARP_MB=${ANYWARP_MB:-32}" \
		python3 "$PWD/bench/kernel/$program" "$PWD/build/release" "$PWD/build/kmod/smp/src/kmod:$PWD/build/kmod/smp-siw" "$@"
}

bench_kernel() {
	local program=rows.py machine=bench_uml
	[ "${1:-}" != --apps ] || { program=apps.py && shift; }
	[ "${1:-}" != --vm ] || { machine=bench_vm && shift; }
	need_packages python3
	ANYWARP_KERNEL_TREE="" python3 -B "bench/kernel/$program" --check "" "" "$@" || exit
	need_packages "$packages_kernel"
	case $program in
	rows.py) build_preset release ;;
	apps.py)
		need_packages "$packages_kernel_apps"
		export ANYWARP_UML_MEMORY_MB=3072
		;;
	esac
	$machine "$program" "$@"
}

if [ "${1:-}" = --kernel ]; then
	shift
	bench_kernel "$@"
	exit
fi
# The driver itself judges its arguments, by naming the points that it would measure.
need_packages python3
python3 -B bench/driver/main.py "$@" --list >/dev/null || exit
need_packages "$packages_bench"
out=build/bench-results
case " $* " in
*" --apps "*)
	want_packages "$packages_apps"
	install_engines nixl nixl-cu12 || say "not installed: NIXL, since there is no venv for it"
	export VIRTUAL_ENV=$PWD/build/engines
	out=build/bench-apps
	;;
esac
build_preset release
exec build/release/bin/anywarp bench --out "$out" "$@"
