// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A module's parameters keep their defaults.
#ifndef KSHIM_MODULE_H
#define KSHIM_MODULE_H

#include <linux/types.h>

struct kernel_param;

struct kernel_param_ops {
	int (*set)(const char *text, const struct kernel_param *param);
	int (*get)(char *text, const struct kernel_param *param);
};

#define param_set_uint_minmax(text, param, low, high) (0)
#define param_get_uint NULL
#define module_param(name, type, mode) struct kernel_param
#define module_param_cb(name, ops, at, mode) \
	static const void *const kshim_param_##name __attribute__((unused)) = (ops)
#define MODULE_PARM_DESC(name, text) struct kernel_param

#endif
