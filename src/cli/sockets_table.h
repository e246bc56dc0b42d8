// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of 'anywarp sockets --status': rows are collected, and printed in columns as wide as
// what is in them.
#ifndef CLI_SOCKETS_TABLE_H
#define CLI_SOCKETS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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
	SOCKETS_COLUMNS,
};

// Longer fields are cut.
#define SOCKETS_FIELD_MAX 64

// The text of a row; an empty field is printed as "-".
struct sockets_row {
	char fields[SOCKETS_COLUMNS][SOCKETS_FIELD_MAX];
};

// Zeroed before the first row.
struct sockets_table {
	char **rows; // the fields of each, one behind the other, each with its NUL
	size_t count, room;
	size_t widths[SOCKETS_COLUMNS];
};

// A row with the number and the name of a process.
struct sockets_row aw_sockets_row_begin(pid_t pid);

// Adds a copy of the row; blanks and bytes that a terminal might obey are replaced. Exits when out of
// memory.
void aw_sockets_table_add(struct sockets_table *table, const struct sockets_row *row);

void aw_sockets_table_print(const struct sockets_table *table);
void aw_sockets_table_fini(struct sockets_table *table);

#endif
