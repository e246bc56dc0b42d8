// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Debug information, by libdw. The build takes dwarf_none.c in the place of dwarf.c where <elfutils/libdwfl.h> is missing.
#ifndef CHECK_BASE_DWARF_H
#define CHECK_BASE_DWARF_H

#include "check/base/symbol.h"

/*
 * Writes function, file and line of the functions that the address is in, the innermost inlined one first, and returns their
 * number; 0: nothing is known. The caller holds a lock.
 */
size_t aw_dwarf_find(uintptr_t address, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX]);

#endif
