# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Debian packages of the work tree as it is, in build/package.

# What git tracks or would track, but for the texts of the RFCs, which Debian's rules hold to be unfree.
package_sources() {
	git ls-files -co --exclude-standard -- . ':!docs/rfc/text' | while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

package_copy_sources() {
	rm -rf "$1"
	mkdir -p "$1"
	package_sources | tar -c --no-recursion -T - | tar -x -C "$1"
}

# dpkg-buildpackage leaves its files beside the sources.
package_debs() {
	local out=build/package sources=build/package/anywarp
	rm -f "$out"/*.deb "$out"/*.dsc "$out"/*.tar.xz "$out"/*.buildinfo "$out"/*.changes
	package_copy_sources "$sources"
	say "building Debian packages"
	(cd "$sources" && dpkg-buildpackage --no-sign) >build/logs/package.log 2>&1 || {
		grep -E '(error|warning): ' build/logs/package.log >&2 || tail -n 20 build/logs/package.log >&2
		die "the packages are not built; the whole log is build/logs/package.log"
	}
	ls "$out"/*.deb
}

mkdir -p build/logs
case ${1:-deb} in
deb)
	need_packages "$packages_package"
	package_debs
	;;
*) die "package: unknown argument '$1'" ;;
esac
