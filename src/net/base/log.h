// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Log lines on stderr. A line is written once, where an error is decided: lower case, "name value"
// pairs.
// ANYWARP_LOG (error, warn, info, debug) sets the level; unset: error.
#ifndef NET_LOG_H
#define NET_LOG_H

enum aw_log_level {
	AW_LOG_ERROR,
	AW_LOG_WARN,
	AW_LOG_INFO,
	AW_LOG_DEBUG,
};

/* Read once from ANYWARP_LOG; an unknown word is logged and taken as error. */
enum aw_log_level aw_log_level(void);

/* Writes one line, with a newline added, by one write(2). Keeps errno. */
void aw_log(enum aw_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
