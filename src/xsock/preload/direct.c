// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a direct connection begins, is closed, and becomes a bridged one.
#include "xsock/preload/direct.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "xsock/framed/framed.h"
#include "xsock/preload/keeper.h"
#include "xsock/preload/legacy.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/say.h"

#define LEAVE_NS 50000
#define LEAVE_TURNS 40000 /* who is not out by then has left by siglongjmp */
#define MS INT64_C(1000000)
#define FLUSH_MS 20

const struct aw_direct_calls *aw_direct_engine;

static pthread_once_t at_exit_once = PTHREAD_ONCE_INIT;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct aw_direct_calls *loaded;
static struct aw_direct *unused; /* under the table's lock */
/* 1 in the process whose memory this is; a fork that we do not see wipes it. */
static _Atomic(int) *alive;
static _Atomic(bool) has_handlers;

static void load_engine(void)
{
	char path[PATH_MAX + sizeof(AW_DIRECT_ENGINE)];
	Dl_info info;
	void *engine;

	if (!dladdr((void *)&aw_direct_convert_all, &info) || !realpath(info.dli_fname, path))
		return;
	strcpy(strrchr(path, '/') + 1, AW_DIRECT_ENGINE);
	engine = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	loaded = engine ? dlsym(engine, AW_DIRECT_CALLS) : NULL;
	if (!loaded || strcmp(loaded->version, AW_VERSION) != 0) {
		aw_say(AW_SAY_INFO, "no direct connections: %s", engine ? path : dlerror());
		loaded = NULL;
	}
	alive = mmap(NULL, sizeof(*alive), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (alive == MAP_FAILED || madvise((void *)alive, sizeof(*alive), MADV_WIPEONFORK) != 0)
		loaded = NULL;
	aw_direct_engine = loaded;
}

bool aw_direct_load(void)
{
	pthread_once(&once, load_engine);
	return loaded != NULL;
}

static struct aw_direct *take_unused(void)
{
	struct aw_direct *direct;

	aw_fdtab_lock();
	direct = unused;
	if (direct)
		unused = direct->next;
	aw_fdtab_unlock();
	return direct ? direct : calloc(1, sizeof(*direct));
}

static void put_unused(struct aw_direct *direct)
{
	aw_fdtab_lock();
	direct->ep = NULL;
	direct->next = unused;
	unused = direct;
	aw_fdtab_unlock();
}

static int64_t timeout_of(int fd, int name)
{
	struct timeval timeout = { 0 };
	socklen_t len = sizeof(timeout);

	aw_libc()->getsockopt(fd, SOL_SOCKET, name, &timeout, &len);
	if (!timeout.tv_sec && !timeout.tv_usec)
		return -1;
	return (int64_t)timeout.tv_sec * 1000 * MS + timeout.tv_usec * 1000;
}

static void read_timeouts(struct aw_direct *direct, int fd)
{
	atomic_store(&direct->receive_ns, timeout_of(fd, SO_RCVTIMEO));
	atomic_store(&direct->send_ns, timeout_of(fd, SO_SNDTIMEO));
}

void aw_direct_read_timeouts(int fd)
{
	struct aw_direct *direct = aw_direct_enter_settled(fd);

	if (!direct)
		return;
	read_timeouts(direct, fd);
	aw_direct_leave(direct);
}

/* A duplicate that the program does not know. */
static int duplicate(int fd)
{
	int copy = aw_keeper_move_high(aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, 0));

	if (copy >= 0)
		aw_fdtab_hide(copy);
	return copy;
}

static void close_hidden(int fd)
{
	aw_fdtab_forget(fd);
	aw_libc()->close(fd);
}

static void close_files(struct aw_direct *direct)
{
	close_hidden(direct->far);
	close_hidden(direct->tcp);
}

/* Before what the engine has registered, which would wait for ever. */
static void register_end(void)
{
	atexit(aw_direct_end);
}

static int start_on(struct aw_direct *direct, const struct aw_sock *sock, int fd,
		    const struct aw_legacy *legacy)
{
	int nodelay = 0;
	socklen_t len = sizeof(nodelay);

	aw_libc()->getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &len);
	return loaded->start((int)sock->role, nodelay != 0, direct->stream, legacy->will,
			     legacy->lifeline[1], &direct->ep);
}

/* The keeper answers a peer's question about this connection no more, and hears of it. */
static void tell_keeper(const struct aw_direct *direct, const struct aw_sock *sock, int fd,
			int near, const struct aw_legacy *legacy)
{
	const int fds[] = { direct->tcp, near, legacy->lifeline[0], legacy->memory };
	struct aw_order order;

	aw_keeper_begin(&order, AW_ORDER_DIRECT);
	order.records = aw_framed_is_wanted();
	order.fd = fd;
	order.mode = (uint8_t)sock->mode;
	if (aw_keeper_tell(&order, fds, legacy->will ? 4 : 2) != 0)
		aw_say(AW_SAY_INFO, "the keeper does not know of a direct connection");
}

int aw_direct_give(struct aw_sock *sock, int fd, int far, int near)
{
	struct aw_direct *direct = take_unused();
	struct aw_legacy legacy;
	int err = EMFILE;

	if (!direct)
		return ENOMEM;
	direct->far = duplicate(far);
	atomic_store(&direct->shunned, false);
	direct->tcp = duplicate(fd);
	direct->stream = duplicate(fd);
	read_timeouts(direct, fd);
	aw_kept_read(&direct->kept, fd);
	aw_legacy_open(&legacy);
	if (direct->far >= 0 && direct->tcp >= 0 && direct->stream >= 0) {
		err = start_on(direct, sock, fd, &legacy);
	} else if (legacy.will) {
		munmap(legacy.will, AW_XS_WILL_OCTETS);
		close_hidden(legacy.lifeline[1]);
	}
	if (err) {
		aw_legacy_close(&legacy);
		close_files(direct);
		close_hidden(direct->stream);
		put_unused(direct);
		return err;
	}
	atomic_store(alive, 1);
	sock->direct = direct;
	pthread_once(&at_exit_once, register_end);
	tell_keeper(direct, sock, fd, near, &legacy);
	aw_legacy_close(&legacy);
	return 0;
}

bool aw_direct_is_engine(const void *caller)
{
	static const char *const names[] = { "librdmacm.so", "libibverbs.so", AW_DIRECT_ENGINE };
	const char *name;
	Dl_info info;

	if (!aw_direct_engine || !dladdr(caller, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

bool aw_direct_is_alive(void)
{
	return alive && atomic_load_explicit(alive, memory_order_relaxed);
}

bool aw_direct_has_handlers(void)
{
	return atomic_load_explicit(&has_handlers, memory_order_relaxed);
}

void aw_direct_note_handler(void)
{
	atomic_store(&has_handlers, true);
}

struct aw_direct *aw_direct_enter(int fd)
{
	struct aw_direct *direct = atomic_load(&aw_fdtab_direct[fd]);

	if (!direct || !aw_direct_is_alive())
		return NULL;
	atomic_fetch_add(&direct->users, 1);
	if (atomic_load(&aw_fdtab_direct[fd]) == direct)
		return direct;
	aw_direct_leave(direct);
	return NULL;
}

struct aw_direct *aw_direct_enter_settled(int fd)
{
	struct aw_direct *direct = aw_direct_enter(fd);

	while (!direct && aw_direct_is_alive() && aw_fdtab_is_paired(fd, false) &&
	       aw_fdtab_state(fd) != AW_FD_BRIDGED)
		direct = aw_direct_enter(fd);
	return direct;
}

void aw_direct_leave(struct aw_direct *direct)
{
	atomic_fetch_sub_explicit(&direct->users, 1, memory_order_release);
}

/* No fd leads to it any more: calls out who is in. False: somebody will not come. */
static bool call_out(struct aw_direct *direct)
{
	const struct timespec turn = { .tv_nsec = LEAVE_NS };

	for (int i = 0; atomic_load(&direct->users) && i < LEAVE_TURNS; i++) {
		if (i % 16 == 0)
			loaded->kick(direct->ep, true);
		nanosleep(&turn, NULL);
	}
	loaded->kick(direct->ep, false);
	if (!atomic_load(&direct->users))
		return true;
	aw_say(AW_SAY_WARN, "a thread has not come back from a call on a connection");
	return false;
}

void aw_direct_bury(struct aw_direct *dead)
{
	int saved = errno;

	while (dead) {
		struct aw_direct *direct = dead;
		bool abort = direct->linger.l_onoff && !direct->linger.l_linger;

		dead = direct->next;
		if (!aw_direct_is_alive()) /* the connection is another process's */
			continue;
		if (call_out(direct)) {
			loaded->close(direct->ep, abort);
			aw_direct_gain_patience();
			close_files(direct);
			put_unused(direct);
		} else {
			loaded->shutdown(direct->ep, SHUT_RDWR);
		}
	}
	errno = saved;
}

/* The carrier knows no fd of the program. */
static pid_t fork_carrier(void)
{
	pid_t pid = aw_libc()->fork();

	if (pid == 0)
		aw_fdtab_clear();
	return pid;
}

static void introduce(int control, const struct aw_direct_load *loads, int count)
{
	int fds[AW_ORDER_FDS] = { control }, nears = 0;
	struct aw_order order;

	aw_keeper_begin(&order, AW_ORDER_CARRIER);
	for (int i = 0; i < count; i++) {
		struct stat file;

		if (fstat(loads[i].fd, &file) == 0 && file.st_ino == loads[i].ino)
			fds[1 + nears++] = loads[i].fd;
		if (nears == AW_ORDER_INOS || (nears && i == count - 1)) {
			(void)aw_keeper_tell(&order, fds, 1 + nears);
			nears = 0;
		}
	}
}

static struct aw_direct_load load_of(const struct aw_sock *sock)
{
	int fd;

	aw_fdtab_lock();
	fd = aw_fdtab_next(sock, -1);
	aw_fdtab_unlock();
	return (struct aw_direct_load){
		.ep = sock->direct->ep,
		.far = sock->direct->far,
		.tcp = sock->direct->tcp,
		.stream = sock->direct->stream,
		.ino = sock->ino,
		.pid = getpid(),
		.fd = fd,
		.mode = (uint8_t)sock->mode,
		.linger = sock->linger,
		.kept = sock->direct->kept,
		.remote = sock->remote,
	};
}

/* Nobody is in a call of an endpoint by now; signals are blocked. */
static int carry(struct aw_sock *const *socks, int count)
{
	struct aw_direct_load *loads = calloc((size_t)count, sizeof(*loads));
	int err = loads ? 0 : ENOMEM, control;

	for (int i = 0; i < count && !err; i++)
		loads[i] = load_of(socks[i]);
	if (!err)
		err = loaded->carry(loads, count, fork_carrier, &control);
	if (!err) {
		introduce(control, loads, count);
		aw_libc()->close(control);
	} else {
		aw_say(AW_SAY_ERROR, "cannot hand connections on: %s", strerror(err));
	}
	free(loads);
	return err;
}

/* What has become of a socket that was claimed. */
static void settle(struct aw_sock *sock, bool moved)
{
	struct aw_direct *direct = sock->direct;

	if (moved) {
		close_files(direct);
		put_unused(direct);
	}
	aw_fdtab_lock();
	if (moved)
		sock->direct = NULL;
	aw_fdtab_set_state(sock, moved ? AW_FD_BRIDGED : AW_FD_DIRECT);
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
}

/*
 * All direct sockets: no thread may be in any endpoint meanwhile. The first ones, so many, are to move. All are held and
 * STARTING.
 */
struct claimed {
	struct aw_sock *socks[AW_DIRECT_MAX];
	int count, moving;
	bool surviving; /* those move that are open after an exec */
	const struct aw_sock *one; /* or one alone */
};

static bool is_moving(const struct claimed *claimed, const struct aw_sock *sock, int fd)
{
	if (claimed->one)
		return sock == claimed->one;
	return !claimed->surviving || !(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void claim_each(struct aw_sock *sock, int fd, void *arg)
{
	struct claimed *claimed = arg;

	if (sock->state != AW_FD_DIRECT || claimed->count == AW_DIRECT_MAX)
		return;
	aw_fdtab_hold(sock);
	aw_fdtab_set_state(sock, AW_FD_STARTING);
	claimed->socks[claimed->count++] = sock;
	if (is_moving(claimed, sock, fd)) {
		claimed->socks[claimed->count - 1] = claimed->socks[claimed->moving];
		claimed->socks[claimed->moving++] = sock;
	}
}

static bool any_moving(struct claimed *claimed)
{
	bool any = false;

	for (int fd = AW_DIRECT_LOWEST_FD; !any && fd < AW_FDTAB_MAX; fd++) {
		struct aw_sock *sock = aw_fdtab_state(fd) == AW_FD_DIRECT ? aw_fdtab_get(fd) : NULL;

		any = sock && is_moving(claimed, sock, fd);
	}
	return any;
}

/* With the lock; there is one to move, and nobody converts. */
static void claim(struct claimed *claimed)
{
	aw_fdtab_convert_begin();
	aw_fdtab_each(claim_each, claimed);
}

static int convert(struct claimed *claimed)
{
	int err = 0;

	for (int i = 0; i < claimed->count; i++)
		if (!call_out(claimed->socks[i]->direct))
			err = EDEADLK;
	if (!err && claimed->moving)
		err = carry(claimed->socks, claimed->moving);
	if (claimed->moving)
		aw_direct_lose_patience();
	for (int i = 0; i < claimed->count; i++)
		settle(claimed->socks[i], !err && i < claimed->moving);
	aw_fdtab_lock();
	aw_fdtab_convert_end();
	aw_fdtab_unlock();
	return err;
}

/* A handler that came to what is STARTING would wait for its own thread. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

int aw_direct_convert(int fd)
{
	struct claimed claimed = { 0 };
	sigset_t before;
	int err = 0;

	if (!aw_direct_is_on())
		return 0;
	block_signals(&before);
	aw_fdtab_lock();
	aw_fdtab_await_convert();
	claimed.one = aw_fdtab_get(fd);
	while (claimed.one && claimed.one->state == AW_FD_STARTING) {
		aw_fdtab_wait();
		aw_fdtab_await_convert();
		claimed.one = aw_fdtab_get(fd);
	}
	if (claimed.one && claimed.one->state == AW_FD_DIRECT && aw_direct_is_alive())
		claim(&claimed);
	aw_fdtab_unlock();
	if (claimed.count)
		err = convert(&claimed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err ? err : errno;
	return err ? -1 : 0;
}

void aw_direct_convert_all(bool surviving)
{
	struct claimed claimed = { .surviving = surviving };
	sigset_t before;
	int saved = errno;

	if ((!atomic_load(&aw_fdtab_directs) && !aw_fdtab_is_converting()) ||
	    !aw_direct_is_alive() || aw_fdtab_is_borrowed())
		return;
	block_signals(&before);
	aw_fdtab_lock();
	aw_fdtab_await_convert();
	if (any_moving(&claimed))
		claim(&claimed);
	aw_fdtab_unlock();
	if (claimed.count)
		(void)convert(&claimed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

/* Without the lock: the engine may close fds of its own, by our wrapper. */
static bool is_any_busy(void)
{
	bool any = false;

	for (int fd = AW_DIRECT_LOWEST_FD; !any && fd < AW_FDTAB_MAX; fd++) {
		struct aw_direct *direct = aw_fdtab_state(fd) == AW_FD_DIRECT ? aw_direct_enter(fd)
									      : NULL;

		if (!direct)
			continue;
		any = loaded->busy(direct->ep);
		aw_direct_leave(direct);
	}
	return any;
}

/* What is not flushed soon needs somebody to live on for it; the rest is closed here. */
void aw_direct_end(void)
{
	const struct timespec turn = { .tv_nsec = MS };

	if (!loaded || !aw_direct_is_alive() || aw_fdtab_is_borrowed())
		return;
	for (int ms = 0; ms < FLUSH_MS && is_any_busy(); ms++)
		nanosleep(&turn, NULL);
	if (is_any_busy())
		aw_direct_convert_all(false);
	for (int fd = AW_DIRECT_LOWEST_FD; atomic_load(&aw_fdtab_directs) && fd < AW_FDTAB_MAX;
	     fd++) {
		if (aw_fdtab_state(fd) == AW_FD_DIRECT)
			aw_fdtab_forget(fd);
	}
	loaded->leave(FLUSH_MS * MS, fork_carrier);
}

void aw_direct_exec(void)
{
	if (!loaded || !aw_direct_is_alive() || aw_fdtab_is_borrowed())
		return;
	aw_direct_convert_all(false);
	loaded->leave(FLUSH_MS * MS, fork_carrier);
}

__attribute__((destructor)) static void end(void)
{
	aw_direct_end();
}
