// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Marks by the client requests of valgrind's memcheck: instructions without an effect outside valgrind.
#include "check/base/marker.h"

#include <stdbool.h>
#include <valgrind/memcheck.h>

#define BITS_MAX 4096 /* bytes whose bits are read at a time; a set bit is undefined */

static void errors_hush(void)
{
	VALGRIND_DISABLE_ERROR_REPORTING;
}

static void errors_unhush(void)
{
	VALGRIND_ENABLE_ERROR_REPORTING;
}

/* The request to mark memory undefined would make it addressable as well. */
static void memory_undefine(void *memory, size_t len)
{
	bool is_addressable;

	errors_hush();
	is_addressable = VALGRIND_CHECK_MEM_IS_ADDRESSABLE(memory, len) == 0;
	errors_unhush();
	if (is_addressable)
		(void)VALGRIND_MAKE_MEM_UNDEFINED(memory, len);
}

static void memory_define(void *memory, size_t len)
{
	(void)VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(memory, len);
}

/* VALGRIND_GET_VBITS and VALGRIND_SET_VBITS return 1 where all bytes are addressable. */
static void memory_define_like(void *memory, const void *kept, size_t len)
{
	unsigned char bits[BITS_MAX], bits_kept[BITS_MAX];

	for (size_t at = 0; at < len; at += BITS_MAX) {
		const size_t part = len - at < BITS_MAX ? len - at : BITS_MAX;
		char *to = (char *)memory + at;

		if (VALGRIND_GET_VBITS((const char *)kept + at, bits_kept, part) != 1 ||
		    VALGRIND_GET_VBITS(to, bits, part) != 1)
			continue;
		for (size_t i = 0; i < part; i++)
			bits[i] &= bits_kept[i];
		(void)VALGRIND_SET_VBITS(to, bits, part);
	}
}

const struct aw_marker *aw_marker_memcheck(void)
{
	static const struct aw_marker marker = { .undefined = memory_undefine,
						 .defined = memory_define,
						 .defined_like = memory_define_like,
						 .hush = errors_hush,
						 .unhush = errors_unhush };
	unsigned char byte = 0, bits;

	/* Valgrind's other tools do not answer it. */
	return VALGRIND_GET_VBITS(&byte, &bits, 1) == 1 ? &marker : NULL;
}
