# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
need_packages "$packages_lint"

lint_failed=0
lint() {
	if "$@"; then
		printf 'ok    %s\n' "$*"
	else
		printf 'FAIL  %s\n' "$*"
		lint_failed=1
	fi
}

case ${1:-} in
"") ;;
--fix) tools/check-format --fix ;;
*) die "lint: unknown argument '$1'; the only one is --fix" ;;
esac

lint tools/check-format
for check in arrows fields size tags words paths licence; do
	lint "tools/check-$check" --self-test
	lint "tools/check-$check"
done
lint tools/check-freestanding
lint tools/check-totals
[ "$lint_failed" -eq 0 ] || exit 1
say "lint is clean"
