// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AHs are for UD QPs, which there are none of.
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return EOPNOTSUPP;
}
