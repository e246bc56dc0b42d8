// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/context.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/tls/expect.h"
#include "net/tls/keylog.h"
#include "net/tls/resume.h"
#include "net/tls/stamp.h"
#include "net/tls/want.h"
#include "ring/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILES 3 /* certificate, key, CA */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int check_err;

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static SSL_CTX *current AW_GUARDED_BY(lock);
static struct aw_stamp stamps[FILES] AW_GUARDED_BY(lock); /* of the last try */

static int refuse_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf, (void)size, (void)rwflag, (void)arg;
	return 0;
}

/* Finds a protocol in a list of names, each behind its length. Returns its place, or NULL. */
static const unsigned char *find_protocol(const char *name, const unsigned char *in, size_t in_len)
{
	size_t len = strlen(name);

	for (size_t at = 0; at < in_len && in[at] < in_len - at; at += in[at] + 1u)
		if (in[at] == len && memcmp(in + at + 1, name, len) == 0)
			return in + at + 1;
	return NULL;
}

/*
 * Only the program knows the protocol of its own bytes: a client that offers one protocol gets it, since it would speak no
 * other, and one that offers several is told of none. One that offers MPA is refused.
 */
static const unsigned char *find_of_program(const unsigned char *in, size_t in_len, bool *refuse)
{
	*refuse = find_protocol(AW_TLS_ALPN, in, in_len) ||
		  find_protocol(AW_TLS_ALPN_RECORD, in, in_len);
	return in[0] + 1u == in_len ? in + 1 : NULL;
}

/* Responder. RFC 7301 3.2: a client without the session's protocol gets the alert no_application_protocol. */
static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
		       const unsigned char *in, unsigned int in_len, void *arg)
{
	const char *name = aw_tls_expect_of(ssl)->alpn;
	bool refuse = false;
	const unsigned char *found = name ? find_protocol(name, in, in_len)
					  : find_of_program(in, in_len, &refuse);

	(void)arg;
	if (refuse || (name && !found))
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	if (!found)
		return SSL_TLSEXT_ERR_NOACK;
	*out = found;
	*len = found[-1];
	return SSL_TLSEXT_ERR_OK;
}

/*
 * Responder, before it sends anything. RFC 7301 3.2: a client without the protocol gets the alert no_application_protocol. So does one
 * that names no protocol at all; OpenSSL would let it in. The extension is the list's length in two bytes, and the list.
 */
static int check_hello(SSL *ssl, int *alert, void *arg)
{
	const char *name = aw_tls_expect_of(ssl)->alpn;
	const unsigned char *found;
	size_t len;

	(void)arg;
	if (!name)
		return SSL_CLIENT_HELLO_SUCCESS;
	if (aw_openssl.SSL_client_hello_get0_ext(
		    ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &found, &len) == 1 &&
	    len > 2 && find_protocol(name, found + 2, len - 2))
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_NO_APPLICATION_PROTOCOL;
	return SSL_CLIENT_HELLO_ERROR;
}

/* TLS 1.3 alone, both ends with certificates. Behind the handshake OpenSSL makes no record, and needs no buffers. */
static bool set_rules(SSL_CTX *ctx)
{
	const struct aw_openssl *o = &aw_openssl;

	o->SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	o->SSL_CTX_set_default_passwd_cb(ctx, refuse_password);
	o->SSL_CTX_set_alpn_select_cb(ctx, select_alpn, NULL);
	o->SSL_CTX_set_client_hello_cb(ctx, check_hello, NULL);
	aw_tls_keylog_use(ctx);
	o->SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
	return o->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL) == 1 &&
	       aw_tls_resume_prepare(ctx);
}

/* False, with the reason why OpenSSL does not take the file. */
static bool refuse_file(const char *variable, const char *file, const char *remedy,
			char why[AW_TLS_CONTEXT_WHY_MAX])
{
	const char *reason = aw_openssl.ERR_reason_error_string(aw_openssl.ERR_peek_error());

	if (access(file, R_OK) != 0)
		reason = strerror(errno);
	snprintf(why, AW_TLS_CONTEXT_WHY_MAX, "%s is '%s': %s: %s", variable, file,
		 reason ? reason : "not understood", remedy);
	aw_openssl.ERR_clear_error();
	return false;
}

static bool read_files(SSL_CTX *ctx, const struct aw_tls_settings *from,
		       char why[AW_TLS_CONTEXT_WHY_MAX])
{
	const struct aw_openssl *o = &aw_openssl;

	if (o->SSL_CTX_use_certificate_chain_file(ctx, from->cert) != 1)
		return refuse_file(AW_TLS_CERT_ENV, from->cert,
				   "it must be a readable PEM file with this end's certificate",
				   why);
	if (o->SSL_CTX_use_PrivateKey_file(ctx, from->key, SSL_FILETYPE_PEM) != 1)
		return refuse_file(
			AW_TLS_KEY_ENV, from->key,
			"it must be a readable PEM file with the key of the certificate, "
			"without a passphrase",
			why);
	if (o->SSL_CTX_check_private_key(ctx) != 1)
		return refuse_file(AW_TLS_KEY_ENV, from->key,
				   "it must be the key of the certificate in " AW_TLS_CERT_ENV,
				   why);
	if (o->SSL_CTX_load_verify_file(ctx, from->ca) != 1)
		return refuse_file(AW_TLS_CA_ENV, from->ca,
				   "it must be a readable PEM file with the CA's certificate", why);
	return true;
}

bool aw_tls_context_make(const struct aw_tls_settings *from, SSL_CTX **made,
			 char why[AW_TLS_CONTEXT_WHY_MAX])
{
	SSL_CTX *ctx;

	aw_openssl.ERR_clear_error();
	ctx = aw_openssl.SSL_CTX_new(aw_openssl.TLS_method());
	if (!ctx || !set_rules(ctx)) {
		snprintf(why, AW_TLS_CONTEXT_WHY_MAX,
			 "OpenSSL has no TLS 1.3, by its openssl.cnf, or no memory");
	} else if (read_files(ctx, from, why)) {
		*made = ctx;
		return true;
	}
	aw_openssl.SSL_CTX_free(ctx);
	return false;
}

static void look(const struct aw_tls_settings *at, struct aw_stamp seen[FILES])
{
	seen[0] = aw_stamp_of(at->cert);
	seen[1] = aw_stamp_of(at->key);
	seen[2] = aw_stamp_of(at->ca);
}

static bool are_same(const struct aw_stamp a[FILES], const struct aw_stamp b[FILES])
{
	for (size_t i = 0; i < FILES; i++)
		if (!aw_stamp_is_same(&a[i], &b[i]))
			return false;
	return true;
}

/* A renewal writes one file after the other: in between they do not fit, and what was read before is used. */
static void renew(const struct aw_tls_settings *from) AW_REQUIRES(lock)
{
	char why[AW_TLS_CONTEXT_WHY_MAX];
	struct aw_stamp seen[FILES];
	SSL_CTX *made;

	look(from, seen);
	if (are_same(seen, stamps))
		return;
	memcpy(stamps, seen, sizeof(seen));
	if (!aw_tls_context_make(from, &made, why)) {
		aw_log(AW_LOG_WARN, "tls: %s; the files as they were before are used", why);
		return;
	}
	aw_log(AW_LOG_INFO, "tls: certificate, key and ca were read again");
	aw_openssl.SSL_CTX_free(current);
	current = made;
}

static void begin(void)
{
	const struct aw_tls_settings *from = aw_tls_settings();
	char text[AW_TLS_CONTEXT_WHY_MAX] = "";
	const char *why = NULL;

	if (!aw_tls_is_used())
		return;
	check_err = EINVAL;
	if (!from)
		return;
	if (aw_tls_keylog_begin() != 0)
		return;
	aw_tls_want_begin();
	aw_lock(&lock);
	look(from, stamps);
	if (aw_openssl_load(&why) && aw_tls_context_make(from, &current, text))
		check_err = 0;
	aw_unlock(&lock);
	if (check_err)
		aw_log(AW_LOG_ERROR, "tls: %s; nothing connects", *text ? text : why);
}

int aw_tls_check(void)
{
	pthread_once(&once, begin);
	return check_err;
}

SSL_CTX *aw_tls_context_get(void)
{
	SSL_CTX *ctx = NULL;

	if (!aw_tls_is_used() || aw_tls_check() != 0 || !aw_openssl_is_alive())
		return NULL;
	aw_lock(&lock);
	renew(aw_tls_settings());
	if (current && aw_openssl.SSL_CTX_up_ref(current) == 1)
		ctx = current;
	aw_unlock(&lock);
	return ctx;
}

/* Another thread may have been about to change the context: the child reads the files again. */
static void renew_torn(void) AW_UNCHECKED
{
	pthread_mutex_init(&lock, NULL);
	current = NULL;
	memset(stamps, 0, sizeof(stamps));
}

static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.torn = renew_torn,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_TLS, &fork_handlers);
}
