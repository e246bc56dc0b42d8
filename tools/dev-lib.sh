# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Shared by the commands of ./dev: packages, builds, messages. Sourced, never run.

# The versions in the names of the distribution's packages, and those that Debian 13 has no more.
case $(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}") in
13) clang=19 python=3.13 ganglia="" ;;
*) clang=14 python=3.11 ganglia="gmetad ganglia-monitor" ;;
esac

# Of other machines, under qemu-user.
machines="arm64 armhf i386 riscv64 s390x"

packages_build="build-essential cmake ninja-build pkg-config libibverbs-dev librdmacm-dev
	libdw-dev libcmocka-dev systemtap-sdt-dev python3"
packages_run="$packages_build rdmacm-utils ibverbs-utils perftest iperf3 iproute2 util-linux"
packages_fuzz="$packages_build clang libclang-rt-$clang-dev"
packages_programs="redis-server redis-tools memcached nginx-core curl wrk postgresql openssh-server
	openssh-client openssh-sftp-server vsftpd tnftp rpcsvc-proto libtirpc-dev openbsd-inetd socat golang-go
	haproxy apache2 apache2-utils php-fpm php-cli libfcgi-bin rsync git mosquitto mosquitto-clients python3-uvloop python3-aiohttp $ganglia"
packages_test="$packages_run $packages_fuzz python3-pytest python3-matplotlib tshark qperf abigail-tools
	groff-base procps strace infiniband-diags hwloc-nox valgrind llvm libjemalloc2 libtcmalloc-minimal4
	libfaketime zsh openssl libssl-dev liburing-dev libnginx-mod-stream libpython$python-testsuite python3-pip $packages_programs"
packages_ecosystem="$packages_run python3-pytest python3-venv qperf libfabric-bin ucx-utils fio tgt libiscsi-bin
	libiscsi-dev clang python3-pyverbs mpich libmpich-dev openmpi-bin libopenmpi-dev libgloo-dev dapl2-utils
	nodejs default-jdk-headless mariadb-server mariadb-client"
packages_kmod="build-essential kmod"
packages_kernel="$packages_run $packages_kmod python3-pytest tshark ibverbs-providers linux-source flex bison bc
	xz-utils"
packages_kernel_apps="nfs-common nfs-kernel-server nvme-cli fio"
packages_kernel_full="dkms linux-headers-amd64 pahole qemu-system-x86 busybox-static cpio zstd $packages_kernel_apps
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
packages_package="$packages_build git debhelper dh-dkms libtirpc-dev valgrind"
packages_wheel="$packages_build git python3-venv valgrind"
packages_test_package="$packages_package $packages_wheel $packages_distro python3-pytest python3-seccomp python3-yaml iproute2 lintian"
packages_lint="$packages_build git clang clang-format-14"

say() {
	printf '== %s\n' "$*"
}

die() {
	printf 'dev: %s\n' "$*" >&2
	exit 2
}

# meant WORD KNOWN...: " (did you mean ...?)" where one of the known words is at most two letters away, or begins with it.
meant() {
	printf '%s\n' "$@" | awk '
		function least(a, b, c) { return a < b ? (a < c ? a : c) : (b < c ? b : c) }
		function distance(left, right,    i, j, row, above, corner) {
			for (j = 0; j <= length(right); j++)
				row[j] = j
			for (i = 1; i <= length(left); i++) {
				corner = row[0]
				row[0] = i
				for (j = 1; j <= length(right); j++) {
					above = row[j]
					row[j] = least(above + 1, row[j - 1] + 1, corner + (substr(left, i, 1) != substr(right, j, 1)))
					corner = above
				}
			}
			return row[length(right)]
		}
		NR == 1 { word = $0; best = 3; next }
		{
			far = word != "" && index($0, word) == 1 ? 1 : distance(word, $0)
			if (far < best && far < length($0)) { best = far; found = $0 }
		}
		END { if (found != "") printf " (did you mean \047%s\047?)", found }'
}

# refuse COMMAND ARGUMENT KNOWN...: ends ./dev on an argument that the command does not know.
refuse() {
	local command=$1 argument=$2
	shift 2
	die "$command: unknown argument '$argument'$(meant "$argument" "$@"); see './dev help $command'"
}

# pick COMMAND WHAT WORD KNOWN...: ends ./dev when the word is not one of those that are known.
pick() {
	local command=$1 what=$2 word=$3
	shift 3
	[[ " $* " == *" $word "* ]] || die "$command: no $what '$word'$(meant "$word" "$@"); there are: $*"
}

# How far a log's line says that a command is: ninja's "[3/14]", a percentage of apt's, or the line itself. The time that is left is
# judged by what was done since the first such line of ninja's, which other work may precede.
counted_from=""
progress_of() {
	local line=$1 seconds=$2 left=""
	if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
		local done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
		[ -n "$counted_from" ] || { counted_from=$done && counted_at=$seconds; }
		[ "$done" -le "$counted_from" ] ||
			left=", about $(minutes $(((seconds - counted_at) * (all - done) / (done - counted_from)))) left"
		progress="$done of $all, $(minutes "$seconds") gone$left"
	elif [[ $line =~ ^(dl|pm)status:[^:]*:([0-9]+)[.0-9]*: ]]; then
		[ "${BASH_REMATCH[1]}" = dl ] && left=downloaded || left=installed
		progress="${BASH_REMATCH[2]} % $left, $(minutes "$seconds") gone"
	else
		progress="$(minutes "$seconds") gone; ${line:0:70}"
	fi
}

minutes() {
	[ "$1" -lt 90 ] && echo "$1 s" || echo "$((($1 + 30) / 60)) min"
}

# Until the process ends that started it: a line that changes each second on a terminal, a new one each half minute elsewhere.
tell_progress() {
	local log=$1 owner=$2 began=$SECONDS told=$SECONDS line never
	exec {never}<> <(:)
	while kill -0 "$owner" 2>/dev/null; do
		read -r -t 1 -u "$never" || true
		[ -t 1 ] || [ $((SECONDS - told)) -ge "$telling_s" ] || continue
		told=$SECONDS
		line=$(tail -n 20 "$log" 2>/dev/null | tr -cd '[:print:]\n' | awk '
			/^\[[0-9]+\/[0-9]+\] |^(dl|pm)status:/ { best = $0 }
			END { print best ? best : $0 }') || true
		progress_of "$line" $((SECONDS - began))
		[ -t 1 ] && printf '\r   %s\033[K' "$progress" || printf '   %s\n' "$progress"
	done
}

telling_s=30

# watched LOG COMMAND...: runs a command whose output goes to a log, and tells meanwhile how far it is.
watched() {
	local log=$1 owner=$BASHPID status=0 teller
	shift
	: >"$log"
	tell_progress "$log" "$owner" &
	teller=$!
	("$@") >"$log" 2>&1 || status=$?
	kill "$teller" 2>/dev/null || true
	wait "$teller" 2>/dev/null || true
	[ ! -t 1 ] || printf '\r\033[K'
	return "$status"
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
apt-get update && apt-get install -y --no-install-recommends -o APT::Status-Fd=1 "$@"'

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
	if ! watched build/logs/apt.log flock build/logs $as_root sh -c "$install_script" sh "$@" </dev/null; then
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
	[ "$as_root" = no ] || watched build/logs/apt.log $as_root apt-get update </dev/null ||
		say "apt-get update failed: see build/logs/apt.log"
}

# Configures one preset, which takes seconds and tells which tests there are.
configure_preset() {
	cmake --preset "$1"
}

# All of it, unless build_targets names a part. Of the fuzz preset only the fuzz targets are wanted.
build_targets=""
make_preset() {
	local targets=${build_targets:-all}
	[ "$1" != fuzz ] || targets=fuzzers
	configure_preset "$1" && cmake --build "build/$1" --target $targets
}

# for_preset PRESET COMMAND: runs it in this shell; the log is shown only when it fails. Two for a preset at once wait for each other.
for_preset() {
	local preset=$1 log="build/logs/build-$1.log"
	shift
	mkdir -p build/logs
	if ! (flock 9 && watched "$log" "$@" "$preset") 9>"build/logs/$preset.lock"; then
		tail -n 60 "$log" >&2
		die "the $preset build failed; the whole log is $log"
	fi
}

build_preset() {
	say "building $1"
	for_preset "$1" make_preset
}

pip_each() {
	local pip=$1 package
	shift
	for package; do
		"$pip" install --no-deps "$package" || true
	done
}

# Transfer engines, one by one, in a venv. Their dependency torch is for GPUs alone and takes gigabytes; it is left out.
install_engines() {
	local pip=build/engines/bin/pip
	mkdir -p build/logs
	say "installing transfer engines in build/engines"
	[ -x "$pip" ] || /usr/bin/python3 -m venv build/engines || return
	watched build/logs/engines.log pip_each "$pip" "$@" || true
	"$pip" install numpy >>build/logs/engines.log 2>&1 || say "not here: numpy; see build/logs/engines.log"
}

# What git tracks or would track, but for the texts of the RFCs, which Debian's rules hold to be unfree.
package_sources() {
	git ls-files -co --exclude-standard -- . ':!docs/rfc/text' | while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

# Debian's packages for another machine, in build/arch. Debian 13 is the first release that has riscv64.
build_sysroot() {
	local suite=bookworm
	[ "$1" != riscv64 ] || suite=trixie
	need_packages "$packages_arch"
	mkdir -p build/logs
	watched "build/logs/sysroot-$1.log" tests/arch/build-sysroot "build/arch/$1" "$1" "$suite" $packages_sysroot ||
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
	watched build/logs/kernel.log \
		tests/kernel/build-uml "build/kernel/$configuration" base.config debug.config ${full:+consumers.config full.config} ||
		die "no kernel, no tests in it: $(tail -n 3 build/logs/kernel.log)"
	say "building siw.ko and anywarp.ko"
	watched build/logs/siw.log tests/interop/build-siw "$build" "build/kmod/siw-$configuration" ||
		die "siw did not build: $(tail -n 20 build/logs/siw.log)"
	watched build/logs/kmod.log tools/build-kmod "$build" "build/kmod/uml-$configuration" ARCH=um -j"$(nproc)" ||
		die "the module did not build: $(tail -n 20 build/logs/kmod.log)"
}

# Debian's kernel in a virtual machine of several processors, and the module for it, in build/kmod/smp.
build_smp() {
	say "building the guest of several processors"
	watched build/logs/smp.log tests/kernel/build-smp build/kernel-smp &&
		watched build/logs/kmod.log tools/build-kmod "/usr/src/linux-headers-$(<build/kernel-smp/release)" build/kmod/smp CC=gcc \
			-j"$(nproc)" ||
		die "no kernel of several processors: see build/logs/smp.log and build/logs/kmod.log"
}

# Debian's Linux 6.12 and tlshd, and the module for them, in build/kmod/tls. Where they cannot be had the tests of TLS are skipped.
build_tls() {
	say "building the guest of Linux 6.12 with tlshd"
	watched build/logs/kernel-tls.log tests/kernel/build-tls build/kernel-tls ||
		{ say "no tests of TLS in the kernel: $(tail -n 1 build/logs/kernel-tls.log)"; return 0; }
	watched build/logs/kmod.log tools/build-kmod "$(<build/kernel-tls/headers)" build/kmod/tls CC=gcc \
		CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= -j"$(nproc)" ||
		die "the module did not build: $(tail -n 20 build/logs/kmod.log)"
}
