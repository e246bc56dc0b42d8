// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The processor's vector registers.
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

/*
 * Clears the upper halves of x86's vector registers. A function that uses AVX and leaves them filled, as ISA-L's CRC32c
 * does, makes the next SSE instruction wait for 170 cycles (docs/performance.md, reason 10).
 */
static inline void aw_vector_clear_upper(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
					   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
					   "xmm13", "xmm14", "xmm15");
#endif
}

#endif
