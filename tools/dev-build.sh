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
*) die "no preset '$preset'; there are release debug asan tsan fuzz, and kernel" ;;
esac
build_preset "$preset"
say "built: build/$preset/lib and build/$preset/bin"
