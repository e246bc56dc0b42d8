// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The log is not looked at.
#ifndef KSHIM_PRINTK_H
#define KSHIM_PRINTK_H

static inline void kshim_log(const char *format, ...)
{
	(void)format;
}

#define pr_err(...) kshim_log(__VA_ARGS__)
#define pr_warn_ratelimited(...) kshim_log(__VA_ARGS__)

#endif
