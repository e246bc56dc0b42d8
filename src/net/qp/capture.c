// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's side of a capture. `lock` is taken under a QP lock, and only the lock of the statistics is taken under
// it. The capturer may write to the shared memory at any time: positions that decide anything are the process's own,
// and of the capturer's position only the difference is used, within its bounds.
#include "net/qp/capture.h"

#include "base/clock.h"
#include "net/mem/guard.h"
#include "ring/lock.h"
#include "wire/fpdu.h"
#include "wire/move.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

/* A ring is made no sooner after the last one: requests that come and go cost the process little. */
#define PAUSE_NS 20000000u
#define SILENT_NS (AW_CAPTURE_SILENT_MS * UINT64_C(1000000))
/* A reader takes a longer gap in a stream for bytes that come again (RFC 9293 3.4: sequence numbers are modulo 2^32). */
#define GAP_MAX (1u << 30)

/* One direction of a stream. Positions are the core's. */
struct way {
	uint64_t base; /* of the stream's first record */
	uint64_t seen; /* end of the FPDUs that were put into the ring or dropped */
	uint64_t shown; /* end of the FPDUs that were put into the ring */
};

struct aw_capture {
	uint32_t run;
	bool has_records;
	struct aw_capture_record common; /* the fields that all its records share */
	struct way in, out;
};

/* Whole FPDUs of one direction. */
struct chunk {
	struct way *way, *other;
	uint64_t pos;
	const struct aw_iov *iov;
	size_t iov_count;
	size_t bytes;
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct aw_capture_ring *ring; /* NULL: none is mapped */
	uint32_t run; /* that ring is of */
	uint64_t begun_ns; /* when a ring was made last */
	uint32_t beat; /* the capturer's last one */
	uint64_t beat_ns; /* the time at which it was seen first */
	uint64_t head;
	uint64_t dropped;
	uint32_t streams; /* since the process began */
} now AW_GUARDED_BY(lock);

static void end_run(void) AW_REQUIRES(lock)
{
	if (now.ring)
		aw_stat_unmap_ring(now.ring);
	now.ring = NULL;
	now.run = 0;
}

/* The request is withdrawn in the capturer's name, unless another one has come. */
static void withdraw(struct aw_capture_request *request, uint32_t run) AW_REQUIRES(lock)
{
	__atomic_compare_exchange_n(&request->run, &run, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	end_run();
}

/* False: there is no ring, or not yet. */
static bool begin_run(struct aw_capture_request *request, uint32_t run, uint64_t time)
	AW_REQUIRES(lock)
{
	if (now.begun_ns && time - now.begun_ns < PAUSE_NS)
		return false;
	now.begun_ns = time;
	end_run();
	now.ring = aw_stat_map_ring();
	if (!now.ring) {
		aw_stat_set(&request->error, (uint32_t)errno);
		withdraw(request, run);
		return false;
	}
	now.run = run;
	now.head = now.dropped = 0;
	aw_stat_set64(&now.ring->head, 0);
	aw_stat_set64(&now.ring->dropped, 0);
	aw_stat_set64(&now.ring->tail, 0);
	/* Pairs with the capturer's acquire: it reads the positions of this run. */
	__atomic_store_n(&now.ring->run, run, __ATOMIC_RELEASE);
	return true;
}

/* True when there is a ring to write to. Ends the run of a capturer that is dead. */
static bool is_running(void) AW_REQUIRES(lock)
{
	struct aw_capture_request *request = __atomic_load_n(&aw_stat_capture, __ATOMIC_RELAXED);
	uint32_t run = __atomic_load_n(&request->run, __ATOMIC_RELAXED);
	uint32_t beat = __atomic_load_n(&request->beat, __ATOMIC_RELAXED);
	uint64_t time = aw_now_ns();
	bool begins = run != now.run;

	if (run == 0 || (begins && !begin_run(request, run, time)))
		return false;
	if (begins || beat != now.beat) {
		now.beat = beat;
		now.beat_ns = time;
	}
	if (time - now.beat_ns <= SILENT_NS)
		return true;
	withdraw(request, run);
	return false;
}

static void put_end(const struct sockaddr_storage *end, uint8_t address[16], uint16_t *port,
		    uint32_t *family)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)end;
	const struct sockaddr_in *in = (const struct sockaddr_in *)end;

	*family = AF_INET;
	if (end->ss_family == AF_INET) {
		memcpy(address, &in->sin_addr, sizeof(in->sin_addr));
		*port = ntohs(in->sin_port);
	} else if (end->ss_family == AF_INET6) {
		bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);

		memcpy(address, in6->sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
		*port = ntohs(in6->sin6_port);
		*family = mapped ? AF_INET : AF_INET6;
	}
}

static struct way way_from(uint64_t pos)
{
	return (struct way){ pos, pos, pos };
}

/* Of a stream that may go on in memory, where FPDUs have no CRC, a dissector checks none. */
static void begin_stream(const struct aw_uqp *qp, struct aw_capture *capture)
	AW_REQUIRES(qp->lock, lock)
{
	const struct aw_stream *stream = &qp->core.stream;
	struct aw_capture_record *common = &capture->common;
	struct sockaddr_storage local = { 0 }, peer = { 0 };
	socklen_t local_len = sizeof(local), peer_len = sizeof(peer);

	*capture = (struct aw_capture){
		.run = now.run,
		.common = {
			.kind = AW_CAPTURE_FPDUS,
			.flags = (stream->initiator ? AW_CAPTURE_INITIATOR : 0) |
				 (aw_stream_crc_in(stream) && !stream->moves ? AW_CAPTURE_CRC : 0) |
				 (stream->markers_tx ? AW_CAPTURE_MARKED_OUT : 0) |
				 (stream->markers_rx ? AW_CAPTURE_MARKED_IN : 0),
			.qpn = qp->qpn,
			.stream = ++now.streams,
		},
		.in = way_from(qp->core.rx_pos),
		.out = way_from(qp->core.tx_pos),
	};
	/* A socket that was reset does not know its peer: then the address is 0. */
	getsockname(qp->fd, (struct sockaddr *)&local, &local_len);
	getpeername(qp->fd, (struct sockaddr *)&peer, &peer_len);
	put_end(&peer, common->peer, &common->peer_port, &common->family);
	put_end(&local, common->local, &common->local_port, &common->family);
}

/* The QP's stream in this run; NULL: nobody captures, or memory is out. */
static struct aw_capture *stream_of(struct aw_uqp *qp) AW_REQUIRES(qp->lock, lock)
{
	if (!is_running())
		return NULL;
	if (!qp->capture)
		qp->capture = calloc(1, sizeof(*qp->capture));
	if (qp->capture && qp->capture->run != now.run)
		begin_stream(qp, qp->capture);
	return qp->capture;
}

static uint8_t *data_at(uint64_t pos) AW_REQUIRES(lock)
{
	return (uint8_t *)now.ring + AW_CAPTURE_HEAD_LEN + pos % AW_CAPTURE_RING_LEN;
}

/* Makes room for one record in one piece, behind a pad where that is at the ring's begin. */
static bool make_room(size_t len) AW_REQUIRES(lock)
{
	uint64_t used = now.head - __atomic_load_n(&now.ring->tail, __ATOMIC_ACQUIRE);
	uint64_t to_end = AW_CAPTURE_RING_LEN - now.head % AW_CAPTURE_RING_LEN;
	uint64_t pad = len > to_end ? to_end : 0;

	if (used > AW_CAPTURE_RING_LEN || pad + len > AW_CAPTURE_RING_LEN - used)
		return false;
	if (pad) {
		struct aw_capture_record *record = (struct aw_capture_record *)data_at(now.head);

		record->len = (uint32_t)pad;
		record->kind = AW_CAPTURE_PAD;
		now.head += pad;
	}
	return true;
}

/* False: memory of the program that the FPDUs name is gone. */
static bool gather(uint8_t *to, const struct chunk *chunk)
{
	for (size_t i = 0; i < chunk->iov_count; i++) {
		if (!aw_guard_gather(to, chunk->iov[i].base, chunk->iov[i].len))
			return false;
		to += chunk->iov[i].len;
	}
	return true;
}

static bool put_record(struct aw_capture *capture, const struct chunk *chunk) AW_REQUIRES(lock)
{
	size_t len = sizeof(struct aw_capture_record) + chunk->bytes;
	struct aw_capture_record record;

	len = (len + AW_CAPTURE_ALIGN - 1) & ~(size_t)(AW_CAPTURE_ALIGN - 1);
	if (!make_room(len) || !gather(data_at(now.head) + sizeof(record), chunk))
		return false;
	record = capture->common;
	record.flags |= (chunk->way == &capture->out ? AW_CAPTURE_OUT : 0) |
			(capture->has_records ? 0 : AW_CAPTURE_FIRST);
	record.time_ns = aw_clock_ns(CLOCK_REALTIME);
	record.pos = (uint32_t)chunk->pos;
	record.seq = (uint32_t)(chunk->pos - chunk->way->base);
	record.ack = (uint32_t)(chunk->other->shown - chunk->other->base);
	record.bytes = (uint32_t)chunk->bytes;
	record.len = (uint32_t)len;
	memcpy(data_at(now.head), &record, sizeof(record));
	now.head += len;
	/* Pairs with the capturer's acquire: the record is whole. */
	__atomic_store_n(&now.ring->head, now.head, __ATOMIC_RELEASE);
	return true;
}

static void put(struct aw_capture *capture, const struct chunk *chunk) AW_REQUIRES(lock)
{
	struct way *way = chunk->way;

	if (chunk->pos - way->shown > GAP_MAX)
		way->base += chunk->pos - way->shown - GAP_MAX;
	way->seen = chunk->pos + chunk->bytes;
	if (put_record(capture, chunk)) {
		way->shown = way->seen;
		capture->has_records = true;
	} else {
		aw_stat_set64(&now.ring->dropped, ++now.dropped);
	}
}

void aw_capture_out(struct aw_uqp *qp, uint64_t pos, const struct aw_iov *iov, size_t count)
{
	int saved = errno;
	struct aw_capture *capture;

	aw_lock(&lock);
	capture = stream_of(qp);
	if (capture) {
		/* The stream of a first record begins with it. */
		if (!capture->has_records)
			capture->out = way_from(pos);
		put(capture, &(struct chunk){ &capture->out, &capture->in, pos, iov, count,
					      qp->core.tx_pos - pos });
	}
	aw_unlock(&lock);
	errno = saved;
}

/* Bytes of the whole FPDUs at buf + from, up to a message of a move: behind it there may be bells. */
static size_t measure_whole(const struct aw_qp *core, const uint8_t *buf, size_t from, size_t len)
{
	size_t at = core->stream.moves ? 0 : from, size;
	struct move_msg msg;
	bool ends = false;

	while (at < len && !ends) {
		size = fpdu_wire_size(buf + at, len - at, (uint32_t)(core->rx_pos + at),
				      core->stream.markers_rx);
		if (size == 0 || size > len - at)
			break;
		ends = core->stream.moves &&
		       move_get(buf + at + FPDU_LEN_FIELD, get_be16(buf + at), &msg);
		at += size;
	}
	return at > from ? at - from : 0;
}

void aw_capture_in(struct aw_uqp *qp, const uint8_t *buf, size_t len)
{
	const struct aw_qp *core = &qp->core;
	int saved = errno;
	struct aw_capture *capture;

	/* Bytes behind an error are dropped, and the core does not count them. */
	if (core->state >= AW_QP_TERMINATE)
		return;
	aw_lock(&lock);
	capture = stream_of(qp);
	if (capture) {
		/* From an FPDU that waits for its receive the core has taken the markers out, so that it is passed over. */
		uint64_t seen = capture->in.seen > core->rx_pos ? capture->in.seen - core->rx_pos
								: 0;
		size_t from = seen > core->rx_held ? seen : core->rx_held;
		size_t bytes = from < len ? measure_whole(core, buf, from, len) : 0;
		const struct aw_iov iov = { (uint8_t *)(uintptr_t)buf + from, bytes };

		if (bytes > 0)
			put(capture, &(struct chunk){ &capture->in, &capture->out,
						      core->rx_pos + from, &iov, 1, bytes });
	}
	aw_unlock(&lock);
	errno = saved;
}

void aw_capture_stream_gone(struct aw_uqp *qp)
{
	free(qp->capture);
	qp->capture = NULL;
}

void aw_capture_fork_prepare(void) AW_ACQUIRE(lock)
{
	aw_lock(&lock);
}

void aw_capture_fork_parent(void) AW_RELEASE(lock)
{
	aw_unlock(&lock);
}

/* The ring is the parent's. */
void aw_capture_fork_child(void) AW_RELEASE(lock)
{
	if (now.ring)
		munmap(now.ring, AW_CAPTURE_LEN);
	now.ring = NULL;
	now.run = 0;
	aw_unlock(&lock);
}
