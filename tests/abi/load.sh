#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# load.sh DIRECTORY PROGRAM...: the loader resolves every symbol of each program with the
# libraries of DIRECTORY in front. A program that is not installed is named and left out.
set -eu

directory=$1
shift
loaded=0
failed=0

for program; do
	path=$(command -v "$program") || {
		echo "$program: not installed"
		continue
	}
	out=$(LC_ALL=C LD_BIND_NOW=1 LD_LIBRARY_PATH=$directory ldd -r "$path" 2>&1) || {
		echo "$program: ldd failed: $out"
		failed=$((failed + 1))
		continue
	}
	loaded=$((loaded + 1))
	wrong=$(echo "$out" | grep -E 'undefined symbol|not found|not defined|error' || true)
	for library in libibverbs.so.1 librdmacm.so.1; do
		case $out in
		*"$library => $directory/$library "*) ;;
		*"$library => "*) wrong="$wrong
	$library is not ours" ;;
		esac
	done
	case $out in
	*libibverbs.so.1*) ;;
	*) wrong="$wrong
	does not use libibverbs.so.1: proves nothing" ;;
	esac
	if [ -n "$wrong" ]; then
		echo "$program: $wrong"
		failed=$((failed + 1))
	else
		echo "$program: every symbol found"
	fi
done

if [ $((loaded + failed)) -eq 0 ]; then
	echo "install ibverbs-utils, rdmacm-utils, perftest and qperf"
	exit 77
fi
echo "$loaded programs, $failed failed"
[ "$failed" -eq 0 ]
