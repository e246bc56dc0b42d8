// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The module's beginning and end.
#include "kmod/cm/cm.h"
#include "kmod/module/module.h"
#include "kmod/stream/stream.h"

#include <linux/module.h>
#include <rdma/rdma_netlink.h>

MODULE_DESCRIPTION("iWARP in software");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("anywarp");

struct part {
	int (*init)(void);
	void (*exit)(void);
};

/* In the order of init, which is NULL where there is nothing to begin; exit runs backwards. */
static const struct part parts[] = {
	{ awk_siw_refuse, awk_siw_refuse_end },
	{ awk_stream_init_module, awk_stream_exit_module },
	{ NULL, awk_cm_exit_module },
	{ awk_link_init, awk_link_exit },
};

static void parts_exit(size_t count)
{
	while (count-- > 0)
		parts[count].exit();
}

static int __init module_begin(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int err = parts[i].init ? parts[i].init() : 0;

		if (err) {
			parts_exit(i);
			return err;
		}
	}
	return 0;
}

static void __exit module_end(void)
{
	parts_exit(ARRAY_SIZE(parts));
}

module_init(module_begin);
module_exit(module_end);
