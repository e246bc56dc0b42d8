// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp stat: prints what the processes that use anywarp's verbs library have, do and wait for.
// It reads the table of statistics that such a process keeps, and the process does not notice.
#include "cli/stat.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_MAX 86400.0
#define NS 1000000000
#define CLEAR_SCREEN "\033[H\033[2J"

struct stat_options {
	bool helped; // the help was asked for, and printed
	pid_t pid; // 0: every process that the user may look at
	bool json;
	double seconds; // between two looks; 0: one look
};

static bool parse(char **argv, struct stat_options *options)
{
	for (char **arg = argv + 1; *arg; arg++) {
		const char *value;
		char *end = NULL;

		if (!strcmp(*arg, "--json")) {
			options->json = true;
		} else if (aw_launch_value(&arg, "--watch", &value)) {
			options->seconds = value ? strtod(value, &end) : 0;
			if (!value || end == value || *end || !isfinite(options->seconds) ||
			    options->seconds < 0.1 || options->seconds > SECONDS_MAX) {
				fprintf(stderr, STAT_WHO
					": --watch needs a number of seconds, from 0.1 to 86400\n");
				return false;
			}
		} else if (**arg != '-') {
			if (!aw_process_number(STAT_WHO, *arg, &options->pid))
				return false;
		} else {
			options->helped = aw_cli_unknown_asks_help(&aw_cli_stat, *arg);
			return false;
		}
	}
	return true;
}

static bool collect_process(pid_t pid, uid_t owner, void *look)
{
	(void)owner;
	return aw_stat_collect(pid, false, look);
}

static bool tell_foreign(pid_t pid, uid_t owner, void *told)
{
	char library[PATH_MAX];

	(void)owner;
	(void)told;
	if (aw_process_foreign(pid, library))
		printf("process %d runs on %s, not on anywarp's library\n", (int)pid, library);
	return true;
}

static void print_tables(const struct stat_options *options, const struct stat_look *look)
{
	if (options->seconds > 0) {
		time_t now = (time_t)(look->time_ns / NS);
		char text[64] = "";
		struct tm parts;

		if (localtime_r(&now, &parts))
			strftime(text, sizeof(text), "%F %T", &parts);
		printf("%s%s, every %g s\n\n", isatty(STDOUT_FILENO) ? CLEAR_SCREEN : "", text,
		       options->seconds);
	}
	for (size_t i = 0; i < STAT_SHEETS; i++)
		if (look->sheets[i].count > 0)
			aw_sheet_print(&look->sheets[i]);
	if (look->sheets[STAT_PROCESSES].count == 0) {
		puts("no process has a device of anywarp open");
		if (!aw_process_each(STAT_WHO, tell_foreign, NULL))
			return;
	}
	if (options->seconds > 0 && !isatty(STDOUT_FILENO))
		putchar('\n');
}

// asked: it is an error that the process named has nothing. found: a process has.
static bool print_once(const struct stat_options *options, struct stat_rates *rates, bool asked,
		       bool *found)
{
	struct stat_look look = { .rates = rates, .time_ns = aw_clock_ns(CLOCK_REALTIME) };
	bool right;

	aw_stat_sheets_begin(look.sheets);
	look.sheets[STAT_QPS].has_rates = options->seconds > 0;
	aw_stat_rates_begin(rates);
	right = options->pid ? aw_stat_collect(options->pid, asked, &look)
			     : aw_process_each(STAT_WHO, collect_process, &look);
	*found = look.sheets[STAT_PROCESSES].count > 0;
	if (*found || (right && !options->pid)) {
		if (options->json)
			aw_sheets_json(look.sheets, STAT_SHEETS, (double)look.time_ns / NS);
		else
			print_tables(options, &look);
		fflush(stdout);
	}
	for (size_t i = 0; i < STAT_SHEETS; i++)
		aw_sheet_clear(&look.sheets[i]);
	aw_stat_sockets_fini(&look.sockets);
	return right;
}

// Also of a process that its parent has not waited for.
static bool has_ended(pid_t pid)
{
	char path[32], line[128] = ""; // the state stands behind the name, of 16 bytes at the most
	const char *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (file) {
		line[fread(line, 1, sizeof(line) - 1, file)] = '\0';
		fclose(file);
	}
	name_end = strrchr(line, ')');
	return !name_end || !strncmp(name_end, ") Z", 3) || !strncmp(name_end, ") X", 3);
}

static int stat_command(int argc, char **argv)
{
	struct stat_options options = { 0 };
	struct stat_rates rates = { 0 };
	bool right, found;

	(void)argc;
	if (!parse(argv, &options))
		return options.helped ? CLI_OK : CLI_USAGE;
	if (!aw_process_can_look(STAT_WHO))
		return CLI_FAILED;
	right = print_once(&options, &rates, true, &found);
	while (options.seconds > 0 && right) {
		struct timespec time = { .tv_sec = (time_t)options.seconds };

		time.tv_nsec = (long)((options.seconds - (double)time.tv_sec) * 1e9);
		nanosleep(&time, NULL);
		if (ferror(stdout))
			break;
		right = print_once(&options, &rates, false, &found);
		if (right && options.pid && !found) {
			if (has_ended(options.pid))
				break;
			right = print_once(&options, &rates, true, &found); // prints what is wrong
		}
	}
	aw_stat_rates_fini(&rates);
	return right ? CLI_OK : CLI_FAILED;
}

const struct cli_command aw_cli_stat = {
	.name = "stat",
	.run = stat_command,
	.summary = "show the connections of running RDMA programs",
	.help = "usage: anywarp stat [--json] [--watch SECONDS] [PID]\n"
		"\n"
		"Prints the QPs, listeners and CQs of the process, which runs on anywarp's verbs\n"
		"library: of QPs their peers, counters and TCP's round trip time. Without PID it\n"
		"prints those of all processes of this user, or as root of all users. The process\n"
		"does not notice, and may be stopped.\n"
		"\n"
		"  --json           print one JSON object, on one line\n"
		"  --watch SECONDS  print again after so many seconds, until the process has ended,\n"
		"                   with the time, and with bytes and messages a second\n"
		"\n"
		"A table that is wider than the terminal is printed as several, one below the other;\n"
		"in a file it has one line for each row.\n"
		"\n"
		"The exit status is 0 when all was printed, be it nothing; 1 when PID is no process\n"
		"with a device of anywarp, or one that this user may not look at; 2 for wrong usage.\n"
		"anywarp-stat(1) describes the columns.\n"
		"\n"
		"  anywarp stat --watch 1 $(pidof -s ib_write_bw)\n",
};
