// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tickets of peers that this end has connected to. A responder keeps nothing: its ticket holds the session, and the client's
// certificate, under keys that its context made by itself and that end with it.
#include "net/tls/resume.h"

#include "net/base/addr.h"
#include "net/base/fork.h"
#include "ring/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* The index of a context's own data that OpenSSL leaves to the program. */
#define AT_NUMBER 0

/* A session is used once (RFC 8446 C.4): each handshake brings the next. */
struct ticket {
	struct sockaddr_storage peer;
	SSL_SESSION *session; /* NULL: none */
	uintptr_t context; /* the number of the context that it was made by */
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct ticket tickets[AW_TLS_TICKETS_MAX] AW_GUARDED_BY(lock);
static unsigned int oldest AW_GUARDED_BY(lock);

static const struct aw_openssl *const o = &aw_openssl;

static uintptr_t context_of(const SSL *ssl)
{
	return (uintptr_t)o->SSL_CTX_get_ex_data(o->SSL_get_SSL_CTX(ssl), AT_NUMBER);
}

static bool is_of(const struct ticket *ticket, const struct sockaddr_storage *peer)
{
	return memcmp(&ticket->peer, peer, aw_addr_len((const struct sockaddr *)peer)) == 0;
}

/* The place for the next ticket of this peer. */
static struct ticket *place_for(const struct sockaddr_storage *peer) AW_REQUIRES(lock)
{
	struct ticket *place = NULL;

	for (unsigned int i = 0; i < AW_TLS_TICKETS_MAX; i++) {
		if (tickets[i].session && is_of(&tickets[i], peer))
			return &tickets[i];
		if (!tickets[i].session && !place)
			place = &tickets[i];
	}
	if (!place)
		place = &tickets[oldest++ % AW_TLS_TICKETS_MAX];
	return place;
}

/* OpenSSL's new_session_cb, of an initiator: 1 keeps the session. */
static int keep(SSL *ssl, SSL_SESSION *session)
{
	const struct aw_tls_expect *expect = aw_tls_expect_of(ssl);
	SSL_SESSION *before;
	struct ticket *place;

	if (!expect)
		return 0;
	aw_lock(&lock);
	place = place_for(&expect->peer);
	before = place->session;
	*place = (struct ticket){ expect->peer, session, context_of(ssl) };
	aw_unlock(&lock);
	o->SSL_SESSION_free(before);
	return 1;
}

static SSL_SESSION *take(const struct sockaddr_storage *peer, uintptr_t *context)
{
	SSL_SESSION *session = NULL;

	aw_lock(&lock);
	for (unsigned int i = 0; i < AW_TLS_TICKETS_MAX && !session; i++) {
		if (!tickets[i].session || !is_of(&tickets[i], peer))
			continue;
		session = tickets[i].session;
		*context = tickets[i].context;
		tickets[i].session = NULL;
	}
	aw_unlock(&lock);
	return session;
}

static bool session_holds(SSL *ssl, SSL_SESSION *session)
{
	const struct aw_tls_expect *expect = aw_tls_expect_of(ssl);

	return expect && aw_tls_expect_holds(expect, o->SSL_SESSION_get0_peer(session));
}

void aw_tls_resume_begin(SSL *ssl, bool accepts)
{
	const struct aw_tls_expect *expect = aw_tls_expect_of(ssl);
	uintptr_t context = 0;
	SSL_SESSION *session = accepts ? NULL : take(&expect->peer, &context);

	if (session && context == context_of(ssl) && session_holds(ssl, session))
		o->SSL_set_session(ssl, session);
	o->SSL_SESSION_free(session);
}

/* Responder. The ticket of a client whose certificate no longer holds is passed over, and its certificate asked for. */
static int judge(SSL *ssl, SSL_SESSION *session, const unsigned char *key_name, size_t key_name_len,
		 int status, void *arg)
{
	bool readable = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;

	(void)key_name, (void)key_name_len, (void)arg;
	return readable && session_holds(ssl, session) ? SSL_TICKET_RETURN_USE_RENEW
						       : SSL_TICKET_RETURN_IGNORE_RENEW;
}

bool aw_tls_resume_prepare(SSL_CTX *ctx)
{
	static _Atomic uintptr_t contexts;
	static const unsigned char id[] = "anywarp";
	uintptr_t number = atomic_fetch_add_explicit(&contexts, 1, memory_order_relaxed) + 1;

	/* OpenSSL's own table of sessions stays empty: it knows no addresses. */
	o->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE,
			SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL, NULL);
	o->SSL_CTX_sess_set_new_cb(ctx, keep);
	o->SSL_CTX_set_timeout(ctx, AW_TLS_TICKET_SECONDS);
	return o->SSL_CTX_set_ex_data(ctx, AT_NUMBER, (void *)number) == 1 &&
	       o->SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1) == 1 &&
	       o->SSL_CTX_set_session_ticket_cb(ctx, NULL, judge, NULL) == 1 &&
	       o->SSL_CTX_set_num_tickets(ctx, 1) == 1;
}

unsigned int aw_tls_resume_count(void)
{
	unsigned int count = 0;

	aw_lock(&lock);
	for (unsigned int i = 0; i < AW_TLS_TICKETS_MAX; i++)
		count += tickets[i].session != NULL;
	aw_unlock(&lock);
	return count;
}

static void renew_torn(void) AW_UNCHECKED
{
	pthread_mutex_init(&lock, NULL);
	memset(tickets, 0, sizeof(tickets));
}

static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.torn = renew_torn,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_TLS_TICKETS, &fork_handlers);
}
