# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
say "for now the bench is the measuring part of './dev demo'"
. tools/dev-demo.sh --measure-only
