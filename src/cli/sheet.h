// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sheet of 'anywarp stat' or 'anywarp sockets --status': rows of text under columns, printed as a table or as JSON. A
// table that is wider than its terminal is printed as several, one below the other, each of which begins with the
// columns that name the row. In a file or a pipe it has one line for each row.
#ifndef CLI_SHEET_H
#define CLI_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sheet_column {
	const char *key; // of JSON
	const char *title; // of the table; NULL: it has no such column
	bool is_number;
	bool is_rate; // the table has it where the sheet has rates
	bool is_rare; // the table has it where a row has something in it
};

#define SHEET_COLUMNS_MAX 30
// Longer fields are cut.
#define SHEET_FIELD_MAX 96

// Zeroed before its fields are written. An empty field is not known: "-" in the table, null in JSON.
struct sheet_row {
	char fields[SHEET_COLUMNS_MAX][SHEET_FIELD_MAX];
};

struct sheet {
	const char *name; // of JSON
	const char *title; // a line above the table; NULL: none
	const struct sheet_column *columns;
	size_t column_count;
	size_t name_count; // the columns, the first ones, that name the row
	bool has_rates;
	bool has_words; // blanks in a field are replaced, too, so that a line of the table can be split at them
	char **rows; // the fields of each, one behind the other, each with its NUL
	size_t count, room;
};

void aw_sheet_put(struct sheet_row *row, size_t column, uint64_t number);
void aw_sheet_put_address(struct sheet_row *row, size_t column, bool ipv6, const void *address,
			  uint16_t port);
// The name of the process's program; nothing where the process has ended.
void aw_sheet_put_program(struct sheet_row *row, size_t column, pid_t pid);

// Adds a copy of the row; bytes that are not printable ASCII are replaced. Exits when out of memory.
void aw_sheet_add(struct sheet *sheet, const struct sheet_row *row);

void aw_sheet_print(const struct sheet *sheet);

// Prints one JSON object, with the time in seconds since 1970 and an array for each sheet, and a newline.
void aw_sheets_json(const struct sheet *sheets, size_t count, double time);

// Frees the rows.
void aw_sheet_clear(struct sheet *sheet);

#endif
