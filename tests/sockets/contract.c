// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// contract --list, or contract ROW...: each row in a child, its failure told on standard error.
#include "contract.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

#define ROW_SECONDS 30

static const struct rows *const tables[] = {
	&open_rows,   &option_rows, &io_rows,	 &flag_rows,	&wait_rows,
	&epoll_rows,  &end_rows,    &fd_rows,	 &process_rows, &pass_rows,
	&signal_rows, &urgent_rows, &first_rows, &beside_rows,	&bridge_rows,
	&call_rows,   &reader_rows, &reset_rows, &fork_rows,	&buffer_rows,
};

static int list(void)
{
	for (size_t t = 0; t < ARRAY_LEN(tables); t++)
		for (size_t i = 0; i < tables[t]->count; i++)
			puts(tables[t]->rows[i].name);
	return 0;
}

static const struct row *row_named(const char *name)
{
	for (size_t t = 0; t < ARRAY_LEN(tables); t++)
		for (size_t i = 0; i < tables[t]->count; i++)
			if (!strcmp(tables[t]->rows[i].name, name))
				return &tables[t]->rows[i];
	return NULL;
}

static int run(const char *name)
{
	const struct row *row = row_named(name);
	if (!row) {
		fprintf(stderr, "%s: no such row\n", name);
		return 2;
	}
	pid_t child = fork();
	if (child == 0) {
		alarm(limit_s(ROW_SECONDS));
		row->run();
		exit(0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: died of %s\n", name, strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		fprintf(stderr, "%s: failed\n", name);
	return status != 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	if (argc == 3 && !strncmp(argv[1], "--", 2))
		return role_main(argv[1] + 2, atoi(argv[2]));
	int failed = 0;
	for (int i = 1; i < argc; i++)
		failed |= run(argv[i]);
	return failed;
}
