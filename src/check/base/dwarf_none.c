// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In a build without libdw's headers.
#include "check/base/dwarf.h"

size_t aw_dwarf_find(uintptr_t address, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX])
{
	(void)address;
	(void)symbols;
	return 0;
}
