// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/cause.h"

#include "base/array.h"
#include "net/tls/openssl.h"

#include <stdio.h>
#include <string.h>

/* The alerts of RFC 8446 6 by which a peer says what one of the two ends can mend. */
static const struct {
	int number;
	const char *text;
} alerts[] = {
	{ 42,
	  "bad certificate: it does not have the name or address that the peer wants: make one with that "
	  "subjectAltName, or give the peer's program --tls-name" },
	{ 43, "unsupported certificate: make one for both clientAuth and serverAuth" },
	{ 44, "certificate revoked: renew it here" },
	{ 45, "certificate expired: renew it here" },
	{ 46, "certificate unknown: see the log of the peer's program" },
	{ 48, "unknown ca: the peer's --tls-ca has not issued this end's certificate" },
	{ 70, "protocol version: the peer does not speak tls 1.3" },
	{ 116, "certificate required: the peer wants one of this end, and got none" },
	{ SSL_AD_NO_APPLICATION_PROTOCOL,
	  "no application protocol: the peer speaks tls without mpa: run its program by anywarp; sockets programs: "
	  "give both ends a rule on, or both tls-plain" },
};

/* The results of a verification that a user can mend (X509_V_ERR_...). */
static const struct {
	long result;
	const char *remedy;
} results[] = {
	{ 9, "look at the clocks of both hosts" },
	{ 10, "renew it there, and look at the clock here" },
	{ 18, "name the ca that issued it by --tls-ca here" },
	{ 19, "name the ca that issued it by --tls-ca here" },
	{ 20, "name the ca that issued it by --tls-ca here" },
	{ 21, "name the ca that issued it by --tls-ca here" },
	{ 26, "make one for both clientAuth and serverAuth there" },
	{ X509_V_ERR_HOSTNAME_MISMATCH,
	  "make one with the name of --tls-name as subjectAltName there, or correct --tls-name here" },
	{ 64,
	  "make one with that address as subjectAltName there, or give its name by --tls-name here" },
};

static const char no_records[] =
	"no application protocol: the peer does not carry records under tls: run its program by this version of "
	"anywarp sockets, or this one with ANYWARP_SOCKETS_RECORD=off";

static const char *alert_text(int reason, bool without_mpa)
{
	if (without_mpa && reason == SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL)
		return "no application protocol: the peer wants one by name, and tls-plain names none: a peer of "
		       "anywarp's needs a rule tls-plain as well";
	for (size_t i = 0; i < ARRAY_LEN(alerts); i++)
		if (reason == SSL_AD_REASON_OFFSET + alerts[i].number)
			return alerts[i].text;
	return NULL;
}

static const char *remedy_of(long result)
{
	for (size_t i = 0; i < ARRAY_LEN(results); i++)
		if (result == results[i].result)
			return results[i].remedy;
	return "see docs/tls.md for one that does";
}

static bool is_tls(const struct aw_tls_end *end)
{
	return end->first_len > 0 &&
	       (end->first[0] == AW_TLS_RECORD_ALERT || end->first[0] == AW_TLS_RECORD_HANDSHAKE);
}

static void explain_cut(const struct aw_tls_end *end, char *cause, size_t max)
{
	if (end->secured)
		snprintf(cause, max,
			 "the stream ended without tls's close_notify: the peer was killed, or the "
			 "stream was cut on the way");
	else if (is_tls(end))
		snprintf(cause, max,
			 "the peer closed in the middle of the tls handshake: see its log");
	else
		snprintf(cause, max, "the peer closed without a tls record: does %s",
			 end->without_mpa ? "it speak tls 1.3?"
					  : "its program run with --tls require?");
}

const char *aw_tls_plain_cause(const unsigned char *first, size_t len)
{
	if (len >= 4 && memcmp(first, "MPA ", 4) == 0)
		return "the peer speaks mpa without tls: run its program with --tls require, or this "
		       "one without";
	return "the peer speaks neither tls nor mpa: is its program an rdma one, and run by anywarp?";
}

static const char *strange_cause(const struct aw_tls_end *end)
{
	if (end->without_mpa)
		return "the peer speaks no tls: have it speak tls 1.3, or leave it to tcp by a rule off";
	return aw_tls_plain_cause(end->first, end->first_len);
}

/* The client's hello has the wrong protocol by ALPN, or none. */
static const char *other_protocol_cause(const struct aw_tls_end *end)
{
	if (end->without_mpa)
		return "the client wants mpa under tls: give both ends a rule tls-plain, or both on";
	if (end->for_records)
		return "the client asks for another protocol inside tls, or for none: it does not carry records "
		       "under tls";
	return "the client asks for another protocol inside tls, or for none: run its program by anywarp, with "
	       "the settings of this one; a sockets program here lets it in by a rule tls-plain";
}

static const char *no_certificate_cause(const struct aw_tls_end *end)
{
	if (end->without_mpa)
		return "the peer has no certificate: give its program one; a rule with client=any lets in "
		       "clients without";
	return "the peer has no certificate: run its program with --tls-cert and --tls-key";
}

static void explain_verification(const struct aw_tls_end *end, char *cause, size_t max)
{
	if (end->rule_line && end->verify == X509_V_ERR_HOSTNAME_MISMATCH)
		snprintf(cause, max,
			 "the peer's certificate is refused: %s: it has no name of line %u of "
			 "ANYWARP_TLS_RULES: make one with such a subjectAltName there, or add the "
			 "peer's to that line here",
			 end->verify_text, end->rule_line);
	else
		snprintf(cause, max, "the peer's certificate is refused: %s: %s", end->verify_text,
			 remedy_of(end->verify));
}

/* This end has found the fault itself, and OpenSSL's reason says which. */
static void explain_reason(const struct aw_tls_end *end, bool is_alert, char *cause, size_t max)
{
	switch (end->reason) {
	case SSL_R_CALLBACK_FAILED:
	case SSL_R_NO_APPLICATION_PROTOCOL:
		snprintf(cause, max, "%s", other_protocol_cause(end));
		return;
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		explain_verification(end, cause, max);
		return;
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		snprintf(cause, max, "%s", no_certificate_cause(end));
		return;
	case SSL_R_UNSUPPORTED_PROTOCOL:
		snprintf(cause, max, "the peer does not speak tls 1.3");
		return;
	}
	snprintf(cause, max, "tls: %s%s", end->reason_text ? end->reason_text : "failed",
		 is_alert ? " (the peer's alert)" : "");
}

void aw_tls_explain(const struct aw_tls_end *end, char *cause, size_t max)
{
	bool is_alert = end->reason >= SSL_AD_REASON_OFFSET &&
			end->reason < SSL_AD_REASON_OFFSET + 256;
	const char *alert = is_alert ? alert_text(end->reason, end->without_mpa) : NULL;

	if (end->for_records &&
	    end->reason == SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL)
		alert = no_records;

	if (alert)
		snprintf(cause, max, "the peer's tls alert: %s", alert);
	else if (end->io_errno)
		snprintf(cause, max, "%s", strerror(end->io_errno));
	else if (end->cut)
		explain_cut(end, cause, max);
	else if (!end->secured && end->first_len > 0 && !is_tls(end))
		snprintf(cause, max, "%s", strange_cause(end));
	else
		explain_reason(end, is_alert, cause, max);
}
