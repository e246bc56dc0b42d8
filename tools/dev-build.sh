# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
[ $# -le 1 ] || refuse build "$2"
preset=${1:-release}
pick build preset "$preset" release debug asan tsan fuzz $machines kernel
case $preset in
kernel)
	build_kernel base
	say "built: build/kernel/base/build/linux"
	exit
	;;
fuzz) need_packages "$packages_fuzz" ;;
release | debug | asan | tsan) need_packages "$packages_build" ;;
*) build_sysroot "$preset" ;;
esac
build_preset "$preset"
say "built: build/$preset/lib and build/$preset/bin"
