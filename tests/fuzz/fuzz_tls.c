// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP under TLS whose peer cuts its FPDUs into records, and records into segments, as it likes, with empty records, padding, alerts
// and key updates between: whatever stands in whole records before the first that is wrong is received, in order and to the byte,
// and nothing else is.
#include "fuzz.h"
#include "tls_peer.h"

#include "crc/crc.h"
#include "lib/tcp.h"
#include "lib/uqp_pair.h"
#include "net/cq/cq.h"
#include "net/progress/engine.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SENDS_MAX 8u
#define RECVS (SENDS_MAX + 1)
#define RECV_ROOM 32768u
#define PAYLOAD_MAX 20000u
#define HEAD 20u /* MPA's length, and DDP's untagged header with RDMAP's control field */
#define STREAM_MAX (SENDS_MAX * (HEAD + PAYLOAD_MAX + 8))
#define PADDING_MAX 1500u
#define WIRE_MAX (1u << 20)
#define OPS_MAX 400
#define EMPTY_MAX 30u /* OpenSSL takes 32 in a row */
#define WARNINGS_MAX 4u /* and 5 of these */
#define POLLS_MAX 2000

static struct scene {
	struct bytes b;
	struct end end;
	int pd;
	int fd[2]; /* the peer's, the QP's */
	struct tls_sealer sealer;

	/* The peer's FPDUs, and how far they are in records that are right. */
	uint8_t stream[STREAM_MAX];
	size_t stream_len, sealed, ends[SENDS_MAX];
	uint32_t lens[SENDS_MAX];
	unsigned int sends, empty, warnings;
	bool over; /* the peer has ended it, or done what it must not */

	uint8_t wire[WIRE_MAX];
	size_t wire_len, written;
} scene;

static uint8_t octet_of(unsigned int send, size_t at)
{
	return (uint8_t)(send * 37 + at * 7 + at / 251);
}

/* A Send in one segment (RFC 5040 4.3, RFC 5041 4.2, RFC 5044 4). */
static void add_send(struct scene *s, uint32_t len)
{
	uint8_t *fpdu = s->stream + s->stream_len;
	size_t ulpdu = HEAD - FPDU_LEN_FIELD + len, size = fpdu_size(ulpdu);

	memset(fpdu, 0, size);
	put_be16(fpdu, (uint16_t)ulpdu);
	fpdu[2] = 0x41;
	fpdu[3] = 0x43;
	put_be32(fpdu + 12, s->sends + 1);
	for (size_t i = 0; i < len; i++)
		fpdu[HEAD + i] = octet_of(s->sends, i);
	put_le32(fpdu + size - FPDU_CRC_LEN,
		 crc32c_final(aw_crc32c(CRC32C_INIT, fpdu, size - FPDU_CRC_LEN)));
	s->stream_len += size;
	s->ends[s->sends] = s->stream_len;
	s->lens[s->sends++] = len;
}

static void push(struct scene *s, size_t len)
{
	ssize_t n = write(s->fd[0], s->wire + s->written, len);

	/* The QP may have had enough. */
	s->written += n > 0 ? (size_t)n : errno == EAGAIN ? 0 : len;
	uqp_poll(s->end.qp);
}

static void seal(struct scene *s, enum tls_type type, const void *content, size_t len,
		 size_t padding)
{
	FUZZ_CHECK(s->wire_len + len + padding + TLS_RECORD_EXTRA <= WIRE_MAX);
	s->wire_len +=
		tls_peer_seal(&s->sealer, type, content, len, padding, s->wire + s->wire_len);
}

static void seal_data(struct scene *s, size_t padding)
{
	static const uint16_t mosts[] = { 1, 7, 64, 1500, TLS_CONTENT_MAX };
	size_t most = mosts[bytes_u8(&s->b) % 5], left = s->stream_len - s->sealed;
	size_t len = bytes_range(&s->b, 1, most);

	if (len > left)
		len = left;
	if (len + padding > TLS_CONTENT_MAX)
		padding = TLS_CONTENT_MAX - len;
	seal(s, TLS_DATA, s->stream + s->sealed, len, padding);
	s->sealed += len;
}

static void seal_key_update(struct scene *s)
{
	const uint8_t update[] = { 24, 0, 0, 1, bytes_bool(&s->b) };
	size_t first = bytes_range(&s->b, 1, sizeof(update));

	seal(s, TLS_HANDSHAKE, update, first, 0);
	if (first < sizeof(update))
		seal(s, TLS_HANDSHAKE, update + first, sizeof(update) - first, 0);
	tls_peer_renew(&s->sealer);
}

static void seal_alert(struct scene *s, uint8_t level, uint8_t description)
{
	const uint8_t alert[] = { level, description };

	seal(s, TLS_ALERT, alert, sizeof(alert), 0);
}

/* What no peer may send behind the handshake. */
static void seal_wrong(struct scene *s)
{
	static const uint8_t types[] = { 0, 20, 24, 99, TLS_HANDSHAKE };
	uint8_t content[64];
	size_t begin = s->wire_len, len = bytes_range(&s->b, 1, sizeof(content));

	bytes_take(&s->b, content, len);
	s->over = true;
	switch (bytes_u8(&s->b) % 4) {
	case 0: /* Of the messages only a KeyUpdate may come. */
		content[0] &= 15;
		seal(s, (enum tls_type)types[bytes_u8(&s->b) % 5], content, len, 0);
		return;
	case 1:
		memcpy(s->wire + begin, content, len);
		s->wire_len += len;
		return;
	case 2:
		seal_alert(s, 2, content[0]);
		return;
	default: {
		size_t sealed = s->sealed;

		seal_data(s, 0);
		s->sealed = sealed;
		s->wire[begin + bytes_u16(&s->b) % (s->wire_len - begin)] ^=
			(uint8_t)(1 << content[0] % 8);
	}
	}
}

static void seal_next(struct scene *s)
{
	switch (bytes_u8(&s->b) % 24) {
	case 0:
		if (s->empty++ < EMPTY_MAX)
			seal(s, TLS_DATA, NULL, 0, bytes_u8(&s->b));
		break;
	case 1:
		seal_data(s, bytes_range(&s->b, 1, PADDING_MAX));
		break;
	case 2:
	case 3:
		seal_key_update(s);
		break;
	case 4:
		if (s->warnings++ < WARNINGS_MAX)
			seal_alert(s, 1, 90);
		break;
	case 5:
		s->over = bytes_u8(&s->b) < 32;
		if (s->over)
			seal_alert(s, 1, 0);
		break;
	case 6:
		if (bytes_u8(&s->b) < 64)
			seal_wrong(s);
		break;
	default:
		seal_data(s, 0);
	}
}

static void begin_scene(struct scene *s)
{
	struct aw_stream stream = { .crc = true, .ird = 4, .ord = 4 };
	struct aw_uqp_socket to;
	struct sockaddr_storage addr;
	static int listener = -1;

	if (listener < 0)
		listener = tcp_listen(8, &addr);
	getsockname(listener, (struct sockaddr *)&addr, &(socklen_t){ sizeof(addr) });
	s->fd[0] = tcp_connect(&addr);
	s->fd[1] = tcp_accept(listener);
	tcp_unblock(s->fd[0]);
	tcp_unblock(s->fd[1]);
	to = (struct aw_uqp_socket){ .fd = s->fd[1], .tls = tls_peer_connect(s->fd, &s->sealer) };
	end_make(&s->end, &s->pd, NULL);
	for (uint32_t i = 0; i < RECVS; i++) {
		struct aw_sge sge = end_sge(&s->end, (size_t)i * RECV_ROOM, RECV_ROOM);

		FUZZ_CHECK(aw_uqp_recv(s->end.qp, i, &sge, 1) == 0);
	}
	FUZZ_CHECK(aw_uqp_attach_to(s->end.qp, &to, &stream) == 0);
}

static void check_received(const struct scene *s, const struct aw_cqe *cqe, unsigned int number)
{
	const uint8_t *at = s->end.buf + (size_t)number * RECV_ROOM;

	FUZZ_CHECK(number < s->sends && cqe->wr_id == number && cqe->byte_len == s->lens[number]);
	for (uint32_t i = 0; i < cqe->byte_len; i++)
		FUZZ_CHECK(at[i] == octet_of(number, i));
}

/* Returns how many have completed with success. */
static unsigned int take_cqes(struct scene *s, unsigned int received)
{
	struct aw_cq_entry entry;

	while (aw_cq_take(&s->end.cq, &entry, 1) == 1) {
		if (entry.cqe.status != AW_WC_SUCCESS)
			continue;
		check_received(s, &entry.cqe, received++);
	}
	return received;
}

static void end_scene(struct scene *s)
{
	unsigned int due = 0, received = 0;

	while (due < s->sends && s->ends[due] <= s->sealed)
		due++;
	if (!s->over && bytes_bool(&s->b))
		seal_alert(s, 1, 0);
	while (s->written < s->wire_len)
		push(s, s->wire_len - s->written);
	for (int i = 0; i < POLLS_MAX && received < due; i++) {
		uqp_poll(s->end.qp);
		received = take_cqes(s, received);
	}
	FUZZ_CHECK(received == due);
	shutdown(s->fd[0], SHUT_WR);
	uqp_poll(s->end.qp);
	aw_uqp_abort(s->end.qp);
	FUZZ_CHECK(take_cqes(s, received) == due);
	tcp_reset(s->fd[0]);
	pair_start_progress();
	end_destroy(&s->end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static bool begun;
	struct scene *s = &scene;

	if (!begun) {
		tls_peer_begin();
		FUZZ_CHECK(aw_engine_get() == 0);
	}
	begun = true;
	memset(s, 0, sizeof(*s));
	s->b = (struct bytes){ data, len };
	for (uint64_t left = bytes_range(&s->b, 1, SENDS_MAX); left > 0; left--)
		add_send(s, (uint32_t)bytes_range(&s->b, 0,
						  bytes_u8(&s->b) < 200 ? 200 : PAYLOAD_MAX));
	begin_scene(s);
	pair_stop_progress();
	for (int i = 0; i < OPS_MAX && !s->over && s->sealed < s->stream_len && s->b.left > 0;
	     i++) {
		seal_next(s);
		if (bytes_bool(&s->b) && s->written < s->wire_len)
			push(s, bytes_range(&s->b, 1, s->wire_len - s->written));
	}
	end_scene(s);
	return 0;
}
