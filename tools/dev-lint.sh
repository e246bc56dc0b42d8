# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
lint_failed=0
lint() {
	if "$@"; then
		printf 'ok    %s\n' "$*"
	else
		printf 'FAIL  %s\n' "$*"
		lint_failed=1
	fi
}

[ $# -le 1 ] || refuse lint "$2"
[ -z "${1:-}" ] || [ "$1" = --fix ] || refuse lint "$1" --fix
need_packages "$packages_lint"
[ -z "${1:-}" ] || tools/check-format --fix

lint tools/check-format
for check in arrows owners size tags words paths licence; do
	lint "tools/check-$check" --self-test
	lint "tools/check-$check"
done
lint tools/check-freestanding
lint tools/check-totals
lint tools/check-dev
[ "$lint_failed" -eq 0 ] || exit 1
say "lint is clean"
