#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# abidiff.sh LIBRARY SUPPRESSIONS: fails when the system's library of the same name exports
# something that ours does not.
set -eu

ours=$1
suppressions=$2
name=$(basename "$ours")

command -v abidiff >/dev/null || {
	echo "abidiff is missing: install abigail-tools"
	exit 77
}

theirs=
for directory in "/usr/lib/$(uname -m)-linux-gnu" /usr/lib64 /usr/lib; do
	if [ -e "$directory/$name" ]; then
		theirs=$directory/$name
		break
	fi
done
[ -n "$theirs" ] || {
	echo "the system's $name is missing: install libibverbs1 and librdmacm1"
	exit 77
}

# Debian's libraries carry no debug information, so symbols are what can be compared; types are
# what abi.structs is for.
echo "$theirs against $ours"
abidiff --no-added-syms --suppressions "$suppressions" "$theirs" "$ours"
echo "nothing is missing"
