// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program for test_sweep.c that makes calls of verbs as the checker's wrappers see them, and handles each failure in another
// way. Its first argument is a file into which it writes its data.
#include "base/log.h"
#include "check/faults/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void drop_line(const char *line, size_t len)
{
	(void)line;
	(void)len;
}

struct aw_log_output aw_log_output = { .write = drop_line, .once = PTHREAD_ONCE_INIT };

static bool fails(const char *name)
{
	int err;

	return aw_fault_call(name, &err);
}

static void report(const char *line)
{
	const char *path = getenv("ANYWARP_CHECK_REPORTS");
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	fprintf(file, "%s\nJ {}\nS {}\n", line);
	fclose(file);
}

static void write_data(const char *path, const char *data)
{
	FILE *file = fopen(path, "w");

	if (!file)
		exit(3);
	fputs(data, file);
	fclose(file);
}

int main(int argc, char **argv)
{
	char path[256];

	if (argc < 2 || !getenv("ANYWARP_SWEEP_DIR"))
		return 2;
	snprintf(path, sizeof(path), "%s/%s", getenv("ANYWARP_SWEEP_DIR"), argv[1]);
	write_data(path, "right");
	if (fails("ibv_alloc_pd"))
		return 1;
	if (fails("ibv_create_cq"))
		abort();
	if (fails("ibv_create_qp"))
		for (;;)
			pause();
	if (fails("ibv_reg_mr"))
		write_data(path, "wrong");
	if (fails("ibv_modify_qp")) {
		report("K leak");
		return 1;
	}
	if (fails("ibv_query_qp")) {
		report("K leak");
		report("K wrong-state");
		return 1;
	}
	if (fails("ibv_dereg_mr"))
		report("K leak");
	for (int i = 0; i < 20; i++)
		(void)fails("ibv_poll_cq");
	/* Only a run without a fault makes the second call. */
	if (!fails("ibv_req_notify_cq") && !getenv("ANYWARP_FAULTS"))
		(void)fails("ibv_req_notify_cq");
	return 0;
}
