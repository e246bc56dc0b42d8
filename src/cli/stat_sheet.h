// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sheet of 'anywarp stat': rows of text under columns, printed as a table, as wide as its fields
// are, or as JSON.
#ifndef CLI_STAT_SHEET_H
#define CLI_STAT_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat_column {
	const char *key; // of JSON
	const char *title; // of the table; NULL: it has no such column
	bool is_number;
};

#define STAT_COLUMNS_MAX 24
// Longer fields are cut.
#define STAT_FIELD_MAX 96

// Zeroed before its fields are written. An empty field is not known: "-" in the table, null in JSON.
struct stat_row {
	char fields[STAT_COLUMNS_MAX][STAT_FIELD_MAX];
};

struct stat_sheet {
	const char *name; // of JSON
	const char *title;
	const struct stat_column *columns;
	size_t column_count;
	char **rows; // the fields of each, one behind the other, each with its NUL
	size_t count, room;
};

void aw_stat_put(struct stat_row *row, size_t column, uint64_t number);

// Adds a copy of the row; bytes that are not printable ASCII are replaced. Exits when out of memory.
void aw_stat_sheet_add(struct stat_sheet *sheet, const struct stat_row *row);

// Prints nothing for a sheet without rows.
void aw_stat_sheet_print(const struct stat_sheet *sheet);

// Prints one JSON object, with an array for each sheet, and a newline.
void aw_stat_sheets_json(const struct stat_sheet *sheets, size_t count);

// Frees the rows.
void aw_stat_sheet_clear(struct stat_sheet *sheet);

#endif
