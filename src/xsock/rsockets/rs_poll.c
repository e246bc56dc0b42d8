// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rpoll, over rsockets and the kernel's fds in one set. The thread sleeps in poll(2) on the
// endpoints' fds and on the other fds themselves.
#define _GNU_SOURCE // ppoll, POLLRDHUP
#include "xsock/rsockets/rs_poll.h"

#include <poll.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "xsock/rsockets/rs_config.h"
#include "xsock/rsockets/rs_datagram.h"
#include "xsock/rsockets/rs_table.h"

#define NS_PER_S 1000000000
#define NS_PER_MS 1000000
#define ALWAYS (POLLERR | POLLHUP | POLLNVAL)
#define ON_STACK_MAX 16
#define FDS_EACH (AW_XS_EP_FDS + 1) // the endpoint's fds and the rsocket's own
#define SHARED_MS 2

struct member {
	struct aw_rs *rs; // held; NULL: the fd is the kernel's
	struct aw_xs_ep *ep;
	// Of all threads in rpoll, this one sleeps on the endpoint's fds, by this entry of its set.
	bool leads;
};

struct poll_set {
	struct pollfd *fds; // the program's
	struct member *members; // one for each of fds
	struct pollfd *asked; // FDS_EACH for each of fds: the argument of poll(2)
	size_t count;
};

/* POLLRDNORM and POLLWRNORM mean POLLIN and POLLOUT: there is one band. */
static short ep_events(short events)
{
	if (events & POLLRDNORM)
		events |= POLLIN;
	if (events & POLLWRNORM)
		events |= POLLOUT;
	return events & (POLLIN | POLLOUT | POLLPRI | POLLRDHUP);
}

/*
 * Returns the revents of an endpoint. POLLHUP is left out while bytes can be read: rstream takes it
 * for a failure.
 */
static short ep_revents(const struct member *m, short events, short ready)
{
	if (atomic_load(&m->rs->closed))
		return POLLNVAL;
	if ((ready & POLLHUP) && (ep_events(events) & POLLIN) && aw_xs_ep_pending(m->ep))
		ready &= ~POLLHUP;
	if (ready & POLLIN)
		ready |= POLLRDNORM;
	if (ready & POLLOUT)
		ready |= POLLWRNORM;
	return (short)(ready & (events | ALWAYS));
}

static void add_fd(struct poll_set *set, size_t i)
{
	struct pollfd *fd = &set->fds[i], *asked = &set->asked[i * FDS_EACH];
	struct member *m = &set->members[i];

	m->rs = aw_rs_table_hold(fd->fd);
	m->ep = m->rs ? aw_rs_ep(m->rs) : NULL;
	m->leads = false;
	for (int j = 0; j < FDS_EACH; j++)
		asked[j] = (struct pollfd){ .fd = -1 };
	if (!m->ep)
		asked[0] = (struct pollfd){ .fd = fd->fd, .events = fd->events };
	// The eventfd counts connections; that it is writable means nothing.
	if (m->rs && !m->ep && !m->rs->datagram)
		asked[0].events &= POLLIN | POLLRDNORM;
	if (m->rs && m->rs->datagram)
		asked[0].events = aw_rs_datagram_events(fd->events);
}

static short revents_of(const struct member *m, short events, short asked)
{
	bool listens;

	if (!m->rs)
		return asked;
	if (m->ep)
		return ep_revents(m, events, aw_xs_ep_ready(m->ep));
	if (atomic_load(&m->rs->closed))
		return POLLNVAL;
	if (m->rs->datagram)
		return aw_rs_datagram_revents(m->rs, events, asked);
	pthread_mutex_lock(&m->rs->lock);
	listens = m->rs->state == AW_RS_LISTENING;
	pthread_mutex_unlock(&m->rs->lock);
	return listens ? asked : (short)((events & POLLOUT) | POLLHUP);
}

static int read_events(struct poll_set *set)
{
	int count = 0;

	for (size_t i = 0; i < set->count; i++) {
		set->fds[i].revents = revents_of(&set->members[i], set->fds[i].events,
						 set->asked[i * FDS_EACH].revents);
		count += set->fds[i].revents != 0;
	}
	return count;
}

/*
 * Arms the endpoints that no other thread leads. Of all threads in rpoll only the leader sleeps on an endpoint's fds; the others
 * look often, and so does the leader while other threads sleep on the endpoint in another call. False: something has happened meanwhile.
 */
static bool arm_all(struct poll_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		struct member *m = &set->members[i];
		struct pollfd *asked = &set->asked[i * FDS_EACH];
		const void *leader = NULL;

		if (!m->ep)
			continue;
		if (atomic_compare_exchange_strong(&m->rs->leader, &leader, set))
			m->leads = true;
		/* It also leads where it does so by another entry of its set. */
		if (!m->leads && leader != set)
			continue;
		if (!aw_xs_ep_arm_for(m->ep, ep_events(set->fds[i].events) | POLLERR | POLLHUP))
			return false;
		aw_xs_ep_fds(m->ep, asked);
		asked[AW_XS_EP_FDS] = (struct pollfd){ .fd = m->rs->fd, .events = POLLIN };
	}
	return true;
}

static int poll_asked(struct poll_set *set, int64_t left_ns, int most_ms)
{
	int64_t most_ns = (int64_t)most_ms * NS_PER_MS;
	struct timespec time;

	if (left_ns < 0 || left_ns > most_ns)
		left_ns = most_ns;
	time = (struct timespec){ left_ns / NS_PER_S, left_ns % NS_PER_S };
	return ppoll(set->asked, set->count * FDS_EACH, &time, NULL) < 0 ? -errno : 0;
}

/* Returns whether the rsocket is led by another entry of the set, which counts this thread's sleep. */
static bool is_repeated(const struct poll_set *set, const struct member *m)
{
	return !m->leads && atomic_load(&m->rs->leader) == set;
}

static int sleep_on(struct poll_set *set, int64_t left_ns)
{
	bool shares = false; /* with other threads, the events of an endpoint */
	eventfd_t calls;
	int err;

	for (size_t i = 0; i < set->count; i++) {
		struct member *m = &set->members[i];

		if (!m->ep || is_repeated(set, m))
			continue;
		if (!m->leads) {
			aw_rs_wait_begin(m->rs);
			shares = true;
		} else if (atomic_fetch_add(&m->rs->waiting, 1)) {
			shares = true;
		}
	}
	err = poll_asked(set, left_ns, shares ? SHARED_MS : aw_rs_config_wake_up_ms());
	for (size_t i = 0; i < set->count; i++) {
		struct member *m = &set->members[i];

		if (!m->ep || is_repeated(set, m))
			continue;
		aw_rs_wait_end(m->rs);
		while (m->leads && !eventfd_read(m->rs->fd, &calls))
			;
	}
	return err;
}

static int poll_many(struct poll_set *set, int64_t timeout_ns)
{
	int64_t end = aw_now_ns() + timeout_ns, left;
	int err = poll_asked(set, 0, 0), count;

	for (;;) {
		count = err ? err : read_events(set);
		left = timeout_ns < 0 ? -1 : end - aw_now_ns();
		if (count || (timeout_ns >= 0 && left <= 0))
			return count;
		if (arm_all(set))
			err = sleep_on(set, left);
	}
}

/* Polls a set of one endpoint: the endpoint's own sleep is the shortest. */
static int poll_one(struct poll_set *set, int64_t timeout_ns)
{
	struct member *m = &set->members[0];
	int got;

	if (read_events(set) || !timeout_ns)
		return set->fds[0].revents != 0;
	aw_rs_wait_begin(m->rs);
	got = aw_xs_ep_wait(m->ep, ep_events(set->fds[0].events), timeout_ns);
	aw_rs_wait_end(m->rs);
	if (got == -ECANCELED && atomic_load(&m->rs->closed)) {
		set->fds[0].revents = POLLNVAL;
		return 1;
	}
	if (got <= 0)
		return got;
	set->fds[0].revents = ep_revents(m, set->fds[0].events, (short)got);
	return set->fds[0].revents != 0;
}

int aw_rs_poll(struct pollfd *fds, nfds_t count, int64_t timeout_ns)
{
	struct member few[ON_STACK_MAX], *members = few;
	struct pollfd few_asked[ON_STACK_MAX * FDS_EACH], *asked = few_asked;
	int got = -ENOMEM;

	if (count > ON_STACK_MAX) {
		members = calloc(count, sizeof(*members));
		asked = calloc(count, FDS_EACH * sizeof(*asked));
	}
	if (members && asked) {
		struct poll_set set = { fds, members, asked, count };

		for (size_t i = 0; i < count; i++)
			add_fd(&set, i);
		got = count == 1 && members[0].ep ? poll_one(&set, timeout_ns)
						  : poll_many(&set, timeout_ns);
		for (size_t i = 0; i < count; i++) {
			if (members[i].leads)
				atomic_store(&members[i].rs->leader, NULL);
			if (members[i].rs)
				aw_rs_put(members[i].rs);
		}
	}
	if (count > ON_STACK_MAX) {
		free(members);
		free(asked);
	}
	return got;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return (int)aw_rs_result(aw_rs_poll(fds, nfds, (int64_t)timeout * NS_PER_MS));
}
