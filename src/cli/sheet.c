// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sheets of 'anywarp stat'.
#include "cli/sheet.h"

#include "cli/cli.h"
#include "cli/json.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void aw_sheet_put(struct sheet_row *row, size_t column, uint64_t number)
{
	snprintf(row->fields[column], SHEET_FIELD_MAX, "%" PRIu64, number);
}

void aw_sheet_put_address(struct sheet_row *row, size_t column, bool ipv6, const void *address,
			  uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(ipv6 ? AF_INET6 : AF_INET, address, text, sizeof(text));
	snprintf(row->fields[column], SHEET_FIELD_MAX, ipv6 ? "[%s]:%u" : "%s:%u", text, port);
}

void aw_sheet_put_program(struct sheet_row *row, size_t column, pid_t pid)
{
	char *field = row->fields[column], path[32];
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	comm = fopen(path, "re");
	if (comm && fgets(field, SHEET_FIELD_MAX, comm))
		field[strcspn(field, "\n")] = '\0';
	if (comm)
		fclose(comm);
}

static void *allocate(void *old, size_t size)
{
	void *memory = realloc(old, size);

	if (memory)
		return memory;
	fprintf(stderr, "anywarp: out of memory\n");
	exit(CLI_FAILED);
}

// Appends a field at end, without bytes below lowest, and returns the place behind it.
static char *put_field(char *end, const char *field, char lowest)
{
	for (; *field; field++)
		*end++ = *field >= lowest && *field <= '~' ? *field : '?';
	*end++ = '\0';
	return end;
}

void aw_sheet_add(struct sheet *sheet, const struct sheet_row *row)
{
	char text[sizeof(row->fields)], *end = text;

	for (size_t i = 0; i < sheet->column_count; i++)
		end = put_field(end, row->fields[i], sheet->has_words ? '!' : ' ');
	if (sheet->count == sheet->room) {
		sheet->room = sheet->room ? 2 * sheet->room : 64;
		sheet->rows = allocate(sheet->rows, sheet->room * sizeof(*sheet->rows));
	}
	sheet->rows[sheet->count] = allocate(NULL, (size_t)(end - text));
	memcpy(sheet->rows[sheet->count++], text, (size_t)(end - text));
}

// Fills in the widths of the columns: of their widest field or title.
static void measure(const struct sheet *sheet, size_t widths[SHEET_COLUMNS_MAX])
{
	for (size_t i = 0; i < sheet->column_count; i++)
		widths[i] = sheet->columns[i].title ? strlen(sheet->columns[i].title) : 0;
	for (size_t row = 0; row < sheet->count; row++) {
		const char *field = sheet->rows[row];

		for (size_t i = 0; i < sheet->column_count; i++) {
			size_t len = strlen(field);

			widths[i] = len > widths[i] ? len : widths[i];
			field += len + 1;
		}
	}
}

static void print_field(const struct sheet *sheet, size_t column, const char *text, size_t width)
{
	bool is_last = column + 1 == sheet->column_count;

	if (!sheet->columns[column].title)
		return;
	if (!*text)
		text = "-";
	if (sheet->columns[column].is_number)
		printf("%*s%s", (int)width, text, is_last ? "\n" : "  ");
	else if (is_last)
		puts(text);
	else
		printf("%-*s  ", (int)width, text);
}

void aw_sheet_print(const struct sheet *sheet)
{
	size_t widths[SHEET_COLUMNS_MAX];

	measure(sheet, widths);
	if (sheet->title)
		puts(sheet->title);
	for (size_t i = 0; i < sheet->column_count; i++)
		print_field(sheet, i, sheet->columns[i].title, widths[i]);
	for (size_t row = 0; row < sheet->count; row++) {
		const char *field = sheet->rows[row];

		for (size_t i = 0; i < sheet->column_count; i++) {
			print_field(sheet, i, field, widths[i]);
			field += strlen(field) + 1;
		}
	}
}

static void print_value(const struct sheet_column *column, const char *field)
{
	printf("\"%s\": ", column->key);
	if (!*field)
		fputs("null", stdout);
	else if (column->is_number)
		fputs(field, stdout);
	else
		aw_json_string(field);
}

static void print_object(const struct sheet *sheet, const char *field)
{
	putchar('{');
	for (size_t i = 0; i < sheet->column_count; i++) {
		if (i > 0)
			fputs(", ", stdout);
		print_value(&sheet->columns[i], field);
		field += strlen(field) + 1;
	}
	putchar('}');
}

void aw_sheets_json(const struct sheet *sheets, size_t count)
{
	putchar('{');
	for (size_t i = 0; i < count; i++) {
		printf("%s\"%s\": [", i ? ", " : "", sheets[i].name);
		for (size_t row = 0; row < sheets[i].count; row++) {
			if (row > 0)
				fputs(", ", stdout);
			print_object(&sheets[i], sheets[i].rows[row]);
		}
		putchar(']');
	}
	puts("}");
}

void aw_sheet_clear(struct sheet *sheet)
{
	for (size_t row = 0; row < sheet->count; row++)
		free(sheet->rows[row]);
	free(sheet->rows);
	sheet->rows = NULL;
	sheet->count = sheet->room = 0;
}
