// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OpenSSL 3's libssl, and what else of libcrypto a handshake needs: as crypto/libcrypto.h has it for the records.
#ifndef NET_TLS_OPENSSL_H
#define NET_TLS_OPENSSL_H

#include "crypto/libcrypto.h"

#define AW_OPENSSL_LIBRARY "libssl.so.3"
#define AW_OPENSSL_REASON(error) ((int)((error)&0x7fffff)) /* ERR_GET_REASON of openssl/err.h */
#define AW_OPENSSL_SSL_ERROR(reason) \
	(20ul << 23 | (unsigned long)(reason)) /* ERR_PACK, of ERR_LIB_SSL */

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_cipher_st SSL_CIPHER;
typedef struct ssl_session_st SSL_SESSION;
typedef struct asn1_string_st ASN1_TIME;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct x509_st X509;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct X509_name_st X509_NAME;
typedef struct X509_VERIFY_PARAM_st X509_VERIFY_PARAM;
typedef struct crypto_ex_data_st CRYPTO_EX_DATA;
typedef void CRYPTO_EX_new(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl,
			   void *argp);
typedef void CRYPTO_EX_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl,
			    void *argp);
typedef int CRYPTO_EX_dup(CRYPTO_EX_DATA *to, const CRYPTO_EX_DATA *from, void **data, int index,
			  long argl, void *argp);

#include "net/tls/openssl_functions.h"

enum {
	SSL_ERROR_WANT_READ = 2,
	SSL_ERROR_WANT_WRITE = 3,
	SSL_ERROR_ZERO_RETURN = 6,
	SSL_FILETYPE_PEM = 1,
	SSL_VERIFY_PEER = 1,
	SSL_VERIFY_FAIL_IF_NO_PEER_CERT = 2,
	SSL_CTRL_MODE = 33,
	SSL_CTRL_SET_SESS_CACHE_MODE = 44,
	SSL_CTRL_SET_TLSEXT_HOSTNAME = 55,
	SSL_CTRL_SET_MIN_PROTO_VERSION = 123,
	SSL_SESS_CACHE_CLIENT = 0x0001,
	SSL_SESS_CACHE_NO_INTERNAL = 0x0300,
	SSL_TICKET_SUCCESS = 5,
	SSL_TICKET_SUCCESS_RENEW = 6,
	SSL_TICKET_RETURN_IGNORE_RENEW = 2,
	SSL_TICKET_RETURN_USE_RENEW = 4,
	SSL_MODE_RELEASE_BUFFERS = 0x10,
	SSL_SENT_SHUTDOWN = 1,
	SSL_CLIENT_HELLO_SUCCESS = 1,
	SSL_CLIENT_HELLO_ERROR = 0,
	SSL_TLSEXT_ERR_OK = 0,
	SSL_TLSEXT_ERR_ALERT_FATAL = 2,
	SSL_TLSEXT_ERR_NOACK = 3,
	SSL_AD_REASON_OFFSET = 1000,
	SSL_AD_NO_APPLICATION_PROTOCOL = 120,
	SSL_R_CERTIFICATE_VERIFY_FAILED = 134,
	SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE = 199,
	SSL_R_CALLBACK_FAILED = 234,
	SSL_R_NO_APPLICATION_PROTOCOL = 235,
	SSL_R_UNSUPPORTED_PROTOCOL = 258,
	TLS1_3_VERSION = 0x0304,
	TLSEXT_NAMETYPE_host_name = 0,
	TLSEXT_TYPE_application_layer_protocol_negotiation = 16,
	CRYPTO_EX_INDEX_SSL = 0,
	BIO_FLAGS_READ = 0x01,
	BIO_FLAGS_WRITE = 0x02,
	BIO_FLAGS_RWS = 0x07,
	BIO_FLAGS_SHOULD_RETRY = 0x08,
	BIO_CTRL_EOF = 2,
	BIO_CTRL_FLUSH = 11,
	X509_CHECK_FLAG_NEVER_CHECK_SUBJECT = 0x20,
	X509_CHECK_FLAG_SINGLE_LABEL_SUBDOMAINS = 0x10,
	X509_V_OK = 0,
	X509_V_ERR_HOSTNAME_MISMATCH = 62,
};

/* Fixed once loaded. */
struct aw_openssl {
	AW_OPENSSL_FUNCTIONS(AW_LIBCRYPTO_MEMBER)
};

/* Valid once aw_openssl_load has succeeded. */
extern struct aw_openssl aw_openssl;

/*
 * Behind aw_openssl_load. False: exit(3) has ended OpenSSL, as it does where the program was the first to begin it, and none of its
 * functions may be called any more.
 */
bool aw_openssl_is_alive(void);

/* True when libssl and libcrypto are loaded. False: *why says what is missing, for the process's life. The caller serializes the calls. */
bool aw_openssl_load(const char **why) __attribute__((warn_unused_result));

#endif
