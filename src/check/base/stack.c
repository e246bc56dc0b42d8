// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Unwinds with backtrace(3): programs are built without frame pointers.
#define _GNU_SOURCE // dl_iterate_phdr
#include "check/base/stack.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#define OWN_FRAMES_MAX 8 /* of libanywarp-check.so, between the program's call and here */

/* Where the code of libanywarp-check.so is. Written before the library's first call. */
static struct {
	uintptr_t begin, end;
} own;

/* The first object is the program, of which the code is a part in unit tests: then only the frame in here is left out. */
static int find_own(struct dl_phdr_info *object, size_t size, void *programs)
{
	bool is_program = (*(unsigned *)programs)++ == 0;
	uintptr_t here = (uintptr_t)aw_stack_take;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + part->p_vaddr;
		bool is_code = part->p_type == PT_LOAD && (part->p_flags & PF_X);

		if (!is_code || here < begin || here - begin >= part->p_memsz)
			continue;
		if (!is_program) {
			own.begin = begin;
			own.end = begin + part->p_memsz;
		}
		return 1;
	}
	return 0;
}

/* The first call of backtrace(3) loads libgcc_s.so.1, and so allocates memory. */
__attribute__((constructor(101))) static void stack_begin(void)
{
	unsigned objects = 0;
	void *pc[1];

	dl_iterate_phdr(find_own, &objects);
	backtrace(pc, 1);
}

__attribute__((noinline)) void aw_stack_take(struct aw_stack *stack)
{
	void *pc[AW_STACK_FRAMES + OWN_FRAMES_MAX];
	int saved = errno, frames = backtrace(pc, AW_STACK_FRAMES + OWN_FRAMES_MAX);
	const void *caller = __builtin_return_address(0);
	int first = 0;

	/* The first frame is the caller's. Below it there may be a wrapper of backtrace(3), as AddressSanitizer has one. */
	while (first < frames && pc[first] != caller)
		first++;
	if (first == frames)
		first = 1;
	stack->frames = 0;
	for (int i = first; i < frames && stack->frames < AW_STACK_FRAMES; i++) {
		uintptr_t address = (uintptr_t)pc[i];

		if (address < own.begin || address >= own.end)
			stack->pc[stack->frames++] = pc[i];
	}
	errno = saved;
}
