// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tls_peer.h"

#include "fuzz.h"
#include "net/tls/alpn.h"
#include "net/tls/tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <unistd.h>

#define STEPS_MAX 100 /* of a handshake */

static char folder[] = "/tmp/fuzz-tls-XXXXXX";
static char cert_file[64], key_file[64];
static SSL_CTX *client;
static uint8_t secret[32]; /* of the handshake that is under way */
static size_t secret_len;

static void remove_files(void)
{
	unlink(cert_file);
	unlink(key_file);
	rmdir(folder);
}

static void add_extension(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	FUZZ_CHECK(extension && X509_add_ext(cert, extension, -1) == 1);
	X509_EXTENSION_free(extension);
}

/* One certificate for both ends, which is its own CA. */
static X509 *make_certificate(EVP_PKEY *key)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 365L * 24 * 3600);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)"fuzz", -1, -1, 0);
	X509_set_issuer_name(cert, name);
	X509_set_pubkey(cert, key);
	add_extension(cert, NID_basic_constraints, "CA:TRUE");
	add_extension(cert, NID_subject_alt_name, "IP:127.0.0.1");
	FUZZ_CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
	return cert;
}

static void write_files(X509 *cert, EVP_PKEY *key)
{
	FILE *file;

	FUZZ_CHECK(mkdtemp(folder) != NULL);
	snprintf(cert_file, sizeof(cert_file), "%s/cert", folder);
	snprintf(key_file, sizeof(key_file), "%s/key", folder);
	atexit(remove_files);
	file = fopen(cert_file, "w");
	FUZZ_CHECK(file && PEM_write_X509(file, cert) == 1);
	fclose(file);
	file = fopen(key_file, "w");
	FUZZ_CHECK(file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
	fclose(file);
}

/* "CLIENT_TRAFFIC_SECRET_0", the client's random and the secret, in hexadecimal digits. */
static void keep_secret(const SSL *ssl, const char *line)
{
	static const char label[] = "CLIENT_TRAFFIC_SECRET_0 ";
	const char *digits = strrchr(line, ' ') + 1;

	(void)ssl;
	if (strncmp(line, label, strlen(label)) == 0)
		FUZZ_CHECK(OPENSSL_hexstr2buf_ex(secret, sizeof(secret), &secret_len, digits,
						 '\0') == 1);
}

void tls_peer_begin(void)
{
	static const uint8_t alpn[] = "\x0b" AW_TLS_ALPN;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = make_certificate(key);

	write_files(cert, key);
	setenv("ANYWARP_TLS", "require", 1);
	setenv("ANYWARP_TLS_CERT", cert_file, 1);
	setenv("ANYWARP_TLS_CA", cert_file, 1);
	setenv("ANYWARP_TLS_KEY", key_file, 1);
	client = SSL_CTX_new(TLS_client_method());
	FUZZ_CHECK(SSL_CTX_use_certificate(client, cert) == 1);
	FUZZ_CHECK(SSL_CTX_use_PrivateKey(client, key) == 1);
	FUZZ_CHECK(SSL_CTX_set_ciphersuites(client, "TLS_AES_128_GCM_SHA256") == 1);
	FUZZ_CHECK(SSL_CTX_set_alpn_protos(client, alpn, sizeof(alpn) - 1) == 0);
	SSL_CTX_set_keylog_callback(client, keep_secret);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* HKDF-Expand-Label (RFC 8446 7.1) without a context, of one block at most. */
static void expand(const uint8_t from[32], const char *label, uint8_t *to, size_t len)
{
	uint8_t info[64] = { 0, (uint8_t)len }, block[32];
	size_t at = 3 + (size_t)snprintf((char *)info + 3, sizeof(info) - 3, "tls13 %s", label);

	info[2] = (uint8_t)(at - 3);
	info[at++] = 0;
	info[at++] = 1;
	FUZZ_CHECK(HMAC(EVP_sha256(), from, 32, info, at, block, NULL) != NULL);
	memcpy(to, block, len);
}

static void begin_keys(struct tls_sealer *sealer, const uint8_t with[32])
{
	memcpy(sealer->secret, with, sizeof(sealer->secret));
	expand(with, "key", sealer->key, sizeof(sealer->key));
	expand(with, "iv", sealer->iv, sizeof(sealer->iv));
	sealer->number = 0;
}

void tls_peer_renew(struct tls_sealer *sealer)
{
	uint8_t next[32];

	expand(sealer->secret, "traffic upd", next, sizeof(next));
	begin_keys(sealer, next);
}

struct aw_tls *tls_peer_connect(const int fd[2], struct tls_sealer *sealer)
{
	struct sockaddr_in peer = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct aw_tls_want want = { .mode = AW_TLS_REQUIRE };
	enum aw_tls_io io = AW_TLS_MORE;
	SSL *ssl = SSL_new(client);
	struct aw_tls *tls;

	FUZZ_CHECK(aw_tls_create(fd[1], (struct sockaddr *)&peer, true, &want, &tls) == 0);
	FUZZ_CHECK(SSL_set_fd(ssl, fd[0]) == 1);
	SSL_set_connect_state(ssl);
	for (int i = 0; i < STEPS_MAX && io == AW_TLS_MORE; i++) {
		ERR_clear_error();
		(void)SSL_do_handshake(ssl);
		io = aw_tls_handshake(tls);
	}
	FUZZ_CHECK(io == AW_TLS_DONE && secret_len == sizeof(secret));
	SSL_free(ssl);
	begin_keys(sealer, secret);
	return tls;
}

static void seal(const struct tls_sealer *sealer, size_t len, uint8_t *record)
{
	uint8_t nonce[12];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;

	memcpy(nonce, sealer->iv, sizeof(nonce));
	for (int i = 0; i < 8; i++)
		nonce[11 - i] ^= (uint8_t)(sealer->number >> 8 * i);
	FUZZ_CHECK(EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, sealer->key, nonce) == 1);
	FUZZ_CHECK(EVP_EncryptUpdate(ctx, NULL, &n, record, 5) == 1);
	FUZZ_CHECK(EVP_EncryptUpdate(ctx, record + 5, &n, record + 5, (int)len) == 1);
	FUZZ_CHECK(EVP_EncryptFinal_ex(ctx, record + 5 + n, &n) == 1);
	FUZZ_CHECK(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, record + 5 + len) == 1);
	EVP_CIPHER_CTX_free(ctx);
}

size_t tls_peer_seal(struct tls_sealer *sealer, enum tls_type type, const void *content, size_t len,
		     size_t padding, uint8_t *record)
{
	size_t inner = len + 1 + padding;
	const uint8_t header[] = { TLS_DATA, 3, 3, (uint8_t)((inner + 16) >> 8),
				   (uint8_t)(inner + 16) };

	memcpy(record, header, sizeof(header));
	if (len)
		memcpy(record + 5, content, len);
	record[5 + len] = (uint8_t)type;
	memset(record + 5 + len + 1, 0, padding);
	seal(sealer, inner, record);
	sealer->number++;
	return 5 + inner + 16;
}
