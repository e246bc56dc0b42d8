# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Prints every requirement of the RFCs with its code and its test; fails on a hole. Configures a
# build, since only ctest knows which tests there are, and compiles nothing.
rfcs=$(cd docs/rfc && echo *.toml)
for argument in "$@"; do
	case $argument in
	--quiet | --new) ;;
	-*) refuse rfc "$argument" --quiet --new ;;
	*) pick rfc RFC "$argument" ${rfcs//.toml/} ;;
	esac
done
need_packages "$packages_build python3 python3-pytest"

mkdir -p build/logs
for_preset release configure_preset
if ! python3 -B tools/rfc_trace_test.py >build/logs/rfc.log 2>&1; then
	cat build/logs/rfc.log >&2
	die "rfc: the tool's own tests fail"
fi
python3 -B tools/rfc_trace.py --build build/release "$@"
