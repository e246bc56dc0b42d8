// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc by which a program gives memory up. Memory that the verbs library frees inside a call is its own.
#include "check/base/inside.h"
#include "check/hook/hook.h"
#include "check/model/queue.h"
#include "check/model/registered.h"
#include "check/report/report.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void (*next_free)(void *memory);
static int (*next_munmap)(void *memory, size_t len);
static void *(*next_realloc)(void *memory, size_t len);

static void next_find(void *function, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	memcpy(function, &found, sizeof(found));
}

__attribute__((constructor)) static void nexts_find(void)
{
	next_find(&next_munmap, "munmap");
	next_find(&next_realloc, "realloc");
	next_find(&next_free, "free");
}

/*
 * The loader may free before this library's constructors have run, also within dlsym. Only the next free knows that memory, which may
 * be an allocator's or a sanitizer's. The text of an error that dlsym gives up meanwhile is left.
 */
static bool free_is_found(void)
{
	static volatile bool
		is_under_way; /* libc promises the compiler that dlsym calls nothing here */

	if (!next_free && !is_under_way) {
		is_under_way = true;
		next_find(&next_free, "free");
		is_under_way = false;
	}
	return next_free;
}

/* The last call may be a sanitizer's, whose own start frees memory: it is made only when objects of verbs are there. */
static bool is_watched(void)
{
	return !aw_inside_depth() && (aw_memory_is_used() || aw_registered_is_any()) &&
	       !aw_report_is_under_way();
}

static void memory_give_up(const char *what, void *memory, size_t len)
{
	aw_inside_enter();
	aw_memory_given_up(AW_RULE_MEMORY_FREED, "", what,
			   &(struct aw_memory){ .start = (uintptr_t)memory,
						.end = (uintptr_t)memory + len });
	aw_registered_given_up(what, (uintptr_t)memory, (uintptr_t)memory + len);
	aw_inside_leave();
}

void free(void *memory)
{
	if (!free_is_found())
		return;
	if (memory && is_watched())
		memory_give_up("freed", memory, malloc_usable_size(memory));
	next_free(memory);
}

int munmap(void *memory, size_t len)
{
	if (is_watched())
		memory_give_up("unmapped", memory, len);
	if (!next_munmap)
		next_find(&next_munmap, "munmap");
	return next_munmap(memory, len);
}

/* The block may move; where it stays, a WR that uses its old length is told all the same, for it may move the next time. */
void *realloc(void *memory, size_t len)
{
	if (memory && is_watched())
		memory_give_up("reallocated", memory, malloc_usable_size(memory));
	if (!next_realloc)
		next_find(&next_realloc, "realloc");
	return next_realloc(memory, len);
}
