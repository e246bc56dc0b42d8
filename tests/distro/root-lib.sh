# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# For a process of root in a mount namespace of its own: goes into another system's root. Sourced, never run.

# What programs find in every root, and none of the outer system's temporary files.
mount_system() {
	local root=$1
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/tmp"
	mount -t tmpfs tmpfs "$root/run"
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
}

# bind FROM TO: the directory FROM is at TO, too.
bind() {
	mkdir -p "$1" "$2"
	mount --bind "$1" "$2"
}

bind_read_only() {
	bind "$1" "$2"
	mount -o remount,bind,ro "$2"
}

# Not chroot, for whoever is in one may make no user namespace, as tests do.
enter_root() {
	cd "$1" && pivot_root . mnt && cd "$2" && umount -l /mnt
}

# Runs a command with no variables but VARIABLE=VALUE... before it and those that say how to reach the network.
run_in_root() {
	local name
	local -a variables=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8)
	for name in TERM http_proxy https_proxy no_proxy; do
		[ -z "${!name:-}" ] || variables+=("$name=${!name}")
	done
	# The first process of its namespace gets no signal that it does not ask for; with it the others end.
	trap 'exit 130' HUP INT TERM
	env -i "${variables[@]}" "$@" </dev/null &
	wait $!
}
