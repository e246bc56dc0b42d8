# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The kernel module for the running kernel, or for the one whose build directory is the argument.

kmod_release() {
	cat "$1/include/config/kernel.release" 2>/dev/null || basename "$(readlink -f "$1")"
}

kmod_default() {
	local kdir
	kdir=/lib/modules/$(uname -r)/build
	[ -e "$kdir/Makefile" ] || die "no headers of the running kernel, $(uname -r): install what it was built with" \
		"(Debian: linux-headers-$(uname -r)), or name a kernel's build directory: ./dev kmod KDIR"
	echo "$kdir"
}

kmod_build() {
	local kdir=$1 out
	[ -e "$kdir/Makefile" ] || die "kmod: no Makefile in '$kdir': it is no kernel's build directory"
	out=build/kmod/$(kmod_release "$kdir")
	mkdir -p build/logs
	say "building anywarp.ko for $(basename "$out")"
	tools/build-kmod "$kdir" "$out" -j"$(nproc)" >build/logs/kmod.log 2>&1 || {
		tail -n 60 build/logs/kmod.log >&2
		die "the module did not build; the whole log is build/logs/kmod.log"
	}
	say "$out/src/kmod/anywarp.ko"
}

case ${1:-} in
-*) die "kmod: unknown argument '$1'; it takes a kernel's build directory" ;;
esac
need_packages "$packages_kmod"
kdir=${1:-$(kmod_default)}
kmod_build "$kdir"
