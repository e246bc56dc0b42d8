// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of 'anywarp sockets --status'.
#ifndef CLI_SOCKETS_TABLE_H
#define CLI_SOCKETS_TABLE_H

#include "cli/sheet.h"

enum sockets_column {
	SOCKETS_PID,
	SOCKETS_PROGRAM,
	SOCKETS_FD,
	SOCKETS_KIND,
	SOCKETS_MODE,
	SOCKETS_LOCAL,
	SOCKETS_PEER,
	SOCKETS_BYTES_IN,
	SOCKETS_BYTES_OUT,
	SOCKETS_SEND_CREDITS,
	SOCKETS_RECEIVE_CREDITS,
	SOCKETS_RTT,
	SOCKETS_RETRANSMITS,
	SOCKETS_STATE,
	SOCKETS_WHY,
	SOCKETS_COLUMNS,
};

// The table without rows.
struct sheet aw_sockets_table_begin(void);

// Returns the name of a TCP state by the kernel's number, as ss(8) has it.
const char *aw_sockets_state(size_t state);

// A row with the number and the name of a process.
struct sheet_row aw_sockets_row_begin(pid_t pid);

#endif
