// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The copy on x86-64, by the non-temporal stores of SSE2. The two ends of the destination, which
// are no whole cache lines, are stored as ever.
#include "net/mem/nontemporal.h"

#include <emmintrin.h>
#include <string.h>

#define LINE 64

static void copy_line(uint8_t *dst, const uint8_t *src)
{
	const __m128i *from = (const __m128i *)(const void *)src;
	__m128i *to = (__m128i *)(void *)dst;
	__m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
	__m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

	_mm_stream_si128(to, a);
	_mm_stream_si128(to + 1, b);
	_mm_stream_si128(to + 2, c);
	_mm_stream_si128(to + 3, d);
}

void aw_nontemporal_copy(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t head = -(uintptr_t)dst % LINE, done;

	if (head > len)
		head = len;
	memcpy(dst, src, head);
	for (done = head; len - done >= LINE; done += LINE)
		copy_line(dst + done, src + done);
	memcpy(dst + done, src + done, len - done);
	/* A release store orders plain stores alone. */
	_mm_sfence();
}
