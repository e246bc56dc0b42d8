// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of OpenSSL that are used, over the names of its structs, which the file that includes this has declared: by
// openssl.h, or by OpenSSL's own headers in the test that compares the two.
#ifndef NET_TLS_OPENSSL_FUNCTIONS_H
#define NET_TLS_OPENSSL_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef int aw_ssl_verify_fn(int ok, X509_STORE_CTX *ctx);
typedef int aw_ssl_password_fn(char *buf, int size, int rwflag, void *arg);
typedef int aw_ssl_alpn_fn(SSL *ssl, const unsigned char **out, unsigned char *outlen,
			   const unsigned char *in, unsigned int inlen, void *arg);
typedef int aw_ssl_hello_fn(SSL *ssl, int *alert, void *arg);
typedef void aw_ssl_keylog_fn(const SSL *ssl, const char *line);
typedef int aw_ssl_new_session_fn(SSL *ssl, SSL_SESSION *session);
typedef int aw_ssl_make_ticket_fn(SSL *ssl, void *arg);
typedef int aw_ssl_read_ticket_fn(SSL *ssl, SSL_SESSION *session, const unsigned char *key_name,
				  size_t key_name_len, int status, void *arg);
typedef int aw_bio_write_fn(BIO *bio, const char *from, int len);
typedef int aw_bio_read_fn(BIO *bio, char *to, int len);
typedef long aw_bio_ctrl_fn(BIO *bio, int cmd, long num, void *ptr);

/* F(result, name, parameters). */
// clang-format off
#define AW_OPENSSL_FUNCTIONS(F) \
	F(int, OPENSSL_init_ssl, (uint64_t opts, const OPENSSL_INIT_SETTINGS *settings)) \
	F(const SSL_METHOD *, TLS_method, (void)) \
	F(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *method)) \
	F(void, SSL_CTX_free, (SSL_CTX *ctx)) \
	F(int, SSL_CTX_up_ref, (SSL_CTX *ctx)) \
	F(long, SSL_CTX_ctrl, (SSL_CTX *ctx, int cmd, long num, void *ptr)) \
	F(int, SSL_CTX_use_certificate_chain_file, (SSL_CTX *ctx, const char *file)) \
	F(int, SSL_CTX_use_PrivateKey_file, (SSL_CTX *ctx, const char *file, int type)) \
	F(int, SSL_CTX_check_private_key, (const SSL_CTX *ctx)) \
	F(int, SSL_CTX_load_verify_file, (SSL_CTX *ctx, const char *file)) \
	F(void, SSL_CTX_set_verify, (SSL_CTX *ctx, int mode, aw_ssl_verify_fn *fn)) \
	F(void, SSL_set_verify, (SSL *ssl, int mode, aw_ssl_verify_fn *fn)) \
	F(void, SSL_CTX_set_default_passwd_cb, (SSL_CTX *ctx, aw_ssl_password_fn *fn)) \
	F(int, SSL_CTX_set_num_tickets, (SSL_CTX *ctx, size_t count)) \
	F(int, SSL_CTX_set_session_ticket_cb, (SSL_CTX *ctx, aw_ssl_make_ticket_fn *make, aw_ssl_read_ticket_fn *read, void *arg)) \
	F(int, SSL_CTX_set_session_id_context, (SSL_CTX *ctx, const unsigned char *id, unsigned int len)) \
	F(void, SSL_CTX_sess_set_new_cb, (SSL_CTX *ctx, aw_ssl_new_session_fn *fn)) \
	F(long, SSL_CTX_set_timeout, (SSL_CTX *ctx, long seconds)) \
	F(int, SSL_CTX_set_ex_data, (SSL_CTX *ctx, int index, void *data)) \
	F(void *, SSL_CTX_get_ex_data, (const SSL_CTX *ctx, int index)) \
	F(SSL_CTX *, SSL_get_SSL_CTX, (const SSL *ssl)) \
	F(int, SSL_set_ex_data, (SSL *ssl, int index, void *data)) \
	F(void *, SSL_get_ex_data, (const SSL *ssl, int index)) \
	F(int, SSL_set_session, (SSL *ssl, SSL_SESSION *session)) \
	F(int, SSL_session_reused, (const SSL *ssl)) \
	F(void, SSL_SESSION_free, (SSL_SESSION *session)) \
	F(X509 *, SSL_SESSION_get0_peer, (SSL_SESSION *session)) \
	F(int, SSL_set_alpn_protos, (SSL *ssl, const unsigned char *protos, unsigned int len)) \
	F(void, SSL_CTX_set_alpn_select_cb, (SSL_CTX *ctx, aw_ssl_alpn_fn *fn, void *arg)) \
	F(void, SSL_CTX_set_client_hello_cb, (SSL_CTX *ctx, aw_ssl_hello_fn *fn, void *arg)) \
	F(void, SSL_CTX_set_keylog_callback, (SSL_CTX *ctx, aw_ssl_keylog_fn *fn)) \
	F(int, SSL_client_hello_get0_ext, (SSL *ssl, unsigned int type, const unsigned char **out, size_t *len)) \
	F(SSL *, SSL_new, (SSL_CTX *ctx)) \
	F(void, SSL_free, (SSL *ssl)) \
	F(void, SSL_set_bio, (SSL *ssl, BIO *rbio, BIO *wbio)) \
	F(void, SSL_set_connect_state, (SSL *ssl)) \
	F(void, SSL_set_accept_state, (SSL *ssl)) \
	F(int, SSL_do_handshake, (SSL *ssl)) \
	F(int, SSL_read, (SSL *ssl, void *buf, int len)) \
	F(int, SSL_shutdown, (SSL *ssl)) \
	F(void, SSL_set_shutdown, (SSL *ssl, int mode)) \
	F(int, SSL_get_error, (const SSL *ssl, int result)) \
	F(long, SSL_ctrl, (SSL *ssl, int cmd, long num, void *ptr)) \
	F(int, SSL_set1_host, (SSL *ssl, const char *name)) \
	F(int, SSL_add1_host, (SSL *ssl, const char *name)) \
	F(void, SSL_set_hostflags, (SSL *ssl, unsigned int flags)) \
	F(X509_VERIFY_PARAM *, SSL_get0_param, (SSL *ssl)) \
	F(long, SSL_get_verify_result, (const SSL *ssl)) \
	F(void, SSL_get0_alpn_selected, (const SSL *ssl, const unsigned char **out, unsigned int *len)) \
	F(const SSL_CIPHER *, SSL_get_current_cipher, (const SSL *ssl)) \
	F(const char *, SSL_CIPHER_get_name, (const SSL_CIPHER *cipher)) \
	F(uint16_t, SSL_CIPHER_get_protocol_id, (const SSL_CIPHER *cipher)) \
	F(int, SSL_set_num_tickets, (SSL *ssl, size_t count)) \
	F(int, CRYPTO_get_ex_new_index, (int kind, long argl, void *argp, CRYPTO_EX_new *make, CRYPTO_EX_dup *copy, CRYPTO_EX_free *end)) \
	F(X509 *, SSL_get1_peer_certificate, (const SSL *ssl)) \
	F(const ASN1_TIME *, X509_get0_notBefore, (const X509 *cert)) \
	F(const ASN1_TIME *, X509_get0_notAfter, (const X509 *cert)) \
	F(int, X509_cmp_current_time, (const ASN1_TIME *time)) \
	F(int, X509_check_host, (X509 *cert, const char *name, size_t len, unsigned int flags, char **found)) \
	F(int, X509_check_ip, (X509 *cert, const unsigned char *ip, size_t len, unsigned int flags)) \
	F(void, CRYPTO_free, (void *ptr, const char *file, int line)) \
	F(int, X509_VERIFY_PARAM_set1_ip, (X509_VERIFY_PARAM *param, const unsigned char *ip, size_t len)) \
	F(const char *, X509_verify_cert_error_string, (long result)) \
	F(X509_NAME *, X509_get_subject_name, (const X509 *cert)) \
	F(char *, X509_NAME_oneline, (const X509_NAME *name, char *buf, int size)) \
	F(int, i2d_X509, (const X509 *cert, unsigned char **out)) \
	F(void, X509_free, (X509 *cert)) \
	F(int, BIO_get_new_index, (void)) \
	F(BIO_METHOD *, BIO_meth_new, (int type, const char *name)) \
	F(int, BIO_meth_set_read, (BIO_METHOD *method, aw_bio_read_fn *fn)) \
	F(int, BIO_meth_set_write, (BIO_METHOD *method, aw_bio_write_fn *fn)) \
	F(int, BIO_meth_set_ctrl, (BIO_METHOD *method, aw_bio_ctrl_fn *fn)) \
	F(BIO *, BIO_new, (const BIO_METHOD *method)) \
	F(const BIO_METHOD *, BIO_s_mem, (void)) \
	F(int, BIO_free, (BIO *bio)) \
	F(int, BIO_read, (BIO *bio, void *to, int len)) \
	F(int, BIO_write, (BIO *bio, const void *from, int len)) \
	F(size_t, BIO_ctrl_pending, (BIO *bio)) \
	F(void, BIO_set_data, (BIO *bio, void *data)) \
	F(void *, BIO_get_data, (BIO *bio)) \
	F(void, BIO_set_init, (BIO *bio, int init)) \
	F(void, BIO_set_flags, (BIO *bio, int flags)) \
	F(void, BIO_clear_flags, (BIO *bio, int flags)) \
	F(void, ERR_clear_error, (void)) \
	F(unsigned long, ERR_peek_error, (void)) \
	F(const char *, ERR_reason_error_string, (unsigned long error))
// clang-format on

#endif
