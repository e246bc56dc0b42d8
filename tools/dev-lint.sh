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
	local i word failed=0
	for i in "${!lint_names[@]}"; do
		word=ok
		wait "${lint_processes[i]}" || word=FAIL failed=1
		cat "$lint_folder/$i"
		printf '%-5s %s\n' "$word" "${lint_names[i]}"
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
