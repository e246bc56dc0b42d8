# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
preset=${1:-release}
if [ "$preset" = kernel ]; then
	build_kernel base
	say "built: build/kernel/base/build/linux"
	exit
fi
case $preset in
release | debug | asan | tsan) need_packages "$packages_build" ;;
fuzz) need_packages "$packages_fuzz" ;;
arm64 | armhf | i386 | riscv64 | s390x) build_sysroot "$preset" ;;
*) die "no preset '$preset'; there are release debug asan tsan fuzz, arm64 armhf i386 riscv64 s390x, and kernel" ;;
esac
build_preset "$preset"
say "built: build/$preset/lib and build/$preset/bin"
