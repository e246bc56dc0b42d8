// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/want.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/tls/stamp.h"
#include "ring/lock.h"

#include <errno.h>
#include <pthread.h>

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct aw_tls_rules *current AW_GUARDED_BY(lock); /* NULL: wrong, or not read yet */
static struct aw_stamp stamp AW_GUARDED_BY(lock); /* of the last try */
static bool tried AW_GUARDED_BY(lock);

static void read_rules(const char *file) AW_REQUIRES(lock)
{
	struct aw_stamp seen = aw_stamp_of(file);
	char why[AW_TLS_RULES_WHY_MAX];
	bool again = tried;

	if (tried && aw_stamp_is_same(&seen, &stamp))
		return;
	stamp = seen;
	tried = true;
	aw_tls_rules_put(current);
	current = NULL;
	if (!aw_tls_rules_read(file, &current, why))
		aw_log(AW_LOG_ERROR, AW_TLS_RULES_ENV " is %s; nothing connects until it is mended",
		       why);
	else if (again)
		aw_log(AW_LOG_INFO, "tls: the rules in %s were read again", file);
}

/* The rules of now, with a reference for the caller; NULL: they are wrong. */
static struct aw_tls_rules *take_rules(const char *file)
{
	struct aw_tls_rules *taken;

	aw_lock(&lock);
	read_rules(file);
	taken = current ? aw_tls_rules_get(current) : NULL;
	aw_unlock(&lock);
	return taken;
}

int aw_tls_want_find(const struct aw_tls_query *query, struct aw_tls_want *want)
{
	const struct aw_tls_settings *settings = aw_tls_settings();

	*want = (struct aw_tls_want){ .mode = AW_TLS_OFF };
	if (!aw_tls_is_used())
		return 0;
	want->mode = AW_TLS_REQUIRE;
	if (!settings)
		return EINVAL;
	want->mode = settings->mode;
	if (!settings->rules)
		return 0;
	want->rules = take_rules(settings->rules);
	if (!want->rules)
		return EINVAL;
	want->rule = aw_tls_rules_find(want->rules, query);
	if (want->rule)
		want->mode = want->rule->mode;
	return 0;
}

void aw_tls_want_drop(struct aw_tls_want *want)
{
	aw_tls_rules_put(want->rules);
	want->rules = NULL;
	want->rule = NULL;
}

void aw_tls_want_begin(void)
{
	const struct aw_tls_settings *settings = aw_tls_settings();

	if (settings && settings->rules)
		aw_tls_rules_put(take_rules(settings->rules));
}

/* The source of the requirement in words; NULL: there is none. */
static const char *requires_tls(void)
{
	const struct aw_tls_settings *settings = aw_tls_settings();
	const char *source = NULL;
	struct aw_tls_rules *rules;

	if (!aw_tls_is_used())
		return NULL;
	if (!settings || settings->mode == AW_TLS_REQUIRE)
		return "ANYWARP_TLS is require";
	if (!settings->rules)
		return NULL;
	rules = take_rules(settings->rules);
	if (!rules)
		return AW_TLS_RULES_ENV " is wrong";
	for (size_t i = 0; i < aw_tls_rules_count(rules); i++)
		if (aw_tls_rules_at(rules, i)->mode == AW_TLS_REQUIRE)
			source = "a rule of " AW_TLS_RULES_ENV " requires it";
	aw_tls_rules_put(rules);
	return source;
}

int aw_tls_refuse(const char *what)
{
	const char *source = requires_tls();

	if (!source)
		return 0;
	aw_log(aw_log_has_room() ? AW_LOG_ERROR : AW_LOG_INFO,
	       "%s refused: TLS cannot protect it, and %s: use connected qps, or run the program "
	       "without --tls require",
	       what, source);
	return EOPNOTSUPP;
}

static void renew_torn(void) AW_UNCHECKED
{
	pthread_mutex_init(&lock, NULL);
	current = NULL;
	tried = false;
}

static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.torn = renew_torn,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_TLS_RULES, &fork_handlers);
}
