// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tlshd.h"

#include "tcp.h"

int kshim_tls_begins;

static struct kshim_tcp *first_waiting(void)
{
	for (unsigned int i = 0; i < kshim_tcp_count; i++)
		if (kshim_tcps[i]->ask)
			return kshim_tcps[i];
	return NULL;
}

unsigned int kshim_tls_waiting(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < kshim_tcp_count; i++)
		count += kshim_tcps[i]->ask != NULL;
	return count;
}

bool kshim_tls_done(int err)
{
	struct kshim_tcp *tcp = first_waiting();
	struct awk_tls_ask *ask;

	if (!tcp)
		return false;
	ask = tcp->ask;
	tcp->ask = NULL;
	tcp->secured = !err;
	/* Here a stop comes too late. */
	kshim_yield(false);
	ask->done(ask, err);
	return true;
}

bool awk_tls_is_here(void)
{
	return true;
}

int awk_tls_begin(struct socket **sock, struct awk_tls_ask *ask)
{
	struct kshim_tcp *tcp = (*sock)->sk->tcp;

	KSHIM_CHECK(!tcp->ask && !tcp->secured && !tcp->sk.sk_user_data && ask->name[0]);
	kshim_yield(false);
	if (!kshim_tls_begins)
		tcp->ask = ask;
	kshim_yield(false);
	return kshim_tls_begins;
}

bool awk_tls_stop(struct socket *sock)
{
	bool stopped = sock->sk->tcp->ask;

	sock->sk->tcp->ask = NULL;
	kshim_yield(false);
	return stopped;
}

bool awk_tls_is_on(const struct sock *sk)
{
	return sk->tcp->secured;
}

bool awk_tls_has_sent(const struct sock *sk)
{
	return sk->tcp->secured;
}

void awk_tls_send_end(struct socket *sock)
{
	KSHIM_CHECK(sock->sk->tcp->secured);
}

/* The daemon has no more to do with it. */
void awk_sock_close(struct socket *sock)
{
	KSHIM_CHECK(!sock->sk->tcp->ask);
	sock_release(sock);
}
