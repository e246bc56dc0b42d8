// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The form for all other processors.
#include "crc/form.h"

static bool is_always(void)
{
	return true;
}

const struct aw_crc_form aw_crc_forms[] = {
	{ NULL, is_always, aw_crc_fold_table, aw_crc_copy_table },
};
