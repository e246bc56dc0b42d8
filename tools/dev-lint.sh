# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# All checks at once; what they say comes in their order.
lint_folder=$(mktemp -d)
trap 'rm -r "$lint_folder"' EXIT
lint_names=()
lint_processes=()
lint() {
	"$@" >"$lint_folder/${#lint_names[@]}" 2>&1 &
	lint_names+=("$*")
	lint_processes+=($!)
}

lint_end() {
	local i failed=0
	for i in "${!lint_names[@]}"; do
		if wait "${lint_processes[i]}"; then
			printf 'ok    %s\n' "${lint_names[i]}"
		else
			cat "$lint_folder/$i"
			printf 'FAIL  %s\n' "${lint_names[i]}"
			failed=1
		fi
	done
	return "$failed"
}

[ $# -le 1 ] || refuse lint "$2"
[ -z "${1:-}" ] || [ "$1" = --fix ] || refuse lint "$1" --fix
need_packages "$packages_lint"
[ -z "${1:-}" ] || tools/check-format --fix

lint tools/check-format
for check in arrows owners locks size tags words paths licence version; do
	lint "tools/check-$check" --self-test
	lint "tools/check-$check"
done
lint tools/check-freestanding
lint tools/check-totals
lint tools/check-dev
lint_end || exit 1
say "lint is clean"
