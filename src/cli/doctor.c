// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp doctor: reports what works on this machine, what does not, and the remedy. It changes
// nothing and talks to no other machine.
#include "cli/doctor.h"

#include "base/array.h"
#include "base/slice.h"
#include "cli/cli.h"
#include "cli/environment.h"
#include "cli/finding.h"
#include "cli/sockets.h"
#include "net/base/policy.h"
#include "xsock/base/rules.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_FLAG "--probe"

// LD_LIBRARY_PATH is read when a program starts, so the libraries are tried in a new process.
static void exec_probe(const char *dir)
{
	if (aw_libdir_export(dir))
		execl("/proc/self/exe", "anywarp", "doctor", PROBE_FLAG, dir, (char *)NULL);
	aw_finding_print(FINDING_FAIL, "libraries", "check that /proc is mounted",
			 "cannot start a process to try them: %s", strerror(errno));
	_exit(CLI_FAILED);
}

static bool probe_in_child(const char *dir)
{
	int status;
	pid_t child = fork();

	if (child < 0) {
		aw_finding_print(FINDING_FAIL, "libraries", "raise the process limit (ulimit -u)",
				 "cannot fork: %s", strerror(errno));
		return false;
	}
	if (child == 0)
		exec_probe(dir);
	if (waitpid(child, &status, 0) != child)
		return false;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		aw_finding_print(FINDING_FAIL, "connection", "check the firewall of loopback",
				 "two ends did not connect over loopback in time");
	else if (WIFSIGNALED(status))
		aw_finding_print(FINDING_FAIL, "libraries", "report it as a bug",
				 "the process that tried them died of signal %d", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool check_libraries(void)
{
	char dir[PATH_MAX];

	if (!aw_libdir_find(dir)) {
		aw_finding_print(FINDING_FAIL, "libraries", aw_libdir_remedy(),
				 CLI_VERBS_LIB " and " CLI_RDMACM_LIB " are not in %s", dir);
		return false;
	}
	return probe_in_child(dir);
}

static bool is_ours(const char *file)
{
	char dir[PATH_MAX], ours[PATH_MAX], real[PATH_MAX];
	size_t len;

	if (!realpath(file, real) || !aw_libdir_find(dir) || !realpath(dir, ours))
		return false;
	len = strlen(ours);
	return !strncmp(real, ours, len) && real[len] == '/';
}

static bool preloads_another(const char *preload)
{
	char file[PATH_MAX];

	while (*preload) {
		size_t len = strcspn(preload, " :");

		snprintf(file, sizeof(file), "%.*s", (int)len, preload);
		if ((strstr(file, "libibverbs") || strstr(file, "librdmacm")) && !is_ours(file))
			return true;
		preload += len;
		preload += *preload != '\0';
	}
	return false;
}

// The loader finds a preloaded library before any in LD_LIBRARY_PATH. Ours stands there where a program brings its own.
static void check_preload(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (preload && preloads_another(preload))
		aw_finding_print(FINDING_FAIL, "environment", "unset LD_PRELOAD",
				 "LD_PRELOAD puts another library before anywarp's: %s", preload);
	else
		aw_finding_print(FINDING_OK, "environment", NULL,
				 "nothing is preloaded before anywarp's libraries");
}

// A misspelt variable has no effect, and only this check reports it.
static void check_names(void)
{
	size_t len;
	const char *name = aw_environment_unknown(&len);

	if (name)
		aw_finding_print(FINDING_WARN, "environment",
				 "correct or unset it; 'anywarp help environment' lists them",
				 "%.*s is no variable of anywarp", (int)len, name);
}

// The sockets library logs a wrong value, and goes on as if it were unset.
static void check_sockets_values(void)
{
	static const char *const words[] = { "on", "off" };
	const char *record = getenv("ANYWARP_SOCKETS_RECORD");
	const char *pair = getenv("ANYWARP_SOCKETS_PAIR_MS");
	unsigned long number;
	size_t found;

	if (record && *record &&
	    !aw_slice_find(aw_slice_of(record), words, ARRAY_LEN(words), &found))
		aw_finding_print(FINDING_WARN, "sockets", "set it to on or off, or unset it",
				 "ANYWARP_SOCKETS_RECORD is '%s', and has no effect", record);
	if (pair && *pair && !aw_slice_number(aw_slice_of(pair), 60000, &number))
		aw_finding_print(FINDING_WARN, "sockets",
				 "set it to a number from 0 to 60000, or unset it",
				 "ANYWARP_SOCKETS_PAIR_MS is '%s', and has no effect", pair);
}

// Prints the policy only when it is not the default.
static void check_policy(void)
{
	const char *list = getenv(AW_POLICY_ENV);
	char text[AW_POLICY_TEXT_MAX];
	char why[AW_POLICY_WHY_MAX];
	struct aw_policy policy;

	if (!aw_policy_parse(list, &policy, why)) {
		aw_finding_print(FINDING_FAIL, "MPA policy", "correct or unset " AW_POLICY_ENV,
				 AW_POLICY_ENV ": %s", why);
		return;
	}
	if (aw_policy_is_default(&policy))
		return;
	aw_policy_print(&policy, text);
	aw_finding_print(FINDING_OK, "MPA policy", NULL, "by " AW_POLICY_ENV ": %s", text);
}

// RDMA programs run without the sockets library, so its absence is only a warning.
static void check_sockets(void)
{
	const char *text = getenv(AW_XS_RULES_ENV);
	char why[AW_XS_RULES_WHY_MAX], dir[PATH_MAX];
	struct aw_xs_rules *rules;
	int line = aw_xs_rules_parse(text, &rules, why, sizeof(why));

	if (line) {
		aw_finding_print(FINDING_FAIL, "sockets rules", "correct or unset " AW_XS_RULES_ENV,
				 AW_XS_RULES_ENV ":%d: %s", line, why);
		return;
	}
	aw_xs_rules_destroy(rules);
	if (!aw_libdir_find(dir))
		return; /* check_libraries reports it */
	if (!aw_sockets_library_in(dir))
		aw_finding_print(FINDING_WARN, "sockets", "build it ('./dev build')",
				 "no " SOCKETS_LIB " in %s: no sockets programs over anywarp", dir);
	else
		aw_finding_print(FINDING_OK, "sockets", NULL,
				 "sockets programs: anywarp sockets -- PROGRAM%s",
				 text ? ", by the rules in " AW_XS_RULES_ENV : "");
}

static int doctor(int argc, char **argv)
{
	bool libraries_work;

	if (argc == 3 && !strcmp(argv[1], PROBE_FLAG))
		return aw_doctor_probe(argv[2]);
	if (argc > 1) {
		fprintf(stderr, "anywarp doctor: unknown argument '%s': it takes none\n", argv[1]);
		return CLI_USAGE;
	}
	check_preload();
	check_names();
	check_policy();
	aw_doctor_persona();
	aw_doctor_host();
	libraries_work = check_libraries();
	aw_doctor_device_files();
	check_sockets_values();
	check_sockets();
	aw_doctor_module();
	aw_doctor_system();
	if (!libraries_work || aw_finding_any_failed()) {
		puts("\nRDMA programs do not run over anywarp here; see the lines with 'fail'.");
		return CLI_FAILED;
	}
	puts("\nRDMA programs run over anywarp here: anywarp run -- PROGRAM");
	return CLI_OK;
}

const struct cli_command aw_cli_doctor = {
	.name = "doctor",
	.run = doctor,
	.summary = "report what works on this machine, what does not, and why",
	.help = "usage: anywarp doctor\n"
		"\n"
		"Tries what an RDMA program needs of anywarp on this machine: the libraries, the\n"
		"device, its persona, files and addresses, a connection over loopback, the limits.\n"
		"Reports on the kernel module, too, which such programs do not need.\n"
		"Each line begins with 'ok', with 'warn' (it works, but slower or not all of it), or\n"
		"with 'fail', and names a remedy.\n"
		"\n"
		"The exit status is 0 when RDMA programs run here, 1 when they do not.\n",
};
