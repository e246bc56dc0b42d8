// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends and receives that do not go through the pair. They keep their place among the bytes that
// do: a send notes how many bytes of the pair go before it, and a receive first takes what is in
// the pair.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int aw_ext_send_error(const struct aw_ext *ext)
{
	if (ext->error)
		return ext->error;
	return ext->pump_ended || ext->pump.out.eof_forwarded ? EPIPE : 0;
}

void aw_ext_queue_send(struct aw_ext_op *op)
{
	struct aw_ext *ext = op->ext;
	int waiting =
		0; /* bytes that the program has written to the pair, and the pump has not received */

	(void)ioctl(ext->pump.far, FIONREAD, &waiting);
	op->mark = ext->pump.taken + (uint64_t)waiting;
	TAILQ_INSERT_TAIL(&ext->sends, op, entry);
	aw_ext_progress(ext);
	aw_ext_wake(ext);
}

int aw_ext_send(struct aw_ext_op *op)
{
	struct aw_ext *ext = op->ext;
	int error;

	pthread_mutex_lock(&ext->lock);
	error = aw_ext_send_error(ext);
	if (!error)
		aw_ext_queue_send(op);
	pthread_mutex_unlock(&ext->lock);
	if (!error)
		return 0;
	aw_ext_op_discard(op);
	return aw_ext_fail(error);
}

int aw_ext_send_async(int fd, const void *buf, size_t len, uint64_t cookie)
{
	struct aw_ext_op *op;
	struct aw_ext *ext;
	int result = -1;

	if (!buf || !len)
		return aw_ext_fail(EINVAL);
	ext = aw_ext_get(fd);
	if (!ext)
		return -1;
	op = aw_ext_op_create(ext, cookie);
	if (op) {
		op->from = buf;
		op->bytes = len;
		result = aw_ext_send(op);
	}
	aw_ext_put(ext);
	return result;
}

/*
 * Serves a receive from the pair, which has what came before; no bytes are added while the caller
 * holds ext.lock. recv() is not called on an empty pair: it would find the end, and its wrapper
 * would ask for SO_ERROR and wait for that lock.
 */
static bool take_from_pair(struct aw_ext_op *op, int fd)
{
	int waiting = 0, error = op->ext->error;
	ssize_t got = 0;

	if (ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0)
		got = recv(fd, op->to, op->bytes, MSG_DONTWAIT);
	if (got <= 0 && !op->ext->pump.in.eof_forwarded)
		return false;
	op->moved = got > 0 ? (size_t)got : 0;
	/* ENOTCONN: the peer has ended the stream in order */
	aw_ext_op_complete(op, got > 0 || error == ENOTCONN ? 0 : error);
	return true;
}

int aw_ext_recv_async(int fd, void *buf, size_t len, uint64_t cookie)
{
	struct aw_ext_op *op;
	struct aw_ext *ext;
	bool is_served;

	if (!buf || !len)
		return aw_ext_fail(EINVAL);
	ext = aw_ext_get(fd);
	if (!ext)
		return -1;
	op = aw_ext_op_create(ext, cookie);
	if (op) {
		op->to = buf;
		op->bytes = len;
		pthread_mutex_lock(&ext->lock);
		is_served = TAILQ_EMPTY(&ext->recvs) && take_from_pair(op, fd);
		if (!is_served && ext->pump_ended) {
			aw_ext_op_complete(op, ext->error);
		} else if (!is_served) {
			TAILQ_INSERT_TAIL(&ext->recvs, op, entry);
			aw_ext_end_direct(ext);
			aw_ext_progress(ext);
			aw_ext_wake(ext);
		}
		pthread_mutex_unlock(&ext->lock);
	}
	aw_ext_put(ext);
	return op ? 0 : -1;
}
