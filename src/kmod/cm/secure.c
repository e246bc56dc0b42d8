// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "kmod/cm/secure.h"

#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/spinlock.h>

#define RETRY_MS 20 /* where more handshakes wait for the daemon than the kernel keeps */

/*
 * Process context. Guards ask_done and ask_err, and keeps a worker from knowing of the end before the daemon's thread has kicked: the
 * connection, and with it the module, could be over by then.
 */
static DEFINE_SPINLOCK(lock);

/* Runs in the daemon's thread. The request has a reference of the connection, which goes here. */
static void on_done(struct awk_tls_ask *ask, int err)
{
	struct awk_conn *c = container_of(ask, struct awk_conn, ask);

	spin_lock(&lock);
	c->ask_err = err;
	c->ask_done = true;
	awk_conn_kick(c);
	spin_unlock(&lock);
	awk_conn_put(c);
}

static bool is_done(struct awk_conn *c)
{
	bool done;

	spin_lock(&lock);
	done = c->ask_done;
	spin_unlock(&lock);
	return done;
}

/* tlshd's server gets a name, too, with which it does nothing: without one it would look the address up, and fail. */
void awk_secure_begin(struct awk_conn *c)
{
	awk_conn_unwatch(c);
	if (!c->tls_name[0])
		snprintf(c->tls_name, sizeof(c->tls_name), "%pISc", &c->remote_addr);
	c->ask = (struct awk_tls_ask){
		.client = c->initiator,
		.name = c->tls_name,
		.timeout_ms = AWK_STARTUP_MS,
		.done = on_done,
	};
	c->asked = c->ask_done = false;
	awk_conn_enter(c, AWK_CONN_SECURING);
}

static const char *remedy_of(int err)
{
	switch (err) {
	case -ESRCH:
		return "no tlshd runs in this network namespace: start it there (package ktls-utils)";
	case -ENOKEY:
		return "the client has no certificate: give its tlshd one";
	case -EACCES:
		return "a certificate was refused, or the peer speaks no TLS: see tlshd's log";
	case -EOPNOTSUPP:
		return "the kernel's TLS is not in use: load the module tls";
	default:
		return "see tlshd's log, and its configuration";
	}
}

static void tell(const struct awk_conn *c, int err)
{
	pr_warn_ratelimited("anywarp: no TLS %s %pISpc, error %d: %s\n",
			    c->initiator ? "to" : "from", &c->remote_addr, err, remedy_of(err));
}

/* 0, or an error; -EAGAIN: again in a moment. */
static int ask_daemon(struct awk_conn *c)
{
	int err;

	awk_conn_get(c);
	err = awk_tls_begin(&c->sock, &c->ask);
	if (err)
		awk_conn_put(c);
	c->asked = !err;
	return err;
}

int awk_secure_try(struct awk_conn *c)
{
	bool done = is_done(c);
	int err;

	if (c->asked && !done)
		return -EINPROGRESS;
	err = done ? c->ask_err : ask_daemon(c);
	if (err && err != -EAGAIN)
		tell(c, err);
	if (done || (err && err != -EAGAIN))
		return err;
	mod_timer(&c->timer, err ? jiffies + msecs_to_jiffies(RETRY_MS) : c->deadline);
	return -EINPROGRESS;
}

bool awk_secure_stop(struct awk_conn *c)
{
	if (!c->asked || is_done(c))
		return true;
	if (!awk_tls_stop(c->sock))
		return false;
	awk_conn_put(c);
	return true;
}
