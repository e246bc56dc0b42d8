// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Changes of Linux's verbs since 6.1.
#ifndef KMOD_CQ_COMPAT_H
#define KMOD_CQ_COMPAT_H

#include <linux/version.h>
#include <rdma/uverbs_ioctl.h>

/* 6.11 gives create_cq the whole request, of which the driver's data is a part. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
typedef struct uverbs_attr_bundle awk_cq_request;

static inline struct ib_udata *awk_cq_udata(awk_cq_request *request)
{
	return request ? &request->driver_udata : NULL;
}
#else
typedef struct ib_udata awk_cq_request;

static inline struct ib_udata *awk_cq_udata(awk_cq_request *request)
{
	return request;
}
#endif

#endif
