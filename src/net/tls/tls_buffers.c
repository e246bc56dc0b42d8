// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two buffers of a session, between which and the socket its bytes move.
#include "net/tls/tls_impl.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void keep_first(struct aw_tls *tls, const uint8_t *from, size_t len)
{
	for (size_t i = 0; i < len && tls->first_len < FIRST_MAX; i++)
		tls->first[tls->first_len++] = from[i];
}

static _Atomic uint32_t large_waiting;

static void count_large(struct aw_tls *tls)
{
	if (atomic_fetch_add_explicit(&large_waiting, 1, memory_order_relaxed) < AW_TLS_LARGE_MAX)
		tls->in_is_counted = true;
	else
		atomic_fetch_sub_explicit(&large_waiting, 1, memory_order_relaxed);
}

static void uncount_large(struct aw_tls *tls)
{
	if (tls->in_is_counted)
		atomic_fetch_sub_explicit(&large_waiting, 1, memory_order_relaxed);
	tls->in_is_counted = false;
}

static void move_in(struct aw_tls *tls, uint8_t *to)
{
	size_t waiting = aw_tls_waiting(tls);

	memmove(to, tls->in + tls->in_used, waiting);
	tls->in_used = 0;
	tls->in_len = waiting;
}

static void drop_in(struct aw_tls *tls)
{
	uncount_large(tls);
	if (tls->in_size == AW_TLS_SPARE_BYTES)
		aw_tls_spare_give(tls->in);
	else
		free(tls->in);
	tls->in = NULL;
}

/* Where memory is out, the buffer stays. */
static void shrink_in(struct aw_tls *tls)
{
	uint8_t *less = malloc(AW_TLS_SEALED_MAX);

	if (!less)
		return;
	move_in(tls, less);
	drop_in(tls);
	tls->in = less;
	tls->in_size = AW_TLS_SEALED_MAX;
}

void aw_tls_give_back(struct aw_tls *tls)
{
	size_t waiting = aw_tls_waiting(tls);

	if (!tls->in || tls->rest_len > 0)
		return;
	if (waiting == 0) {
		drop_in(tls);
		tls->in_used = tls->in_len = 0;
		return;
	}
	if (tls->in_size != AW_TLS_SPARE_BYTES || tls->in_is_counted)
		return;
	if (tls->secured)
		count_large(tls);
	if (!tls->in_is_counted && waiting <= AW_TLS_SEALED_MAX)
		shrink_in(tls);
}

void aw_tls_free_buffers(struct aw_tls *tls)
{
	uncount_large(tls);
	free(tls->in);
	free(tls->out);
}

/* False: memory is out. */
static bool prepare_in(struct aw_tls *tls)
{
	if (!tls->in) {
		tls->in = aw_tls_spare_take();
		tls->in_size = AW_TLS_SPARE_BYTES;
	}
	if (tls->in && tls->in_used > 0)
		move_in(tls, tls->in);
	return tls->in;
}

uint8_t *aw_tls_take_in(struct aw_tls *tls)
{
	return prepare_in(tls) ? tls->in : NULL;
}

/* Before the kernel opens records none may be read in part: so no further than the next one's end. */
static size_t limit_room(const struct aw_tls *tls, size_t room)
{
	size_t waiting = aw_tls_waiting(tls), size = AW_AEAD_HEAD;
	const uint8_t *head = tls->in + tls->in_used;

	if (!tls->secured || tls->ktls.receives != AW_KTLS_DUE)
		return room;
	if (waiting >= AW_AEAD_HEAD)
		size += (size_t)head[3] << 8 | head[4];
	return size - waiting < room ? size - waiting : room;
}

ssize_t aw_tls_read_socket(struct aw_tls *tls)
{
	size_t room;
	ssize_t n;

	errno = EAGAIN;
	if (tls->reads_left == 0)
		return -1;
	if (!prepare_in(tls)) {
		errno = tls->io_errno = ENOMEM;
		return -1;
	}
	uncount_large(tls);
	room = limit_room(tls, tls->in_size - tls->in_len);
	n = aw_recv_now(tls->fd, tls->in + tls->in_len, room, 0);
	/* Bytes that come later are for the next turn. */
	tls->reads_left = n == (ssize_t)room ? tls->reads_left - 1 : 0;
	tls->heard += n > 0;
	if (n > 0) {
		keep_first(tls, tls->in + tls->in_len, (size_t)n);
		tls->in_len += (size_t)n;
	} else if (n == 0) {
		tls->fin_seen = true;
	} else if (errno == EINTR) {
		errno = EAGAIN;
	} else if (errno != EAGAIN) {
		tls->io_errno = errno;
	}
	return n;
}

bool aw_tls_make_room(struct aw_tls *tls, size_t len)
{
	if (!tls->out)
		tls->out = aw_tls_spare_take();
	return tls->out && len <= AW_TLS_OUT_MAX - tls->out_len;
}

bool aw_tls_flush(struct aw_tls *tls)
{
	if (tls->ktls.sends == AW_KTLS_KERNEL)
		return aw_ktls_flush(tls);
	while (tls->out_sent < tls->out_len) {
		ssize_t n = aw_send_now(tls->fd, tls->out + tls->out_sent,
					tls->out_len - tls->out_sent);

		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
				tls->io_errno = errno;
			return false;
		}
		tls->out_sent += (size_t)n;
	}
	if (tls->out)
		aw_tls_spare_give(tls->out);
	tls->out = NULL;
	tls->out_sent = tls->out_len = 0;
	return true;
}

bool aw_tls_has_output(const struct aw_tls *tls)
{
	return tls->out_len > 0 ||
	       (tls->ktls.sends == AW_KTLS_KERNEL && tls->finished && !tls->ktls.has_left);
}

bool aw_tls_has_left(const struct aw_tls *tls)
{
	return tls->out_len == 0 && (tls->ktls.sends != AW_KTLS_KERNEL || aw_ktls_has_left(tls));
}

uint64_t aw_tls_heard(const struct aw_tls *tls)
{
	return tls->heard;
}

bool aw_tls_has_input(const struct aw_tls *tls)
{
	size_t waiting = aw_tls_waiting(tls);

	if (tls->err || tls->closed || tls->rest_len > 0 || waiting < AW_AEAD_HEAD)
		return !tls->err && tls->rest_len > 0;
	return waiting >= aw_tls_record_len(tls->in + tls->in_used);
}
