// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Values of rdma_cma.h in releases newer than Debian 12's rdma-core (44), under names of our own, because newer headers have
// theirs. They are part of the binary interface: they must never change.
#ifndef RDMACM_NEWER_H
#define RDMACM_NEWER_H

enum aw_cm_newer_event {
	AW_CM_EVENT_ADDRINFO_RESOLVED = 16,
	AW_CM_EVENT_ADDRINFO_ERROR = 17,
	AW_CM_EVENT_USER = 18,
	AW_CM_EVENT_INTERNAL =
		19, /* the kernel's word to rdma-core's library: no program sees it */
};

/* RAI_SA, RAI_DNS: who resolves. Not both. */
#define AW_CM_RAI_SA 0x10
#define AW_CM_RAI_DNS 0x20

#endif
