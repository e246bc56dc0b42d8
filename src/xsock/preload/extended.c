// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of anywarp/sockets.h. libanywarp-xsock.so makes them; it is loaded at the first
// iwarp_start, so that a program without extended sockets never loads it.
#include "xsock/preload/extended.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/ext/calls.h"
#include "xsock/framed/swap.h"
#include "xsock/preload/extended_engine.h"
#include "xsock/preload/first_io.h"
#include "xsock/process/protect.h"
#include "xsock/process/proxy.h"
#include "xsock/process/spawn.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct aw_ext_calls *engine; /* NULL: not loaded */

const struct aw_ext_calls *aw_extended_engine(void)
{
	return engine;
}

/* The engine's libraries lie beside this one as well, unless LD_LIBRARY_PATH names others. */
static void load_engine(void)
{
	const struct aw_ext_calls *calls;
	static char path[PATH_MAX]; /* too large for a small stack */
	void *library;

	library = aw_spawn_find_beside(AW_EXT_ENGINE, path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
							    : NULL;
	calls = library ? dlsym(library, AW_EXT_CALLS) : NULL;
	if (calls && strcmp(calls->version, AW_EXT_VERSION) == 0) {
		engine = calls;
		return;
	}
	if (calls)
		aw_log(AW_LOG_ERROR,
		       "%s is of version %s, not " AW_EXT_VERSION ": install anywarp again", path,
		       calls->version);
	else
		aw_log(AW_LOG_ERROR,
		       "iwarp_start fails, because " AW_EXT_ENGINE " cannot be loaded: %s",
		       dlerror());
}

/*
 * Starts the connection in libanywarp-xsock.so, with duplicates of its TCP socket and of the pair's
 * far end. An aw_swap_export.
 */
static int export_to_engine(struct aw_sock *sock, int fd, int far, int near)
{
	struct aw_ext_request request = {
		.tcp = aw_proxy_copy_high(fd),
		.far = aw_proxy_copy_high(far),
		.fd = fd,
		.role = (int)sock->role,
	};
	struct stat file;

	if (request.tcp < 0 || request.far < 0) {
		if (request.tcp >= 0)
			aw_libc()->close(request.tcp);
		if (request.far >= 0)
			aw_libc()->close(request.far);
		return EMFILE;
	}
	fstat(near, &file);
	request.ino = file.st_ino;
	request.nodelay = aw_sockopt_int(fd, IPPROTO_TCP, TCP_NODELAY, 0);
	return engine->start(&request);
}

/*
 * Makes fd's socket STARTING and holds it, also if the rules have left the socket alone. Returns 0
 * or an errno.
 */
static int claim_socket(int fd, int role, struct aw_sock **claimed)
{
	struct aw_sock like = { .state = AW_FD_PENDING, .mode = AW_XS_ON }, known;
	struct aw_sock *sock;
	int err = 0;

	if (!aw_fdtab_look(fd, &known) && !aw_fdtab_add(fd, &like))
		return ENOMEM;
	aw_fdtab_lock();
	aw_fdtab_await_forks();
	sock = aw_fdtab_get_started(fd);
	if (!sock)
		err = EBADF;
	else if (sock->state == AW_FD_FRAMED || sock->state == AW_FD_BRIDGED ||
		 sock->state == AW_FD_INTERNAL)
		err = EOPNOTSUPP;
	if (!err) {
		sock->role = (enum aw_role)role;
		sock->mode = AW_XS_ON;
		sock->extended = true;
		aw_first_io_restore_lowat(sock);
		aw_fdtab_set_state(sock, AW_FD_STARTING);
		aw_fdtab_hold(sock);
		aw_fdtab_await_sleepers(sock);
		*claimed = sock;
	}
	aw_fdtab_unlock();
	return err;
}

/*
 * Starts the connection with handled signals blocked and cancellation disabled. A signal handler
 * that uses the fd would wait for this thread, which it has interrupted; all other threads would
 * wait for a thread that is cancelled.
 */
static int start_socket(int fd, int role)
{
	struct sigaction action;
	sigset_t handled, before;
	struct aw_sock *sock;
	bool polled = false;
	int cancel, err;

	/* The other signals end or stop the program as usual. */
	sigemptyset(&handled);
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
		    action.sa_handler != SIG_IGN)
			sigaddset(&handled, sig);
	}
	pthread_sigmask(SIG_BLOCK, &handled, &before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);

	err = claim_socket(fd, role, &sock);
	if (!err) {
		err = aw_swap_socket(sock, fd, export_to_engine);
		aw_fdtab_lock();
		polled = !err && sock->registrations;
		if (err)
			aw_fdtab_drop(sock);
		aw_fdtab_release(sock);
		aw_fdtab_unlock();
	}
	if (polled)
		engine->watch(fd);

	pthread_setcancelstate(cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* The two ends of an extended socket may have to exchange a second connection's address over the first one, in clear. */
static bool is_refused_by_tls(void)
{
	if (aw_protect_is_on())
		aw_log(AW_LOG_ERROR,
		       "iwarp_start refused: an extended socket has no TLS, and ANYWARP_TLS is require: use the socket "
		       "without it, or run the program without --tls require");
	return aw_protect_is_on();
}

AW_WRAPPER int iwarp_start(int fd, int role)
{
	union aw_address peer;
	socklen_t len = sizeof(int), peer_len = sizeof(peer);
	int protocol = 0, err;

	if (role != IWARP_ACTIVE && role != IWARP_PASSIVE)
		return aw_fail_with(EINVAL);
	if (aw_libc()->getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) != 0)
		return aw_fail_with(errno == ENOTSOCK ? EOPNOTSUPP : errno);
	if (is_refused_by_tls() || protocol != IPPROTO_TCP)
		return aw_fail_with(EOPNOTSUPP);
	if (aw_libc()->getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0)
		return -1;
	pthread_once(&once, load_engine);
	err = engine ? start_socket(fd, role) : ENOENT;
	return err ? aw_fail_with(err) : 0;
}

/*
 * Returns whether the library is loaded. Otherwise no connection was started, and the call fails.
 */
static bool is_started(void)
{
	if (engine)
		return true;
	errno = EOPNOTSUPP;
	return false;
}

void aw_extended_closing(int fd)
{
	struct aw_sock sock;

	if (engine && !aw_fdtab_is_vfork_child() && aw_fdtab_look(fd, &sock) && sock.extended &&
	    sock.state == AW_FD_BRIDGED && sock.fds == 1)
		engine->closing(fd, &sock.linger);
}

int aw_extended_get_option(const struct aw_sock *sock, int level, int name, void *value,
			   socklen_t *len)
{
	return is_started() ? engine->get_option(sock->ino, level, name, value, len) : -1;
}

int aw_extended_set_option(const struct aw_sock *sock, int level, int name, const void *value,
			   socklen_t len)
{
	return is_started() ? engine->set_option(sock->ino, level, name, value, len) : -1;
}

AW_WRAPPER struct iwarp_mr *iwarp_reg_mr(int fd, void *addr, size_t len, int access)
{
	return is_started() ? engine->reg_mr(fd, addr, len, access) : NULL;
}

AW_WRAPPER int iwarp_dereg_mr(struct iwarp_mr *mr)
{
	return is_started() ? engine->dereg_mr(mr) : -1;
}

AW_WRAPPER int iwarp_mr_key(const struct iwarp_mr *mr, struct iwarp_key *key)
{
	return is_started() ? engine->mr_key(mr, key) : -1;
}

AW_WRAPPER int iwarp_write(struct iwarp_mr *mr, size_t offset, size_t len,
			   const struct iwarp_key *key, uint64_t key_offset, uint64_t cookie)
{
	return is_started() ? engine->write(mr, offset, len, key, key_offset, cookie) : -1;
}

AW_WRAPPER int iwarp_write_notify(struct iwarp_mr *mr, size_t offset, size_t len,
				  const struct iwarp_key *key, uint64_t key_offset,
				  const struct iwarp_note *note)
{
	return is_started() ? engine->write_notify(mr, offset, len, key, key_offset, note) : -1;
}

AW_WRAPPER int iwarp_read(struct iwarp_mr *mr, size_t offset, size_t len,
			  const struct iwarp_key *key, uint64_t key_offset, uint64_t cookie)
{
	return is_started() ? engine->read(mr, offset, len, key, key_offset, cookie) : -1;
}

AW_WRAPPER int iwarp_send_async(int fd, const void *buf, size_t len, uint64_t cookie)
{
	return is_started() ? engine->send_async(fd, buf, len, cookie) : -1;
}

AW_WRAPPER int iwarp_send_mr(struct iwarp_mr *mr, size_t offset, size_t len, uint64_t cookie)
{
	return is_started() ? engine->send_mr(mr, offset, len, cookie) : -1;
}

AW_WRAPPER int iwarp_recv_async(int fd, void *buf, size_t len, uint64_t cookie)
{
	bool engaged = aw_extended_engaged;
	int result;

	if (!is_started())
		return -1;
	aw_extended_engaged = true;
	result = engine->recv_async(fd, buf, len, cookie);
	aw_extended_engaged = engaged;
	return result;
}

AW_WRAPPER int iwarp_cq_fd(int fd)
{
	return is_started() ? engine->cq_fd(fd) : -1;
}

AW_WRAPPER int iwarp_cq_poll(int fd, struct iwarp_completion *completions, int n)
{
	return is_started() ? engine->cq_poll(fd, completions, n) : -1;
}
