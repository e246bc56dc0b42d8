// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream without its pair: a write of the program's gives its bytes to the endpoint, and a read
// that may wait takes them from there, in the program's thread. The pair stays what other processes,
// poll(2) and stdio see; bytes that are in it go first. While reads are direct, the pump leaves the
// peer's bytes alone; it serves them again when no read has come for RECHECK_MS.
//
// The pump takes from the pair what the endpoint has room for and keeps a part of a message at the
// most, which a direct write or read waits for; a byte that goes through it costs two wake-ups a
// message at each end. A poll, epoll_ctl, FIONREAD,
// shutdown for reading, SO_RCVLOWAT, a second reading thread and iwarp_recv_async end direct reads
// at once (aw_ext_end_direct). A signal handler that has interrupted a waiting read, and a process
// in a sandbox, use the pair.
//
// The wrappers of close, close_range and dup2 tell the engine before a connection's last fd goes
// (ext_closing): receives end, sends from unregistered memory go on from copies, the completion
// queue's fd is closed. The pump stays until what was posted has completed. If a region is still
// registered, which needs the PD, the endpoint is hung up (aw_xs_ep_hang_up) and closed with the
// last region.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/base/left.h"

#define RECHECK_MS 10

_Atomic(unsigned) aw_ext_directs;

static void wake_pump(struct aw_ext *ext)
{
	if (!ext->asleep)
		return;
	ext->asleep = false;
	(void)eventfd_write(ext->wake, 1);
}

static void set_direct(struct aw_ext *ext, bool direct)
{
	if (ext->direct == direct)
		return;
	ext->direct = direct;
	if (direct) {
		atomic_fetch_add(&aw_ext_directs, 1);
		aw_xs_ep_attend(ext->ep);
	} else {
		atomic_fetch_sub(&aw_ext_directs, 1);
	}
	wake_pump(ext);
}

void aw_ext_end_direct(struct aw_ext *ext)
{
	set_direct(ext, false);
	if (ext->reading && !ext->sent_back) {
		ext->sent_back = true;
		aw_xs_ep_interrupt(ext->ep, true);
	}
}

void aw_ext_review_direct(struct aw_ext *ext, bool slept)
{
	bool used = ext->reads != ext->reads_seen;

	ext->reads_seen = ext->reads;
	if (atomic_load(&ext->polled) && ext->direct)
		aw_ext_end_direct(ext);
	if (slept && !used && !ext->reading)
		set_direct(ext, false);
	if (ext->direct && used && !ext->reading)
		aw_xs_ep_attend(ext->ep);
	ext->recheck_ms = ext->direct && (used || !ext->reading) ? RECHECK_MS : -1;
}

bool aw_ext_is_queued(const struct aw_ext *ext, unsigned long kind)
{
	int bytes = 0;

	return ioctl(ext->pump.far, kind, &bytes) != 0 || bytes > 0;
}

bool aw_ext_may_send(const struct aw_ext *ext)
{
	return ext->pid == getpid() && !ext->error && !ext->pump_ended && !ext->pump.out.eof &&
	       !ext->leaving && TAILQ_EMPTY(&ext->sends) && !ext->pump.out.len &&
	       !aw_ext_is_queued(ext, FIONREAD);
}

ssize_t aw_ext_stream_send(int fd, const struct iovec *iov, int n, int flags)
{
	struct aw_ext *ext = aw_ext_get(fd);
	ssize_t taken = 0;

	if (!ext)
		return 0;
	pthread_mutex_lock(&ext->lock);
	if (aw_ext_may_send(ext))
		taken = aw_xs_ep_send(ext->ep, iov, n, flags & MSG_MORE);
	if (taken < 0 && taken != -EAGAIN)
		aw_ext_fail_sends(ext, taken);
	if (taken < 0)
		aw_ext_wake(ext);
	pthread_mutex_unlock(&ext->lock);
	aw_ext_put(ext);
	return taken < 0 ? 0 : taken;
}

/* Returns whether the program has read all of the pair: the next bytes are the endpoint's. */
static bool is_pair_read(struct aw_ext *ext)
{
	ext->pair_used = ext->pair_used && aw_ext_is_queued(ext, TIOCOUTQ);
	return !ext->pair_used && !ext->pump.in.len;
}

/* Returns whether a read may take the peer's bytes from the endpoint, after those in the pair. */
static bool may_receive(struct aw_ext *ext)
{
	return ext->pid == getpid() && !ext->error && !ext->pump_ended && !ext->pump.in.eof &&
	       !atomic_load(&ext->polled) && TAILQ_EMPTY(&ext->recvs);
}

static ssize_t receive(struct aw_ext *ext, const struct iovec *iov, int n, int flags)
{
	ssize_t got = aw_xs_ep_recv(ext->ep, iov, n, flags & MSG_PEEK);

	/* The peer's end is the pair's, too: later reads, and other processes, find it there. */
	if (got == 0) {
		ext->pump.in.eof = true;
		aw_ext_forward_end_in(ext);
		wake_pump(ext);
	}
	if (got >= 0 || got == -EAGAIN)
		return got;
	aw_ext_fail_with(ext, got);
	aw_ext_wake(ext);
	return 0;
}

ssize_t aw_ext_stream_recv(int fd, const struct iovec *iov, int n, int flags, bool waits)
{
	struct aw_ext *ext = aw_ext_get(fd);
	ssize_t got = 0;

	if (!ext)
		return 0;
	pthread_mutex_lock(&ext->lock);
	if (may_receive(ext)) {
		ext->reads += waits;
		set_direct(ext, ext->direct || waits);
		got = is_pair_read(ext) ? receive(ext, iov, n, flags) : -ENODATA;
	}
	if (got == 0)
		aw_ext_end_direct(ext);
	pthread_mutex_unlock(&ext->lock);
	aw_ext_put(ext);
	return got;
}

/*
 * Returns whether the calling thread may wait at the endpoint, which stays open meanwhile. One
 * thread at a time does; a second one ends that.
 */
static bool begin_wait(struct aw_ext *ext)
{
	bool may;

	if (!aw_ext_use(ext)) /* takes the table's lock, which is never taken after ext.lock */
		return false;
	pthread_mutex_lock(&ext->lock);
	may = !ext->reading && ext->direct && may_receive(ext) && is_pair_read(ext);
	if (may) {
		ext->reading = true;
	} else if (ext->reading) {
		atomic_store(&ext->polled, true);
		aw_ext_end_direct(ext);
	}
	pthread_mutex_unlock(&ext->lock);
	if (!may)
		aw_ext_unuse(ext);
	return may;
}

/* The thread has waited, or has left for good. The pump looks again soon. */
static void end_wait(void *arg)
{
	struct aw_ext *ext = arg;

	pthread_mutex_lock(&ext->lock);
	ext->reading = false;
	if (ext->sent_back)
		aw_xs_ep_interrupt(ext->ep, false);
	ext->sent_back = false;
	if (ext->direct && ext->recheck_ms < 0)
		wake_pump(ext);
	pthread_mutex_unlock(&ext->lock);
	aw_ext_unuse(ext);
	aw_ext_put(ext);
}

int aw_ext_stream_wait(int fd, int64_t timeout_ns)
{
	struct aw_ext *ext = aw_ext_get(fd);
	struct _pthread_cleanup_buffer left;
	struct stat file;
	ino_t ino;
	int ready;

	if (!ext)
		return -EBADF;
	ino = ext->ino;
	if (!begin_wait(ext)) {
		aw_ext_put(ext);
		return 0;
	}
	aw_left_push(&left, end_wait, ext);
	ready = aw_xs_ep_wait(ext->ep, POLLIN, timeout_ns);
	aw_left_pop(&left, 1);
	if (ready == 0)
		return -EAGAIN;
	if (fstat(fd, &file) != 0 || file.st_ino != ino)
		return -EBADF;
	return ready == -EINTR ? ready : 0;
}

void aw_ext_watch(int fd)
{
	struct aw_ext *ext = aw_ext_get(fd);

	if (!ext)
		return;
	if (!atomic_exchange(&ext->polled, true))
		(void)eventfd_write(ext->wake, 1); /* the pump ends the direct reads */
	aw_ext_put(ext);
}
