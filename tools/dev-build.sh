# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
preset=${1:-release}
case $preset in
release | debug | asan | tsan) need_packages "$packages_build" ;;
fuzz) need_packages "$packages_fuzz" ;;
*) die "no preset '$preset'; there are release debug asan tsan fuzz" ;;
esac
build_preset "$preset"
say "built: build/$preset/lib and build/$preset/bin"
