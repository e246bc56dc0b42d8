// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// stream [--seed S] [--runs N]: N connections, each with both ends' calls, sizes, waits, processes and order of
// closing drawn from its seed. A run that fails is told with its seed, with which it can be had again.
#include "stream.h"
#include "thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_SECONDS 20

enum closing {
	SHUT_EARLY,
	SHUT_LATE,
	CLOSE_AT_TOTAL
};
enum shape {
	ALONE,
	THREADS,
	PROCESSES,
	TURNS
};
#define SHAPES 4
static const char *const shapes[] = { "alone", "threads", "processes", "turns" };
static const char *const closings[] = { "shuts early", "shuts late", "closes at total" };

struct plan {
	uint32_t seed;
	uint64_t totals[2];
	enum closing closing[2];
	bool born_before_fork; /* both ends are made by one process, that forks who serves them */
};

static uint64_t total_of(struct rng *r)
{
	static const uint64_t bounds[] = { 1, 100, 10000, 10000, 300000, 300000, 3000000 };
	return rng_below(r, bounds[rng_below(r, ARRAY_LEN(bounds))]);
}

static struct plan plan_of(uint32_t seed)
{
	struct rng r = { seed };
	struct plan p = { .seed = seed, .totals = { total_of(&r), total_of(&r) } };
	p.closing[0] = (enum closing)rng_below(&r, 3);
	p.closing[1] = (enum closing)rng_below(&r, 3);
	/* One of them has to begin. */
	if (p.closing[0] == SHUT_LATE && p.closing[1] == SHUT_LATE)
		p.closing[rng_below(&r, 2)] = SHUT_EARLY;
	p.born_before_fork = rng_chance(&r, 4);
	return p;
}

static void on_alarm(int number)
{
	(void)number;
}

/* Signals that come all the time, and interrupt. */
static void be_noisy(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 700 }, { 0, 700 } };
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
}

static void reap(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		CHECK(errno == EINTR);
	CHECK(status == 0);
}

static pid_t fork_end(struct end *e)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stream_watch(e);
	}
	return child;
}

static void *run_thread(void *arg)
{
	struct end *e = arg;
	stream_watch(e);
	end_open_helpers(e);
	end_run(e);
	end_close_helpers(e);
	return NULL;
}

static void say_end(struct end *e, enum closing closing, enum closing now)
{
	if (closing == now && closing != CLOSE_AT_TOTAL)
		CHECK(!shutdown(e->fd, SHUT_WR));
}

static void run_alone(struct end *e, enum closing closing)
{
	end_open_helpers(e);
	bool said = false;
	while (!end_is_done(e) || (closing == SHUT_EARLY && !said)) {
		if (!said && e->out.offset == e->out.total && !e->staged) {
			say_end(e, closing, SHUT_EARLY);
			said = true;
		} else {
			end_step(e);
		}
	}
	say_end(e, closing, SHUT_LATE);
	end_close_helpers(e);
}

static void run_threads(struct end *e, enum closing closing)
{
	struct end in = *e, out = *e;
	in.does_out = out.does_in = false;
	in.rng.state ^= 77;
	pthread_t thread = thread_start(run_thread, &in);
	run_thread(&out);
	stream_watch(e);
	say_end(e, closing, SHUT_EARLY);
	thread_join(thread);
	say_end(e, closing, SHUT_LATE);
}

static void run_processes(struct end *e, enum closing closing)
{
	struct end in = *e, out = *e;
	in.does_out = out.does_in = false;
	in.rng.state ^= 77;
	pid_t child = fork_end(&in);
	if (child == 0) {
		run_thread(&in);
		_exit(0);
	}
	run_thread(&out);
	stream_watch(e);
	say_end(e, closing, SHUT_EARLY);
	reap(child);
	say_end(e, closing, SHUT_LATE);
}

/* What one of two processes tells the other when it hands over. */
struct token {
	uint64_t in, out;
	bool in_ended;
};

static void token_write(struct end *e, int fd)
{
	struct token t = { e->in.offset, e->out.offset, e->in_ended };
	CHECK(write(fd, &t, sizeof(t)) == sizeof(t));
}

static void token_read(struct end *e, int fd)
{
	struct token t;
	ssize_t n;
	do {
		n = read(fd, &t, sizeof(t));
	} while (n < 0 && errno == EINTR);
	CHECK(n == sizeof(t));
	e->in.offset = t.in;
	e->out.offset = t.out;
	e->in_ended = t.in_ended;
}

static void take_turns(struct end *e, const int mine[2], const int others[2], bool begins)
{
	end_open_helpers(e);
	if (begins)
		token_write(e, mine[1]);
	do {
		token_read(e, mine[0]);
		uint64_t steps = rng_below(&e->rng, 6);
		while ((steps-- > 0 || e->staged) && !end_is_done(e))
			end_step(e);
		token_write(e, others[1]);
	} while (!end_is_done(e));
	end_close_helpers(e);
}

static void run_turns(struct end *e, enum closing closing)
{
	int a[2], b[2];
	CHECK(!pipe(a) && !pipe(b));
	/* The stream's own end is told when both are done. */
	e->stops_at_total = true;
	struct end child_end = *e;
	child_end.rng.state ^= 99;
	pid_t child = fork_end(&child_end);
	if (child == 0) {
		take_turns(&child_end, b, a, false);
		_exit(0);
	}
	take_turns(e, a, b, true);
	reap(child);
	if (closing != CLOSE_AT_TOTAL)
		CHECK(!shutdown(e->fd, SHUT_WR));
}

static void end_main(const struct plan *p, int side, int fd)
{
	struct rng r = { p->seed * 2 + (unsigned)side + 1000003 };
	enum shape shape = (enum shape)rng_below(&r, SHAPES);
	enum closing closing = p->closing[side];
	char who[64];
	snprintf(who, sizeof(who), "%s %s, %s%s", side ? "server" : "client", shapes[shape],
		 closings[closing], p->born_before_fork ? ", born before fork" : "");
	struct end e = { .side = who, .rng = r, .fd = fd };
	e.does_in = e.does_out = true;
	e.out = (struct flow){ p->seed * 2 + (unsigned)side, 0, p->totals[side] };
	e.in = (struct flow){ p->seed * 2 + !side, 0, p->totals[!side] };
	e.stops_at_total = closing == CLOSE_AT_TOTAL;
	stream_watch(&e);
	bool shared = shape == THREADS || shape == PROCESSES;
	e.blocking = shared && rng_chance(&e.rng, 2);
	e.calls_dontwait = !e.blocking && rng_chance(&e.rng, 3);
	CHECK(!fcntl(fd, F_SETFL, e.blocking || e.calls_dontwait ? 0 : O_NONBLOCK));
	if (rng_chance(&e.rng, 4))
		be_noisy();
	if (shape == ALONE)
		run_alone(&e, closing);
	else if (shape == THREADS)
		run_threads(&e, closing);
	else if (shape == PROCESSES)
		run_processes(&e, closing);
	else
		run_turns(&e, closing);
	if (rng_chance(&e.rng, 2))
		CHECK(!close(e.fd));
	exit(0);
}

static int connect_to(const struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0 && !connect(fd, (const struct sockaddr *)name, sizeof(*name)));
	return fd;
}

static int listen_any(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	*name = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)name, len) && !listen(fd, 4));
	CHECK(!getsockname(fd, (struct sockaddr *)name, &len));
	return fd;
}

static void start_ends(const struct plan *p, pid_t pids[2])
{
	struct sockaddr_in name;
	int listener = listen_any(&name), fds[2] = { -1, -1 };
	if (p->born_before_fork) {
		fds[0] = connect_to(&name);
		fds[1] = accept(listener, NULL, NULL);
	}
	for (int side = 0; side < 2; side++) {
		pids[side] = fork_end(NULL);
		if (pids[side])
			continue;
		int fd = fds[side];
		if (fd >= 0)
			close(fds[!side]);
		else
			fd = side ? accept(listener, NULL, NULL) : connect_to(&name);
		CHECK(fd >= 0 && !close(listener));
		end_main(p, side, fd);
	}
	close(listener);
	for (int side = 0; side < 2 && p->born_before_fork; side++)
		close(fds[side]);
}

/* False: none ended, or a signal came. SIGCHLD is blocked. */
static bool wait_child(int seconds)
{
	const struct timespec limit = { seconds, 0 };
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	return sigtimedwait(&child, NULL, &limit) >= 0 || errno == EINTR;
}

/* Both tell how far they are, and so do their children. */
static void ask_states(void)
{
	fprintf(stderr, "no end after %d s\n", RUN_SECONDS);
	kill(0, SIGUSR1);
	while (wait_child(1))
		;
}

/* Whether both ended well, in time. */
static bool ends_did_well(pid_t pids[2])
{
	bool well = true, in_time = true;
	for (int left = 2; left > 0;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0) {
			left--;
			pids[pid == pids[1]] = 0;
			well = well && status == 0;
		} else if (in_time && well) {
			in_time = wait_child(RUN_SECONDS);
			if (!in_time)
				ask_states();
		}
		if (!well || !in_time)
			for (int side = 0; side < 2; side++)
				if (pids[side])
					kill(pids[side], SIGKILL);
	}
	return well && in_time;
}

int main(int argc, char **argv)
{
	uint32_t seed = (uint32_t)time(NULL) * 1000, runs = 1;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed"))
			seed = (uint32_t)strtoul(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--runs"))
			runs = (uint32_t)strtoul(argv[i + 1], NULL, 0);
	}
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	setpgid(0, 0);
	signal(SIGUSR1, stream_tell_all);
	for (uint32_t i = 0; i < runs; i++) {
		struct plan p = plan_of(seed + i);
		pid_t pids[2];
		start_ends(&p, pids);
		if (!ends_did_well(pids)) {
			fprintf(stderr, "failed: --seed %u\n", seed + i);
			return 1;
		}
	}
	printf("%u runs from seed %u\n", runs, seed);
	return 0;
}
