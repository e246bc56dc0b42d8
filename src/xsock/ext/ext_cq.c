// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations and their completions. The completion queue's fd is an eventfd that is readable as
// long as there is a completion.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct aw_ext_op *create_op(struct aw_ext *ext, uint64_t cookie, size_t note_len)
{
	struct aw_ext_op *op;
	bool room;

	if (ext->pid != getpid()) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	op = calloc(1, sizeof(*op) + note_len);
	if (!op)
		return NULL;
	op->ext = ext;
	op->cookie = cookie;
	op->holders = 1;
	pthread_mutex_lock(&ext->cq_lock);
	room = ext->ops < AW_EXT_OPS_MAX;
	if (room)
		ext->ops++;
	pthread_mutex_unlock(&ext->cq_lock);
	if (room)
		return op;
	free(op);
	errno = EAGAIN;
	return NULL;
}

struct aw_ext_op *aw_ext_op_create(struct aw_ext *ext, uint64_t cookie)
{
	return create_op(ext, cookie, 0);
}

struct aw_ext_op *aw_ext_op_create_note(struct aw_ext *ext, const void *note, size_t len)
{
	struct aw_ext_op *op = create_op(ext, 0, len);

	if (!op)
		return NULL;
	memcpy(op->note, note, len);
	op->from = op->note;
	op->bytes = len;
	op->silent = true;
	return op;
}

void aw_ext_op_free(struct aw_ext_op *op)
{
	free(op->copy);
	free(op);
}

void aw_ext_op_discard(struct aw_ext_op *op)
{
	struct aw_ext *ext = op->ext;

	pthread_mutex_lock(&ext->cq_lock);
	ext->ops--;
	pthread_mutex_unlock(&ext->cq_lock);
	aw_ext_op_free(op);
}

void aw_ext_op_complete(struct aw_ext_op *op, int error)
{
	struct aw_ext *ext = op->ext;

	if (op->silent) {
		aw_ext_op_discard(op);
		return;
	}
	op->error = error;
	pthread_mutex_lock(&ext->cq_lock);
	if (TAILQ_EMPTY(&ext->done))
		(void)eventfd_write(ext->cq_fd, 1);
	TAILQ_INSERT_TAIL(&ext->done, op, entry);
	pthread_mutex_unlock(&ext->cq_lock);
}

void aw_ext_complete_post(struct aw_ext *ext)
{
	atomic_fetch_sub(&ext->posted, 1);
	if (atomic_load(&ext->wake_on_done)) /* set by aw_ext_progress() before it tries to post */
		(void)eventfd_write(ext->wake, 1);
}

static int take_completions(struct aw_ext *ext, struct iwarp_completion *completions, int n)
{
	struct aw_ext_op *op;
	eventfd_t count;
	int taken = 0;

	pthread_mutex_lock(&ext->cq_lock);
	while (taken < n && (op = TAILQ_FIRST(&ext->done))) {
		completions[taken++] = (struct iwarp_completion){
			.cookie = op->cookie,
			.bytes = op->moved,
			.error = op->error,
		};
		TAILQ_REMOVE(&ext->done, op, entry);
		ext->ops--;
		aw_ext_op_free(op);
	}
	if (taken && TAILQ_EMPTY(&ext->done))
		(void)eventfd_read(ext->cq_fd, &count);
	pthread_mutex_unlock(&ext->cq_lock);
	return taken;
}

/* A thread that finds no completion makes progress itself and looks again. */
int aw_ext_cq_poll(int fd, struct iwarp_completion *completions, int n)
{
	struct aw_ext *ext;
	int taken;

	if (n < 0 || (n && !completions)) {
		errno = EINVAL;
		return -1;
	}
	ext = aw_ext_get(fd);
	if (!ext)
		return -1;
	taken = take_completions(ext, completions, n);
	if (!taken && n) {
		pthread_mutex_lock(&ext->lock);
		if (!TAILQ_EMPTY(&ext->sends) || !TAILQ_EMPTY(&ext->recvs))
			aw_ext_progress(ext);
		else if (!ext->pump_ended && atomic_load(&ext->posted))
			(void)aw_xs_ep_ready(ext->ep);
		aw_ext_wake(ext);
		pthread_mutex_unlock(&ext->lock);
		taken = take_completions(ext, completions, n);
	}
	aw_ext_put(ext);
	return taken;
}

int aw_ext_cq_fd(int fd)
{
	struct aw_ext *ext = aw_ext_get(fd);
	int cq_fd;

	if (!ext)
		return -1;
	cq_fd = ext->cq_fd;
	aw_ext_put(ext);
	return cq_fd;
}
