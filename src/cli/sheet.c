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
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_USUAL 80 // of a terminal that does not tell
#define GAP 2 // blanks between two columns

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

void aw_sheet_add(struct sheet *sheet, const struct sheet_row *row)
{
	char text[sizeof(row->fields)], *end = text, lowest = sheet->has_words ? '!' : ' ';

	// A byte that cannot be shown, or a blank in a sheet of words, becomes a question mark.
	for (size_t i = 0; i < sheet->column_count; i++) {
		for (const char *field = row->fields[i]; *field; field++)
			*end++ = *field >= lowest && *field <= '~' ? *field : '?';
		*end++ = '\0';
	}
	if (sheet->count == sheet->room) {
		sheet->room = sheet->room ? 2 * sheet->room : 64;
		sheet->rows = allocate(sheet->rows, sheet->room * sizeof(*sheet->rows));
	}
	sheet->rows[sheet->count] = allocate(NULL, (size_t)(end - text));
	memcpy(sheet->rows[sheet->count++], text, (size_t)(end - text));
}

// Fills in the widths of the columns: of their widest field or title; 0: the table has no such column.
static void measure(const struct sheet *sheet, size_t widths[SHEET_COLUMNS_MAX])
{
	memset(widths, 0, SHEET_COLUMNS_MAX * sizeof(*widths));
	for (size_t row = 0; row < sheet->count; row++) {
		const char *field = sheet->rows[row];

		for (size_t i = 0; i < sheet->column_count; i++) {
			size_t len = strlen(field);

			widths[i] = len > widths[i] ? len : widths[i];
			field += len + 1;
		}
	}
	for (size_t i = 0; i < sheet->column_count; i++) {
		const struct sheet_column *column = &sheet->columns[i];
		bool is_left_out = !column->title || (column->is_rate && !sheet->has_rates) ||
				   (column->is_rare && widths[i] == 0);
		size_t len = is_left_out ? 0 : strlen(column->title);

		if (is_left_out || len > widths[i])
			widths[i] = len;
	}
}

// A table that stands for the sheet, or for a part of it: the names, and the columns from first on, before end.
struct sheet_part {
	const struct sheet *sheet;
	const size_t *widths;
	size_t first, end;
};

static bool is_shown(const struct sheet_part *part, size_t column)
{
	return part->widths[column] > 0;
}

// Chooses as many columns as fit beside the names, but one at least that is shown.
static size_t choose_end(const struct sheet_part *part, size_t width)
{
	size_t used = 0, end = part->first;
	bool any = false;

	for (size_t i = 0; i < part->sheet->name_count; i++)
		used += is_shown(part, i) ? part->widths[i] + GAP : 0;
	for (; end < part->sheet->column_count; end++) {
		if (!is_shown(part, end))
			continue;
		used += part->widths[end] + GAP;
		if (width && any && used > width + GAP)
			break;
		any = true;
	}
	return end;
}

static bool is_in(const struct sheet_part *part, size_t column)
{
	return is_shown(part, column) &&
	       (column < part->sheet->name_count || (column >= part->first && column < part->end));
}

// A field's gap stands before it, and a text is filled up only where another follows.
static void print_field(const struct sheet_part *part, size_t column, const char *text, size_t *gap)
{
	int width = (int)part->widths[column], len = (int)strlen(text);

	if (!is_in(part, column))
		return;
	if (!*text) {
		text = "-";
		len = 1;
	}
	if (part->sheet->columns[column].is_number)
		printf("%*s%*s", (int)*gap, "", width, text);
	else
		printf("%*s%s", (int)*gap, "", text);
	*gap = GAP + (part->sheet->columns[column].is_number ? 0 : (size_t)(width - len));
}

void aw_sheet_print(const struct sheet *sheet)
{
	size_t widths[SHEET_COLUMNS_MAX], width = 0; // 0: the output is no terminal
	struct sheet_part part = { sheet, widths, sheet->name_count, 0 };
	struct winsize size = { 0 };

	if (isatty(STDOUT_FILENO))
		width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
										    : WIDTH_USUAL;
	measure(sheet, widths);
	if (sheet->title)
		puts(sheet->title);
	for (; part.first < sheet->column_count; part.first = part.end) {
		part.end = choose_end(&part, width);
		size_t gap = 0;

		for (size_t i = 0; i < sheet->column_count; i++)
			if (is_in(&part, i))
				print_field(&part, i, sheet->columns[i].title, &gap);
		putchar('\n');
		for (size_t row = 0; row < sheet->count; row++) {
			const char *field = sheet->rows[row];

			gap = 0;
			for (size_t i = 0; i < sheet->column_count; i++) {
				print_field(&part, i, field, &gap);
				field += strlen(field) + 1;
			}
			putchar('\n');
		}
	}
}

static void print_object(const struct sheet *sheet, const char *field)
{
	putchar('{');
	for (size_t i = 0; i < sheet->column_count; i++) {
		if (i > 0)
			fputs(", ", stdout);
		printf("\"%s\": ", sheet->columns[i].key);
		if (!*field)
			fputs("null", stdout);
		else if (sheet->columns[i].is_number)
			fputs(field, stdout);
		else
			aw_json_string(field);
		field += strlen(field) + 1;
	}
	putchar('}');
}

void aw_sheets_json(const struct sheet *sheets, size_t count, double time)
{
	printf("{\"time\": %.3f", time);
	for (size_t i = 0; i < count; i++) {
		printf(", \"%s\": [", sheets[i].name);
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
