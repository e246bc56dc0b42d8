// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record whose peer sends what it likes, in pieces: whatever it is, no byte of the program's beyond those that a call returns is
// written, what is returned has stood in FPDUs that are right, and a connection that failed stays so. The same of a record under TLS,
// whose peer has the keys.
#include "fuzz.h"

#include "../lib/record_tls.h"
#include "record/record.h"
#include "wire/octets.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/ioctl.h>

#define STEPS_MAX 200
#define GUARD 0xa5
#define ROOM_MAX 3000u
#define PEER_MAX 65536u

static struct aw_record record;
static uint8_t peer[PEER_MAX];
static size_t peer_len, peer_at, arrived;
static int peek_offset = -1; /* of SO_PEEK_OFF */
static bool terminated;

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t begin = peer_at + (flags & MSG_PEEK && peek_offset > 0 ? (size_t)peek_offset : 0),
	       at = begin;

	(void)fd;
	errno = EINVAL;
	if (flags & MSG_OOB)
		return -1;
	if (at == arrived && arrived == peer_len)
		return 0;
	if (at == arrived) {
		errno = EAGAIN;
		return -1;
	}
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		size_t n = msg->msg_iov[i].iov_len < arrived - at ? msg->msg_iov[i].iov_len
								  : arrived - at;

		memcpy(msg->msg_iov[i].iov_base, peer + at, n);
		at += n;
	}
	at -= begin;
	peer_at += flags & MSG_PEEK ? 0 : at;
	return (ssize_t)at;
}

/* The record sends nothing but its Terminate. */
static ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	(void)fd;
	(void)flags;
	FUZZ_CHECK(msg->msg_iovlen == 1 && !terminated);
	terminated = true;
	return (ssize_t)msg->msg_iov[0].iov_len;
}

static int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	(void)fd, (void)level;
	if (name == SO_PEEK_OFF) {
		FUZZ_CHECK(len == sizeof(peek_offset));
		memcpy(&peek_offset, value, len);
		FUZZ_CHECK(peek_offset <= (int)(arrived - peer_at));
	}
	return 0;
}

static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	(void)fd, (void)level, (void)name, (void)value, (void)len;
	return -1;
}

static int fake_shutdown(int fd, int how)
{
	(void)fd, (void)how;
	return 0;
}

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	FUZZ_CHECK(count == 1 && timeout_ms == 0);
	fds->revents = (short)(peer_at < arrived || arrived == peer_len ? POLLIN & fds->events : 0);
	return fds->revents != 0;
}

/* Urgent FPDUs come without an urgent pointer: tests/prop/prop_record_marks.c has the pointers. */
static int fake_ioctl(int fd, unsigned long request, int *answer)
{
	(void)fd;
	*answer = request == FIONREAD ? (int)(arrived - peer_at) : 0;
	return 0;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = fake_recvmsg,
	.sendmsg = fake_sendmsg,
	.getsockopt = fake_getsockopt,
	.setsockopt = fake_setsockopt,
	.shutdown = fake_shutdown,
	.poll = fake_poll,
	.ioctl = fake_ioctl,
	.cipher = &aw_cipher,
};

static void receive_some(struct bytes *b)
{
	static uint8_t buffer[ROOM_MAX + 1];
	size_t room = 1 + bytes_u16(b) % ROOM_MAX, half = room / 2;
	struct iovec iov[] = { { buffer, half }, { buffer + half, room - half } };
	bool ended = record.rx.ended && !record.rx.error, looks = bytes_u8(b) % 3 == 0;
	const uint8_t *rest, *last = buffer + ROOM_MAX;
	ssize_t n;

	memset(buffer, GUARD, sizeof(buffer));
	n = looks ? aw_record_peek(&record, 0, iov, 2, NULL)
		  : aw_record_receive(&record, 0, iov, 2, 0);
	FUZZ_CHECK(n <= (ssize_t)room);
	rest = buffer + (n > 0 ? n : 0);
	FUZZ_CHECK(memcmp(rest, rest + 1, (size_t)(last - rest)) == 0 && *last == GUARD);
	FUZZ_CHECK(n >= 0 || n == -EAGAIN || n == -EPROTO || n == -ECONNRESET);
	FUZZ_CHECK(!ended || n == 0);
	FUZZ_CHECK(n <= 0 || looks || record.rx.msn > 1);
	if (record.rx.fault)
		aw_record_end(&record, 0);
	FUZZ_CHECK(terminated == (record.rx.fault && record.rx.fault != AW_E_MPA_CLOSED));
}

/* A count from the last one on is the same as one from the beginning. */
static void count(void)
{
	static struct aw_record copy;
	ssize_t n = aw_record_pending(&record, 0);

	FUZZ_CHECK(n >= 0 || aw_record_is_failure(n));
	FUZZ_CHECK(peek_offset == -1);
	if (n < 0)
		return;
	copy = record;
	copy.rx.count.known = false;
	FUZZ_CHECK(aw_record_pending(&copy, 0) == n);
}

/* What the program may ask beside. */
static void ask_some(struct bytes *b)
{
	uint8_t byte;

	switch (bytes_u8(b) % 4) {
	case 0:
		count();
		break;
	case 1:
		FUZZ_CHECK(!aw_record_is_at_mark(&record, 0));
		break;
	case 2:
		FUZZ_CHECK(aw_record_receive_urgent(&record, 0, &byte, 0) < 0);
		break;
	default:
		break;
	}
}

/* A fuzzer does not find a right CRC: whole FPDUs of the peer's get theirs. */
static void mend_crcs(void)
{
	size_t payload;

	for (size_t at = 0; peer_len - at >= FPDU_LEN_FIELD && aw_fpdu_payload(peer + at, &payload);
	     at += aw_fpdu_len(payload)) {
		if (peer_len - at < aw_fpdu_len(payload))
			return;
		aw_fpdu_put_trailer(peer + at, payload);
	}
}

/* Content of some length that a fuzzer does not find: of three records in four an FPDU that is due. Returns whether it is a KeyUpdate. */
static bool mend_content(uint8_t *text, size_t inner, uint32_t *msn)
{
	const size_t least = AW_FPDU_HEAD + 3;
	static const uint8_t update[] = { 24, 0, 0, 1, 0, 22 };

	if (inner == sizeof(update) && text[0] % 4) {
		memcpy(text, update, sizeof(update));
		return true;
	}
	if (inner < least || text[0] % 4 == 0)
		return inner == sizeof(update) && memcmp(text, update, sizeof(update)) == 0;
	aw_fpdu_put_head(text, inner - AW_FPDU_HEAD - 2, ++*msn);
	text[inner - 2] = 23;
	text[inner - 1] = 0;
	return false;
}

/* A fuzzer finds no right tag either: makes TLS records of the peer's bytes, each at the place and of the length that its bytes say. */
static void seal_records(struct aw_record_key key)
{
	uint32_t msn = 0;
	size_t at = 0;

	while (peer_len - at >= AW_SEALED_ALERT) {
		uint8_t *head = peer + at, *text = head + AW_AEAD_HEAD;
		size_t len = AW_SEALED_ALERT - AW_AEAD_HEAD + get_be16(head + 3) % 999u,
		       inner = len - AW_AEAD_TAG;
		struct iovec piece = { text, inner };
		bool is_update;

		if (head[0] % 16 == 0 || peer_len - at < AW_AEAD_HEAD + len)
			return;
		head[0] = 23;
		put_be16(head + 1, 0x0303);
		put_be16(head + 3, (uint16_t)len);
		is_update = mend_content(text, inner, &msn);
		FUZZ_CHECK(aw_cipher.seal(&key, head, &piece, 1, text));
		key.seq++;
		FUZZ_CHECK(!is_update || aw_key_update(&key));
		at += AW_AEAD_HEAD + len;
	}
}

static void begin(struct bytes *b)
{
	struct aw_record_secrets secrets =
		record_tls_secrets(bytes_u8(b) % RECORD_TLS_SUITES, true);

	if (bytes_bool(b) && record_tls_is_there()) {
		FUZZ_CHECK(aw_record_secure(&record, 0, &secrets) == 0);
		if (!bytes_bool(b))
			seal_records(record.rx.key);
		return;
	}
	aw_record_init(&record);
	if (!bytes_bool(b))
		mend_crcs();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len < 64 ? len : 64 };

	peer_len = len - b.left < PEER_MAX ? len - b.left : PEER_MAX;
	memcpy(peer, data + b.left, peer_len);
	peer_at = arrived = 0;
	terminated = false;
	begin(&b);
	for (int i = 0; i < STEPS_MAX; i++) {
		size_t more = i % 3 ? bytes_u16(&b) % 999 : peer_len;

		arrived = peer_len - arrived < more ? peer_len : arrived + more;
		ask_some(&b);
		receive_some(&b);
	}
	return 0;
}
