// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The TLS records of a record, and libcrypto's ciphers under them, beside the vectors of RFC 8448 and beside OpenSSL's own record
// layer: what one has made the other opens, with the secrets of a handshake between two of OpenSSL's ends in memory.
#include "record/sealed.h"

#include "../lib/record_calls.h"
#include "../lib/record_tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

const struct aw_record_calls aw_record_calls = { RECORD_CALLS, .cipher = &aw_cipher };

enum {
	CLIENT,
	SERVER
};

static const char *const suites[RECORD_TLS_SUITES] = {
	"TLS_AES_128_GCM_SHA256",
	"TLS_AES_256_GCM_SHA384",
	"TLS_CHACHA20_POLY1305_SHA256",
};

static SSL_CTX *contexts[2];
static SSL *ends[2];
static struct aw_record_key keys[2]; /* of what each end sends */
static uint8_t wire[2 * AW_SEALED_MAX], text[AW_SEALED_MAX];

static size_t unhex(const char *hex, uint8_t *to)
{
	size_t len = 0;

	for (; hex[0] && hex[1]; hex += 2) {
		unsigned byte;

		assert_int_equal(sscanf(hex, "%2x", &byte), 1);
		to[len++] = (uint8_t)byte;
	}
	return len;
}

static void note_secret(const SSL *ssl, const char *line)
{
	static const char *const labels[] = { "CLIENT_TRAFFIC_SECRET_0 ",
					      "SERVER_TRAFFIC_SECRET_0 " };

	(void)ssl;
	for (int i = 0; i < 2; i++)
		if (strncmp(line, labels[i], strlen(labels[i])) == 0)
			(void)unhex(strrchr(line, ' ') + 1, keys[i].secret);
}

static void use_certificate(SSL_CTX *ctx)
{
	EVP_PKEY *pkey = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	assert_true(X509_gmtime_adj(X509_getm_notBefore(cert), 0) &&
		    X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
	assert_int_equal(X509_set_pubkey(cert, pkey), 1);
	assert_true(X509_sign(cert, pkey, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, pkey), 1);
	X509_free(cert);
	EVP_PKEY_free(pkey);
}

/* Moves what `from` has to send to the other end. */
static void carry(int from)
{
	int n = BIO_read(SSL_get_wbio(ends[from]), wire, sizeof(wire));

	if (n > 0)
		assert_int_equal(BIO_write(SSL_get_rbio(ends[!from]), wire, n), n);
}

/* The key of the secret that is there. */
static void derive(struct aw_record_key *key, uint16_t suite)
{
	uint8_t secret[AW_TLS_SECRET_MAX];

	memcpy(secret, key->secret, sizeof(secret));
	assert_true(aw_key_begin(key, suite, secret));
}

/* Two ends of OpenSSL's after a handshake, and our keys of the same secrets. */
static void shake_hands(unsigned suite)
{
	memset(keys, 0, sizeof(keys));
	for (int i = 0; i < 2; i++) {
		contexts[i] = SSL_CTX_new(i == CLIENT ? TLS_client_method() : TLS_server_method());
		assert_int_equal(SSL_CTX_set_ciphersuites(contexts[i], suites[suite]), 1);
		SSL_CTX_set_min_proto_version(contexts[i], TLS1_3_VERSION);
		SSL_CTX_set_num_tickets(contexts[i], 0);
		SSL_CTX_set_keylog_callback(contexts[i], note_secret);
		if (i == SERVER)
			use_certificate(contexts[i]);
		ends[i] = SSL_new(contexts[i]);
		SSL_set_bio(ends[i], BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	}
	SSL_set_connect_state(ends[CLIENT]);
	SSL_set_accept_state(ends[SERVER]);
	for (int i = 0; i < 4; i++) {
		(void)SSL_do_handshake(ends[i % 2]);
		carry(i % 2);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(SSL_is_init_finished(ends[i]));
		keys[i].id = (uint64_t)i;
		derive(&keys[i], (uint16_t)(AW_SUITE_AES_128_GCM_SHA256 + suite));
	}
}

static void part(void)
{
	for (int i = 0; i < 2; i++) {
		SSL_free(ends[i]);
		SSL_CTX_free(contexts[i]);
	}
}

/* OpenSSL's end reads a record of ours. */
static void deliver(int from, const uint8_t *bytes, size_t len)
{
	assert_int_equal(BIO_write(SSL_get_rbio(ends[!from]), bytes, (int)len), len);
}

/* What OpenSSL's end has sent, as one record. */
static size_t record_from(int from)
{
	int n = BIO_read(SSL_get_wbio(ends[from]), wire, sizeof(wire));

	assert_true(n > 0);
	return (size_t)n;
}

static const size_t payloads[] = {
	1, 2, 15, 16, 17, 1023, 1024, 1025, 5000, AW_SEALED_PAYLOAD_MAX
};

/* Of each length, from memory in one piece and in forty. */
static void put_is_read_by_openssl(unsigned suite, int from)
{
	static uint8_t data[AW_SEALED_PAYLOAD_MAX];
	uint32_t msn = 1;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	shake_hands(suite);
	for (size_t i = 0; i < 2 * sizeof(payloads) / sizeof(payloads[0]); i++, msn++) {
		size_t payload = payloads[i / 2], piece = i % 2 ? payload / 40 + 1 : payload, len;
		struct iovec iov[41];
		struct aw_cursor cursor;
		int count = 0;

		for (size_t at = 0; at < payload; at += piece)
			iov[count++] = (struct iovec){ data + at, payload - at < piece
									  ? payload - at
									  : piece };
		cursor = aw_cursor_begin(iov, count);
		len = aw_sealed_put(&keys[from], wire, &cursor, payload, msn);
		assert_int_equal(len, AW_SEALED_DATA(payload));
		assert_int_equal(cursor.left, 0);
		deliver(from, wire, len);
		assert_int_equal(SSL_read(ends[!from], text, sizeof(text)), AW_FPDU_HEAD + payload);
		assert_int_equal(aw_fpdu_judge(text, msn), AW_OK);
		assert_memory_equal(text + AW_FPDU_HEAD, data, payload);
	}
	part();
}

static void put__is_read_by_openssl(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RECORD_TLS_SUITES; i++) {
		put_is_read_by_openssl(i, CLIENT);
		put_is_read_by_openssl(i, SERVER);
	}
}

/* Our KeyUpdates and OpenSSL's, one after the other, with bytes in between. */
static void update__is_openssls(void **state)
{
	struct aw_sealed_message message;
	struct aw_frame frame;

	(void)state;
	for (unsigned i = 0; i < 2 * RECORD_TLS_SUITES; i++) {
		int from = i % 2 ? SERVER : CLIENT;

		shake_hands(i / 2);
		for (int round = 0; round < 5; round++) {
			struct iovec iov = { (void *)"bytes", 5 };
			struct aw_cursor cursor = aw_cursor_begin(&iov, 1);
			size_t len = aw_sealed_put_update(&keys[from], wire);

			assert_int_equal(len, AW_SEALED_UPDATE);
			len += aw_sealed_put(&keys[from], wire + len, &cursor, 5, 1);
			deliver(from, wire, len);
			assert_int_equal(SSL_read(ends[!from], text, sizeof(text)),
					 AW_FPDU_HEAD + 5);

			/* In the other direction. */
			assert_int_equal(SSL_key_update(ends[!from],
							round % 2 ? SSL_KEY_UPDATE_REQUESTED
								  : SSL_KEY_UPDATE_NOT_REQUESTED),
					 1);
			assert_int_equal(SSL_do_handshake(ends[!from]), 1);
			len = record_from(!from);
			assert_true(aw_sealed_read(wire, &frame) && frame.kind == AW_FRAME_UPDATE &&
				    frame.len == len);
			assert_int_equal(aw_sealed_open(&keys[!from], wire, &frame, 1, &message),
					 AW_OK);
			assert_int_equal(message.asked, round % 2);
			assert_int_equal(SSL_write(ends[!from], "answer", 6), 6);
			len = record_from(!from);
			assert_true(aw_cipher.open(&keys[!from], wire, wire + AW_AEAD_HEAD,
						   len - AW_AEAD_HEAD - AW_AEAD_TAG));
			assert_memory_equal(wire + AW_AEAD_HEAD, "answer", 6);
			keys[!from].seq++;
		}
		part();
	}
}

static void alert__is_openssls(void **state)
{
	struct aw_sealed_message message;
	struct aw_frame frame;
	size_t len;

	(void)state;
	shake_hands(1);
	deliver(CLIENT, wire, aw_sealed_put_alert(&keys[CLIENT], wire, AW_TLS_CLOSE_NOTIFY));
	assert_int_equal(SSL_read(ends[SERVER], text, sizeof(text)), 0);
	assert_int_equal(SSL_get_error(ends[SERVER], 0), SSL_ERROR_ZERO_RETURN);
	(void)SSL_shutdown(ends[SERVER]);
	len = record_from(SERVER);
	assert_true(aw_sealed_read(wire, &frame) && frame.kind == AW_FRAME_ALERT &&
		    frame.len == len);
	assert_int_equal(aw_sealed_open(&keys[SERVER], wire, &frame, 1, &message), AW_OK);
	assert_int_equal(message.alert, AW_TLS_CLOSE_NOTIFY);
	part();
}

/* RFC 8448 3: the server's application traffic secret, its key and IV, and an alert sealed under the client's. */
static void begin__has_rfc_8448s_keys(void **state)
{
	struct aw_record_key key = { 0 };
	uint8_t right[AW_KEY_MAX];

	(void)state;
	(void)unhex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643", key.secret);
	derive(&key, AW_SUITE_AES_128_GCM_SHA256);
	(void)unhex("9f02283b6c9c07efc26bb9f2ac92e356", right);
	assert_memory_equal(key.key, right, 16);
	(void)unhex("cf782b88dd83549aadf1e984", right);
	assert_memory_equal(key.iv, right, AW_AEAD_IV);

	/* Its last record, the server's close_notify, is its third under this key. */
	key.seq = 2;
	assert_int_equal(aw_sealed_put_alert(&key, wire, AW_TLS_CLOSE_NOTIFY), AW_SEALED_ALERT);
	(void)unhex("1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9", right);
	assert_memory_equal(wire, right, AW_SEALED_ALERT);
}

static size_t put_small(struct aw_record_key *key)
{
	struct iovec iov = { (void *)"bytes", 5 };
	struct aw_cursor cursor = aw_cursor_begin(&iov, 1);

	return aw_sealed_put(key, wire, &cursor, 5, 1);
}

/* The nonce has more octets than one of the number. */
static void put__goes_on_behind_255(void **state)
{
	(void)state;
	shake_hands(0);
	for (int i = 0; i < 300; i++) {
		deliver(CLIENT, wire, put_small(&keys[CLIENT]));
		assert_int_equal(SSL_read(ends[SERVER], text, sizeof(text)), AW_FPDU_HEAD + 5);
	}
	part();
}

/* Any bit of header, text or tag. */
static void open__refuses_a_change(void **state)
{
	struct aw_record_key sends = { 0 }, gets;
	struct aw_sealed_message message;
	struct aw_frame frame;
	size_t len;

	(void)state;
	derive(&sends, AW_SUITE_CHACHA20_POLY1305_SHA256);
	len = AW_SEALED_DATA(5u);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		gets = sends;
		assert_int_equal(put_small(&sends), len);
		wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!aw_sealed_read(wire, &frame) || frame.len != len)
			continue;
		assert_int_equal(aw_sealed_open(&gets, wire, &frame, 1, &message), AW_E_MPA_CRC);
	}
	gets = sends;
	assert_int_equal(put_small(&sends), len);
	assert_true(aw_sealed_read(wire, &frame));
	gets.seq++;
	assert_int_equal(aw_sealed_open(&gets, wire, &frame, 1, &message), AW_E_MPA_CRC);
}

/* Right by its tag, and yet no record of an anywarp end. */
static void open__refuses_another_content(void **state)
{
	static const struct {
		const char *what;
		size_t len; /* of the content that is sealed, and of type and padding behind it */
		uint8_t bytes[64];
		enum aw_error error;
	} rows[] = {
		{ "an FPDU longer than its record", 27, { 0, 24, 0, 0 }, AW_E_MPA_FRAME },
		{ "an alert as data", 3, { 1, 0, 23 }, AW_E_MPA_FRAME },
		{ "a NewSessionTicket as KeyUpdate", 6, { 4, 0, 0, 1, 0, 22 }, AW_E_MPA_FRAME },
		{ "a KeyUpdate that asks for a third thing",
		  6,
		  { 24, 0, 0, 1, 2, 22 },
		  AW_E_MPA_FRAME },
		{ "a KeyUpdate as data", 6, { 24, 0, 0, 1, 0, 23 }, AW_E_MPA_FRAME },
		{ "data as an urgent byte", 22, { 0, 19 }, AW_E_MPA_FRAME },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct aw_record_key sends = { 0 }, gets;
		struct iovec piece = { (void *)(uintptr_t)rows[i].bytes, rows[i].len };
		uint8_t head[] = { 23, 3, 3, 0, (uint8_t)(rows[i].len + AW_AEAD_TAG) };
		struct aw_sealed_message message;
		struct aw_frame frame;

		derive(&sends, AW_SUITE_AES_256_GCM_SHA384);
		gets = sends;
		memcpy(wire, head, sizeof(head));
		assert_true(aw_cipher.seal(&sends, head, &piece, 1, wire + AW_AEAD_HEAD));
		assert_true(aw_sealed_read(wire, &frame));
		if (aw_sealed_open(&gets, wire, &frame, 1, &message) != rows[i].error)
			fail_msg("%s is taken", rows[i].what);
	}
}

/* Each length is one kind's, or none's. */
static void read__has_bounds(void **state)
{
	struct aw_frame frame;

	(void)state;
	for (unsigned len = 0; len <= UINT16_MAX; len++) {
		const uint8_t head[] = { 23, 3, 3, (uint8_t)(len >> 8), (uint8_t)len };
		size_t all = AW_AEAD_HEAD + len;
		bool right = all == AW_SEALED_ALERT || all == AW_SEALED_UPDATE ||
			     (all >= AW_SEALED_URGENT && all <= AW_SEALED_MAX);

		assert_int_equal(aw_sealed_read(head, &frame), right);
		assert_true(!right || frame.len == all);
		assert_true(!right || frame.payload <= AW_SEALED_PAYLOAD_MAX);
		assert_true(!right || frame.kind != AW_FRAME_DATA ||
			    AW_SEALED_DATA(frame.payload) == all);
	}
	assert_false(aw_sealed_read((const uint8_t[]){ 22, 3, 3, 0, 50 }, &frame));
	assert_false(aw_sealed_read((const uint8_t[]){ 23, 3, 1, 0, 50 }, &frame));
}

static int load(void **state)
{
	(void)state;
	return record_tls_is_there() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__is_read_by_openssl),
		cmocka_unit_test(update__is_openssls),
		cmocka_unit_test(alert__is_openssls),
		cmocka_unit_test(begin__has_rfc_8448s_keys),
		cmocka_unit_test(put__goes_on_behind_255),
		cmocka_unit_test(open__refuses_a_change),
		cmocka_unit_test(open__refuses_another_content),
		cmocka_unit_test(read__has_bounds),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
