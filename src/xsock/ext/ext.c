// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connections of this process, found by the inode of the program's fd; their begin and end. A
// child of fork has none of them.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define NS_PER_S INT64_C(1000000000)
#define SENT_RETRY_MS 1
#define EXIT_NS \
	INT64_C(30000000000) /* how long exit(3) waits, for the pumps and for the endpoints */

TAILQ_HEAD(ext_list, aw_ext);

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pump_ended = PTHREAD_COND_INITIALIZER;
static struct ext_list table = TAILQ_HEAD_INITIALIZER(table);
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct aw_ext *aw_ext_find(ino_t ino)
{
	struct aw_ext *ext;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(ext, &table, entry)
	{
		if (ext->ino == ino)
			break;
	}
	if (ext)
		ext->refs++;
	pthread_mutex_unlock(&table_lock);
	return ext;
}

struct aw_ext *aw_ext_get(int fd)
{
	struct aw_ext *ext;
	struct stat file;

	if (fstat(fd, &file) != 0)
		return NULL;
	ext = S_ISSOCK(file.st_mode) ? aw_ext_find(file.st_ino) : NULL;
	if (!ext)
		errno = EOPNOTSUPP;
	return ext;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Frees ext after the last reference is gone. */
static void ext_destroy(struct aw_ext *ext)
{
	struct aw_ext_op *op;

	if (ext->posted)
		/*
		 * the program deregistered a region in use: the callbacks of its posts still use
		 * ext
		 */
		return;
	close_fd(&ext->pump.far);
	close_fd(&ext->tcp);
	close_fd(&ext->wake);
	close_fd(&ext->cq_fd);
	aw_pump_fini(&ext->pump);
	while ((op = TAILQ_FIRST(&ext->done))) {
		TAILQ_REMOVE(&ext->done, op, entry);
		aw_ext_op_free(op);
	}
	pthread_mutex_destroy(&ext->lock);
	pthread_mutex_destroy(&ext->cq_lock);
	free(ext);
}

void aw_ext_put(struct aw_ext *ext)
{
	int saved = errno;
	bool last;

	pthread_mutex_lock(&table_lock);
	last = --ext->refs == 0;
	pthread_mutex_unlock(&table_lock);
	if (last)
		ext_destroy(ext);
	errno = saved;
}

bool aw_ext_use(struct aw_ext *ext)
{
	bool open;

	pthread_mutex_lock(&table_lock);
	open = ext->users > 0;
	if (open)
		ext->users++;
	pthread_mutex_unlock(&table_lock);
	return open;
}

/* A closed endpoint sends the rest of its bytes by itself. */
void aw_ext_unuse(struct aw_ext *ext)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = --ext->users == 0;
	pthread_mutex_unlock(&table_lock);
	if (last)
		aw_xs_ep_close(ext->ep, false);
}

static void table_remove(struct aw_ext *ext)
{
	pthread_mutex_lock(&table_lock);
	TAILQ_REMOVE(&table, ext, entry);
	pthread_mutex_unlock(&table_lock);
}

/*
 * Has ext leave the table, where the program finds it to take completions: its pump has ended, and the
 * program has closed its fd.
 */
static void table_leave(struct aw_ext *ext)
{
	table_remove(ext);
	aw_ext_put(ext);
}

/* Once the program has closed its fd, regions that it has left registered do not keep the connection up. */
void aw_ext_pump_end(struct aw_ext *ext)
{
	bool closed;

	(void)aw_xs_ep_shutdown(ext->ep, SHUT_RDWR);
	pthread_mutex_lock(&ext->lock);
	close_fd(&ext->pump.far);
	close_fd(&ext->tcp);
	pthread_mutex_unlock(&ext->lock);
	pthread_mutex_lock(&table_lock);
	closed = ext->closed;
	pthread_mutex_unlock(&table_lock);
	if (closed)
		aw_xs_ep_hang_up(ext->ep);
	aw_ext_unuse(ext);
	pthread_mutex_lock(&table_lock);
	ext->has_pump = false;
	closed = ext->closed;
	pthread_cond_broadcast(&pump_ended);
	pthread_mutex_unlock(&table_lock);
	if (closed)
		table_leave(ext);
	aw_ext_put(ext);
}

/* Waits until TCP has taken all that the program has sent. */
static void await_sent(struct aw_ext *ext, int64_t until_ns)
{
	int64_t left_ns;
	bool more;

	do {
		pthread_mutex_lock(&ext->lock);
		aw_ext_progress(ext);
		more = !ext->error && !ext->pump.out.eof_forwarded && !aw_ext_may_send(ext);
		pthread_mutex_unlock(&ext->lock);
		left_ns = until_ns - aw_now_ns();
		if (left_ns <= 0 || aw_xs_ep_drain(ext->ep, left_ns) != 0)
			return;
		if (more)
			poll(NULL, 0, SENT_RETRY_MS);
	} while (more);
}

/*
 * The program is about to close its last fd. It can take no completion any more, so that its memory is let go of now; the
 * stream goes on as TCP's would.
 */
static void ext_closing(int fd, const struct linger *linger)
{
	struct aw_ext *ext = aw_ext_get(fd);
	bool open = ext && aw_ext_use(ext), ended, leaves;

	if (!ext)
		return;
	if (open && linger->l_onoff && linger->l_linger > 0) {
		await_sent(ext, aw_now_ns() + linger->l_linger * NS_PER_S);
	} else if (open && linger->l_onoff) {
		aw_xs_ep_reset(ext->ep);
		pthread_mutex_lock(&ext->lock);
		aw_ext_fail_with(ext, -ECONNABORTED);
		aw_ext_wake(ext);
		pthread_mutex_unlock(&ext->lock);
	}
	pthread_mutex_lock(&table_lock);
	leaves = !ext->closed && !ext->has_pump;
	ext->closed = true;
	pthread_mutex_unlock(&table_lock);
	pthread_mutex_lock(&ext->lock);
	aw_ext_let_go(ext);
	ended = ext->pump_ended;
	pthread_mutex_unlock(&ext->lock);
	if (open && ended)
		aw_xs_ep_hang_up(ext->ep);
	if (open)
		aw_ext_unuse(ext);
	pthread_mutex_lock(&ext->cq_lock);
	close_fd(&ext->cq_fd);
	pthread_mutex_unlock(&ext->cq_lock);
	if (leaves)
		table_leave(ext);
	aw_ext_put(ext);
}

/*
 * Closes, in the child of a fork, the far ends and the TCP sockets: while the child had them open, the program would
 * not see its pair's end, nor the peer the connection's.
 */
static void forget_in_child(void)
{
	struct aw_ext *ext;

	pthread_mutex_init(&table_lock, NULL);
	TAILQ_FOREACH(ext, &table, entry)
	{
		close_fd(&ext->pump.far);
		close_fd(&ext->tcp);
		close_fd(&ext->wake);
	}
	TAILQ_INIT(&table);
}

/* The caller holds the table's lock. */
static bool any_pump(void)
{
	const struct aw_ext *ext;

	TAILQ_FOREACH(ext, &table, entry)
	{
		if (ext->has_pump)
			return true;
	}
	return false;
}

/*
 * At exit(3): waits until the pumps have passed what the program has written to the endpoints,
 * which send it by themselves.
 */
static void stop_all(void)
{
	struct timespec end = aw_clock_after(CLOCK_REALTIME, aw_xs_exit_left_ns(EXIT_NS));
	struct aw_ext *ext;
	int error = 0;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(ext, &table, entry)
	{
		if (!ext->has_pump)
			continue;
		pthread_mutex_lock(&ext->lock);
		ext->leaving = true;
		pthread_mutex_unlock(&ext->lock);
		(void)eventfd_write(ext->wake, 1);
	}
	while (any_pump() && !error)
		error = pthread_cond_timedwait(&pump_ended, &table_lock, &end);
	pthread_mutex_unlock(&table_lock);
}

/*
 * Called after the first endpoint was made, so that exit(3) calls stop_all() before the endpoints'
 * own handler.
 */
static void register_handlers(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
	atexit(stop_all);
}

/*
 * Makes what ext consists of, but the endpoint. Returns 0 or an errno; ext_destroy() frees it in
 * either case.
 */
static int ext_init(struct aw_ext *ext, const struct aw_ext_request *request)
{
	pthread_mutex_init(&ext->lock, NULL);
	pthread_mutex_init(&ext->cq_lock, NULL);
	TAILQ_INIT(&ext->sends);
	TAILQ_INIT(&ext->recvs);
	TAILQ_INIT(&ext->done);
	ext->tcp = ext->wake = ext->cq_fd = -1;
	ext->ino = request->ino;
	ext->pid = getpid();
	ext->users = 1; /* the pump's */
	ext->refs = 2; /* those of the table and the pump */
	ext->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ext->cq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ext->tcp = fcntl(request->tcp, F_DUPFD_CLOEXEC, request->tcp);
	if (ext->tcp < 0 || ext->wake < 0 || ext->cq_fd < 0)
		return errno;
	return aw_pump_init(&ext->pump);
}

static int ext_begin(struct aw_ext *ext, const struct aw_ext_request *request)
{
	int error = aw_ext_connect(ext, request);

	if (error)
		return error;
	pthread_once(&once, register_handlers);
	aw_line_ep_init(&ext->line, ext->ep);
	pthread_mutex_lock(&table_lock);
	ext->has_pump = true;
	TAILQ_INSERT_TAIL(&table, ext, entry);
	pthread_mutex_unlock(&table_lock);
	error = aw_thread_start(aw_ext_pump, ext);
	if (error)
		table_remove(ext);
	return error;
}

static int ext_start(const struct aw_ext_request *request)
{
	struct aw_ext *ext;
	int error;

	ext = calloc(1, sizeof(*ext));
	if (!ext) {
		close(request->tcp);
		close(request->far);
		return ENOMEM;
	}
	ext->pump = (struct aw_pump){
		.far = request->far,
		.line = &ext->line.line,
		.all_in_line = true,
	};
	error = ext_init(ext, request);
	if (error)
		close(request->tcp);
	else
		error = ext_begin(ext, request);
	if (error && ext->ep)
		aw_xs_ep_close(ext->ep, true);
	if (error)
		ext_destroy(ext);
	return error;
}

#define AW_EXT_ENTRY(name) .name = aw_ext_##name,
// clang-format off
__attribute__((visibility("default"))) const struct aw_ext_calls aw_ext_calls = {
	.version = AW_EXT_VERSION,
	.start = ext_start,
	.closing = ext_closing,
	.directs = &aw_ext_directs,
	.stream_send = aw_ext_stream_send,
	.stream_recv = aw_ext_stream_recv,
	.stream_wait = aw_ext_stream_wait,
	.watch = aw_ext_watch,
	.get_option = aw_ext_get_option,
	.set_option = aw_ext_set_option,
	AW_EXT_PUBLIC_CALLS(AW_EXT_ENTRY)
};
// clang-format on
