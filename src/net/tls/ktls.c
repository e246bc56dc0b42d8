// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The choice between the library's records and the kernel's, and how the kernel gets the keys.
#include "net/tls/ktls.h"

#include "base/log.h"
#include "net/tls/tls_env.h"
#include "net/tls/tls_impl.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

_Static_assert(AW_AEAD_IV == AW_KERNEL_TLS_IV && AW_KEY_MAX == AW_KERNEL_TLS_KEY_MAX,
	       "the kernel has the same keys");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct aw_kernel_tls kernel;
static _Atomic bool is_told;

static void ask_kernel(void)
{
	int state = aw_cancel_disable();

	aw_kernel_tls_ask(&kernel);
	aw_cancel_restore(state);
}

static void tell_refusal(const char *refusal)
{
	if (!atomic_exchange_explicit(&is_told, true, memory_order_relaxed))
		aw_log(AW_LOG_WARN,
		       "tls records are made in user space, not by the kernel as ANYWARP_TLS_RECORDS "
		       "asks: %s",
		       refusal);
}

const char *aw_ktls_refusal(const struct aw_kernel_tls *of, bool bounded)
{
	if (!of->has)
		return of->why;
	if (bounded && !of->changes_keys)
		return "it cannot change keys, as AES-GCM has to (Linux 6.14 can): set Ciphersuites = "
		       "TLS_CHACHA20_POLY1305_SHA256 in openssl.cnf";
	return NULL;
}

void aw_ktls_choose(struct aw_tls *tls)
{
	const struct aw_tls_settings *settings = aw_tls_settings();
	const char *refusal;

	/* A stranger that speaks no MPA may change its keys whenever it likes. */
	if (!settings || !settings->by_kernel || !tls->expect.alpn)
		return;
	pthread_once(&once, ask_kernel);
	refusal = aw_ktls_refusal(&kernel, aw_suite_is_bounded(tls->records.seals.key.suite));
	if (refusal) {
		tell_refusal(refusal);
		return;
	}
	tls->ktls = (struct aw_ktls){
		.sends = AW_KTLS_DUE,
		.receives = AW_KTLS_DUE,
		.changes_keys = kernel.changes_keys,
		.suite = tls->records.seals.key.suite,
	};
}

/* Gives the kernel these keys. 0 or an errno. */
static int hand_over(struct aw_tls *tls, enum aw_kernel_tls_option direction,
		     const struct aw_record_key *key)
{
	struct aw_kernel_tls_keys keys = { .suite = tls->ktls.suite, .number = key->seq };
	int err;

	memcpy(keys.iv, key->iv, sizeof(keys.iv));
	memcpy(keys.key, key->key, sizeof(keys.key));
	err = aw_kernel_tls_set(tls->fd, direction, &keys);
	explicit_bzero(&keys, sizeof(keys));
	return err;
}

/* Keys that never change are of no more use here. */
static void give_up(const struct aw_tls *tls, struct aw_aead *aead)
{
	if (!tls->ktls.changes_keys)
		aw_aead_end(aead);
}

static void log_refused(const char *direction, int err)
{
	aw_log(aw_log_has_room() ? AW_LOG_WARN : AW_LOG_INFO,
	       "tls records are made in user space: the kernel refuses the keys by which to %s: %s",
	       direction,
	       err == ENOENT ? "it lacks the cipher; as root: modprobe -a gcm chacha20poly1305"
			     : strerror(err));
}

void aw_ktls_begin_sends(struct aw_tls *tls)
{
	struct aw_ktls *ktls = &tls->ktls;
	int err;

	if (ktls->sends != AW_KTLS_DUE || tls->err || tls->out_len > 0 || tls->owed > 0)
		return;
	ktls->counts = aw_kernel_tls_given(tls->fd, &ktls->base);
	err = aw_kernel_tls_attach(tls->fd);
	if (!err)
		err = hand_over(tls, AW_KERNEL_TLS_SENDS, &tls->records.seals.key);
	if (err) {
		/* A peer that is gone already is none of the kernel's faults. */
		if (err != ENOTCONN)
			log_refused("send", err);
		ktls->sends = ktls->receives = AW_KTLS_USER;
		return;
	}
	ktls->sends = AW_KTLS_KERNEL;
	ktls->first = ktls->asked = tls->records.seals.key.seq;
	give_up(tls, &tls->records.seals);
}

void aw_ktls_begin_receives(struct aw_tls *tls)
{
	struct aw_ktls *ktls = &tls->ktls;
	int err;

	if (ktls->receives != AW_KTLS_DUE || ktls->sends != AW_KTLS_KERNEL || tls->err ||
	    tls->takes_tickets || aw_tls_waiting(tls) > 0)
		return;
	err = hand_over(tls, AW_KERNEL_TLS_RECEIVES, &tls->records.opens.key);
	if (err) {
		log_refused("receive", err);
		ktls->receives = AW_KTLS_USER;
		return;
	}
	ktls->receives = AW_KTLS_KERNEL;
	tls->records.opens_anew = false;
	aw_kernel_tls_expect_no_pad(tls->fd);
	give_up(tls, &tls->records.opens);
}

bool aw_ktls_follow(struct aw_tls *tls)
{
	tls->records.opens_anew = false;
	if (hand_over(tls, AW_KERNEL_TLS_RECEIVES, &tls->records.opens.key) == 0)
		return true;
	tls->records.alert = AW_TLS_INTERNAL_ERROR;
	tls->records.fault = "the kernel does not take the peer's new keys: is memory out?";
	return false;
}

bool aw_ktls_renew(struct aw_tls *tls)
{
	struct aw_aead *seals = &tls->records.seals;
	uint64_t next = 0;

	tls->ktls.counts = tls->ktls.counts && aw_kernel_tls_next(tls->fd, tls->ktls.suite, &next);
	tls->ktls.earlier += next - tls->ktls.first;
	tls->ktls.first = tls->ktls.asked = tls->ktls.since = 0;
	tls->records.owes_update = false;
	return aw_aead_renew(seals) && hand_over(tls, AW_KERNEL_TLS_SENDS, &seals->key) == 0;
}
