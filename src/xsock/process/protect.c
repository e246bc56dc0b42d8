// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps the variables in memory of its own: a program may write its title over those that the kernel gave it.
#include "xsock/process/protect.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/setting.h"
#include "xsock/base/libc.h"
#include "xsock/base/rules.h"
#include "xsock/base/sockopt.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/memory.h"

#define PRELOAD "LD_PRELOAD="
#define LIBRARY "libanywarp-sockets.so"

bool aw_protect_required;

/* Fixed once the library is loaded. */
static char **kept; /* kept_count variables of ANYWARP_TLS*, the rules and the word on records */
static size_t kept_count;
static const char *kept_preload; /* NULL: LD_PRELOAD was not set */

bool aw_protect_owns(const char *variable)
{
	static const char *const names[] = { "ANYWARP_TLS=", "ANYWARP_TLS_", AW_XS_RULES_ENV "=",
					     "ANYWARP_SOCKETS_RECORD=" };

	for (size_t i = 0; aw_protect_required && i < ARRAY_LEN(names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool is_kept(const char *variable)
{
	return aw_protect_owns(variable) || !strncmp(variable, PRELOAD, strlen(PRELOAD));
}

static bool keep_variables(void)
{
	size_t count = 0, bytes = 0;
	char *at;

	for (char **env = environ; *env; env++)
		if (is_kept(*env)) {
			count++;
			bytes += strlen(*env) + 1;
		}
	kept = aw_memory_map(count * sizeof(char *) + bytes);
	if (!kept)
		return false;
	at = (char *)(kept + count);
	for (char **env = environ; *env; env++) {
		if (!is_kept(*env))
			continue;
		strcpy(at, *env);
		if (aw_protect_owns(at))
			kept[kept_count++] = at;
		else
			kept_preload = at;
		at += strlen(at) + 1;
	}
	return true;
}

/* Returns whether a line of the rules begins with tls-plain. */
static bool has_tls_plain(const char *rules)
{
	for (; rules && *rules; rules += *rules == '\n') {
		rules += strspn(rules, " \t\n");
		if (!strncmp(rules, AW_XS_TLS_PLAIN_WORD, strlen(AW_XS_TLS_PLAIN_WORD)))
			return true;
		rules += strcspn(rules, "\n");
	}
	return false;
}

const char *aw_protect_begin(void)
{
	const char *text = secure_getenv(aw_setting_name(AW_SETTING_TLS));
	const char *rules = secure_getenv("ANYWARP_TLS_RULES");
	const char *record = secure_getenv(aw_setting_name(AW_SETTING_RECORD));

	/* The library takes every connection in mode on for protected; an offer, or rules of TLS, could leave one in the clear. */
	if (rules && *rules)
		return "ANYWARP_TLS_RULES must be unset for a sockets program";
	if ((!text || !*text || strcmp(text, "off") == 0) && record && strcmp(record, "tls") == 0)
		return "ANYWARP_SOCKETS_RECORD=tls needs ANYWARP_TLS=require (anywarp sockets --tls require)";
	if (!text || !*text || strcmp(text, "off") == 0)
		return has_tls_plain(secure_getenv(AW_XS_RULES_ENV))
			       ? "a rule tls-plain needs ANYWARP_TLS=require (anywarp sockets --tls require)"
			       : NULL;
	if (strcmp(text, "require") != 0)
		return "ANYWARP_TLS must be off or require for a sockets program";
	aw_protect_required = true;
	return keep_variables() ? NULL : "no memory for what ANYWARP_TLS asks for";
}

static bool is_tcp(int fd)
{
	int domain = aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, -1);
	int protocol = aw_sockopt_int(fd, SOL_SOCKET, SO_PROTOCOL, -1);

	return (domain == AF_INET || domain == AF_INET6) &&
	       (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP);
}

bool aw_protect_covers(int fd)
{
	int saved = errno;
	bool covers = aw_protect_required && aw_fdtab_state(fd) == AW_FD_NONE && is_tcp(fd);

	errno = saved;
	return covers;
}

void aw_protect_discard(int fd)
{
	int saved = errno;

	/* Over TCP MSG_TRUNC reads without a buffer. */
	while (aw_libc()->recv(fd, NULL, INT32_MAX, MSG_TRUNC | MSG_DONTWAIT) > 0)
		;
	errno = saved;
}

char *aw_protect_getenv(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < kept_count; i++)
		if (!strncmp(kept[i], name, len) && kept[i][len] == '=')
			return kept[i] + len + 1;
	return NULL;
}

size_t aw_protect_count(void)
{
	return kept_count;
}

size_t aw_protect_add(char **env)
{
	for (size_t i = 0; i < kept_count; i++)
		env[i] = kept[i];
	return kept_count;
}

const char *aw_protect_preload(const char *theirs)
{
	return kept_preload && !(theirs && strstr(theirs, LIBRARY)) ? kept_preload : NULL;
}
