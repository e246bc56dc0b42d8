# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Shared by the commands of ./dev: packages, builds, messages. Sourced, never run.

# The versions in the names of the distribution's packages, and those that Debian 13 has no more.
case $(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}") in
13) clang=19 python=3.13 ganglia="" ;;
*) clang=14 python=3.11 ganglia="gmetad ganglia-monitor" ;;
esac

packages_build="build-essential cmake ninja-build pkg-config libibverbs-dev librdmacm-dev
	libisal-dev libcmocka-dev systemtap-sdt-dev python3"
packages_run="$packages_build rdmacm-utils ibverbs-utils perftest iperf3 iproute2 util-linux"
packages_fuzz="$packages_build clang libclang-rt-$clang-dev"
packages_programs="redis-server redis-tools memcached nginx-core curl wrk postgresql openssh-server
	openssh-client openssh-sftp-server vsftpd tnftp rpcsvc-proto libtirpc-dev openbsd-inetd socat golang-go
	haproxy apache2 apache2-utils php-fpm php-cli libfcgi-bin rsync git mosquitto mosquitto-clients python3-uvloop python3-aiohttp $ganglia"
packages_test="$packages_run $packages_fuzz python3-pytest python3-matplotlib tshark qperf abigail-tools
	groff-base procps strace valgrind zsh liburing-dev libnginx-mod-stream libpython$python-testsuite python3-pip $packages_programs"
packages_ecosystem="$packages_run python3-pytest python3-venv qperf libfabric-bin ucx-utils fio tgt libiscsi-bin
	libiscsi-dev clang python3-pyverbs mpich libmpich-dev openmpi-bin libopenmpi-dev
	nodejs default-jdk-headless mariadb-server mariadb-client"
packages_kmod="build-essential kmod"
packages_kernel="$packages_run $packages_kmod python3-pytest tshark ibverbs-providers linux-source flex bison bc
	xz-utils"
packages_kernel_apps="nfs-common nfs-kernel-server nvme-cli fio"
packages_kernel_full="dkms linux-headers-amd64 pahole qemu-system-x86 busybox-static cpio $packages_kernel_apps
	open-iscsi python3-pyverbs"
packages_distro="$packages_build debootstrap debian-archive-keyring apt util-linux"
packages_arch="$packages_build gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-i686-linux-gnu
	gcc-riscv64-linux-gnu gcc-s390x-linux-gnu qemu-user apt dpkg tar rdmacm-utils python3-pytest"
# Of other machines: not installed, unpacked in build/arch.
packages_sysroot="libc6-dev libatomic1 libibverbs-dev librdmacm-dev libcmocka-dev rdmacm-utils"
packages_bench="$packages_build python3-matplotlib fonts-dejavu-core libfabric-bin ucx-utils
	iproute2 util-linux git libtirpc-dev vsftpd tnftp redis-server redis-tools nginx wrk curl"
packages_apps="memcached libmemcached-tools postgresql $ganglia python3-grpcio openmpi-bin
	libopenmpi-dev ceph-mon ceph-osd ceph-common python3-venv"
packages_package="$packages_build git debhelper dh-dkms libtirpc-dev"
packages_wheel="$packages_build git python3-venv"
packages_test_package="$packages_package $packages_wheel $packages_distro python3-pytest python3-seccomp python3-yaml iproute2 lintian"
packages_lint="$packages_build git clang-format-14"

say() {
	printf '== %s\n' "$*"
}

die() {
	printf 'dev: %s\n' "$*" >&2
	exit 2
}

package_is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# How to become root without asking; empty for root itself, 'no' when there is no way.
root_prefix() {
	if [ "$(id -u)" -eq 0 ]; then
		echo ""
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		echo "sudo -n"
	else
		echo "no"
	fi
}

# For a shell of root: installs its arguments, and starts none of the servers among them, which
# policy-rc.d is asked about: the tests start their own.
install_script='
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap "rm -f $policy" EXIT
	trap "exit 1" HUP INT TERM
	printf "#!/bin/sh\nexit 101\n" >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update && apt-get install -y --no-install-recommends "$@"'

install_packages() {
	local as_root
	as_root=$(root_prefix)
	local how="apt-get update && apt-get install --no-install-recommends $*"
	if [ "$as_root" = no ]; then
		die "missing packages: $*. Run as root: $how"
	fi
	say "installing: $*"
	mkdir -p build/logs
	# One at a time: apt-get fails while another one is at work.
	if ! flock build/logs $as_root sh -c "$install_script" sh "$@" >build/logs/apt.log 2>&1 </dev/null; then
		tail -n 20 build/logs/apt.log >&2
		die "could not install: $*. See build/logs/apt.log, then run as root: $how"
	fi
}

need_packages() {
	command -v dpkg-query >/dev/null ||
		die "not a Debian system: install what these packages hold, as on Debian 12: $(echo $*)"
	local package
	local -a missing=()
	for package in $*; do
		package_is_installed "$package" || missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
}

# Apt's package lists may be older than the packages to download, or missing.
refresh_package_lists() {
	local as_root
	as_root=$(root_prefix)
	[ "$as_root" = no ] || $as_root apt-get update >build/logs/apt.log 2>&1 </dev/null ||
		say "apt-get update failed: see build/logs/apt.log"
}

# Configures and builds one preset; the log is shown only when it fails. Of the
# fuzz preset only the fuzz targets are wanted. Two builds of a preset at once wait for each other.
build_preset() {
	local preset=$1 log="build/logs/build-$1.log" target=all
	[ "$preset" != fuzz ] || target=fuzzers
	mkdir -p build/logs
	say "building $preset"
	if ! (flock 9 && { cmake --preset "$preset" && cmake --build "build/$preset" --target "$target"; } >"$log" 2>&1) \
		9>"build/logs/$preset.lock"; then
		tail -n 60 "$log" >&2
		die "the $preset build failed; the whole log is $log"
	fi
}

# Transfer engines, one by one, in a venv. Their dependency torch is for GPUs alone and takes gigabytes; it is left out.
install_engines() {
	local package pip=build/engines/bin/pip
	mkdir -p build/logs
	say "installing transfer engines in build/engines"
	[ -x "$pip" ] || /usr/bin/python3 -m venv build/engines || return
	for package; do
		"$pip" install --no-deps "$package" || true
	done >build/logs/engines.log 2>&1
	"$pip" install numpy >>build/logs/engines.log 2>&1 || say "not here: numpy; see build/logs/engines.log"
}

# Debian's packages for another machine, in build/arch. Debian 13 is the first release that has riscv64.
build_sysroot() {
	local suite=bookworm
	[ "$1" != riscv64 ] || suite=trixie
	need_packages "$packages_arch"
	mkdir -p build/logs
	tests/arch/build-sysroot "build/arch/$1" "$1" "$suite" $packages_sysroot >"build/logs/sysroot-$1.log" 2>&1 ||
		die "no packages for $1: $(tail -n 1 "build/logs/sysroot-$1.log")"
}

# A kernel that runs as a process, in build/kernel/CONFIGURATION (base, full), and the modules for it, ours and Linux's siw,
# in build/kmod. Linux is built once; the modules, whenever their sources have changed.
build_kernel() {
	local configuration=$1 full="" build=build/kernel/$1/build
	[ "$configuration" != full ] || full=yes
	need_packages "$packages_kernel ${full:+$packages_kernel_full}"
	mkdir -p build/logs
	say "building a kernel under User Mode Linux ($configuration): minutes, the first time"
	tests/kernel/build-uml "build/kernel/$configuration" base.config debug.config ${full:+consumers.config full.config} >build/logs/kernel.log 2>&1 ||
		die "no kernel, no tests in it: $(tail -n 3 build/logs/kernel.log)"
	say "building siw.ko and anywarp.ko"
	tests/interop/build-siw "$build" "build/kmod/siw-$configuration" >build/logs/siw.log 2>&1 ||
		die "siw did not build: $(tail -n 20 build/logs/siw.log)"
	tools/build-kmod "$build" "build/kmod/uml-$configuration" ARCH=um -j"$(nproc)" >build/logs/kmod.log 2>&1 ||
		die "the module did not build: $(tail -n 20 build/logs/kmod.log)"
}

# Debian's kernel in a virtual machine of several processors, and the module for it, in build/kmod/smp.
build_smp() {
	say "building the guest of several processors"
	tests/kernel/build-smp build/kernel-smp >build/logs/smp.log 2>&1 &&
		tools/build-kmod "/usr/src/linux-headers-$(<build/kernel-smp/release)" build/kmod/smp CC=gcc \
			-j"$(nproc)" >>build/logs/smp.log 2>&1 ||
		die "no kernel of several processors: $(tail -n 3 build/logs/smp.log)"
}
