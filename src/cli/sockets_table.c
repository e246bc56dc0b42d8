// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The columns of 'anywarp sockets --status'.
#include "cli/sockets_table.h"

static const struct sheet_column columns[SOCKETS_COLUMNS] = {
	[SOCKETS_PID] = { .title = "pid", .is_number = true },
	[SOCKETS_PROGRAM] = { .title = "program" },
	[SOCKETS_FD] = { .title = "fd", .is_number = true },
	[SOCKETS_KIND] = { .title = "kind" },
	[SOCKETS_MODE] = { .title = "mode" },
	[SOCKETS_LOCAL] = { .title = "local" },
	[SOCKETS_PEER] = { .title = "peer" },
	[SOCKETS_BYTES_IN] = { .title = "bytes in", .is_number = true },
	[SOCKETS_BYTES_OUT] = { .title = "bytes out", .is_number = true },
	[SOCKETS_SEND_CREDITS] = { .title = "send credits", .is_number = true },
	[SOCKETS_RECEIVE_CREDITS] = { .title = "receive credits", .is_number = true },
	[SOCKETS_RTT] = { .title = "rtt us", .is_number = true },
	[SOCKETS_RETRANSMITS] = { .title = "retransmits", .is_number = true },
	[SOCKETS_STATE] = { .title = "state" },
	[SOCKETS_WHY] = { .title = "why" },
};

struct sheet aw_sockets_table_begin(void)
{
	return (struct sheet){ .columns = columns,
			       .column_count = SOCKETS_COLUMNS,
			       .name_count = SOCKETS_FD + 1,
			       .has_words = true };
}

const char *aw_sockets_state(size_t state)
{
	static const char *const states[] = {
		"unknown",    "established", "syn-sent",  "syn-received",
		"fin-wait-1", "fin-wait-2",  "time-wait", "closed",
		"close-wait", "last-ack",    "listen",	  "closing",
	};

	return states[state < sizeof(states) / sizeof(states[0]) ? state : 0];
}

struct sheet_row aw_sockets_row_begin(pid_t pid)
{
	struct sheet_row row = { 0 };

	aw_sheet_put(&row, SOCKETS_PID, (uint64_t)pid);
	aw_sheet_put_program(&row, SOCKETS_PROGRAM, pid);
	return row;
}
