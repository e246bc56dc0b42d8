// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The name of an address of code: function, file and line by libdw where it is installed and the module has debug information;
// else the function by its symbol, else the module with an offset. For reports alone: the first call loads libdw.
#ifndef CHECK_BASE_SYMBOL_H
#define CHECK_BASE_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

#define AW_SYMBOL_NAME_MAX 128
#define AW_SYMBOL_FILE_MAX 384
#define AW_SYMBOL_INLINED_MAX 6 /* functions that one address is in, each inlined into the next */

struct aw_symbol {
	char function[AW_SYMBOL_NAME_MAX]; /* "": not known */
	char file
		[AW_SYMBOL_FILE_MAX]; /* of the source, absolute where its directory is known; "": not known */
	unsigned line;
	char module
		[AW_SYMBOL_FILE_MAX]; /* the path of the program or library; "": the address is in none */
	uintptr_t offset; /* of the address in the module */
};

/*
 * Names a return address: the functions that its call is in, the innermost inlined one first. Returns their number, at least 1.
 * It finds modules that were loaded after its last call as well. Any thread may call it at any time but in a handler of a signal
 * that interrupted it; it allocates memory. It never asks debuginfod(8): that would make a program wait for a network.
 */
size_t aw_symbol_find(const void *pc, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX]);

/* Makes the path absolute by the directory, which may be NULL, and takes "." and ".." out of it. */
void aw_symbol_path(const char *directory, const char *path, char file[AW_SYMBOL_FILE_MAX]);

#endif
