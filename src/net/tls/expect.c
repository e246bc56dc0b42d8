// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/expect.h"

#include "net/base/addr.h"
#include "net/tls/tls_env.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* "*.example.org" is ".example.org" to OpenSSL, for which the second flag has it stand for one label. */
#define NAME_FLAGS (X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_SINGLE_LABEL_SUBDOMAINS)

/* The index of a session's own data that OpenSSL leaves to the program. */
#define AT_EXPECT 0

static const struct aw_openssl *const o = &aw_openssl;

void aw_tls_expect_init(struct aw_tls_expect *expect, const struct sockaddr *peer, bool accepts,
			const struct aw_tls_want *want)
{
	*expect = (struct aw_tls_expect){ .names = aw_tls_settings()->name };
	memcpy(&expect->peer, peer, aw_addr_len(peer));
	expect->name_count = expect->names ? 1 : 0;
	if (want->rule && want->rule->name_count > 0) {
		expect->names = want->rule->names;
		expect->name_count = want->rule->name_count;
		expect->rule_line = want->rule->line;
	}
	expect->by_address = expect->name_count == 0 && !accepts;
}

static const char *as_openssl_has_it(const char *name)
{
	return *name == '*' ? name + 1 : name;
}

static const char *next(const char *name)
{
	return name + strlen(name) + 1;
}

static bool set_names(const struct aw_tls_expect *expect, SSL *ssl, bool accepts)
{
	const char *name = expect->names, *asked = NULL;
	bool right = true;

	o->SSL_set_hostflags(ssl, NAME_FLAGS);
	for (uint32_t i = 0; i < expect->name_count && right; i++, name = next(name)) {
		if (!asked && *name != '*')
			asked = name;
		right = i == 0 ? o->SSL_set1_host(ssl, as_openssl_has_it(name)) == 1
			       : o->SSL_add1_host(ssl, as_openssl_has_it(name)) == 1;
	}
	if (!right || accepts || !asked)
		return right;
	return o->SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
			   (void *)(uintptr_t)asked) == 1;
}

/* The bytes of an address as a certificate has it. Returns their number. */
static size_t address_of(const struct sockaddr_storage *peer, const uint8_t **octets)
{
	const struct sockaddr_in *v4 = (const void *)peer;
	const struct sockaddr_in6 *v6 = (const void *)peer;

	if (peer->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		*octets = &v6->sin6_addr.s6_addr[12];
		return sizeof(v4->sin_addr);
	}
	if (peer->ss_family == AF_INET6) {
		*octets = v6->sin6_addr.s6_addr;
		return sizeof(v6->sin6_addr);
	}
	*octets = (const uint8_t *)&v4->sin_addr;
	return sizeof(v4->sin_addr);
}

static bool set_protocol(const struct aw_tls_expect *expect, SSL *ssl)
{
	unsigned char list[1 + AW_TLS_ALPN_MAX];
	size_t len = expect->alpn ? strlen(expect->alpn) : 0;

	if (!expect->alpn)
		return true;
	assert(len <= AW_TLS_ALPN_MAX);
	list[0] = (unsigned char)len;
	memcpy(list + 1, expect->alpn, len);
	return o->SSL_set_alpn_protos(ssl, list, (unsigned int)len + 1) == 0;
}

struct aw_tls_expect *aw_tls_expect_of(const SSL *ssl)
{
	return o->SSL_get_ex_data(ssl, AT_EXPECT);
}

bool aw_tls_expect_set(struct aw_tls_expect *expect, SSL *ssl, bool accepts)
{
	const uint8_t *octets;
	size_t len = address_of(&expect->peer, &octets);

	if (o->SSL_set_ex_data(ssl, AT_EXPECT, expect) != 1 ||
	    (!accepts && !set_protocol(expect, ssl)))
		return false;
	if (expect->name_count > 0)
		return set_names(expect, ssl, accepts);
	return !expect->by_address ||
	       o->X509_VERIFY_PARAM_set1_ip(o->SSL_get0_param(ssl), octets, len) == 1;
}

/* Finds the certificate's name that one of the names matches, for CRYPTO_free. NULL: none does. */
static char *match(const struct aw_tls_expect *expect, X509 *cert)
{
	const char *name = expect->names;
	char *found = NULL;

	for (uint32_t i = 0; i < expect->name_count && !found; i++, name = next(name))
		(void)o->X509_check_host(cert, as_openssl_has_it(name), 0, NAME_FLAGS, &found);
	return found;
}

static bool is_expected(const struct aw_tls_expect *expect, X509 *cert)
{
	const uint8_t *octets;
	size_t len = address_of(&expect->peer, &octets);
	char *found = match(expect, cert);

	o->CRYPTO_free(found, __FILE__, __LINE__);
	if (expect->name_count > 0)
		return found != NULL;
	return !expect->by_address || o->X509_check_ip(cert, octets, len, 0) == 1;
}

bool aw_tls_expect_holds(const struct aw_tls_expect *expect, const X509 *cert)
{
	return cert && o->X509_cmp_current_time(o->X509_get0_notBefore(cert)) < 0 &&
	       o->X509_cmp_current_time(o->X509_get0_notAfter(cert)) > 0 &&
	       is_expected(expect, (X509 *)(uintptr_t)cert);
}

void aw_tls_expect_name(const struct aw_tls_expect *expect, const X509 *cert, char *name,
			size_t size)
{
	char *found = match(expect, (X509 *)(uintptr_t)cert);

	if (found)
		snprintf(name, size, "%s", found);
	else
		o->X509_NAME_oneline(o->X509_get_subject_name(cert), name, (int)size);
	o->CRYPTO_free(found, __FILE__, __LINE__);
}
