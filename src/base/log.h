// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Log lines. A line is written once, where an error is decided: lower case, "name value" pairs.
// ANYWARP_LOG (error, warn, info, debug) sets the level; unset: error.
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define AW_LOG_LINE_MAX 512 /* bytes of the longest line, with its newline */

enum aw_log_level {
	AW_LOG_ERROR,
	AW_LOG_WARN,
	AW_LOG_INFO,
	AW_LOG_DEBUG,
};

/*
 * The output of the library or program that this file is linked into, which defines it; librdmacm
 * has libibverbs'. The once and the level are base/log.c's.
 */
struct aw_log_output {
	/* Writes the line, of len bytes, to stderr. A failure cannot be reported anywhere. */
	void (*write)(const char *line, size_t len);
	bool reports_level; /* a wrong word in ANYWARP_LOG is reported */
	pthread_once_t once;
	enum aw_log_level level;
};

extern struct aw_log_output aw_log_output;

/* Read once from ANYWARP_LOG. A wrong word is taken as error. */
enum aw_log_level aw_log_level(void);

/*
 * For lines at the default level that peers cause, who may be many: counts one, and returns false when there were ten of
 * them in this second.
 */
bool aw_log_has_room(void);

/* Writes one line, with a newline added, by one call of the output. Keeps errno. */
void aw_log(enum aw_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
