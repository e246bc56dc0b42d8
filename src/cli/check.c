// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp check: a program under the sanitizer for verbs. With --explain the command becomes the program; otherwise it waits for the
// program's end, to make the summary and the exit status.
#define _GNU_SOURCE // mkdtemp
#include "check/base/settings.h"
#include "cli/check_library.h"
#include "cli/check_options.h"
#include "cli/check_start.h"
#include "cli/check_summary.h"
#include "cli/cli.h"
#include "cli/msan.h"
#include "cli/paths.h"
#include "cli/run_notes.h"
#include "cli/run_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO "anywarp check"
#define REPORTS_ENV "ANYWARP_CHECK_REPORTS"
#define DIRECTORY_MAX (PATH_MAX - sizeof("/reports"))

// The files of one run.
struct files {
	char directory[DIRECTORY_MAX];
	char reports[PATH_MAX]; // the library appends to it
	FILE *json, *sarif; // NULL: not asked for
};

static bool open_output(const char *option, const char *path, FILE **output)
{
	if (!path)
		return true;
	*output = fopen(path, "we");
	if (!*output)
		fprintf(stderr, WHO ": %s: cannot write '%s': %s\n", option, path, strerror(errno));
	return *output != NULL;
}

static void files_close(struct files *files)
{
	if (files->json)
		fclose(files->json);
	if (files->sarif)
		fclose(files->sarif);
	if (files->directory[0]) {
		unlink(files->reports);
		rmdir(files->directory);
	}
}

// Those of the user are opened before the program starts, so that its run is not lost for a path that cannot be written.
static bool files_open(const struct check_options *options, struct files *files)
{
	const char *tmpdir = getenv("TMPDIR");
	char parent[PATH_MAX];
	int fd;

	*files = (struct files){ .json = NULL };
	if (!open_output("--json", options->json, &files->json) ||
	    !open_output("--sarif", options->sarif, &files->sarif))
		return false;

	// The path is absolute, since the program may change its directory.
	if (!tmpdir || !*tmpdir)
		tmpdir = P_tmpdir;
	if (!realpath(tmpdir, parent) ||
	    snprintf(files->directory, DIRECTORY_MAX, "%s/anywarp-check-XXXXXX", parent) >=
		    (int)DIRECTORY_MAX ||
	    !mkdtemp(files->directory)) {
		fprintf(stderr,
			WHO
			": cannot make a directory for the reports in %s: %s; TMPDIR names another place\n",
			tmpdir, strerror(errno));
		files->directory[0] = '\0';
		return false;
	}

	snprintf(files->reports, sizeof(files->reports), "%s/reports", files->directory);
	fd = open(files->reports, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || setenv(REPORTS_ENV, files->reports, 1) != 0) {
		fprintf(stderr, WHO ": cannot make the file %s: %s\n", files->reports,
			strerror(errno));
		return false;
	}
	close(fd);
	return true;
}

// Runs the program, prints the summary, and writes the reports. Returns the exit status.
static int start(const struct check_options *options, const struct files *files)
{
	struct check_summary summary;
	bool is_done = true;
	struct check_end end;
	int own;

	aw_check_start(&options->launch, options->command, &end);
	if (!end.was_started)
		return end.status;
	if (!aw_check_summary_read(files->reports, &summary)) {
		fprintf(stderr, WHO ": cannot read the reports in %s: %s\n", files->reports,
			strerror(errno));
		return CLI_RUN_FAILED;
	}
	aw_check_summary_print(&summary);
	if (files->json && !aw_check_summary_json(files->reports, files->json)) {
		fprintf(stderr, WHO ": cannot write the file of --json: %s\n", strerror(errno));
		is_done = false;
	}
	if (files->sarif && !aw_check_summary_sarif(files->reports, files->sarif)) {
		fprintf(stderr, WHO ": cannot write the file of --sarif: %s\n", strerror(errno));
		is_done = false;
	}

	// The exit status takes the place of the program's own, which is told then.
	own = WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
	if (WIFSIGNALED(end.status))
		fprintf(stderr, WHO ": the program was ended by signal %d (%s)\n",
			WTERMSIG(end.status), strsignal(WTERMSIG(end.status)));
	if (summary.faults && options->exit_status) {
		if (!WIFSIGNALED(end.status) && own != 0 && own != (int)options->exit_status)
			fprintf(stderr, WHO ": the program's own exit status was %d\n", own);
		own = (int)options->exit_status;
	}
	return is_done ? own : CLI_RUN_FAILED;
}

static int check(int argc, char **argv)
{
	struct check_options options;
	struct files files;
	int status = CLI_RUN_FAILED;
	char dir[PATH_MAX];

	(void)argc;
	if (!aw_check_options_parse(argv, &options))
		return options.launch.helped ? CLI_OK : CLI_RUN_FAILED;
	if (!aw_launch_environment(&options.launch, dir) || !aw_check_options_export(&options))
		return CLI_RUN_FAILED;
	if (!options.launch.keeps_libraries) {
		aw_run_notes(WHO, options.command[0]);
		if (aw_run_needs_device_files() && !aw_paths_export(WHO, dir))
			return CLI_RUN_FAILED;
	}
	if (!aw_check_library_preload(WHO, dir) ||
	    (aw_cli_msan_is_in(options.command[0]) && !aw_cli_msan_export(WHO)))
		return CLI_RUN_FAILED;
	if (options.is_explain) {
		unsetenv(REPORTS_ENV);
		return aw_launch_exec(&options.launch, options.command);
	}
	if (options.is_sweep)
		return aw_cli_sweep(&options.sweep);
	if (files_open(&options, &files))
		status = start(&options, &files);
	files_close(&files);
	return status;
}

const struct cli_command aw_cli_check = {
	.name = "check",
	.run = check,
	.summary = "run an RDMA program, and report how it breaks the rules of verbs",
	.help = "usage: anywarp check [--device anywarp|system] [--rules RULES] [--halt] [--exit-code N]\n"
		"                     [--json FILE] [--sarif FILE] [--suppress FILE] [--explain]\n"
		"                     [--vary SEED] [--like NAME] [--faults PLAN] [--seed N]\n"
		"                     [--sweep] [--jobs N] [--timeout SECONDS] [--verify COMMAND]\n"
		"                     [--each N] [--runs N]\n"
		"                     [--log LEVEL] [--mpa LIST] [--persona NAME] [--device-files]\n"
		"                     [--host-path auto|on|off] [--tls off|offer|require]\n"
		"                     [--tls-rules FILE] [--tls-cert FILE] [--tls-key FILE]\n"
		"                     [--tls-ca FILE] [--tls-name NAME] [--tls-keylog FILE]\n"
		"                     [--tls-records user|kernel] [--tls-host-path on|off]\n"
		"                     [--] PROGRAM [ARGUMENTS]\n"
		"\n"
		"Runs PROGRAM, unmodified, under a sanitizer for verbs: each call that breaks a rule\n"
		"is reported on standard error, with its stack, the earlier call that it conflicts\n"
		"with, the rule and a remedy. At the end there is a summary. The processes that\n"
		"PROGRAM starts are checked as well.\n"
		"\n"
		"  --device anywarp|system  run over anywarp (default), or over the system's\n"
		"                libibverbs and librdmacm, and so on its adapters, siw and rxe\n"
		"  --rules RULES  what to look for: all (default), none, or names with + between,\n"
		"                as in source-changed+leak\n"
		"  --halt        end PROGRAM at the first report\n"
		"  --exit-code N  the exit status where there was a report (default 66); 0 leaves\n"
		"                PROGRAM's own\n"
		"  --json FILE   write the reports as a JSON array\n"
		"  --sarif FILE  write the reports as SARIF 2.1.0, which code hosts show beside a\n"
		"                change\n"
		"  --suppress FILE  do not report what FILE names, one a line: a rule, or RULE:GLOB\n"
		"                for the functions, source files or libraries of the call's stack\n"
		"                that match; # begins a comment\n"
		"  --explain     nothing but the reason, in words, of each call that fails, on\n"
		"                standard error; cheap enough for production\n"
		"  --vary SEED   a device that is hostile within the law: completions and events\n"
		"                come late, early or in batches, as SEED decides, a number\n"
		"  --like NAME   attributes and limits of that adapter: mlx5, irdma, bnxt, efa, siw\n"
		"                or rxe\n"
		"  --faults PLAN  calls, completions, events and connections that fail, as in\n"
		"                ibv_reg_mr:nth=3: anywarp-faults(7) has the grammar\n"
		"  --seed N      the seed of the faults that occur by chance (default 1)\n"
		"  --sweep       run PROGRAM once for each of its calls, which fails in that run, and\n"
		"                print a table of what became of it: crashed, hung, leaked, or ended\n"
		"  --jobs N      how many of these runs at a time (default one for each processor)\n"
		"  --timeout SECONDS  a run that takes longer hangs (default ten times the first run,\n"
		"                10 at least)\n"
		"  --verify COMMAND  fails where the data of a run is wrong\n"
		"  --each N      the first N calls of each function fail (default 8)\n"
		"  --runs N      N runs at most (default 256)\n"
		"  --log LEVEL   the level of the log on standard error: error (default), warn, info\n"
		"                or debug\n"
		"  --mpa LIST    how PROGRAM sets up connections: see 'anywarp help run'\n"
		"  --persona NAME  what the device shows itself as: iwarp (default) or roce\n"
		"  --device-files  for programs that look for the device's files themselves\n"
		"  --host-path auto|on|off  when a connection of this host moves into shared memory\n"
		"  --tls off|offer|require  TLS under MPA: see 'anywarp help run'\n"
		"  --tls-rules FILE  the same for each connection\n"
		"  --tls-cert FILE  this end's certificate\n"
		"  --tls-key FILE  its key\n"
		"  --tls-ca FILE  the certificate of the peers' CA\n"
		"  --tls-name NAME  the name that a peer's certificate must have\n"
		"  --tls-keylog FILE  where the keys of every connection are written\n"
		"  --tls-records user|kernel  who makes the records\n"
		"  --tls-host-path on|off  whether --host-path holds under TLS\n"
		"\n"
		"The exit status is 66, or that of --exit-code, if a rule was broken; a risk does not\n"
		"count. Otherwise it is PROGRAM's, or 128 and the number of the signal that ended it;\n"
		"127 when there is no such program, 126 when it cannot be executed, 125 when anywarp\n"
		"itself failed. That of --sweep is 1 if a run crashed, hung, or ended with success\n"
		"though --verify fails.\n"
		"\n"
		"  anywarp check -- ./server\n"
		"  anywarp check --rules leak+cq-small --sarif check.sarif -- ./client 192.0.2.7\n"
		"  anywarp check --explain -- ./server\n"
		"  anywarp check --sweep --timeout 5 -- ./test.sh\n",
};
