// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The forms for arm64. The kernel tells what the processor has.
#include "crc/form.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

static bool has_crc32(void)
{
	const unsigned long both = HWCAP_CRC32 | HWCAP_PMULL;

	return (getauxval(AT_HWCAP) & both) == both;
}

static bool is_always(void)
{
	return true;
}

const struct aw_crc_form aw_crc_forms[] = {
	{ "CRC32 and PMULL", has_crc32, aw_crc_fold_arm64, aw_crc_copy_arm64 },
	{ NULL, is_always, aw_crc_fold_table, aw_crc_copy_table },
};
