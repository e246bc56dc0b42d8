// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A library that test_check_symbol.c loads after it has named addresses.
#include <execinfo.h>
#include <stddef.h>

__attribute__((visibility("default"))) void *symbol_late_return(void);
__attribute__((visibility("default"), noinline)) void *symbol_late_return(void)
{
	void *pc[1] = { NULL };

	return backtrace(pc, 1) == 1 ? pc[0] : NULL; // The call is at line 10.
}
