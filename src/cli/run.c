// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp run: an RDMA program on our libraries.
#include "check/base/settings.h"
#include "cli/check_library.h"
#include "cli/cli.h"
#include "cli/faults.h"
#include "cli/launch.h"
#include "cli/msan.h"
#include "cli/paths.h"
#include "cli/run_notes.h"
#include "cli/run_options.h"
#include "cli/tls_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool device_files; // the program gets device files, by the option

/* In the roce persona, programs that look for device files find no device without them. */
bool aw_run_needs_device_files(void)
{
	const char *persona = getenv("ANYWARP_PERSONA");

	return device_files || (persona && !strcmp(persona, "roce"));
}

enum launch_option aw_run_option(struct launch *launch, char ***arg)
{
	const char *value;

	if (!strcmp(**arg, "--device-files")) {
		device_files = true;
		return LAUNCH_TAKEN;
	}
	if (aw_launch_value(arg, "--persona", &value))
		return aw_launch_setting(launch->who, "--persona", AW_SETTING_PERSONA, value);
	if (aw_launch_value(arg, "--host-path", &value))
		return aw_launch_setting(launch->who, "--host-path", AW_SETTING_HOST_PATH, value);
	enum launch_option tls = aw_tls_option(launch, arg);

	return tls == LAUNCH_OTHER ? aw_launch_option(launch, arg) : tls;
}

// The values of --faults and --seed; NULL: not given.
struct faults {
	const char *plan, *seed;
};

// command becomes the words behind the options, ended by NULL.
static bool parse(char **argv, struct launch *launch, struct faults *faults, char ***command)
{
	char **arg = argv + 1;

	for (; *arg && **arg == '-'; arg++) {
		enum launch_option option;
		const char *value;

		if (!strcmp(*arg, "--")) {
			arg++;
			break;
		}
		if (aw_launch_value(&arg, "--faults", &value)) {
			faults->plan = value ? value : "";
			continue;
		}
		if (aw_launch_value(&arg, "--seed", &value)) {
			faults->seed = value ? value : "";
			continue;
		}
		option = aw_run_option(launch, &arg);
		if (option == LAUNCH_OTHER)
			launch->helped = aw_cli_help_asked(&aw_cli_run, *arg);
		if (option == LAUNCH_OTHER && !launch->helped)
			fprintf(stderr,
				"anywarp run: unknown option '%s': see 'anywarp help run'\n", *arg);
		if (option != LAUNCH_TAKEN)
			return false;
	}
	*command = arg;
	return true;
}

// The library, where the program needs it, checks nothing: it has calls fail, or tells MemorySanitizer what they give.
static bool preload_checker(const struct launch *launch, const struct faults *faults,
			    const char *dir, const char *program)
{
	bool is_msan = aw_cli_msan_is_in(program);

	if (!faults->plan && faults->seed) {
		fprintf(stderr,
			"%s: --seed has an effect with --faults alone: add --faults PLAN, or leave --seed out\n",
			launch->who);
		return false;
	}
	if (!faults->plan && !is_msan)
		return true;
	if (faults->plan && !aw_cli_faults(launch->who, faults->plan, faults->seed, true))
		return false;
	if (is_msan && !aw_cli_msan_export(launch->who))
		return false;
	if (setenv(AW_CHECK_ENV, "rules=none,explain=off", 1) != 0) {
		fprintf(stderr, "%s: cannot set the environment: out of memory\n", launch->who);
		return false;
	}
	return aw_check_library_preload(launch->who, dir);
}

static int run(int argc, char **argv)
{
	struct launch launch = { .who = "anywarp run" };
	struct faults faults = { NULL, NULL };
	char dir[PATH_MAX];
	char **command;

	(void)argc;
	if (!parse(argv, &launch, &faults, &command))
		return launch.helped ? CLI_OK : CLI_RUN_FAILED;
	if (!*command) {
		fprintf(stderr, "anywarp run: no program to run: for example "
				"'anywarp run -- rping -s -v'\n");
		return CLI_RUN_FAILED;
	}
	if (!aw_launch_environment(&launch, dir) ||
	    (aw_run_needs_device_files() && !aw_paths_export(launch.who, dir)))
		return CLI_RUN_FAILED;
	if (!preload_checker(&launch, &faults, dir, *command))
		return CLI_RUN_FAILED;
	aw_run_notes(launch.who, *command);
	return aw_launch_exec(&launch, command);
}

const struct cli_command aw_cli_run = {
	.name = "run",
	.run = run,
	.summary = "run an RDMA program over anywarp",
	.help = "usage: anywarp run [--log LEVEL] [--mpa LIST] [--persona NAME] [--device-files]\n"
		"                   [--host-path auto|on|off] [--faults PLAN] [--seed N]\n"
		"                   [--tls off|offer|require] [--tls-rules FILE]\n"
		"                   [--tls-cert FILE] [--tls-key FILE] [--tls-ca FILE]\n"
		"                   [--tls-name NAME] [--tls-keylog FILE]\n"
		"                   [--tls-records user|kernel] [--tls-host-path on|off]\n"
		"                   [--] PROGRAM [ARGUMENTS]\n"
		"\n"
		"Runs PROGRAM, unmodified, with anywarp's libibverbs.so.1 and librdmacm.so.1 in\n"
		"place of the system's. That is all it does: LD_LIBRARY_PATH set by hand works as\n"
		"well. The other end may be anywarp or any other iWARP.\n"
		"\n"
		"  --log LEVEL   the level of the log on standard error: error (default), warn, info\n"
		"                or debug\n"
		"  --device-files  for programs that look for the device under /dev/infiniband or\n"
		"                /sys/class/infiniband themselves (UCX, and MPI over it): leads them\n"
		"                to files in a directory of yours; always so with --persona roce\n"
		"  --persona NAME  what the device shows itself as: iwarp (default), connected by\n"
		"                rdma_cm alone; or roce, for programs that exchange QP numbers and\n"
		"                GIDs themselves, which need it at both ends\n"
		"  --host-path auto|on|off  when a connection between two programs of this host\n"
		"                and user moves from TCP into shared memory: after some messages\n"
		"                (auto, the default), at once, or never; off at either end keeps\n"
		"                it on TCP; --log info names the path of each connection\n"
		"  --tls off|offer|require  no connection without TLS 1.3 under MPA, in which both\n"
		"                ends prove who they are (require), or none with it (off, the\n"
		"                default), or TLS with peers that have it (offer); what TLS cannot\n"
		"                protect is refused where it is required: docs/tls.md\n"
		"  --tls-rules FILE  the same for each connection, one rule a line, of which the\n"
		"                first that matches decides; --tls for what none matches:\n"
		"                  off|offer|require [local=ADDR[/LEN]] [remote=ADDR[/LEN]]\n"
		"                    [port=N|N-M] [name=NAME[,NAME...]] [listen|connect]\n"
		"  --tls-cert FILE  this end's certificate, with those between it and the CA (PEM)\n"
		"  --tls-key FILE  its key (PEM, without a passphrase)\n"
		"  --tls-ca FILE  the certificate of the CA that has issued the peers' (PEM)\n"
		"  --tls-name NAME  the name that a peer's certificate must have, in either\n"
		"                direction; without it, a peer to which PROGRAM connects must have\n"
		"                the address, and any of the CA's may connect to PROGRAM\n"
		"  --tls-keylog FILE  write the keys of every connection to FILE, with which\n"
		"                Wireshark reads a capture: for a search for a fault alone\n"
		"  --tls-records user|kernel  who encrypts: the library (default), or where it\n"
		"                can the kernel, whose adapter may have it: docs/tls.md\n"
		"  --tls-host-path on|off  whether --host-path holds under TLS as well, for ends\n"
		"                that have proven who they are (default on); off at either end\n"
		"                keeps connections with TLS on TCP\n"
		"  --mpa LIST    how PROGRAM sets up connections, as initiator and as responder: a\n"
		"                list of key=value with commas between, as in markers=on,crc=off:\n"
		"                  markers=on|off     ask the peer for markers (default off)\n"
		"                  crc=on|off         ask for CRCs (default on); they are off\n"
		"                                     only if neither end asks for them\n"
		"                  revision=1|2       the highest MPA revision (default 2)\n"
		"                  p2p=on|off         as initiator, ask for peer-to-peer set-up\n"
		"                                     (default on)\n"
		"                  rtr=send+write+read  the ready-to-receive messages to use, one\n"
		"                                     or more of them (default all)\n"
		"                  extensions=on|off  offer atomics, immediate data, atomic writes\n"
		"                                     and flushes to an anywarp peer (default on)\n"
		"                  ird_ord=auto|ulp   agree on IRD and ORD, or leave them to the\n"
		"                                     programs (default auto)\n"
		"                  large_fpdus=on|off|any  send FPDUs longer than a TCP segment\n"
		"                                     to anywarp peers (default on), to none,\n"
		"                                     or to any peer\n"
		"  --faults PLAN  calls, completions, events and connections that fail, as in\n"
		"                ibv_reg_mr:nth=3: anywarp-faults(7) has the grammar\n"
		"  --seed N      the seed of the faults that occur by chance (default 1)\n"
		"\n"
		"The exit status is PROGRAM's; 127 when there is no such program, 126 when it\n"
		"cannot be executed, 125 when anywarp itself failed.\n"
		"\n"
		"  anywarp run -- rping -s -v\n"
		"  anywarp run --log info -- ib_write_bw -R 192.0.2.7\n"
		"  anywarp run --persona roce -- ibv_rc_pingpong -g 0 192.0.2.7\n"
		"  anywarp run --tls require --tls-cert a.pem --tls-key a.key --tls-ca ca.pem -- ./a\n"
		"  anywarp run --faults ibv_reg_mr:nth=3 -- ./client\n",
};
