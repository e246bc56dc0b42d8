// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE /* RTLD_NEXT */
#include "extended.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/limit.h"

#define SEED 1
#define SCENE_S 120
#define EXIT_S 30
#define TICK_US 200

static const char *scene_now = "none";
static uint64_t random_state;

void need(bool holds, const char *claim, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: scene %s, pid %d: does not hold: %s (%s)\n", file, line, scene_now,
		(int)getpid(), claim, strerror(errno));
	abort();
}

/* Steele, Lea and Flood's SplitMix64. */
size_t draw(size_t low, size_t high)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return low + (z ^ z >> 31) % (high - low + 1);
}

struct extent draw_extent(size_t size)
{
	size_t most = draw(0, 3) ? 5000 : size;
	struct extent e = { .len = draw(1, most) };

	e.offset = draw(0, size - e.len);
	return e;
}

void write_all(int fd, const void *buf, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, (const char *)buf + at, len - at);

		NEED(n > 0);
		at += (size_t)n;
	}
}

void read_all(int fd, void *buf, size_t len)
{
	NEED(recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len);
}

void await_taken(int fd)
{
	struct iwarp_completion done;

	NEED(iwarp_send_async(fd, "", 1, 77) == 0);
	done = next_completion(fd);
	NEED(done.cookie == 77 && !done.error);
}

struct iwarp_mr *offer(int fd, void *at, size_t len, int access)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, at, len, access);
	struct iwarp_key key;

	NEED(mr && iwarp_mr_key(mr, &key) == 0);
	write_all(fd, &key, sizeof(key));
	return mr;
}

struct iwarp_key take_key(int fd)
{
	struct iwarp_key key;

	read_all(fd, &key, sizeof(key));
	return key;
}

bool has_completion(int fd)
{
	struct pollfd pollfd = { .fd = iwarp_cq_fd(fd), .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

struct iwarp_completion next_completion(int fd)
{
	struct pollfd pollfd = { .fd = iwarp_cq_fd(fd), .events = POLLIN };
	struct iwarp_completion done;

	NEED(pollfd.fd >= 0);
	NEED(poll(&pollfd, 1, 30000) == 1);
	NEED(iwarp_cq_poll(fd, &done, 1) == 1);
	return done;
}

void await(int fd, uint64_t cookie, size_t bytes, int error)
{
	struct iwarp_completion done = next_completion(fd);

	NEED(done.cookie == cookie);
	NEED(done.error == error);
	NEED(done.bytes == bytes);
}

static struct timespec exit_began[2]; /* by CLOCK_REALTIME, CLOCK_MONOTONIC */
static pthread_t exiter;

/* Returns whether this thread waits at exit: then the time is over at once, and may not have gone beyond. */
static bool is_exits_wait(clockid_t clock, const struct timespec *end)
{
	const struct timespec *began = &exit_began[clock == CLOCK_MONOTONIC];

	if (!exit_began[0].tv_sec || !pthread_equal(exiter, pthread_self()))
		return false;
	NEED(end->tv_sec - began->tv_sec <= EXIT_S + 1);
	return true;
}

/* The linker wants both for the shared libraries, which wait by them. */
__attribute__((visibility("default"))) int pthread_cond_timedwait(pthread_cond_t *cond,
								  pthread_mutex_t *mutex,
								  const struct timespec *end)
{
	int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
		(__typeof__(real))dlsym(RTLD_NEXT, __func__);

	return is_exits_wait(CLOCK_REALTIME, end) ? ETIMEDOUT : real(cond, mutex, end);
}

__attribute__((visibility("default"))) int pthread_cond_clockwait(pthread_cond_t *cond,
								  pthread_mutex_t *mutex,
								  clockid_t clock,
								  const struct timespec *end)
{
	int (*real)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *) =
		(__typeof__(real))dlsym(RTLD_NEXT, __func__);

	return is_exits_wait(clock, end) ? ETIMEDOUT : real(cond, mutex, clock, end);
}

void exit_out_of_time(void)
{
	NEED(clock_gettime(CLOCK_MONOTONIC, &exit_began[1]) == 0);
	exiter = pthread_self();
	NEED(clock_gettime(CLOCK_REALTIME, &exit_began[0]) == 0);
	exit(0);
}

static pid_t child;

bool in_child(void)
{
	child = fork();
	NEED(child >= 0);
	return child == 0;
}

bool child_is_well(void)
{
	int status;

	return waitpid(child, &status, 0) == child && status == 0;
}

/* The rules have no say: the scene starts iWARP itself. */
static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), off = IWARP_OFF;

	NEED(fd >= 0);
	NEED(setsockopt(fd, SOL_IWARP, IWARP_MODE, &off, sizeof(off)) == 0);
	return fd;
}

static int listen_at(struct sockaddr_in *address)
{
	const char *own = getenv("ANYWARP_TEST_ADDRESS"); /* which a device has */
	socklen_t len = sizeof(*address);
	int fd = new_socket();

	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	NEED(inet_pton(AF_INET, own ? own : "127.0.0.1", &address->sin_addr) == 1);
	NEED(bind(fd, (struct sockaddr *)address, len) == 0 && listen(fd, 1) == 0 &&
	     getsockname(fd, (struct sockaddr *)address, &len) == 0);
	return fd;
}

static int starting = -1;

static void look_at_it(int sig)
{
	struct pollfd pollfd = { .fd = starting, .events = POLLIN };
	int saved = errno;

	(void)sig;
	(void)poll(&pollfd, 1, 0);
	errno = saved;
}

static void tick(suseconds_t us)
{
	const struct itimerval interval = { { 0, us }, { 0, us } };

	NEED(setitimer(ITIMER_REAL, &interval, NULL) == 0);
}

/* The scene hangs: where its main thread is, before it dies. */
static void say_where(int sig)
{
	void *frames[64];
	int count = backtrace(frames, 64);

	fprintf(stderr, "scene %s, pid %d: still in\n", scene_now, (int)getpid());
	backtrace_symbols_fd(frames, count, STDERR_FILENO);
	signal(sig, SIG_DFL);
	raise(sig);
}

bool scene_has_closed;

/* While a handler looks at the socket again and again. */
static void start(int fd, int role)
{
	NEED(signal(SIGALRM, look_at_it) != SIG_ERR);
	starting = fd;
	tick(TICK_US);
	NEED(iwarp_start(fd, role) == 0);
	tick(0);
	NEED(signal(SIGALRM, say_where) != SIG_ERR);
	alarm(limit_s(SCENE_S));
}

static void be_asker(const struct scene *scene, const struct sockaddr_in *address)
{
	int fd = new_socket();

	NEED(connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0);
	start(fd, IWARP_ACTIVE);
	scene->ask(fd);
	if (!scene_has_closed)
		close(fd);
}

static void be_server(const struct scene *scene, int listener)
{
	int fd = accept(listener, NULL, NULL);

	NEED(fd >= 0);
	close(listener);
	start(fd, IWARP_PASSIVE);
	scene->serve(fd);
	if (!scene_has_closed)
		close(fd);
}

static bool is_as_wanted(const struct scene *scene, int asker_status)
{
	if (!scene->asker_dies_of)
		return asker_status == 0;
	return WIFSIGNALED(asker_status) && WTERMSIG(asker_status) == scene->asker_dies_of;
}

/* Both ends are children, so that every scene is its processes' first. */
void play(const struct scene *scene)
{
	struct sockaddr_in address;
	int listener = listen_at(&address), status;
	pid_t server, asker;

	scene_now = scene->name;
	random_state = SEED;
	printf("%s, seed %d\n", scene->name, SEED);
	fflush(stdout);
	server = fork();
	NEED(server >= 0);
	if (!server) {
		alarm(limit_s(SCENE_S));
		be_server(scene, listener);
		exit(0);
	}
	close(listener);
	asker = fork();
	NEED(asker >= 0);
	if (!asker) {
		alarm(limit_s(SCENE_S));
		be_asker(scene, &address);
		exit(0);
	}
	NEED(waitpid(asker, &status, 0) == asker);
	if (!is_as_wanted(scene, status)) {
		kill(server, SIGALRM); /* it says where it is, too */
		waitpid(server, NULL, 0);
	}
	NEED(is_as_wanted(scene, status));
	NEED(waitpid(server, &status, 0) == server && status == 0);
}

void play_without_connection(void)
{
	int ends[2], tcp = new_socket();
	struct iwarp_completion done;
	char octet = 0;

	scene_now = "without a connection";
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	NEED_ERRNO(iwarp_start(tcp, 0), EINVAL);
	NEED_ERRNO(iwarp_start(tcp, IWARP_ACTIVE), ENOTCONN);
	NEED_ERRNO(iwarp_start(ends[0], IWARP_ACTIVE), EOPNOTSUPP);
	NEED_ERRNO(iwarp_start(-1, IWARP_ACTIVE), EBADF);
	NEED_ERRNO(iwarp_start(STDIN_FILENO, IWARP_ACTIVE), EOPNOTSUPP);
	NEED_ERRNO(iwarp_reg_mr(tcp, &octet, 1, 0) ? 0 : -1, EOPNOTSUPP);
	NEED_ERRNO(iwarp_cq_fd(ends[1]), EOPNOTSUPP);
	NEED_ERRNO(iwarp_cq_poll(tcp, &done, 1), EOPNOTSUPP);
	NEED_ERRNO(iwarp_send_async(tcp, &octet, 1, 0), EOPNOTSUPP);
	NEED_ERRNO(iwarp_recv_async(STDIN_FILENO, &octet, 1, 0), EOPNOTSUPP);
	close(tcp);
	close(ends[0]);
	close(ends[1]);
}
