// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A module's parameters keep their defaults, unless a test calls their functions: kshim_param_NAME.
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
#define param_get_bool NULL
#define THIS_MODULE NULL
#define kernel_param_lock(module) kshim_yield(false)
#define kernel_param_unlock(module) kshim_yield(false)
#define module_param(name, type, mode) struct kernel_param
#define module_param_cb(name, ops, at, mode)                            \
	extern const struct kernel_param_ops *const kshim_param_##name; \
	const struct kernel_param_ops *const kshim_param_##name = (ops)
#define module_param_string(name, string, len, mode) struct kernel_param
static inline int kstrtobool(const char *text, bool *on)
{
	*on = *text == 'Y';
	return *on || *text == 'N' ? 0 : -EINVAL;
}

#define MODULE_PARM_DESC(name, text) struct kernel_param

#endif
