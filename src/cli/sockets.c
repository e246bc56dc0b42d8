// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp sockets: runs an unmodified sockets program with libanywarp-sockets.so preloaded, by
// rules that are checked before it starts.
#include "cli/sockets.h"

#include "base/setting.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/tls_options.h"
#include "xsock/base/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sockets_options {
	struct launch launch;
	struct sockets_rules rules;
	bool check;
	bool status;
	const char *pid; // the process that status is of, or NULL: all
	char **command; // empty when none was given
};

static bool need(const char *name, const char *what, const char *value)
{
	if (value)
		return true;
	fprintf(stderr, SOCKETS_WHO ": %s needs %s\n", name, what);
	return false;
}

static bool parse_option(char ***arg, struct sockets_options *options)
{
	enum launch_option common = aw_tls_option(&options->launch, arg);
	const char *value;

	if (common == LAUNCH_OTHER)
		common = aw_launch_option(&options->launch, arg);
	if (common != LAUNCH_OTHER)
		return common == LAUNCH_TAKEN;
	if (aw_launch_value(arg, "--rules", &value))
		return need("--rules", "a file", value) &&
		       aw_sockets_rules_read(&options->rules, value);
	if (aw_launch_value(arg, "--rule", &value))
		return need("--rule", "a rule, for example 'on port=5201'", value) &&
		       aw_sockets_rules_add(&options->rules, "--rule", value);
	if (aw_launch_value(arg, "--record", &value))
		return aw_launch_setting(SOCKETS_WHO, "--record", AW_SETTING_RECORD, value) ==
		       LAUNCH_TAKEN;
	if (aw_launch_value(arg, "--status", &options->pid)) {
		options->status = true;
		if ((*arg)[1])
			fprintf(stderr,
				SOCKETS_WHO
				": --status takes one PID and nothing behind it, not '%s'\n",
				(*arg)[1]);
		return !(*arg)[1];
	}
	if (!strcmp(**arg, "--check")) {
		options->check = true;
		return true;
	}
	options->launch.helped = aw_cli_help_asked(&aw_cli_sockets, **arg);
	if (!options->launch.helped)
		fprintf(stderr, SOCKETS_WHO ": unknown option '%s': see 'anywarp help sockets'\n",
			**arg);
	return false;
}

static bool parse(char **argv, struct sockets_options *options)
{
	char **arg = argv + 1;

	for (; *arg && **arg == '-'; arg++) {
		if (!strcmp(*arg, "--")) {
			arg++;
			break;
		}
		if (!parse_option(&arg, options))
			return false;
	}
	options->command = arg;
	return true;
}

static int check(const struct sockets_rules *rules)
{
	if (rules->len)
		fputs(rules->text, stdout);
	else
		puts("# no rules: every socket is in auto");
	return CLI_OK;
}

bool aw_sockets_library_in(const char *dir)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/" SOCKETS_LIB, dir);

	return len > 0 && (size_t)len < sizeof(path) && access(path, R_OK) == 0;
}

static bool set_environment(const struct sockets_options *options)
{
	char dir[PATH_MAX];

	if (!aw_launch_environment(&options->launch, dir))
		return false;
	if (!aw_sockets_library_in(dir)) {
		fprintf(stderr,
			SOCKETS_WHO ": no " SOCKETS_LIB " in %s: build it ('./dev build') or "
				    "install anywarp again\n",
			dir);
		return false;
	}
	if (!aw_launch_preload(SOCKETS_WHO, dir, SOCKETS_LIB))
		return false;
	if (!options->rules.text || setenv(AW_XS_RULES_ENV, options->rules.text, 1) == 0)
		return true;
	fprintf(stderr, SOCKETS_WHO ": cannot set the environment: out of memory\n");
	return false;
}

// The library would refuse the program, too, but only once it has begun.
static bool check_record(void)
{
	unsigned long word = 0; // its index: on, off, tls

	if (aw_tls_options_required() ||
	    aw_setting_parse(AW_SETTING_RECORD, getenv(aw_setting_name(AW_SETTING_RECORD)),
			     &word) != AW_SETTING_RIGHT ||
	    word != 2)
		return true;
	fprintf(stderr,
		SOCKETS_WHO ": --record tls (ANYWARP_SOCKETS_RECORD) needs --tls require\n");
	return false;
}

static int do_as_told(struct sockets_options *options)
{
	const char *text = getenv(AW_XS_RULES_ENV), *program = *options->command, *why;

	if (options->status)
		return aw_sockets_status(options->pid);
	// With no rule on the command line, the environment's rules hold, and have to be right, too.
	if (!options->rules.text && text &&
	    !aw_sockets_rules_add(&options->rules, AW_XS_RULES_ENV, text))
		return CLI_USAGE;
	if (options->check)
		return check(&options->rules);
	if (!aw_tls_options_are_whole(SOCKETS_WHO) || !check_record())
		return CLI_USAGE;
	if (aw_tls_options_required() ? !aw_sockets_rules_are_protected(&options->rules)
				      : aw_sockets_rules_need_tls(&options->rules))
		return CLI_USAGE;
	if (!program) {
		fprintf(stderr, SOCKETS_WHO ": no program to run: for example "
					    "'anywarp sockets -- iperf3 -s'\n");
		return CLI_USAGE;
	}
	// A program is refused whose sockets would be plain TCP where a rule or TLS says that they are never so.
	why = aw_sockets_rules_may_iwarp(&options->rules, program) ? aw_sockets_unseen(program)
								   : NULL;
	if (why) {
		const char *slash = strrchr(program, '/');

		fprintf(stderr,
			SOCKETS_WHO ": %s, and the sockets of '%s' would be plain TCP: %s: leave "
				    "them to TCP by --rule 'off program=%s' before the others\n",
			aw_tls_options_required() ? "TLS is required" : "a rule says 'on'", program,
			why, slash ? slash + 1 : program);
		return CLI_USAGE;
	}
	if (!set_environment(options))
		return CLI_RUN_FAILED;
	return aw_launch_exec(&options->launch, options->command);
}

static int sockets(int argc, char **argv)
{
	struct sockets_options options = { .launch = { .who = SOCKETS_WHO } };
	int status;

	(void)argc;
	if (parse(argv, &options))
		status = do_as_told(&options);
	else
		status = options.launch.helped ? CLI_OK : CLI_USAGE;
	free(options.rules.text);
	return status;
}

const struct cli_command aw_cli_sockets = {
	.name = "sockets",
	.run = sockets,
	.summary = "run a sockets program over anywarp",
	.help = "usage: anywarp sockets [--rules FILE] [--rule TEXT]... [--log LEVEL] [--mpa LIST]\n"
		"                       [--tls off|require] [--tls-cert FILE] [--tls-key FILE]\n"
		"                       [--tls-ca FILE] [--tls-name NAME] [--tls-keylog FILE]\n"
		"                       [--record on|off|tls] [--] PROGRAM [ARGUMENTS]\n"
		"       anywarp sockets --check [--rules FILE] [--rule TEXT]...\n"
		"       anywarp sockets --status [PID]\n"
		"\n"
		"Runs PROGRAM, unmodified, so that its TCP connections become iWARP where a rule says\n"
		"'on' at both ends; a peer that does not speak iWARP is an error. Without rules every\n"
		"socket is in mode 'auto': two programs of one host and user are connected by AF_UNIX\n"
		"sockets, which are faster, and all other connections stay TCP.\n"
		"\n"
		"  --rule TEXT   a rule; may be given again, and so may --rules. Order counts: the\n"
		"                first rule that matches a socket decides, and with none it is off:\n"
		"                  on|auto|off|rsockets|tls-plain [program=GLOB] [local=ADDR[/LEN]]\n"
		"                  [remote=ADDR[/LEN]] [port=N|N-M] [client=any] [listen|connect]\n"
		"                port is the listener's, at either end; rsockets is 'on' towards\n"
		"                servers with rdma-core's rsockets, as over an adapter; tls-plain is\n"
		"                TLS 1.3 without iWARP, towards any program of TLS (client=any: it\n"
		"                needs no certificate to connect)\n"
		"  --rules FILE  a file of rules, one a line; '#' begins a comment\n"
		"  --check       print the rules as they are understood, and run nothing\n"
		"  --status PID  print which fds of that process are iWARP, ends of pairs or plain\n"
		"                TCP, and why; without PID, of all processes of this user, or as\n"
		"                root of all\n"
		"  --log LEVEL   the level of the log on standard error: error (default), warn, info\n"
		"                or debug\n"
		"  --mpa LIST    how connections are set up; see 'anywarp help run'. With a list the\n"
		"                proxy process carries every iWARP connection, which is slower\n"
		"  --record on|off|tls  whether iWARP stays on PROGRAM's own TCP sockets: on\n"
		"                (default), without TLS; tls, with --tls require, which makes small\n"
		"                messages many times as fast, and which servers need before their\n"
		"                clients; off, never, but through the proxy process: docs/tls.md\n"
		"  --tls off|require  no TCP connection without TLS 1.3 under MPA, in which both ends\n"
		"                show a certificate, but for those that a rule has off; without rules\n"
		"                that is every connection. The proxy process carries them, unless\n"
		"                --record says tls, and no rule may say 'auto': docs/tls.md\n"
		"  --tls-cert FILE  this end's certificate, with those between it and the CA (PEM)\n"
		"  --tls-key FILE  its key (PEM, without a passphrase)\n"
		"  --tls-ca FILE  the certificate of the CA that has issued the peers' (PEM)\n"
		"  --tls-name NAME  the name that a peer's certificate must have; see\n"
		"                'anywarp help run'\n"
		"  --tls-keylog FILE  write the keys of every connection to FILE, likewise\n"
		"\n"
		"The exit status is PROGRAM's; 2 for wrong usage or a wrong rule, which is named\n"
		"with its line; 127 when there is no such program, 126 when it cannot be executed,\n"
		"125 when anywarp itself failed.\n"
		"\n"
		"  anywarp sockets --rule 'on port=5201' -- iperf3 -s\n"
		"  anywarp sockets --rule 'on port=5201' -- iperf3 -c 192.0.2.7\n"
		"  anywarp sockets --tls require --tls-cert a.pem --tls-key a.key --tls-ca ca.pem\n"
		"      -- redis-server\n",
};
