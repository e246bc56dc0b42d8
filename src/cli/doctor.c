// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp doctor: reports what works on this machine, what does not, and the remedy. It changes
// nothing and talks to no other machine.
#include "cli/doctor.h"

#include "cli/cli.h"
#include "cli/finding.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_FLAG "--probe"

static bool probe_in_child(const char *dir, const char *part)
{
	int status;
	pid_t child = fork();

	if (child < 0) {
		aw_finding_print(FINDING_FAIL, part, "raise the process limit (ulimit -u)",
				 "cannot fork: %s", strerror(errno));
		return false;
	}
	if (child == 0) {
		// LD_LIBRARY_PATH is read when a program starts, so the libraries are tried in new processes.
		if (aw_libdir_export(dir))
			execl("/proc/self/exe", "anywarp", "doctor", PROBE_FLAG, dir, part,
			      aw_finding_is_json() ? "--json" : (char *)NULL, (char *)NULL);
		aw_finding_print(FINDING_FAIL, "libraries", "check that /proc is mounted",
				 "cannot start a process to try them: %s", strerror(errno));
		_exit(CLI_FAILED);
	}
	if (waitpid(child, &status, 0) != child)
		return false;
	if (WIFSIGNALED(status)) {
		int number = WTERMSIG(status);

		if (number == SIGALRM)
			aw_finding_print(FINDING_FAIL, part, "check the firewall of loopback",
					 "two ends did not connect over loopback in time");
		else
			aw_finding_print(FINDING_FAIL, part, "report it as a bug",
					 "the process that tried this died of signal %d", number);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int doctor(int argc, char **argv)
{
	char dir[PATH_MAX];
	bool runs = false;

	if (argc >= 4 && !strcmp(argv[1], PROBE_FLAG)) {
		if (argv[4] && !strcmp(argv[4], "--json"))
			aw_finding_json(false);
		return aw_doctor_probe(argv[2], argv[3]);
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") != 0) {
			fprintf(stderr,
				"anywarp doctor: unknown argument '%s': see 'anywarp help doctor'\n",
				argv[i]);
			return CLI_USAGE;
		}
	}
	if (argc > 1)
		aw_finding_json(true);
	aw_doctor_environment();
	aw_doctor_persona();
	aw_doctor_host();
	aw_doctor_tls();
	if (aw_libdir_find(dir))
		runs = probe_in_child(dir, DOCTOR_LIBRARIES) &&
		       probe_in_child(dir, DOCTOR_CONNECTION);
	else
		aw_finding_print(FINDING_FAIL, "libraries", aw_libdir_remedy(),
				 CLI_VERBS_LIB " and " CLI_RDMACM_LIB " are not in %s", dir);
	aw_doctor_device_files();
	aw_doctor_sockets();
	aw_doctor_module();
	aw_doctor_system();
	runs = runs && !aw_finding_any_failed();
	aw_finding_end(runs);
	return runs ? CLI_OK : CLI_FAILED;
}

const struct cli_command aw_cli_doctor = {
	.name = "doctor",
	.run = doctor,
	.summary = "report what works on this machine, what does not, and why",
	.help = "usage: anywarp doctor [--json]\n"
		"\n"
		"Tries what an RDMA program needs of anywarp on this machine: the libraries, the\n"
		"device, its persona, files and addresses, a connection over loopback, the limits.\n"
		"Reports on the kernel module, too, which such programs do not need.\n"
		"Each line begins with 'ok', with 'warn' (it works, but slower or not all of it), or\n"
		"with 'fail', and names a remedy.\n"
		"\n"
		"  --json        print one JSON object, on one line\n"
		"\n"
		"The exit status is 0 when RDMA programs run here, 1 when they do not.\n",
};
