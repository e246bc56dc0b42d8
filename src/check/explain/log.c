// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The lines of --explain on standard error.
#include "check/explain/explain.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUIET_NS 1000000000 /* an equal line within it is counted only */
#define LINE_MAX_BYTES (AW_EXPLAIN_MAX + 128)

/* FNV-1a; 0 marks a free place. */
static uint64_t line_hash(const char *line)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *line; line++)
		hash = (hash ^ (unsigned char)*line) * 0x100000001b3;
	return hash ? hash : 1;
}

bool aw_explain_line_due(struct aw_explain_lines *lines, const char *line, int64_t now_ns,
			 unsigned *held)
{
	uint64_t hash = line_hash(line);
	size_t place = 0;

	for (size_t i = 0; i < AW_EXPLAIN_LINES; i++) {
		if (lines->at[i].hash == hash) {
			place = i;
			break;
		}
		/* The place whose line is the oldest is given up. */
		if (lines->at[i].due_ns < lines->at[place].due_ns)
			place = i;
	}
	bool known = lines->at[place].hash == hash;

	if (known && now_ns < lines->at[place].due_ns) {
		lines->at[place].held++;
		return false;
	}
	*held = known ? lines->at[place].held : 0;
	lines->at[place].hash = hash;
	lines->at[place].due_ns = now_ns + QUIET_NS;
	lines->at[place].held = 0;
	return true;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct aw_explain_lines lines; /* under lock */

void aw_explain_log(const char *call, const char *why)
{
	static const char prefix[] = "anywarp check: ";
	char line[LINE_MAX_BYTES];
	int saved = errno;
	unsigned held;
	bool due;
	int len = snprintf(line, sizeof(line), "%s%s: %s", prefix, call, why);

	if (len < 0)
		return;
	pthread_mutex_lock(&lock);
	due = aw_explain_line_due(&lines, line, aw_now_ns(), &held);
	pthread_mutex_unlock(&lock);
	size_t room = sizeof(line) - 1; /* for the newline, which takes the 0's place */
	size_t end = (size_t)len < room ? (size_t)len : room;

	if (due && held && end < room) {
		len = snprintf(line + end, sizeof(line) - end, " (and %u times more before)", held);
		end += (size_t)len < room - end ? (size_t)len : room - end;
	}
	line[end++] = '\n';
	if (due)
		(void)!write(STDERR_FILENO, line,
			     end); /* without standard error there is nobody to tell */
	errno = saved;
}
