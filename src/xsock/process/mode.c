// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the rules once, and answers by them.
#include "xsock/process/mode.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/setting.h"
#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/protect.h"

/*
 * How long connect(2) waits in `auto` for the server's accept. An idle server accepts after 20 to 60 us; on a machine whose processors are all
 * busy it takes some milliseconds. A server that is later is served by TCP.
 */
#define PAIR_MS 10

static pthread_once_t once = PTHREAD_ONCE_INIT, records_once = PTHREAD_ONCE_INIT;
static _Atomic(bool) records;
static _Atomic(bool) program_sets; /* a socket has a mode of the program's */
static struct aw_xs_rules *rules; /* NULL: no socket is in iWARP mode */
static unsigned long pair_ms = PAIR_MS;

/* A record's start-up is fixed: a user's own choice of MPA needs an endpoint. */
static void read_records(void)
{
	const char *policy = secure_getenv("ANYWARP_MPA");
	unsigned long word = 0; /* its index: on, off, tls */

	if (!aw_protect_is_on() ||
	    aw_setting_parse(AW_SETTING_RECORD,
			     aw_protect_getenv(aw_setting_name(AW_SETTING_RECORD)),
			     &word) == AW_SETTING_WRONG)
		(void)aw_setting_read(AW_SETTING_RECORD, "taken as on", &word);
	records = word == 2 || (word == 0 && !aw_protect_is_on());
	if (records && policy && *policy) {
		aw_log(AW_LOG_INFO, "ANYWARP_MPA is set: no connection is a record");
		records = false;
	}
}

/* All settings are read with the rules: of a wrong one the user is told also where no socket comes to need it. */
static void read_rules(void)
{
	char why[AW_XS_RULES_WHY_MAX];
	const char *effect;
	int line = aw_xs_rules_parse(secure_getenv(AW_XS_RULES_ENV), &rules, why, sizeof(why));

	(void)aw_log_level();
	(void)aw_setting_read(AW_SETTING_PAIR_MS, "taken as 10", &pair_ms);
	pthread_once(&records_once, read_records);
	if (!line)
		return;
	rules = NULL;
	effect = aw_protect_is_on() ? "every socket is in mode on, and needs TLS"
				    : "no socket is in iWARP mode";
	if (line > 0)
		aw_log(AW_LOG_ERROR, AW_XS_RULES_ENV ", line %d: %s: %s", line, why, effect);
	else
		aw_log(AW_LOG_ERROR, "no memory for the rules: %s", effect);
}

/* Where TLS is required, `auto` is `on`: neither a pair nor TCP has it. */
static enum aw_xs_mode protect_mode(enum aw_xs_mode mode)
{
	return mode == AW_XS_AUTO && aw_protect_is_on() ? AW_XS_ON : mode;
}

/* The mode of a socket for which there are no rules to ask. */
static enum aw_xs_mode unruled_mode(void)
{
	return aw_protect_is_on() ? AW_XS_ON : AW_XS_OFF;
}

static struct aw_xs_query make_query(bool listening, const struct sockaddr *local)
{
	return (struct aw_xs_query){
		.program = program_invocation_name,
		.listening = listening,
		.local = local,
	};
}

bool aw_mode_records(void)
{
	pthread_once(&records_once, read_records);
	return records;
}

void aw_mode_end_records(void)
{
	pthread_once(&records_once, read_records);
	records = false;
}

int aw_mode_pair_ms(void)
{
	pthread_once(&once, read_rules);
	return (int)pair_ms;
}

bool aw_mode_may_iwarp(bool listening)
{
	struct aw_xs_query q = make_query(listening, NULL);

	pthread_once(&once, read_rules);
	if (aw_protect_is_on())
		return !rules || aw_xs_rules_may(rules, &q);
	return rules && aw_xs_rules_may_carry(rules, &q);
}

bool aw_mode_may_pair(const struct sockaddr *local)
{
	struct aw_xs_query q = make_query(true, local);

	pthread_once(&once, read_rules);
	return rules && !aw_protect_is_on() && aw_xs_rules_may_be(rules, &q, AW_XS_AUTO);
}

bool aw_mode_may_connect(void)
{
	struct aw_xs_query q = make_query(false, NULL);

	pthread_once(&once, read_rules);
	return rules ? aw_xs_rules_may(rules, &q) : aw_protect_is_on();
}

bool aw_mode_may_accept(const struct sockaddr *local)
{
	struct aw_xs_query q = make_query(true, local);

	pthread_once(&once, read_rules);
	return rules ? aw_xs_rules_may(rules, &q) : aw_protect_is_on();
}

/* The addresses are asked for only where a rule does. */
enum aw_xs_mode aw_mode_of(int fd, bool accepted, const struct sockaddr *remote)
{
	struct aw_xs_query q = make_query(accepted, NULL);
	union aw_address local, peer;
	socklen_t local_len = sizeof(local), peer_len = sizeof(peer);
	enum aw_xs_mode mode;

	pthread_once(&once, read_rules);
	if (!rules)
		return unruled_mode();
	if (aw_xs_rules_are_settled(rules, &q, &mode))
		return protect_mode(mode);
	if (aw_libc()->getsockname(fd, (struct sockaddr *)&local, &local_len) != 0 ||
	    (!remote && aw_libc()->getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0))
		return unruled_mode();
	q.local = (struct sockaddr *)&local;
	q.remote = remote ? remote : (struct sockaddr *)&peer;
	return protect_mode(aw_xs_rules_mode(rules, &q));
}

enum aw_xs_mode aw_mode_of_program(int fd, bool *is_set)
{
	struct aw_sock sock;

	*is_set = atomic_load_explicit(&program_sets, memory_order_relaxed) &&
		  aw_fdtab_look(fd, &sock) && sock.mode_is_set;
	/* A program may have set the mode before it executed this one. */
	if (*is_set && aw_protect_is_on())
		return AW_XS_ON;
	return *is_set ? sock.mode : AW_XS_OFF;
}

enum aw_xs_mode aw_mode_of_connect(int fd, const struct sockaddr *remote)
{
	bool is_set;
	enum aw_xs_mode mode = aw_mode_of_program(fd, &is_set);

	return is_set ? mode : aw_mode_of(fd, false, remote);
}

void aw_mode_note_program(void)
{
	atomic_store_explicit(&program_sets, true, memory_order_relaxed);
}
