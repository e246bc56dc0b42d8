// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the rules once and asks them.
#include "xsock/preload/mode.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "xsock/base/log.h"
#include "xsock/preload/fdtab.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct aw_xs_rules *rules; /* NULL: everything is off */

static void read_rules(void)
{
	char why[AW_XS_RULES_WHY_MAX];
	int line = aw_xs_rules_parse(getenv(AW_XS_RULES_ENV), &rules, why, sizeof(why));

	if (!line)
		return;
	rules = NULL;
	if (line > 0)
		aw_xs_log(AW_XS_LOG_ERROR,
			  AW_XS_RULES_ENV ", line %d: %s: no socket is in iWARP mode", line, why);
	else
		aw_xs_log(AW_XS_LOG_ERROR, "no memory for the rules: no socket is in iWARP mode");
}

static struct aw_probe_socket probe(bool listening, const struct sockaddr *local,
				    const struct sockaddr *remote)
{
	return (struct aw_probe_socket){
		.program = program_invocation_name,
		.listening = listening,
		.local = local,
		.remote = remote,
	};
}

static bool may(bool listening, const struct sockaddr *local)
{
	struct aw_probe_socket q = probe(listening, local, NULL);

	pthread_once(&once, read_rules);
	return rules && aw_xs_rules_may(rules, &q);
}

static enum aw_xs_mode mode(bool listening, const struct sockaddr *local,
			    const struct sockaddr *remote)
{
	struct aw_probe_socket q = probe(listening, local, remote);

	pthread_once(&once, read_rules);
	return rules ? aw_xs_rules_mode(rules, &q) : AW_XS_OFF;
}

bool aw_mode_may(bool listening)
{
	return may(listening, NULL);
}

bool aw_mode_may_accept(const struct sockaddr *local)
{
	return may(true, local);
}

enum aw_xs_mode aw_mode_connecting(const struct sockaddr *local, const struct sockaddr *remote)
{
	return mode(false, local, remote);
}

enum aw_xs_mode aw_mode_accepted(const struct sockaddr *local, const struct sockaddr *remote)
{
	return mode(true, local, remote);
}

enum aw_xs_mode aw_mode_asked(int fd, bool *asked)
{
	enum aw_xs_mode mode = AW_XS_OFF;
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	*asked = sock && sock->mode_asked;
	if (*asked)
		mode = sock->mode;
	aw_fdtab_unlock();
	return mode;
}
