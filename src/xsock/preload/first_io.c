// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes the first I/O: judges the connection (detect.c), and makes it framed or bridged, or refuses the peer.
#include "xsock/preload/first_io.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/refusal.h"
#include "xsock/framed/swap.h"
#include "xsock/framed/tls_start.h"
#include "xsock/preload/detect.h"
#include "xsock/preload/wait.h"
#include "xsock/process/mode.h"
#include "xsock/process/protect.h"
#include "xsock/process/quiet.h"
#include "xsock/process/registration.h"
#include "xsock/process/sandbox.h"

short aw_first_io_poll(int fd, short events, int timeout_ms)
{
	struct aw_deadline deadline = aw_deadline_after_ms(timeout_ms);
	struct pollfd pollfd = { .fd = fd, .events = events };
	struct timespec left;
	int ready;

	do
		ready = aw_libc()->ppoll(&pollfd, 1, aw_deadline_left(&deadline, &left), NULL);
	while (ready < 0 && errno == EINTR && timeout_ms >= 0);
	return ready > 0 ? pollfd.revents : 0;
}

/*
 * Waits while another thread, which may have judged otherwise, starts the connection; the caller goes on
 * with that thread's result.
 */
static void await_started(const struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex)
{
	while (sock->state == AW_FD_STARTING)
		aw_fdtab_await_change();
}

bool aw_first_io_is_shared(const struct aw_sock *sock)
{
	return sock->shared &&
	       !(sock->slot && aw_arena_is_alone(sock->slot) && !aw_framed_is_lost(sock->slot));
}

void aw_first_io_restore_lowat(struct aw_sock *sock)
{
	int fd = aw_fdtab_next_fd(sock, -1);

	if (sock->lowat && fd >= 0)
		(void)aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &sock->lowat,
					    sizeof(sock->lowat));
	sock->lowat = 0;
}

void aw_first_io_make_plain(struct aw_sock *sock)
{
	aw_registration_narrow(sock);
	aw_first_io_restore_lowat(sock);
	aw_fdtab_drop(sock);
}

/*
 * The peer has ended its stream before the start-up: the program learns that from the kernel, whose socket it has from here on, and
 * sends nothing more on it.
 */
static void end_plain(struct aw_sock *sock, int fd)
{
	aw_fdtab_lock();
	await_started(sock);
	if (sock->state == AW_FD_CONNECTING || sock->state == AW_FD_PENDING) {
		(void)aw_libc()->shutdown(fd, aw_protect_is_on() ? SHUT_RDWR : SHUT_WR);
		if (aw_protect_is_on())
			aw_protect_discard(fd); /* the peer has not proven who it is */
		aw_first_io_make_plain(sock);
	}
	aw_fdtab_unlock();
}

/*
 * A connect has failed: the socket is a candidate again, because the program may connect it to
 * another address. While its connect call is still running, that call makes
 * the change.
 */
static void make_candidate(struct aw_sock *sock)
{
	aw_fdtab_lock();
	await_started(sock);
	if (sock->state == AW_FD_CONNECTING && !sock->caller) {
		aw_registration_narrow(sock);
		aw_fdtab_set_state(sock, AW_FD_CANDIDATE);
	}
	aw_fdtab_unlock();
}

/*
 * Makes sock STARTING, for the calling thread to start. False: another thread has started it, or found that it cannot be started, or fd
 * is another file by now.
 */
static bool claim_socket(struct aw_sock *sock, int fd)
{
	bool claimed;

	aw_fdtab_lock();
	aw_fdtab_await_forks();
	await_started(sock);
	claimed = (sock->state == AW_FD_CONNECTING || sock->state == AW_FD_PENDING) &&
		  !sock->error && aw_fdtab_get(fd) == sock;
	if (claimed) {
		aw_first_io_restore_lowat(sock);
		aw_fdtab_set_state(sock, AW_FD_STARTING);
		aw_fdtab_await_sleepers(sock);
	}
	aw_fdtab_unlock();
	return claimed;
}

static bool returns_error(const struct aw_first_io_call *call)
{
	return call->kind == AW_FIRST_READ || call->kind == AW_FIRST_WRITE ||
	       call->kind == AW_FIRST_SHUTDOWN;
}

/* Returns what the first I/O of a connection returns that has ended with err. */
static int pass_error(const struct aw_first_io_call *call, int err)
{
	return returns_error(call) ? aw_fail_with(err) : 0;
}

/*
 * TCP has reported err to the record's first call, in place of one of the program's. A call that cannot return it leaves it
 * to the next one.
 */
static int end_started(struct aw_sock *sock, const struct aw_first_io_call *call, int err)
{
	bool keeps = call->connects || call->kind == AW_FIRST_POLL;

	if (aw_protect_is_on()) {
		/* The bytes that have come are not the program's text. */
		(void)aw_libc()->shutdown(call->fd, SHUT_RDWR);
		aw_protect_discard(call->fd);
	}
	aw_fdtab_lock();
	if (keeps) {
		sock->error = err;
		aw_fdtab_set_state(sock, AW_FD_PENDING);
	} else {
		aw_first_io_make_plain(sock);
	}
	aw_fdtab_unlock();
	return keeps ? 0 : pass_error(call, err);
}

/*
 * The proxy process begins the connection: no relative of this process does so by the slot that they have. Returns false where one
 * was first.
 */
static bool give_up_slot(struct aw_sock *sock, int fd)
{
	struct aw_slot *slot = sock->slot;

	if (!slot)
		return true;
	if (!aw_framed_yield(slot, fd))
		return false;
	aw_fdtab_lock();
	aw_fdtab_drop_slot(sock);
	aw_fdtab_unlock();
	aw_arena_leave(slot);
	return true;
}

/*
 * A relative of this process has given the connection to its proxy process, or was killed in the middle of an FPDU: each call fails
 * from here on, and the relative's connection is left alone.
 */
static int lose_connection(struct aw_sock *sock, const struct aw_first_io_call *call)
{
	aw_log(AW_LOG_ERROR,
	       "fd %d has lost its connection: another process that has it used it first, and not as a record, or was "
	       "killed while it wrote",
	       call->fd);
	aw_fdtab_lock();
	sock->error = ECONNRESET;
	aw_fdtab_set_state(sock, AW_FD_PENDING);
	aw_fdtab_unlock();
	return pass_error(call, ECONNRESET);
}

/* Begins the record, where TLS is required under the keys of its handshake. */
static int start_record(struct aw_sock *sock, int fd)
{
	struct aw_record_secrets secrets;
	int err;

	if (!aw_protect_is_on())
		return aw_framed_start(sock, fd);
	aw_tls_start_copy_secrets(sock->tls, &secrets);
	err = aw_framed_start_tls(sock, fd, &secrets);
	explicit_bzero(&secrets, sizeof(secrets));
	return err;
}

/* There is no record, and nobody else can go on with the handshake's keys: the connection ends. */
static int refuse_started(struct aw_sock *sock, const struct aw_first_io_call *call, int err)
{
	const char *cause = strerror(err);

	if (err == ENODATA)
		cause = "the peer has closed the connection behind its handshake";
	else if (err == EPROTO)
		cause = "its first record is no Request of anywarp's";
	else if (err == EOPNOTSUPP)
		cause = "libcrypto.so.3 cannot be loaded";
	else if (err == ENOMEM)
		cause = "there is no room for another record: set ANYWARP_SOCKETS_RECORD=off";
	aw_refusal_log_tls(call->fd, aw_tls_start_peer(sock->tls), cause);
	return end_started(sock, call, err == ENODATA ? ECONNRESET : EPROTO);
}

static void free_handshake(struct aw_tls_start *start)
{
	if (!start)
		return;
	aw_fdtab_begin_step();
	aw_tls_start_free(start);
	aw_fdtab_end_step();
}

/* Frees the handshake, with its keys: sock is claimed, and no other thread judges it any more. */
static void end_handshake(struct aw_sock *sock)
{
	struct aw_tls_start *start;

	aw_fdtab_lock();
	start = sock->tls;
	sock->tls = NULL;
	aw_fdtab_unlock();
	free_handshake(start);
}

/* Makes sock framed or bridged. If a record finds no slot, the proxy process begins the connection. */
static int start_claimed(struct aw_sock *sock, const struct aw_first_io_call *call, bool record)
{
	int err = record ? start_record(sock, call->fd) : ENOMEM;
	/* TCP reports such an error once: no later call of the program's gets it. */
	bool tcp_error = err != ENOMEM && err != EAGAIN && err != EPROTO && err != ENODATA &&
			 err != EPIPE;
	bool ended;

	if (!err)
		return 0;
	if (sock->slot && aw_framed_is_lost(sock->slot))
		return lose_connection(sock, call);
	if (tcp_error && aw_detect_has_ended(call->fd))
		return end_started(sock, call, err);
	if (sock->tls_begun)
		return refuse_started(sock, call, err);
	if (!give_up_slot(sock, call->fd))
		return record ? lose_connection(sock, call) : start_claimed(sock, call, true);
	if (aw_mode_records())
		aw_log(AW_LOG_INFO, "fd %d is no record: the proxy process carries it", call->fd);
	err = aw_swap_socket(sock, call->fd, aw_swap_to_proxy);
	if (!err)
		return 0;

	/* The connection is shut down. If it has ended meanwhile, the program learns that from the kernel. */
	ended = err == ENOTCONN && aw_detect_has_ended(call->fd);
	aw_log(AW_LOG_ERROR, "fd %d cannot be iWARP: %s", call->fd, strerror(err));
	aw_fdtab_lock();
	aw_first_io_make_plain(sock);
	aw_fdtab_unlock();
	if (ended && !aw_protect_is_on())
		return 0;
	aw_libc()->shutdown(call->fd, SHUT_RDWR);
	aw_protect_discard(call->fd);
	if (ended)
		return 0;
	return aw_fail_with(err);
}

/* Returns what the call returns of a connection whose error is kept for the first call that can return it. */
static int pass_kept_error(const struct aw_first_io_call *call)
{
	int err = call->connects || !returns_error(call) ? 0 : aw_first_io_take_error(call->fd);

	return err ? aw_fail_with(err) : 0;
}

/* The kernel names no peer of a socket that is shut: this comes before. */
static void log_refusal(const struct aw_sock *sock, int fd, enum aw_detected detected)
{
	bool connects = sock->role == AW_ROLE_ACTIVE;

	if (detected == AW_DETECTED_INSECURE && sock->tls)
		aw_refusal_log_tls(fd, aw_tls_start_peer(sock->tls), aw_tls_start_cause(sock->tls));
	else if (detected == AW_DETECTED_UNMOVED)
		aw_refusal_log_tls(
			fd, NULL,
			"its handshake is under way, and does not move to another program or to stdio: let the program wait until "
			"it can write, or set ANYWARP_SOCKETS_RECORD=off");
	else if (aw_protect_is_on())
		aw_refusal_log_tls(
			fd, NULL,
			connects
				? "no end of the tls handshake within 10 s: does its program accept?"
				: "no end of the tls handshake within 10 s: run its program under "
				  "'anywarp sockets --tls require'");
	else if (detected == AW_DETECTED_SILENT)
		aw_refusal_log(fd, NULL, AW_REFUSAL_SILENT_CLIENT);
	else
		aw_refusal_log(fd, NULL,
			       connects ? AW_REFUSAL_OTHER_SERVER : AW_REFUSAL_OTHER_CLIENT);
}

/*
 * The peer is no iWARP peer: tells the user, and shuts the connection down. A call that cannot return EPROTO leaves it to the next
 * one. Of a shared connection, which another process may have begun, nothing is shut down.
 */
static int refuse_peer(struct aw_sock *sock, const struct aw_first_io_call *call,
		       enum aw_detected detected)
{
	bool refused;

	aw_fdtab_lock();
	await_started(sock);
	refused = sock->state == AW_FD_CONNECTING || sock->state == AW_FD_PENDING;
	if (refused) {
		aw_registration_narrow(sock);
		aw_first_io_restore_lowat(sock);
		sock->error = EPROTO;
		if (detected == AW_DETECTED_INSECURE && sock->tls &&
		    aw_tls_start_was_reset(sock->tls))
			sock->error = ECONNRESET;
		aw_fdtab_set_state(sock, AW_FD_PENDING);
		log_refusal(sock, call->fd, detected);
		if (!aw_first_io_is_shared(sock)) {
			(void)aw_libc()->shutdown(call->fd, SHUT_RDWR);
			if (aw_protect_is_on())
				aw_protect_discard(call->fd);
		}
	}
	aw_fdtab_unlock();
	return refused ? pass_kept_error(call) : 0;
}

static int apply_detected(struct aw_sock *sock, const struct aw_first_io_call *call,
			  enum aw_detected detected)
{
	int fd, result = 0;

	switch (detected) {
	case AW_DETECTED_ENDPOINT:
	case AW_DETECTED_RECORD:
		if (claim_socket(sock, call->fd)) {
			result = start_claimed(sock, call, detected == AW_DETECTED_RECORD);
			end_handshake(sock);
		} else {
			result = pass_kept_error(call);
		}
		/* stdio knows no records. */
		aw_fdtab_lock();
		fd = aw_fdtab_next_fd(sock, -1);
		aw_fdtab_unlock();
		if (fd >= 0 && fd <= STDERR_FILENO)
			(void)aw_framed_bridge(fd);
		return result;
	case AW_DETECTED_ENDED:
		end_plain(sock, call->fd);
		return 0;
	case AW_DETECTED_STRANGER:
	case AW_DETECTED_SILENT:
	case AW_DETECTED_INSECURE:
	case AW_DETECTED_UNMOVED:
		return refuse_peer(sock, call, detected);
	case AW_DETECTED_REFUSED:
		make_candidate(sock);
		return 0;
	case AW_DETECTED_LATER:
		return 0;
	case AW_DETECTED_FAILED:
		return -1;
	}
	return 0;
}

/* Returns fd's socket, or NULL if it is not undecided. */
static struct aw_sock *get_undecided(int fd) AW_REQUIRES(aw_fdtab_mutex)
{
	struct aw_sock *sock = aw_fdtab_get_started(fd);

	return sock && sock->state >= AW_FD_CONNECTING ? sock : NULL;
}

struct aw_sock *aw_first_io_begin_sleep(int fd)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = get_undecided(fd);
	if (sock)
		aw_fdtab_begin_sleep(sock);
	aw_fdtab_unlock();
	return sock;
}

void aw_first_io_end_sleep(struct aw_sock *sock)
{
	int saved = errno;

	aw_fdtab_lock();
	aw_fdtab_end_sleep(sock);
	aw_fdtab_unlock();
	errno = saved;
}

struct aw_sock *aw_first_io_pin(int fd)
{
	return aw_fdtab_is_undecided(fd) && !aw_sandbox_is_on() ? aw_first_io_begin_sleep(fd)
								: NULL;
}

void aw_first_io_unpin(struct aw_sock *pin)
{
	if (pin)
		aw_first_io_end_sleep(pin);
}

static void release_socket(struct aw_sock *sock)
{
	int saved = errno;

	aw_fdtab_lock();
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
	errno = saved;
}

/* A thread that judges a connection, by a copy of its socket. */
struct judge {
	struct aw_sock *sock;
	struct aw_sock like;
};

static void cancel_judging(void *arg)
{
	struct judge *judge = arg;

	aw_first_io_end_sleep(judge->sock);
	release_socket(judge->sock);
	free_handshake(judge->like.tls);
}

/* Judges by the copy, without the lock. The thread may be cancelled while it waits to read. */
static enum aw_detected judge_copy(struct judge *judge, const struct aw_first_io_call *call)
{
	enum aw_detected detected;

	pthread_cleanup_push(cancel_judging, judge);
	detected = aw_detect_start(&judge->like, call);
	pthread_cleanup_pop(false);
	return detected;
}

/* Judges the connection, and applies what was found. Returns 0 with errno unchanged, or -1 with errno. */
static int make_first_io(const struct aw_first_io_call *call)
{
	int saved = errno, result;
	struct judge judge = { 0 };
	struct aw_sock *sock;
	enum aw_detected detected;
	struct aw_quiet before;
	int err;

	aw_fdtab_lock();
	sock = get_undecided(call->fd);
	err = sock ? sock->error : 0;
	if (err) {
		if (call->kind != AW_FIRST_POLL && !aw_first_io_is_shared(sock))
			aw_first_io_make_plain(sock);
	} else if (sock) {
		if (aw_protect_is_on() && aw_mode_records() && !sock->tls && !sock->tls_begun)
			sock->tls = aw_tls_start_create(sock->role == AW_ROLE_PASSIVE);
		aw_fdtab_hold(sock);
		aw_fdtab_begin_sleep(sock);
		aw_tls_start_get(sock->tls);
		/* No literal of both: it would be another copy on a small stack. */
		judge.sock = sock;
		judge.like = *sock;
	}
	aw_fdtab_unlock();
	if (!sock || err)
		return err ? pass_error(call, err) : 0;
	detected = judge_copy(&judge, call);
	aw_quiet_begin(&before);
	aw_first_io_end_sleep(sock);
	result = apply_detected(sock, call, detected);
	if (result == 0)
		errno = saved;
	release_socket(sock);
	free_handshake(judge.like.tls);
	aw_quiet_end(&before);
	return result;
}

int aw_first_io_take_error(int fd)
{
	struct aw_sock *sock;
	int err;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	err = sock && sock->state == AW_FD_PENDING ? sock->error : 0;
	if (err && !aw_first_io_is_shared(sock))
		aw_first_io_make_plain(sock);
	aw_fdtab_unlock();
	return err;
}

int aw_first_io_make(int fd, enum aw_first_io kind, bool dontwait)
{
	struct aw_first_io_call call = { .fd = fd, .kind = kind, .dontwait = dontwait };

	return make_first_io(&call);
}

bool aw_first_io_hides(int fd)
{
	struct aw_sock sock;

	return aw_fdtab_look(fd, &sock) && sock.state == AW_FD_PENDING && !sock.error;
}

void aw_first_io_for_stdio(int fd)
{
	int saved = errno;

	if (fd < 0 || fd > STDERR_FILENO)
		return;
	(void)aw_first_io(fd, AW_FIRST_HAND_OVER, false);
	(void)aw_framed_bridge(fd);
	errno = saved;
}

int aw_first_io_connected(int fd)
{
	struct aw_first_io_call call = { .fd = fd, .kind = AW_FIRST_WRITE, .connects = true };

	return make_first_io(&call);
}
