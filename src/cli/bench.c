// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp bench: finds the measuring driver, which is Python, and becomes it. The driver alone
// decides what is measured, and how.
#define _GNU_SOURCE // asprintf
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Debian's python3 goes first: Debian packages matplotlib for that one.
#define PYTHON_OF_SYSTEM "/usr/bin/python3"
#define DRIVER_FILE "main.py"
#define WORKER_FILE "bench-verbs"

// The arguments before the user's own: python3 -B FILE and three options for the driver.
enum {
	ARGUMENTS_BEFORE = 6
};

// Relative to the directory of the executable, ended by NULL; the installed place goes first.
static const char *const driver_places[] = { AW_BENCH_FROM_BIN, "../share/anywarp/bench", NULL };
static const char *const worker_places[] = { AW_LIBEXEC_FROM_BIN, "../bench", NULL };

struct bench_dirs {
	char driver[PATH_MAX];
	char workers[PATH_MAX];
	char libraries[PATH_MAX];
};

static char *option(const char *name, const char *value)
{
	char *text;

	return asprintf(&text, "%s%s", name, value) < 0 ? NULL : text;
}

// The driver's command line, or NULL when out of memory. It lives until exec.
static char **command_line(const struct bench_dirs *dirs, int argc, char **argv)
{
	char **line = calloc(ARGUMENTS_BEFORE + (size_t)argc, sizeof(*line));
	static char python[] = "python3", no_bytecode[] = "-B";

	if (!line)
		return NULL;
	line[0] = python;
	line[1] = no_bytecode;
	line[2] = option(dirs->driver, "/" DRIVER_FILE);
	line[3] = option("--workers=", dirs->workers);
	line[4] = option("--libraries=", dirs->libraries);
	line[5] = option("--anywarp-version=", AW_VERSION);
	memcpy(line + ARGUMENTS_BEFORE, argv + 1, (size_t)(argc - 1) * sizeof(*line));
	for (size_t i = 0; i < ARGUMENTS_BEFORE; i++) {
		if (!line[i])
			return NULL;
	}
	return line;
}

static int run(int argc, char **argv)
{
	struct bench_dirs dirs;
	char **line;

	if (!aw_libdir_find(dirs.libraries)) {
		fprintf(stderr,
			"anywarp bench: " CLI_VERBS_LIB " and " CLI_RDMACM_LIB " are not in %s: "
			"build them ('./dev build') or install anywarp again\n",
			dirs.libraries);
		return CLI_FAILED;
	}
	if (!aw_beside_find(driver_places, DRIVER_FILE, dirs.driver)) {
		fprintf(stderr,
			"anywarp bench: no " DRIVER_FILE " in %s: build it ('./dev build') or "
			"install anywarp again\n",
			dirs.driver);
		return CLI_FAILED;
	}
	// An earlier run can be shown without the workers: the driver reports them missing when it needs them.
	(void)aw_beside_find(worker_places, WORKER_FILE, dirs.workers);

	line = command_line(&dirs, argc, argv);
	if (!line) {
		fprintf(stderr, "anywarp bench: out of memory\n");
		return CLI_FAILED;
	}
	execv(PYTHON_OF_SYSTEM, line);
	execvp(line[0], line);
	if (errno == ENOENT)
		fprintf(stderr, "anywarp bench: no python3, which does the measuring: install "
				"it (on Debian: apt install python3 python3-matplotlib)\n");
	else
		fprintf(stderr, "anywarp bench: python3: %s\n", strerror(errno));
	return CLI_FAILED;
}

const struct cli_command aw_cli_bench = {
	.name = "bench",
	.run = run,
	.summary = "measure anywarp beside raw TCP, libfabric and UCX",
	.help = "usage: anywarp bench [--short | --full] [--out DIR] [--only NAME] [--rounds N]\n"
		"                     [--continue] [--apps]\n"
		"       anywarp bench --list [--short | --full] [--only NAME]\n"
		"       anywarp bench --table | --html | --markdown results.json\n"
		"\n"
		"Measures latency, bandwidth, message rate, connection set-up, scaling, CPU and\n"
		"memory on this machine, in turn with raw TCP, libfabric and UCX, and prints a table\n"
		"with ratios to raw TCP. DIR gets results.json and index.html, a page with plots that\n"
		"any browser opens. A benchmark reports: no number makes it fail.\n"
		"\n"
		"  --short           what the targets need, 3 rounds; at most 2 minutes\n"
		"  --full            every size and count, 7 rounds; about 40 minutes. Neither:\n"
		"                    fewer sizes, 7 rounds; about 25 minutes\n"
		"  --out DIR         where the results go (default bench-results); those of an\n"
		"                    earlier run there are renamed\n"
		"  --only NAME       only the points whose name, or a part of it, begins with NAME, as\n"
		"                    in latency, veth or bandwidth/loopback; may be given again\n"
		"  --rounds N        rounds of every point\n"
		"  --continue        measure what DIR does not have yet of the same run\n"
		"  --apps            the application study: well-known programs, over TCP and over\n"
		"                    iWARP; an hour at most, with --short ten minutes\n"
		"  --list            name the points\n"
		"  --table FILE      print the table of an earlier run\n"
		"  --html FILE       make index.html anew, beside the file\n"
		"  --markdown FILE   print the targets and what was measured as markdown\n"
		"\n"
		"Network namespaces with a veth pair are measured as root or with user namespaces;\n"
		"libfabric needs fi_pingpong (Debian: libfabric-bin), UCX ucx_perftest (ucx-utils),\n"
		"perftest's rows perftest, the page matplotlib (python3-matplotlib). What is missing is\n"
		"skipped and named.\n"
		"\n"
		"The exit status is 1 when a run failed (the table names it), 130 when interrupted:\n"
		"then the results hold what was measured until then.\n",
};
