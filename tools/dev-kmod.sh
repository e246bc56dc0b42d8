# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The kernel module for the running kernel, or for the one whose build directory is the argument.

kmod_release() {
	sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$1/include/generated/utsrelease.h"
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
	out=build/kmod/$(kmod_release "$kdir")
	mkdir -p build/logs
	say "building anywarp.ko for $(basename "$out")"
	watched build/logs/kmod.log tools/build-kmod "$kdir" "$out" -j"$(nproc)" || {
		tail -n 60 build/logs/kmod.log >&2
		die "the module did not build; the whole log is build/logs/kmod.log"
	}
	say "$out/src/kmod/anywarp.ko"
}

case ${1:-} in
-*) refuse kmod "$1" ;;
esac
[ $# -le 1 ] || refuse kmod "$2"
kdir=${1:-$(kmod_default)}
[ -n "$(kmod_release "$kdir" 2>/dev/null)" ] || die "kmod: '$kdir' is no kernel's build directory, or not prepared"
need_packages "$packages_kmod"
kmod_build "$kdir"
