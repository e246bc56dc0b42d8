// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What TLS 1.3's records are by their octets, and the messages and alerts that they may hold beside data behind the handshake
// (RFC 8446 4.6, 5.1, 6).
#ifndef CRYPTO_MESSAGE_H
#define CRYPTO_MESSAGE_H

#include "crypto/key.h"

enum aw_tls_content {
	AW_TLS_ALERT = 21,
	AW_TLS_HANDSHAKE = 22,
	AW_TLS_DATA = 23,
};

enum {
	AW_TLS_NEW_SESSION_TICKET = 4,
	AW_TLS_KEY_UPDATE = 24,
	AW_TLS_MESSAGE_HEAD = 4, /* type, and three octets of length */
	AW_TLS_UPDATE_LEN = AW_TLS_MESSAGE_HEAD + 1,
	AW_TLS_ALERT_LEN = 2,
};

/* Alerts. */
enum {
	AW_TLS_CLOSE_NOTIFY = 0,
	AW_TLS_UNEXPECTED_MESSAGE = 10,
	AW_TLS_BAD_RECORD_MAC = 20,
	AW_TLS_RECORD_OVERFLOW = 22,
	AW_TLS_ILLEGAL_PARAMETER = 47,
	AW_TLS_DECODE_ERROR = 50,
	AW_TLS_INTERNAL_ERROR = 80,
	AW_TLS_USER_CANCELED = 90,
};

/* The head of a record whose content has so many octets, type and padding among them. */
static inline void aw_tls_put_head(uint8_t head[AW_AEAD_HEAD], size_t inner)
{
	size_t len = inner + AW_AEAD_TAG;

	head[0] = AW_TLS_DATA;
	head[1] = head[2] = 3;
	head[3] = (uint8_t)(len >> 8);
	head[4] = (uint8_t)len;
}

/* Behind the handshake every record is of this type to the outside, an alert as well. */
static inline bool aw_tls_head_is_right(const uint8_t head[AW_AEAD_HEAD])
{
	return head[0] == AW_TLS_DATA && head[1] == 3 && head[2] == 3;
}

/* The octets of the record that begins so, its head among them. */
static inline size_t aw_tls_record_len(const uint8_t head[AW_AEAD_HEAD])
{
	return AW_AEAD_HEAD + ((size_t)head[3] << 8 | head[4]);
}

/* RFC 8446 6: close_notify alone ends only a direction. */
static inline void aw_tls_put_alert(uint8_t to[AW_TLS_ALERT_LEN], uint8_t alert)
{
	to[0] = alert == AW_TLS_CLOSE_NOTIFY ? 1 : 2;
	to[1] = alert;
}

/* A KeyUpdate that asks for none in return. */
static inline void aw_tls_put_update(uint8_t to[AW_TLS_UPDATE_LEN])
{
	to[0] = AW_TLS_KEY_UPDATE;
	to[1] = to[2] = 0;
	to[3] = 1;
	to[4] = 0;
}

/* The octets of a message of the handshake behind its head. */
static inline size_t aw_tls_message_len(const uint8_t head[AW_TLS_MESSAGE_HEAD])
{
	return (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
}

/* Of a whole KeyUpdate: *asked is whether the peer wants one in return. */
static inline bool aw_tls_read_update(const uint8_t message[AW_TLS_UPDATE_LEN], bool *asked)
{
	if (message[0] != AW_TLS_KEY_UPDATE || aw_tls_message_len(message) != 1 || message[4] > 1)
		return false;
	*asked = message[4] == 1;
	return true;
}

#endif
