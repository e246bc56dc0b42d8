# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What others take of a version, in build/dist: for each machine an archive, a wheel and Debian packages, all of one build; the sources,
# an SBOM and the sums. The same sources and date make the same bytes in any directory.

# The release whose C library the build is for. All that is made is checked to need no symbol above glibc_newest, that of Ubuntu 22.04.
release_suite=bookworm
glibc_newest=2.35
packages_release="$packages_build git apt dpkg tar gcc-aarch64-linux-gnu"
# Of the other machine, unpacked, not installed.
packages_release_sysroot="libc6-dev libatomic1 libibverbs-dev librdmacm-dev libdw-dev systemtap-sdt-dev valgrind"
release_machines="amd64 arm64"

release_version() {
	sed -n 's/^project(anywarp VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt
}

release_sysroot() {
	tests/arch/build-sysroot "build/release-sysroot/$1" "$1" "$release_suite" $packages_release_sysroot
}

# No path of this machine gets into the files: neither by assert's __FILE__, nor by an RPATH, which install would only overwrite.
release_build() {
	local machine=$1 sysroot=$PWD/build/release-sysroot/$1/sysroot build=build/release-work/$1
	local flags="-ffile-prefix-map=$PWD=. -ffile-prefix-map=$(readlink -f "$sysroot")= -ffile-prefix-map=$sysroot="
	rm -rf "$build"
	cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/AwCross.cmake -DAW_ARCH="$machine" -DAW_SYSROOT="$sysroot" \
		-DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=lib \
		-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DBENCH_MPICC=OFF \
		-DCMAKE_C_FLAGS="$flags -fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wdate-time" \
		-DCMAKE_SHARED_LINKER_FLAGS="-Wl,-z,relro,-z,now" -DCMAKE_EXE_LINKER_FLAGS="-Wl,-z,relro,-z,now" &&
		cmake --build "$build" &&
		DESTDIR=$PWD/$build/stage cmake --install "$build" --strip &&
		rm -f "$build/stage/usr/libexec/anywarp/bench-rpc" # the bench does without it, and it needs libtirpc
}

# release_step LOG WHAT COMMAND...
release_step() {
	local log=build/logs/$1 what=$2
	shift 2
	watched "$log" "$@" || {
		tail -n 40 "$log" >&2
		die "release: $what; the whole log is $log"
	}
}

release_machine() {
	say "unpacking Debian $release_suite's packages for $1, unless they are there"
	release_step "release-sysroot-$1.log" "no packages for $1" release_sysroot "$1"
	say "building for $1"
	release_step "release-$1.log" "the build for $1 failed" release_build "$1"
	python3 -B tools/release/pack.py "$1" "build/release-work/$1/stage" build/dist "$(release_version)" "$glibc_newest"
}

# The sources without the texts of the RFCs, whose licence is not free.
release_sources() {
	local name
	name=anywarp-$(release_version)
	package_sources | LC_ALL=C sort | tar -c --no-recursion -T - --transform "s,^,$name/," --format=ustar --owner=0 --group=0 \
		--numeric-owner --mode=go=rX,u+rw --mtime="@$SOURCE_DATE_EPOCH" | gzip -9n >"build/dist/$name-source.tar.gz"
}

release() {
	local machine
	export SOURCE_DATE_EPOCH
	: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
	[ -n "$SOURCE_DATE_EPOCH" ] || die "release: no commit has a date: set SOURCE_DATE_EPOCH"
	rm -rf build/dist
	mkdir -p build/dist build/logs
	for machine; do
		release_machine "$machine"
	done
	release_sources
	python3 -B tools/release/sbom.py build/dist "$(release_version)"
	(cd build/dist && LC_ALL=C && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
	ls build/dist/*
}

for machine; do
	pick release machine "$machine" $release_machines
done
[ "$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")" = "$release_suite" ] ||
	die "release: the compilers of Debian $release_suite make the same bytes everywhere: build there, or in a container of it"
need_packages "$packages_release"
release ${*:-$release_machines}
