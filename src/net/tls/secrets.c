// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/secrets.h"

#include "base/hex.h"

#include <pthread.h>
#include <string.h>

#define CLIENT "CLIENT_TRAFFIC_SECRET_0 "
#define SERVER "SERVER_TRAFFIC_SECRET_0 "
#define RANDOM_DIGITS 64 /* of the client's random, by which a key log knows the connection */
#define LABEL_LEN (sizeof(CLIENT) - 1)
_Static_assert(sizeof(CLIENT) == sizeof(SERVER), "one length for both");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int at = -1; /* of a session's own data; negative: memory is out */

static void make_index(void)
{
	at = aw_openssl.CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL, 0, NULL, NULL, NULL, NULL);
}

bool aw_tls_secrets_keep(SSL *ssl, struct aw_tls_secrets *secrets)
{
	pthread_once(&once, make_index);
	return at >= 0 && aw_openssl.SSL_set_ex_data(ssl, at, secrets) == 1;
}

void aw_tls_secrets_note(const SSL *ssl, const char *line)
{
	struct aw_tls_secrets *secrets;

	pthread_once(&once, make_index);
	secrets = at >= 0 ? aw_openssl.SSL_get_ex_data(ssl, at) : NULL;
	if (secrets)
		aw_tls_secrets_read(secrets, line);
}

void aw_tls_secrets_read(struct aw_tls_secrets *secrets, const char *line)
{
	bool is_client = strncmp(line, CLIENT, LABEL_LEN) == 0;
	size_t len = strlen(line), head = LABEL_LEN + RANDOM_DIGITS + 1, bytes;
	uint8_t secret[AW_TLS_SECRET_MAX];

	if ((!is_client && strncmp(line, SERVER, LABEL_LEN) != 0) || len <= head ||
	    line[head - 1] != ' ')
		return;
	bytes = (len - head) / 2;
	if ((len - head) % 2 || bytes > AW_TLS_SECRET_MAX ||
	    (secrets->len && secrets->len != bytes) || !aw_hex_read(line + head, secret, bytes))
		return;
	memcpy(is_client ? secrets->client : secrets->server, secret, bytes);
	secrets->len = (uint8_t)bytes;
	if (is_client)
		secrets->client_is_known = true;
	else
		secrets->server_is_known = true;
}
