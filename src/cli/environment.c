// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of the variables. tests/system/test_cli_environment.py compares it with every getenv in src/ and with
// the manual pages.
#include "cli/environment.h"

#include "base/array.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERBS "libibverbs.so.1, librdmacm.so.1"
#define SOCKETS "libanywarp-sockets.so"
#define CHECK "libanywarp-check.so"
#define PREFIX "ANYWARP_"
#define NAME_LEN_MAX 32 // of the longest name
#define TYPOS_MAX 2 // characters by which a name is taken for a mistyped one

struct variable {
	const char *name;
	const char *values; // the default first, in parentheses where it is the variable's absence
	const char *readers;
	const char *meaning;
};

// For users.
static const struct variable settings[] = {
	{ "ANYWARP_LOG", "error|warn|info|debug", VERBS ", " SOCKETS ", the proxy process",
	  "the level of the log on standard error; the proxy process logs only where it is set" },
	{ "ANYWARP_MPA", "(the defaults)|LIST",
	  VERBS ", " SOCKETS ", anywarp run, anywarp sockets, anywarp doctor",
	  "how connections are set up: 'anywarp help run' lists the settings" },
	{ "ANYWARP_PERSONA", "iwarp|roce", VERBS ", anywarp run, anywarp sockets, anywarp doctor",
	  "what the device is: an iWARP adapter, or one whose QPs ibv_modify_qp connects" },
	{ "ANYWARP_HOST_PATH", "auto|on|off",
	  VERBS ", anywarp run, anywarp sockets, anywarp doctor",
	  "when two programs of this host and one user share memory in place of TCP: after some messages, at once, or never" },
	{ "ANYWARP_TLS", "off|require|offer",
	  VERBS ", " SOCKETS ", anywarp run, anywarp sockets, anywarp doctor",
	  "require: no connection without TLS under MPA, with certificates at both ends; offer: TLS with peers that have it: docs/tls.md" },
	{ "ANYWARP_TLS_RULES", "(none)|FILE",
	  VERBS ", " SOCKETS ", anywarp run, anywarp sockets, anywarp doctor",
	  "rules by address and port for connections that are to have TLS, and the peers that are let in" },
	{ "ANYWARP_TLS_RECORDS", "user|kernel", VERBS ", anywarp run, anywarp doctor",
	  "who makes the records of TLS: the library, or where it can the kernel: docs/tls.md" },
	{ "ANYWARP_TLS_HOST_PATH", "on|off", VERBS ", anywarp run, anywarp doctor",
	  "whether two programs of this host share memory under TLS, once they have proven who they are: docs/tls.md" },
	{ "ANYWARP_TLS_CERT", "(none)|FILE",
	  VERBS ", " SOCKETS ", anywarp run, anywarp sockets, anywarp doctor",
	  "this end's certificate, with those between it and the CA (PEM)" },
	{ "ANYWARP_TLS_KEY", "(none)|FILE",
	  VERBS ", " SOCKETS ", anywarp run, anywarp sockets, anywarp doctor",
	  "its key (PEM, without a passphrase)" },
	{ "ANYWARP_TLS_CA", "(none)|FILE",
	  VERBS ", " SOCKETS ", anywarp run, anywarp sockets, anywarp doctor",
	  "the certificate of the CA that has issued the peers' (PEM)" },
	{ "ANYWARP_TLS_NAME", "(none)|NAME",
	  VERBS ", " SOCKETS ", anywarp run, anywarp sockets, anywarp doctor",
	  "the name that a peer's certificate must have; without it, one that is connected to must have the address" },
	{ "ANYWARP_TLS_KEYLOG", "(none)|FILE", VERBS ", anywarp run, anywarp doctor",
	  "where the keys of every connection are written, so that a capture can be read" },
	{ "ANYWARP_VARY", "(off)|0-4294967295", VERBS,
	  "the seed of a device that does what an adapter may do and programs forget: docs/vary.md" },
	{ "ANYWARP_CHECK", "(all rules)|LIST", CHECK,
	  "what the library checks and how, as anywarp check sets it: anywarp-check(1) has the keys" },
	{ "ANYWARP_FAULTS", "(none)|PLAN", CHECK ", anywarp run, anywarp check",
	  "the calls, completions, events and connections that fail: anywarp-faults(7) has the grammar" },
	{ "ANYWARP_FAULTS_SEED", "1|NUMBER", CHECK, "the seed of the faults that occur by chance" },
	{ "ANYWARP_SOCKETS_RULES", "(auto)|RULES", SOCKETS ", anywarp sockets, anywarp doctor",
	  "which sockets become iWARP, one rule a line: 'anywarp help sockets' has the grammar" },
	{ "ANYWARP_SOCKETS_RECORD", "on|off|tls", SOCKETS ", anywarp sockets, anywarp doctor",
	  "a connection in mode on between two ends of anywarp stays on the program's own TCP socket; under TLS with tls alone" },
	{ "ANYWARP_SOCKETS_PAIR_MS", "10|0-60000", SOCKETS ", anywarp doctor",
	  "how many milliseconds connect waits in mode auto for the accept of a server of this host, without which it stays TCP" },
};

// Of other programs and of the C library, and what anywarp sets for itself.
static const struct variable others[] = {
	{ "LD_LIBRARY_PATH", "(none)|DIRECTORIES",
	  "ld.so; set by anywarp run, anywarp check, anywarp sockets",
	  "anywarp's directory goes before the others" },
	{ "LD_PRELOAD", "(none)|LIBRARIES",
	  "ld.so; set by anywarp run, anywarp check, anywarp sockets",
	  "anywarp's library goes before the others, but behind a sanitizer's" },
	{ "PATH", "(the system's)|DIRECTORIES", "anywarp run, anywarp sockets, " SOCKETS,
	  "where programs are found" },
	{ "TMPDIR", "/tmp|DIRECTORY", "anywarp check",
	  "where the files of the runs of anywarp check --sweep are" },
	{ "XDG_RUNTIME_DIR", "(/tmp)|DIRECTORY",
	  "anywarp run, anywarp sockets, " SOCKETS ", the proxy process",
	  "where a user's directory of sockets, or of device files, is" },
	{ "SYSFS_PATH", "/sys|DIRECTORY", "libibverbs.so.1",
	  "what ibv_get_sysfs_path returns, as with rdma-core" },
	{ "ASAN_OPTIONS", "(none)|OPTIONS",
	  "AddressSanitizer; set by anywarp run, anywarp check, anywarp sockets",
	  "with a preloaded library its runtime need not be the first: verify_asan_link_order=0, unless the option is there" },
	{ "MSAN_OPTIONS", "(none)|OPTIONS", "MemorySanitizer; set by anywarp run, anywarp check",
	  "for a program that was compiled with it; what the user has set goes behind" },
	{ "ANYWARP_RUNTIME", "(none)|LIBRARY", SOCKETS ", " CHECK ", libanywarp-paths.so",
	  "set by anywarp run, anywarp check, anywarp sockets: the sanitizer's library that is first in LD_PRELOAD, for PROGRAM alone" },
	{ "ANYWARP_PATHS", "(none)|DIRECTORY", "libanywarp-paths.so, libibverbs.so.1",
	  "set by anywarp run: where the program finds its device files, and leaves its counters" },
	{ "ANYWARP_CHECK_REPORTS", "(none)|FILE", CHECK,
	  "set by anywarp check: where the reports for its summary go" },
	{ "ANYWARP_FAULTS_COUNT", "(none)|FILE", CHECK,
	  "set by anywarp check --sweep: where the calls of a run are counted" },
	{ "ANYWARP_SWEEP_DIR", "(none)|DIRECTORY", CHECK,
	  "set by anywarp check --sweep: for the files of a run; the library writes the stack of a crash there" },
	{ "ANYWARP_SOCKETS_PROXY", "(none)|FD:INODE", SOCKETS,
	  "set by anywarp before an exec: the socket to the program's proxy process" },
	{ "ANYWARP_SOCKETS_FDS", "(none)|LIST", SOCKETS,
	  "set by anywarp before an exec: the program's sockets, by their inodes" },
	{ "ANYWARP_SOCKETS_ARENA", "(none)|FD:INODE:SLOTS", SOCKETS,
	  "set by anywarp before an exec: the memory of the program's records" },
	{ "ANYWARP_SOCKETS_JUDGED", "(none)|1", SOCKETS,
	  "set by anywarp before an exec where TLS is required: the program's connections have it already, or need none" },
};

static void print_variable(const struct variable *variable)
{
	printf("  %s=%s\n      %s\n      read by %s\n", variable->name, variable->values,
	       variable->meaning, variable->readers);
}

void aw_environment_print(void)
{
	puts("The variables that anywarp reads, with their values, the default first. A program with\n"
	     "more rights than its user's ignores them.\n");
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		print_variable(&settings[i]);
	puts("\nOther programs' variables, and those that anywarp sets by itself:\n");
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		print_variable(&others[i]);
}

static bool is_among(const struct variable *variables, size_t count, const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(variables[i].name) == len && !strncmp(variables[i].name, name, len))
			return true;
	return false;
}

static bool is_known(const char *name, size_t len)
{
	return is_among(settings, ARRAY_LEN(settings), name, len) ||
	       is_among(others, ARRAY_LEN(others), name, len);
}

// How many characters have to be put in, left out or changed to make one name the other; case does not count.
static size_t distance(const char *typed, size_t len, const char *name)
{
	size_t row[NAME_LEN_MAX + 1], name_len = strlen(name);

	if (len > NAME_LEN_MAX || name_len > NAME_LEN_MAX)
		return NAME_LEN_MAX;
	for (size_t j = 0; j <= name_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= name_len; j++) {
			bool differs = toupper((unsigned char)typed[i - 1]) != name[j - 1];
			size_t here = diagonal + differs;

			if (row[j] + 1 < here)
				here = row[j] + 1;
			if (row[j - 1] + 1 < here)
				here = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = here;
		}
	}
	return row[name_len];
}

// The setting that a user who typed this may mean; NULL: none.
static const char *find_nearest(const char *typed, size_t len)
{
	const char *nearest = NULL;
	size_t least_distance = TYPOS_MAX + 1;

	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		size_t found = distance(typed, len, settings[i].name);

		if (found < least_distance) {
			least_distance = found;
			nearest = settings[i].name;
		}
	}
	return nearest;
}

bool aw_environment_next_unknown(size_t *at, struct environment_unknown *unknown)
{
	extern char **environ;

	while (environ && environ[*at]) {
		const char *entry = environ[(*at)++];
		size_t len = strcspn(entry, "=");
		const char *nearest = is_known(entry, len) ? NULL : find_nearest(entry, len);

		if (nearest || (!strncmp(entry, PREFIX, strlen(PREFIX)) && !is_known(entry, len))) {
			*unknown = (struct environment_unknown){ entry, (int)len, nearest };
			return true;
		}
	}
	return false;
}

bool aw_environment_next_wrong(enum aw_setting *setting, char why[AW_SETTING_WHY_MAX])
{
	for (; *setting < AW_SETTINGS; ++*setting) {
		const char *text = getenv(aw_setting_name(*setting));
		unsigned long value;

		if (aw_setting_parse(*setting, text, &value) != AW_SETTING_WRONG)
			continue;
		aw_setting_explain(*setting, text, why);
		return true;
	}
	return false;
}
