// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GUID of the device: the same in every process of this machine, another on other machines.
#ifndef VERBS_GUID_H
#define VERBS_GUID_H

#include <linux/types.h>

/* Never 0, and the same during the life of this process. */
__be64 vb_guid(void);

#endif
