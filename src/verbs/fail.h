// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The last step before the ABI of a verb that returns an error number: programs look into errno as
// well, where rdma-core's providers leave the kernel's error.
#ifndef VERBS_FAIL_H
#define VERBS_FAIL_H

#include <errno.h>

/* Returns err, an error number or 0, with errno set unless it is 0. */
static inline int vb_fail(int err)
{
	if (err)
		errno = err;
	return err;
}

#endif
