// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The last step before the ABI: an error number becomes errno and -1.
#ifndef RDMACM_FAIL_H
#define RDMACM_FAIL_H

#include <errno.h>

/* 0 for 0; else -1 with errno set. */
static inline int aw_cm_fail(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

#endif
