// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The numbers of OpenSSL that are used, by their names: as the product has them, and as OpenSSL's headers have them, which
// cannot be included in one file.
#ifndef TEST_OPENSSL_NUMBERS_H
#define TEST_OPENSSL_NUMBERS_H

#include <stddef.h>

// clang-format off
#define OPENSSL_NUMBERS(F) \
	F(SSL_ERROR_WANT_READ) F(SSL_ERROR_WANT_WRITE) F(SSL_ERROR_ZERO_RETURN) F(SSL_FILETYPE_PEM) F(SSL_VERIFY_PEER) \
	F(SSL_VERIFY_FAIL_IF_NO_PEER_CERT) F(SSL_CTRL_SET_READ_AHEAD) F(SSL_CTRL_SET_SESS_CACHE_MODE) \
	F(SSL_CTRL_SET_TLSEXT_HOSTNAME) F(SSL_CTRL_SET_MIN_PROTO_VERSION) \
	F(SSL_CLIENT_HELLO_SUCCESS) F(SSL_CLIENT_HELLO_ERROR) F(SSL_TLSEXT_ERR_OK) F(SSL_TLSEXT_ERR_ALERT_FATAL) \
	F(SSL_AD_REASON_OFFSET) F(SSL_AD_NO_APPLICATION_PROTOCOL) F(SSL_R_CERTIFICATE_VERIFY_FAILED) \
	F(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) F(SSL_R_UNSUPPORTED_PROTOCOL) F(TLS1_3_VERSION) \
	F(TLSEXT_NAMETYPE_host_name) F(TLSEXT_TYPE_application_layer_protocol_negotiation) F(OPENSSL_INIT_NO_ATEXIT) \
	F(BIO_FLAGS_READ) F(BIO_FLAGS_WRITE) F(BIO_FLAGS_RWS) F(BIO_FLAGS_SHOULD_RETRY) F(BIO_CTRL_EOF) F(BIO_CTRL_FLUSH) \
	F(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT) F(X509_CHECK_FLAG_SINGLE_LABEL_SUBDOMAINS) F(X509_V_OK) \
	F(X509_V_ERR_HOSTNAME_MISMATCH)
#define OPENSSL_NUMBER(name) { #name, (long)(name) },
// clang-format on

struct openssl_number {
	const char *name;
	long value;
};

extern const struct openssl_number openssl_numbers_there[];
extern const size_t openssl_numbers_there_count;

int openssl_reason_there(unsigned long error);

#endif
