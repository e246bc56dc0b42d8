// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The forms for x86-64. The compiler's runtime asks cpuid for the processor's registers and xgetbv for the kernel's.
#include "crc/form.h"

static bool has_avx512(void)
{
	__builtin_cpu_init(); /* a constructor of another library may be here before ours */
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

static bool has_avx2(void)
{
	__builtin_cpu_init(); /* a constructor of another library may be here before ours */
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

static bool has_sse42(void)
{
	__builtin_cpu_init(); /* a constructor of another library may be here before ours */
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

static bool is_always(void)
{
	return true;
}

const struct aw_crc_form aw_crc_forms[] = {
	{ "AVX-512 and VPCLMULQDQ", has_avx512, aw_crc_fold_avx512, aw_crc_copy_avx512 },
	{ "AVX2 and VPCLMULQDQ", has_avx2, aw_crc_fold_avx2, aw_crc_copy_avx2 },
	{ "SSE4.2", has_sse42, aw_crc_fold_sse42, aw_crc_copy_sse42 },
	{ NULL, is_always, aw_crc_fold_table, aw_crc_copy_table },
};
