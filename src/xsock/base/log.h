// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes log lines to stderr in the libraries' form, at the level of ANYWARP_LOG. Keeps errno.
#ifndef XSOCK_BASE_LOG_H
#define XSOCK_BASE_LOG_H

enum aw_xs_log_level {
	AW_XS_LOG_ERROR,
	AW_XS_LOG_WARN,
	AW_XS_LOG_INFO,
	AW_XS_LOG_DEBUG,
};

void aw_xs_log(enum aw_xs_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
