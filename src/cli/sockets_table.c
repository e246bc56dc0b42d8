// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of 'anywarp sockets --status'.
#include "cli/sockets_table.h"

#include "cli/cli.h"
#include "cli/sockets.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const titles[SOCKETS_COLUMNS] = {
	"pid",
	"program",
	"fd",
	"kind",
	"mode",
	"local",
	"peer",
	"bytes in",
	"bytes out",
	"send credits",
	"receive credits",
	"rtt us",
	"retransmits",
	"state",
};

static bool is_number(size_t column)
{
	switch ((enum sockets_column)column) {
	case SOCKETS_PID:
	case SOCKETS_FD:
	case SOCKETS_BYTES_IN:
	case SOCKETS_BYTES_OUT:
	case SOCKETS_SEND_CREDITS:
	case SOCKETS_RECEIVE_CREDITS:
	case SOCKETS_RTT:
	case SOCKETS_RETRANSMITS:
		return true;
	case SOCKETS_PROGRAM:
	case SOCKETS_KIND:
	case SOCKETS_MODE:
	case SOCKETS_LOCAL:
	case SOCKETS_PEER:
	case SOCKETS_STATE:
	case SOCKETS_COLUMNS:
		return false;
	}
	return false;
}

struct sockets_row aw_sockets_row_begin(pid_t pid)
{
	struct sockets_row row = { 0 };
	char path[32];
	FILE *comm;

	snprintf(row.fields[SOCKETS_PID], SOCKETS_FIELD_MAX, "%d", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	comm = fopen(path, "re");
	if (comm && fgets(row.fields[SOCKETS_PROGRAM], SOCKETS_FIELD_MAX, comm))
		row.fields[SOCKETS_PROGRAM][strcspn(row.fields[SOCKETS_PROGRAM], "\n")] = '\0';
	if (comm)
		fclose(comm);
	return row;
}

static void *allocate(void *old, size_t size)
{
	void *memory = realloc(old, size);

	if (memory)
		return memory;
	fprintf(stderr, SOCKETS_WHO ": out of memory\n");
	exit(CLI_FAILED);
}

// Appends a field at end and returns what is behind it.
static char *put_field(char *end, const char *field)
{
	if (!*field)
		*end++ = '-';
	for (; *field; field++)
		*end++ = isgraph((unsigned char)*field) ? *field : '?';
	*end++ = '\0';
	return end;
}

void aw_sockets_table_add(struct sockets_table *table, const struct sockets_row *row)
{
	char text[sizeof(row->fields)], *end = text;

	for (size_t i = 0; i < SOCKETS_COLUMNS; i++) {
		char *field = end;

		end = put_field(end, row->fields[i]);
		if ((size_t)(end - field) - 1 > table->widths[i])
			table->widths[i] = (size_t)(end - field) - 1;
	}
	if (table->count == table->room) {
		table->room = table->room ? 2 * table->room : 64;
		table->rows = allocate(table->rows, table->room * sizeof(*table->rows));
	}
	table->rows[table->count] = allocate(NULL, (size_t)(end - text));
	memcpy(table->rows[table->count++], text, (size_t)(end - text));
}

static void print_field(const struct sockets_table *table, size_t column, const char *text)
{
	size_t title = strlen(titles[column]);
	int width = (int)(table->widths[column] > title ? table->widths[column] : title);

	if (column + 1 == SOCKETS_COLUMNS)
		puts(text);
	else if (is_number(column))
		printf("%*s  ", width, text);
	else
		printf("%-*s  ", width, text);
}

void aw_sockets_table_print(const struct sockets_table *table)
{
	for (size_t i = 0; i < SOCKETS_COLUMNS; i++)
		print_field(table, i, titles[i]);
	for (size_t row = 0; row < table->count; row++) {
		const char *field = table->rows[row];

		for (size_t i = 0; i < SOCKETS_COLUMNS; i++) {
			print_field(table, i, field);
			field += strlen(field) + 1;
		}
	}
}

void aw_sockets_table_fini(struct sockets_table *table)
{
	for (size_t row = 0; row < table->count; row++)
		free(table->rows[row]);
	free(table->rows);
}
