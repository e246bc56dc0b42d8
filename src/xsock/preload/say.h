// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Log lines on stderr in the libraries' form, at the level of ANYWARP_LOG. Keeps errno.
#ifndef XSOCK_PRELOAD_SAY_H
#define XSOCK_PRELOAD_SAY_H

enum aw_say_level {
	AW_SAY_ERROR,
	AW_SAY_WARN,
	AW_SAY_INFO,
	AW_SAY_DEBUG,
};

void aw_say(enum aw_say_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
