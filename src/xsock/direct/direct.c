// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine's table of calls, how a connection begins, and the parent's part of handing some to a carrier.
#include "xsock/direct/calls.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "anywarp/cm.h"
#include "xsock/direct/carrier.h"
#include "xsock/ep.h"
#include "xsock/ep_impl.h"
#include "xsock/order.h"

_Static_assert(AW_DIRECT_LITTLE == AW_XS_EP_LITTLE, "one number, told twice");

#define LINGERERS_MAX 1024
#define STACK_OCTETS (256u << 10)

/* Endpoints come and go one at a time, and never while some are carried. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
/* Nor is anybody else at an endpoint then, in whom no fd leads to it: read by those, written by who carries. Before life. */
static pthread_rwlock_t visits = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static int start_alone(int role, bool nodelay, int tcp, struct aw_xs_will *will, int lifeline,
		       struct aw_xs_ep **ep)
{
	struct aw_xs_options options = { .nodelay = nodelay, .prompt = true };
	int err = -aw_xs_ep_create(&options, ep);

	if (err) {
		close(lifeline);
		munmap(will, AW_XS_WILL_OCTETS);
		return err;
	}
	if (will)
		aw_xs_ep_set_will(*ep, will, lifeline);
	err = -(role == 1 ? aw_xs_ep_initiate(*ep, tcp) : aw_xs_ep_respond(*ep, tcp));
	if (err)
		aw_xs_ep_close(*ep, true);
	return err;
}

/* Nobody is waited for: the fd is being swapped, which forks and others' calls wait for. */
static int start(int role, bool nodelay, int tcp, struct aw_xs_will *will, int lifeline,
		 struct aw_xs_ep **ep)
{
	int err;

	pthread_mutex_lock(&life);
	err = start_alone(role, nodelay, tcp, will, lifeline, ep);
	pthread_mutex_unlock(&life);
	return err;
}

static void kick(struct aw_xs_ep *ep, bool kicked)
{
	pthread_rwlock_rdlock(&visits);
	aw_xs_ep_kick(ep, kicked);
	pthread_rwlock_unlock(&visits);
}

static void end(struct aw_xs_ep *ep, bool abort)
{
	pthread_mutex_lock(&life);
	if (abort)
		aw_xs_ep_close(ep, true);
	else
		aw_xs_ep_close_unread(ep);
	pthread_mutex_unlock(&life);
}

/* The functions of the library in use; NULL where it is not ours. */
struct carrying {
	int (*hold)(void);
	int (*release)(void);
	int (*forget)(struct rdma_cm_id *id);
};

static int find_carrying(struct carrying *found)
{
	found->hold = (int (*)(void))aw_xs_cm_extension("anywarp_fork_hold");
	found->release = (int (*)(void))aw_xs_cm_extension("anywarp_fork_release");
	found->forget = (int (*)(struct rdma_cm_id *))aw_xs_cm_extension("anywarp_cm_forget");
	return found->hold && found->release && found->forget ? 0 : EOPNOTSUPP;
}

struct birth {
	const struct aw_direct_load *loads;
	int count;
	pid_t (*fork)(void);
	int control;
	int err;
};

/*
 * In the program's memory, while the program's thread waits: whom fork makes here is nobody's child as soon
 * as we are gone, and we raise no signal and are seen by no plain wait(2). The address sanitizer does not know the
 * stack, and says so wherever a function will not return.
 */
__attribute__((no_sanitize("address"))) static int bear(void *arg)
{
	struct birth *birth = arg;
	pid_t pid = birth->fork();

	if (pid == 0)
		aw_carrier_run(birth->loads, birth->count, birth->control);
	if (pid < 0)
		birth->err = errno;
	syscall(SYS_exit, 0);
	return 0;
}

static int give_birth(struct birth *birth)
{
	char *stack = mmap(NULL, STACK_OCTETS, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pid_t pid;

	if (stack == MAP_FAILED)
		return ENOMEM;
	pid = clone(bear, stack + STACK_OCTETS, CLONE_VM | CLONE_VFORK, birth);
	if (pid < 0)
		birth->err = errno;
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	munmap(stack, STACK_OCTETS);
	return birth->err;
}

/* Whether the carrier has taken all. */
static int await_answer(int control)
{
	int err = ECHILD;
	ssize_t got = recv(control, &err, sizeof(err), 0);

	return got == (ssize_t)sizeof(err) ? err : ECHILD;
}

static int carry_held(const struct aw_direct_load *loads, int count, pid_t (*fork)(void),
		      const int ends[2])
{
	struct birth birth = { .loads = loads, .count = count, .fork = fork, .control = ends[1] };
	int err = give_birth(&birth);

	close(ends[1]);
	return err ? err : await_answer(ends[0]);
}

/* Whoever of us is killed in between leaves the connection to the other one, who may not be there yet: it is reset. */
static void suspend(const struct aw_direct_load *loads, int count, bool suspended)
{
	for (int i = 0; i < count; i++)
		aw_xs_ep_suspend_will(loads[i].ep, suspended);
}

static void forget(struct aw_xs_ep *ep, int (*forget_id)(struct rdma_cm_id *id))
{
	if (!ep->is_live)
		aw_xs_service_let_go(ep);
	aw_xs_ep_forget(ep, forget_id);
}

/* The service is paused. */
static int carry_paused(const struct aw_direct_load *loads, int count, pid_t (*fork)(void),
			int *control)
{
	struct carrying do_;
	int ends[2], err = find_carrying(&do_);

	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return errno;
	suspend(loads, count, true);
	if (do_.hold() != 0) {
		err = errno;
		suspend(loads, count, false);
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	err = carry_held(loads, count, fork, ends);
	for (int i = 0; i < count && !err; i++)
		forget(loads[i].ep, do_.forget);
	do_.release();
	if (err) {
		suspend(loads, count, false);
		close(ends[0]);
	} else {
		*control = ends[0];
	}
	return err;
}

/* Closed already: there is no fd to carry octets to. */
static int list_lingerers(struct aw_direct_load loads[LINGERERS_MAX])
{
	struct aw_xs_ep *eps[LINGERERS_MAX];
	int count = aw_xs_service_lingerers(eps, LINGERERS_MAX);

	for (int i = 0; i < count; i++)
		loads[i] = (struct aw_direct_load){
			.ep = eps[i], .far = -1, .tcp = -1, .stream = eps[i]->socket
		};
	return count;
}

static int carry_lingerers(pid_t (*fork)(void))
{
	static struct aw_direct_load loads[LINGERERS_MAX];
	int count, err, control;

	aw_xs_service_pause();
	count = list_lingerers(loads);
	err = count ? carry_paused(loads, count, fork, &control) : 0;
	aw_xs_service_resume();
	if (count && !err)
		close(control);
	return err;
}

static void leave(int64_t timeout_ns, pid_t (*fork)(void))
{
	aw_xs_service_exit();
	if (aw_xs_ep_drain_all(timeout_ns) == 0)
		return;
	pthread_rwlock_wrlock(&visits);
	pthread_mutex_lock(&life);
	(void)carry_lingerers(fork);
	pthread_mutex_unlock(&life);
	pthread_rwlock_unlock(&visits);
}

static bool is_early(struct aw_xs_ep *ep)
{
	return aw_xs_ep_state(ep) == AW_XS_CONNECTING;
}

static bool has_left(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	bool left = ep->stream.rx_end == AW_XS_GONE && ep->stream.tx_wanted == AW_XS_OPEN &&
		    !ep->stream.error;

	aw_xs_ep_unlock(ep);
	return left;
}

static bool is_busy(struct aw_xs_ep *ep)
{
	return aw_xs_ep_unsent(ep) > 0 || aw_xs_ep_state(ep) == AW_XS_CONNECTING;
}

static int carry(const struct aw_direct_load *loads, int count, pid_t (*fork)(void), int *control)
{
	int err;

	pthread_rwlock_wrlock(&visits);
	pthread_mutex_lock(&life);
	aw_xs_service_pause();
	err = carry_paused(loads, count, fork, control);
	aw_xs_service_resume();
	pthread_mutex_unlock(&life);
	pthread_rwlock_unlock(&visits);
	return err;
}

__attribute__((visibility("default"))) const struct aw_direct_calls aw_direct_calls = {
	.version = AW_VERSION,
	.start = start,
	.send = aw_xs_ep_send,
	.recv = aw_xs_ep_recv,
	.wait = aw_xs_ep_pwait,
	.kick = kick,
	.shutdown = aw_xs_ep_shutdown,
	.close = end,
	.drain = aw_xs_ep_drain,
	.settle = aw_xs_ep_settle,
	.drain_all = aw_xs_ep_drain_all,
	.pending = aw_xs_ep_pending,
	.unsent = aw_xs_ep_unsent,
	.busy = is_busy,
	.is_early = is_early,
	.has_left = has_left,
	.error = aw_xs_ep_error,
	.set_nodelay = aw_xs_ep_set_nodelay,
	.carry = carry,
	.leave = leave,
};
