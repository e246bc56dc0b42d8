// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The queue and its fd. The fd is readable while the queue holds events, so that events can be
// taken back (destroy, migrate) without leaving an fd that promises one. An event that a sleeping reader
// is woken for, and takes, raises no fd. Readers wait on a futex, never in read: as with the kernel's rdma_cm, a
// signal handler's SA_RESTART decides whether their call goes on (poll would always end).
#define _GNU_SOURCE /* syscall */
#include "rdmacm/event_channel.h"

#include "net/base/cleanup.h"
#include "net/base/event_fd.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/progress/engine.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/id.h"
#include "ring/lock.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct aw_cm_channel {
	struct rdma_event_channel channel; /* the program's view; must be first */
	struct aw_event_owner owner; /* the fd's */
	struct aw_latch lock; /* guards what follows */
	struct aw_cm_event_list queue;
	bool destroyed;
	bool raised;
	bool raised_twice; /* while another thread raised the fd: a readable fd does not tell that this one has */
	bool wake_due; /* a thread is about to wake the readers */
	_Atomic uint32_t raising; /* threads that raise the fd; incremented under the lock */
	struct aw_after after;
	uint32_t readers; /* threads that wait for the next push, or are about to */
	_Atomic uint32_t pushes; /* readers wait until it changes; written under the lock */
};

#define RAISE_MS 1 /* between two looks for a thread that raises the fd, and needs a CPU for that */

static void wake_after(struct aw_after *after);

/*
 * rping and its like destroy a channel while their other thread is about to read it. With the
 * kernel's rdma_cm that thread hangs until the process exits; so it does here, and to this end the
 * memory of the last destroyed channels is kept, and that of each channel on which a thread sleeps.
 */
#define GRAVES 64
static struct {
	aw_mutex lock;
	unsigned int next;
	struct aw_cm_channel *channel[GRAVES];
} graves = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A thread of the parent may have held it. A grave that was being filled is filled, or is not. */
static void fork_child(void)
{
	pthread_mutex_init(&graves.lock, NULL);
}

static const struct aw_fork_handlers fork_handlers = { .child = fork_child };

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_CM_CHANNELS, &fork_handlers);
}

/* Acquire, of the release in wake: a thread that no longer raises the fd has raised it. */
static bool is_raising(const struct aw_cm_channel *ch)
{
	return atomic_load_explicit(&ch->raising, memory_order_acquire) > 0;
}

/*
 * A reader of a destroyed channel sleeps on its memory until the process exits: in another channel's memory
 * it would take that channel's events. A wake is hardly due so many channels later.
 */
static bool is_in_use(struct aw_cm_channel *ch) AW_EXCLUDES(ch->lock)
{
	aw_lock(&ch->lock);
	bool used = ch->wake_due || ch->readers > 0 || is_raising(ch);

	aw_unlock(&ch->lock);
	return used;
}

/* Keeps ch in place of the oldest channel that is not in use, which is freed. Where each is, the oldest leaves, and its memory stays. */
static void bury(struct aw_cm_channel *ch)
{
	unsigned int tries = 0;

	aw_lock(&graves.lock);
	while (tries++ < GRAVES && graves.channel[graves.next] &&
	       is_in_use(graves.channel[graves.next]))
		graves.next = (graves.next + 1) % GRAVES;
	struct aw_cm_channel *oldest = graves.channel[graves.next];

	graves.channel[graves.next] = ch;
	graves.next = (graves.next + 1) % GRAVES;
	aw_unlock(&graves.lock);
	if (!oldest || is_in_use(oldest))
		return;
	aw_latch_fini(&oldest->lock);
	free(oldest);
}

/* In the child of a fork, too: the events are the parent's. */
static void begin_empty(struct aw_event_owner *owner)
{
	struct aw_cm_channel *ch =
		(struct aw_cm_channel *)((char *)owner - offsetof(struct aw_cm_channel, owner));

	ch->after.fn = wake_after;
	aw_latch_init(&ch->lock);
	TAILQ_INIT(&ch->queue);
	ch->raised = ch->raised_twice = ch->wake_due = false;
	ch->readers = 0;
	atomic_store_explicit(&ch->raising, 0, memory_order_relaxed);
}

static struct aw_cm_channel *of(struct rdma_event_channel *channel)
{
	return (struct aw_cm_channel *)channel;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct aw_cm_channel *ch = calloc(1, sizeof(*ch));

	if (!ch) {
		errno = ENOMEM;
		return NULL;
	}
	ch->channel.fd = aw_event_fd_open(false);
	if (ch->channel.fd < 0) {
		free(ch);
		return NULL;
	}
	ch->owner =
		(struct aw_event_owner){ .fd = ch->channel.fd, .set = -1, .inherit = begin_empty };
	begin_empty(&ch->owner);
	aw_event_owner_add(&ch->owner);
	return &ch->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!channel)
		return;
	struct aw_cm_channel *ch = of(channel);

	aw_event_owner_remove(&ch->owner);
	aw_lock(&ch->lock);
	ch->destroyed = true;
	while (is_raising(ch))
		poll(NULL, 0, RAISE_MS);
	close(ch->channel.fd);
	aw_unlock(&ch->lock);
	bury(ch);
}

/*
 * A thread that waits for the fd may take the CPU as it is raised, and wants the lock, so the lock is given back before. A
 * channel that is destroyed waits, and so does the lowering of the fd (match_fd). Afterwards only the addresses of raising and
 * pushes are used.
 */
static void wake(struct aw_cm_channel *ch)
{
	aw_lock(&ch->lock);
	bool wakes = ch->readers > 0;
	int fd = ch->channel.fd;
	/*
	 * A reader that sleeps takes the event, or sees to the fd (settle), which saves the two system calls
	 * that raise and lower it. Every other event is an edge for the program's epoll sets. Once the channel is
	 * destroyed the fd's number may be another file's, though ids may still push.
	 */
	bool raises = !TAILQ_EMPTY(&ch->queue) && !ch->destroyed && !wakes;
	bool alone = raises && !ch->raised;

	if (raises)
		ch->raised = true;
	if (alone)
		atomic_fetch_add_explicit(&ch->raising, 1, memory_order_relaxed);
	else if (raises)
		aw_event_fd_raise(fd);
	ch->raised_twice = ch->raised_twice || (raises && !alone);
	ch->wake_due = false;
	aw_unlock(&ch->lock);
	if (alone) {
		aw_event_fd_raise(fd);
		/* Release, for is_raising. */
		atomic_fetch_sub_explicit(&ch->raising, 1, memory_order_release);
	}
	if (wakes)
		syscall(SYS_futex, &ch->pushes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void wake_after(struct aw_after *after)
{
	wake((struct aw_cm_channel *)((char *)after - offsetof(struct aw_cm_channel, after)));
}

/*
 * On the progress thread the wake comes after its handler has returned: the program's thread wants
 * the handler's locks.
 */
void aw_cm_channel_push(struct rdma_event_channel *channel, struct aw_cm_event *ev)
{
	struct aw_cm_channel *ch = of(channel);
	bool later = aw_engine_is_self();

	aw_lock(&ch->lock);
	bool ours = !ch->wake_due;

	TAILQ_INSERT_TAIL(&ch->queue, ev, entry);
	atomic_fetch_add_explicit(&ch->pushes, 1, memory_order_relaxed);
	ch->wake_due = true;
	if (ours && later)
		aw_watch_after(&ch->after);
	aw_unlock(&ch->lock);
	if (ours && !later)
		wake(ch);
}

/*
 * Returns when the fd was raised, if it is going to be. Mostly it was: that has woken this thread, and the one that raises it has not
 * returned from the kernel.
 */
static void await_raised(struct aw_cm_channel *ch) AW_REQUIRES(ch->lock)
{
	struct pollfd fd = { .fd = ch->channel.fd, .events = POLLIN };
	int cancel = aw_cancel_disable();

	while (is_raising(ch)) {
		if (ch->raised_twice)
			poll(NULL, 0, RAISE_MS);
		else if (poll(&fd, 1, RAISE_MS) > 0)
			break;
	}
	aw_cancel_restore(cancel);
}

/* Called after events were taken. */
static void match_fd(struct aw_cm_channel *ch) AW_REQUIRES(ch->lock)
{
	if (!TAILQ_EMPTY(&ch->queue) || ch->destroyed)
		return;
	if (ch->raised) {
		await_raised(ch);
		aw_event_fd_lower(ch->channel.fd);
	}
	ch->raised = ch->raised_twice = false;
}

/* Raises the fd for what was left to readers, if none of them is left. */
static void settle(struct aw_cm_channel *ch) AW_REQUIRES(ch->lock)
{
	if (TAILQ_EMPTY(&ch->queue) || ch->raised || ch->wake_due || ch->destroyed ||
	    ch->readers > 0)
		return;
	ch->raised = true;
	aw_event_fd_raise(ch->channel.fd);
}

/* NULL: there is no event. */
static struct aw_cm_event *take_first(struct aw_cm_channel *ch)
{
	aw_lock(&ch->lock);
	struct aw_cm_event *ev = TAILQ_FIRST(&ch->queue);

	if (ev) {
		TAILQ_REMOVE(&ch->queue, ev, entry);
		atomic_fetch_add_explicit(&ev->owner->events_taken, 1, memory_order_relaxed);
		match_fd(ch);
		settle(ch);
	}
	aw_unlock(&ch->lock);
	return ev;
}

/* Of a thread that leaves without a look at the queue. */
static void wait_no_more(void *arg)
{
	struct aw_cm_channel *ch = arg;

	aw_lock(&ch->lock);
	ch->readers--;
	settle(ch);
	aw_unlock(&ch->lock);
}

/*
 * Waits until pushes is no longer seen. 0 or EINTR. The C library has no cancellation point for a
 * futex, so during the wait the thread may be cancelled anywhere.
 */
static int wait_push(struct aw_cm_channel *ch, uint32_t seen, int cancel_state)
{
	struct _pthread_cleanup_buffer left;
	int cancel_type, err = 0;

	/* A push that finds no reader yet has changed `pushes`, so that the reader does not sleep. */
	aw_lock(&ch->lock);
	ch->readers++;
	aw_unlock(&ch->lock);
	_pthread_cleanup_push(&left, wait_no_more, ch);
	/* The state first: glibc 2.36 has no result for pthread_join where the state makes a thread end that was cancelled before. */
	pthread_setcancelstate(cancel_state, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &cancel_type);
	if (syscall(SYS_futex, &ch->pushes, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) < 0)
		err = errno == EAGAIN ? 0 : errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(cancel_type, NULL);
	_pthread_cleanup_pop(&left, err != 0);
	if (!err) {
		aw_lock(&ch->lock);
		ch->readers--;
		aw_unlock(&ch->lock);
	}
	return err;
}

int aw_cm_channel_take(struct rdma_event_channel *channel, int cancel_state,
		       struct aw_cm_event **ev)
{
	struct aw_cm_channel *ch = of(channel);

	for (;;) {
		/*
		 * Read before the look at the queue: a later push is seen there or ends the wait.
		 */
		uint32_t seen = atomic_load_explicit(&ch->pushes, memory_order_relaxed);
		int flags, err;

		*ev = take_first(ch);
		if (*ev)
			return 0;
		/* The reader of a destroyed channel waits. */
		aw_lock(&ch->lock);
		flags = ch->destroyed ? 0 : fcntl(ch->channel.fd, F_GETFL);
		aw_unlock(&ch->lock);
		if (flags < 0)
			return EBADF;
		err = flags & O_NONBLOCK ? EAGAIN : wait_push(ch, seen, cancel_state);
		if (err)
			return err;
	}
}

bool aw_cm_channel_holds(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct aw_cm_channel *ch = of(channel);
	struct aw_cm_event *ev;

	aw_lock(&ch->lock);
	TAILQ_FOREACH(ev, &ch->queue, entry)
	{
		if (ev->event.event == type)
			break;
	}
	aw_unlock(&ch->lock);
	return ev != NULL;
}

void aw_cm_channel_remove(struct rdma_event_channel *channel, const struct aw_cm_id *owner,
			  struct aw_cm_event_list *list)
{
	if (!channel)
		return;
	struct aw_cm_channel *ch = of(channel);
	struct aw_cm_event *ev, *next;

	aw_lock(&ch->lock);
	for (ev = TAILQ_FIRST(&ch->queue); ev; ev = next) {
		next = TAILQ_NEXT(ev, entry);
		if (ev->owner != owner)
			continue;
		TAILQ_REMOVE(&ch->queue, ev, entry);
		TAILQ_INSERT_TAIL(list, ev, entry);
	}
	match_fd(ch);
	aw_unlock(&ch->lock);
}
