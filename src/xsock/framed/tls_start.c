// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "xsock/framed/tls_start.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>

#include "net/tls/handshake.h"
#include "net/tls/openssl.h"
#include "xsock/base/ip.h"
#include "xsock/base/libc.h"
#include "xsock/process/memory.h"

#define OUT_MAX 4096

_Static_assert(AW_TLS_SECRET_MAX <= AW_TLS_SECRET_MAX,
	       "a record has room for the handshake's secrets");

struct aw_tls_start {
	_Atomic(unsigned) users;
	pthread_mutex_t lock; /* guards all below */
	bool accepts;
	bool has_begun;
	bool was_reset;
	enum aw_tls_started state;
	struct aw_handshake *handshake; /* NULL: not begun */
	union aw_address peer; /* once it has begun */
	const char *cause; /* why there is no handshake, or NULL */
	/* Bytes that TCP has not taken yet. */
	size_t out_at, out_len;
	uint8_t out[OUT_MAX];
	uint8_t record[AW_HANDSHAKE_HEADER + AW_HANDSHAKE_RECORD_MAX];
};

struct aw_tls_start *aw_tls_start_create(bool accepts)
{
	struct aw_tls_start *start = aw_memory_map(sizeof(*start));

	if (!start)
		return NULL;
	pthread_mutex_init(&start->lock, NULL);
	start->accepts = accepts;
	atomic_store(&start->users, 1);
	return start;
}

void aw_tls_start_get(struct aw_tls_start *start)
{
	if (start)
		atomic_fetch_add(&start->users, 1);
}

void aw_tls_start_free(struct aw_tls_start *start)
{
	if (!start || atomic_fetch_sub(&start->users, 1) > 1)
		return;
	if (start->handshake && aw_openssl_is_alive())
		aw_handshake_free(start->handshake);
	pthread_mutex_destroy(&start->lock);
	aw_memory_unmap(start, sizeof(*start));
}

static enum aw_tls_started fail(struct aw_tls_start *start, const char *cause)
{
	if (cause)
		start->cause = cause;
	start->state = AW_TLS_START_FAILED;
	return start->state;
}

static bool begin(struct aw_tls_start *start, int fd)
{
	static const struct aw_tls_want require = { .mode = AW_TLS_REQUIRE };
	socklen_t len = sizeof(start->peer);
	int err;

	if (start->handshake)
		return true;
	if (aw_libc()->getpeername(fd, &start->peer.any, &len) != 0) {
		(void)fail(start, strerror(errno));
		return false;
	}
	err = aw_handshake_create(&start->peer.any, start->accepts, &require, &start->handshake);
	if (err)
		(void)fail(start, err == ENOMEM ? strerror(err)
						: "the settings of TLS are wrong: see above");
	return !err;
}

/* Sends what the handshake has put out. Returns 0, EAGAIN: TCP has no room, or another errno. more: a record follows at once. */
static int flush(struct aw_tls_start *start, int fd, int more)
{
	for (;;) {
		ssize_t n;

		if (start->out_at == start->out_len) {
			start->out_at = 0;
			start->out_len = aw_handshake_output(start->handshake, start->out, OUT_MAX);
		}
		if (start->out_len == 0)
			return 0;
		n = aw_libc()->send(fd, start->out + start->out_at, start->out_len - start->out_at,
				    MSG_DONTWAIT | MSG_NOSIGNAL | more);
		if (n < 0)
			return errno == EINTR || errno == ENOBUFS ? EAGAIN : errno;
		start->has_begun = true;
		start->out_at += (size_t)n;
	}
}

/* Has the handshake take bytes of the peer's, which may be those of a record in part. */
static enum aw_handshake_state give(struct aw_tls_start *start, const uint8_t *octets, size_t len)
{
	enum aw_handshake_state state = AW_HANDSHAKE_MORE;

	for (size_t at = 0; at < len && state == AW_HANDSHAKE_MORE;) {
		size_t next = MIN(len - at, aw_handshake_wanted(start->handshake));

		state = aw_handshake_take(start->handshake, octets + at, next);
		at += next;
	}
	return state;
}

/* Takes the bytes that were looked at. Urgent data among them, of which TLS knows nothing, ends the connection. */
static bool drop(int fd, size_t len)
{
	while (len > 0) {
		ssize_t n = aw_libc()->recv(fd, NULL, len, MSG_TRUNC | MSG_DONTWAIT);

		if (n <= 0)
			return false;
		len -= (size_t)n;
	}
	return true;
}

static enum aw_handshake_state cut(struct aw_tls_start *start, ssize_t n)
{
	start->was_reset |= n < 0 && errno == ECONNRESET;
	return aw_handshake_cut(start->handshake, n == 0 ? 0 : errno);
}

/*
 * Looks at the first record of a client, and takes it once it is whole and asks for records. MORE with *wanted 0: it was taken; else how
 * many bytes must be there.
 */
static enum aw_handshake_state look_at_hello(struct aw_tls_start *start, int fd, size_t *wanted)
{
	enum aw_handshake_state state;
	ssize_t n =
		aw_libc()->recv(fd, start->record, sizeof(start->record), MSG_PEEK | MSG_DONTWAIT);
	size_t size = AW_HANDSHAKE_HEADER;

	*wanted = 1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return AW_HANDSHAKE_MORE;
	if (n <= 0)
		return cut(start, n);
	if (start->record[0] == 22 && n >= AW_HANDSHAKE_HEADER)
		size += MIN((size_t)start->record[3] << 8 | start->record[4],
			    AW_HANDSHAKE_RECORD_MAX);
	if ((size_t)n < size && start->record[0] == 22) {
		struct pollfd ended = { .fd = fd, .events = POLLRDHUP };

		*wanted = size;
		return aw_libc()->poll(&ended, 1, 0) > 0 ? cut(start, 0) : AW_HANDSHAKE_MORE;
	}
	*wanted = 0;
	size = MIN(size, (size_t)n);
	state = give(start, start->record, size);
	if (state == AW_HANDSHAKE_OTHER)
		return state;
	start->has_begun = true;
	return drop(fd, size) ? state : cut(start, 0);
}

/* Takes what is the handshake's of what has come. */
static enum aw_handshake_state take(struct aw_tls_start *start, int fd)
{
	for (;;) {
		size_t wanted = aw_handshake_wanted(start->handshake);
		ssize_t n;

		if (wanted == 0)
			return aw_handshake_take(start->handshake, NULL, 0);
		n = aw_libc()->recv(fd, start->record, wanted, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return AW_HANDSHAKE_MORE;
		if (n <= 0)
			return cut(start, n);
		start->has_begun = true;
		(void)give(start, start->record, (size_t)n);
	}
}

/* Takes the peer's bytes. MORE with *wanted: so many bytes of the client's first record must be there. */
static enum aw_handshake_state receive(struct aw_tls_start *start, int fd, size_t *wanted)
{
	*wanted = 0;
	if (start->accepts && !start->has_begun) {
		enum aw_handshake_state state = look_at_hello(start, fd, wanted);

		if (state != AW_HANDSHAKE_MORE || *wanted)
			return state;
	}
	return take(start, fd);
}

/* Returns whether a client has sent nothing: it costs no session of OpenSSL's. */
static bool is_silent(const struct aw_tls_start *start, int fd)
{
	struct pollfd ended = { .fd = fd, .events = POLLRDHUP };
	int queued = 0;

	return start->accepts && !start->handshake &&
	       aw_libc()->ioctl(fd, FIONREAD, &queued) == 0 && queued == 0 &&
	       aw_libc()->poll(&ended, 1, 0) == 0;
}

/* Moves bytes until the socket has none, or no room. */
static enum aw_tls_started advance(struct aw_tls_start *start, int fd,
				   struct aw_tls_start_wait *wait)
{
	enum aw_handshake_state state;
	size_t wanted;
	int err;

	if (start->handshake && !aw_openssl_is_alive())
		return fail(start, "the process ends amid the handshake");
	if (is_silent(start, fd)) {
		*wait = (struct aw_tls_start_wait){ .events = POLLIN, .bytes = 1 };
		return AW_TLS_START_LATER;
	}
	if (!begin(start, fd))
		return AW_TLS_START_FAILED;
	state = receive(start, fd, &wanted);
	if (state == AW_HANDSHAKE_OTHER && !start->has_begun)
		return start->state = AW_TLS_START_OTHER;
	/* A client's last flight goes with its Request, which Nagle's algorithm would have wait for an acknowledgement. */
	err = flush(start, fd, state == AW_HANDSHAKE_DONE && !start->accepts ? MSG_MORE : 0);
	start->was_reset |= err == ECONNRESET;
	if (err && err != EAGAIN && state == AW_HANDSHAKE_MORE)
		state = aw_handshake_cut(start->handshake, err);
	if (state == AW_HANDSHAKE_FAILED || state == AW_HANDSHAKE_OTHER)
		return fail(start, NULL);
	if (err && err != EAGAIN)
		return fail(start, strerror(err));
	if (state == AW_HANDSHAKE_DONE && !err)
		return start->state = AW_TLS_START_DONE;
	*wait = (struct aw_tls_start_wait){ .events = err ? POLLOUT : POLLIN,
					    .bytes = wanted ? wanted : 1 };
	return AW_TLS_START_LATER;
}

enum aw_tls_started aw_tls_start_step(struct aw_tls_start *start, int fd,
				      struct aw_tls_start_wait *wait)
{
	enum aw_tls_started state;

	pthread_mutex_lock(&start->lock);
	state = start->state;
	if (state == AW_TLS_START_LATER)
		state = advance(start, fd, wait);
	pthread_mutex_unlock(&start->lock);
	return state;
}

bool aw_tls_start_has_record(int fd, size_t *wanted)
{
	uint8_t header[AW_HANDSHAKE_HEADER];
	int queued = 0;
	size_t len;

	*wanted = AW_HANDSHAKE_HEADER;
	if (aw_libc()->recv(fd, header, sizeof(header), MSG_PEEK | MSG_DONTWAIT) !=
	    (ssize_t)sizeof(header))
		return false;
	len = (size_t)header[3] << 8 | header[4];
	*wanted += MIN(len, AW_HANDSHAKE_RECORD_MAX);
	(void)aw_libc()->ioctl(fd, FIONREAD, &queued);
	return (size_t)queued >= *wanted || len > AW_HANDSHAKE_RECORD_MAX;
}

bool aw_tls_start_has_begun(struct aw_tls_start *start)
{
	bool has_begun;

	pthread_mutex_lock(&start->lock);
	has_begun = start->has_begun;
	pthread_mutex_unlock(&start->lock);
	return has_begun;
}

bool aw_tls_start_was_reset(const struct aw_tls_start *start)
{
	return start->was_reset;
}

const union aw_address *aw_tls_start_peer(const struct aw_tls_start *start)
{
	return start->handshake ? &start->peer : NULL;
}

const char *aw_tls_start_cause(const struct aw_tls_start *start)
{
	return start->cause ? start->cause : aw_handshake_cause(start->handshake);
}

void aw_tls_start_copy_secrets(const struct aw_tls_start *start, struct aw_record_secrets *secrets)
{
	const struct aw_tls_secrets *known = aw_handshake_secrets(start->handshake);

	*secrets = (struct aw_record_secrets){
		.suite = aw_handshake_cipher(start->handshake),
		.is_client = !start->accepts,
	};
	memcpy(secrets->client, known->client, known->len);
	memcpy(secrets->server, known->server, known->len);
}
