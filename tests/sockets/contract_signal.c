// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Signals that come while a call waits, with and without SA_RESTART; whose thread they come to.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../lib/limit.h"

static volatile sig_atomic_t signals;
static volatile sig_atomic_t elsewhere;
static pid_t main_tid;

static void count_signal(int number)
{
	(void)number;
	signals++;
	elsewhere += gettid() != main_tid;
}

static void handle(int number, int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };
	main_tid = gettid();
	CHECK(!sigaction(number, &action, NULL));
}

#define SIGNALS 20

struct poker {
	pthread_t thread, victim;
	int fd; /* once so many signals were handled, a word is sent here */
	sig_atomic_t before;
	volatile bool over;
};

static void *poke(void *arg)
{
	struct poker *p = arg;
	bool sent = p->fd < 0;
	while (!p->over) {
		pthread_kill(p->victim, SIGUSR1);
		poll(NULL, 0, 2);
		if (!sent && signals - p->before >= SIGNALS) {
			send_text(p->fd, "word");
			sent = true;
		}
	}
	return NULL;
}

static void poker_start(struct poker *p, int fd)
{
	p->victim = pthread_self();
	p->fd = fd;
	p->before = signals;
	p->over = false;
	p->thread = thread_start(poke, p);
}

static void poker_stop(struct poker *p)
{
	p->over = true;
	thread_join(p->thread);
}

static void interrupted(void)
{
	struct sockaddr_in name;
	struct poker p;
	char got[8];
	int listener = listener_open(&name), client = client_open(&name);
	int server = accept(listener, NULL, NULL);
	struct iovec iov = { got, 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	handle(SIGUSR1, 0);
	for (int touched = 0; touched < 2; touched++) {
		poker_start(&p, -1);
		CHECK(read(server, got, 8) == -1 && errno == EINTR);
		CHECK(recv(server, got, 8, 0) == -1 && errno == EINTR);
		CHECK(recv(server, got, 8, MSG_PEEK) == -1 && errno == EINTR);
		CHECK(recv(server, got, 8, MSG_WAITALL) == -1 && errno == EINTR);
		CHECK(recvmsg(server, &msg, 0) == -1 && errno == EINTR);
		CHECK(readv(server, &iov, 1) == -1 && errno == EINTR);
		CHECK(accept(listener, NULL, NULL) == -1 && errno == EINTR);
		poker_stop(&p);
		send_text(client, "x");
		expect_text(server, "x");
	}
	CHECK(signals > 0 && elsewhere == 0);
}

static void waits_interrupted(void)
{
	struct ends e;
	struct poker p;
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0);
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, e.server, &event));
	handle(SIGUSR1, SA_RESTART);
	poker_start(&p, -1);
	struct pollfd pfd = { e.server, POLLIN, 0 };
	fd_set in;
	FD_ZERO(&in);
	FD_SET(e.server, &in);
	CHECK(poll(&pfd, 1, -1) == -1 && errno == EINTR);
	CHECK(ppoll(&pfd, 1, NULL, NULL) == -1 && errno == EINTR);
	CHECK(select(e.server + 1, &in, NULL, NULL, NULL) == -1 && errno == EINTR);
	CHECK(epoll_wait(set, &event, 1, -1) == -1 && errno == EINTR);
	poker_stop(&p);
}

static sigjmp_buf away;

static void jump(int number)
{
	(void)number;
	siglongjmp(away, 1);
}

/* Out of a call that waits, for good: the connection goes on, and its end can be told. */
static void jumped_out(void)
{
	struct ends e;
	char got[8];
	struct itimerval soon = { .it_value.tv_usec = 20000 };
	volatile int jumps = 0;
	ends_open(&e);
	send_text(e.client, "x");
	CHECK(read(e.server, got, 1) == 1);
	CHECK(signal(SIGALRM, jump) != SIG_ERR);
	if (sigsetjmp(away, 1))
		jumps++;
	if (jumps < 3) {
		CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
		read(e.server, got, 8);
		CHECK(!"comes back");
	}
	CHECK(signal(SIGALRM, SIG_DFL) != SIG_ERR);
	alarm(limit_s(20));
	send_text(e.client, "after all");
	CHECK(recv(e.server, got, 5, MSG_WAITALL) == 5 && !memcmp(got, "after", 5));
	pid_t other = spawn_self("echo", e.server, false);
	close(e.server);
	expect_text(e.client, " all");
	CHECK(!shutdown(e.client, SHUT_WR));
	expect_end(e.client);
	reap(other);
}

static void restarted(void)
{
	struct ends e;
	struct poker p;
	char got[8];
	ends_open(&e);
	handle(SIGUSR1, SA_RESTART);
	handle(SIGFPE, 0); /* as sanitizers do: this handler runs in none of these calls */
	for (int touched = 0; touched < 2; touched++) {
		poker_start(&p, e.client);
		CHECK(read(e.server, got, 8) == 4 && !memcmp(got, "word", 4));
		poker_stop(&p);
	}
}

/* signal(7): with a time-out there is no restart. */
static void timeout_not_restarted(void)
{
	struct ends e;
	struct poker p;
	struct timeval t = { 5, 0 };
	char got[8];
	ends_open(&e);
	handle(SIGUSR1, SA_RESTART);
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	poker_start(&p, -1);
	CHECK(recv(e.server, got, 8, 0) == -1 && errno == EINTR);
	poker_stop(&p);
}

/* What was carried before the signal is counted, not lost, not doubled. */
static void write_counts(void)
{
	struct ends e;
	struct poker p;
	static uint8_t big[8 << 20];
	ends_open(&e);
	handle(SIGUSR1, 0);
	pattern_fill(big, sizeof(big), 0);
	size_t taken = 0;
	poker_start(&p, -1);
	ssize_t n = write(e.client, big, sizeof(big));
	CHECK(n > 0 && (size_t)n < sizeof(big));
	taken += (size_t)n;
	do {
		n = write(e.client, big + taken, sizeof(big) - taken);
		CHECK(n > 0 || errno == EINTR);
		taken += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	poker_stop(&p);
	expect_pattern(e.server, taken);
	CHECK(send(e.client, "z", 1, 0) == 1);
	expect_text(e.server, "z");
}

/* The kernel removes such a handler before it runs: afterwards nothing tells that it has been. */
static void interrupted_by_a_handler_of_one_run(void)
{
	struct ends e;
	struct itimerval soon = { .it_value.tv_usec = 20000 };
	char got[8];
	ends_open(&e);
	fill_up(e.client);
	for (int reads = 0; reads < 2; reads++) {
		handle(SIGALRM, (int)SA_RESETHAND);
		CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
		ssize_t n = reads ? read(e.client, got, 8) : write(e.client, got, 8);
		CHECK(n == -1 && errno == EINTR && signals == reads + 1);
	}
}

static void *drain(void *arg)
{
	static uint8_t chunk[65536];
	uint64_t at = 0;
	ssize_t n;
	while ((n = read(*(int *)arg, chunk, sizeof(chunk))) > 0) {
		pattern_check(chunk, (size_t)n, at);
		at += (uint64_t)n;
	}
	CHECK(n == 0);
	return (void *)(uintptr_t)at;
}

/* Behind a message that was taken in part no other goes out. */
static void many_messages_count(void)
{
	struct ends e;
	struct poker p;
	pthread_t thread;
	void *drained;
	static uint8_t big[3 << 20];
	uint64_t at = 0;
	ends_open(&e);
	handle(SIGUSR1, 0);
	thread = thread_start(drain, &e.server);
	poker_start(&p, -1);
	for (int i = 0; i < 25; i++) {
		struct iovec iov[] = { { big, 2 << 20 }, { big + (2 << 20), 1 << 20 } };
		struct mmsghdr msgs[] = { { .msg_hdr = { .msg_iov = &iov[0], .msg_iovlen = 1 } },
					  { .msg_hdr = { .msg_iov = &iov[1], .msg_iovlen = 1 } } };
		pattern_fill(big, sizeof(big), at);
		int n = sendmmsg(e.client, msgs, 2, 0);
		CHECK(n > 0 || errno == EINTR);
		for (int m = 0; m < n; m++)
			at += msgs[m].msg_len;
	}
	poker_stop(&p);
	CHECK(!shutdown(e.client, SHUT_WR) && !pthread_join(thread, &drained));
	CHECK((uintptr_t)drained == at);
}

static void waitall_counts(void)
{
	struct ends e;
	struct poker p;
	char got[8];
	ends_open(&e);
	handle(SIGUSR1, 0);
	send_text(e.client, "abc");
	wait_readable_octets(e.server, 3);
	poker_start(&p, -1);
	CHECK(recv(e.server, got, 8, MSG_WAITALL) == 3 && !memcmp(got, "abc", 3));
	poker_stop(&p);
}

/* The library's threads take no signal of the program's. */
static void signals_come_to_us(void)
{
	struct ends e;
	sigset_t all, pending;
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	handle(SIGALRM, SA_RESTART);
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	while (signals < 20)
		poll(NULL, 0, 1);
	CHECK(!setitimer(ITIMER_REAL, &never, NULL) && elsewhere == 0);
	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_BLOCK, &all, NULL));
	signals = 0;
	CHECK(!kill(getpid(), SIGALRM) && !kill(getpid(), SIGTERM));
	send_text(e.client, "x");
	expect_text(e.server, "x");
	CHECK(!sigpending(&pending) && sigismember(&pending, SIGTERM) && signals == 0);
}

static void signal_driven(void)
{
	struct ends e;
	int64_t deadline = now_ms() + WAIT_MS;
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	handle(SIGIO, SA_RESTART);
	CHECK(!fcntl(e.server, F_SETOWN, getpid()));
	CHECK(!fcntl(e.server, F_SETFL, fcntl(e.server, F_GETFL) | O_ASYNC));
	signals = 0;
	send_text(e.client, "x");
	while (!signals) {
		CHECK(now_ms() < deadline);
		poll(NULL, 0, 1);
	}
	expect_text(e.server, "x");
}

/* The handler itself uses connections. */
static struct ends in_handler;

static void use_connection(int number)
{
	int err = errno;
	(void)number;
	char octet;
	if (write(in_handler.client, "h", 1) == 1 && read(in_handler.server, &octet, 1) == 1)
		signals++;
	errno = err;
}

static void used_in_handler(void)
{
	struct ends e;
	struct sigaction action = { .sa_handler = use_connection, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	ends_open(&in_handler);
	ends_open(&e);
	send_text(in_handler.client, "x");
	expect_text(in_handler.server, "x");
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
	for (int i = 0; signals < 50 && i < 1000000; i++) {
		send_text(e.client, "main");
		expect_text(e.server, "main");
	}
	CHECK(!setitimer(ITIMER_REAL, &never, NULL) && signals >= 50);
}

static void write_beside(int number)
{
	int err = errno;
	(void)number;
	if (send(in_handler.client, "h", 1, MSG_DONTWAIT) == 1)
		signals++;
	errno = err;
}

/* By its own name the header warns of it. */
extern sighandler_t set_handler(int number, sighandler_t handler) __asm__("sigset");

/* A handler set by sigset(3) uses the connection that the interrupted call uses. */
static void used_in_handler_of_sigset(void)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	char got[64];
	ssize_t n;
	ends_open(&in_handler);
	send_text(in_handler.client, "x");
	expect_text(in_handler.server, "x");
	CHECK(set_handler(SIGALRM, write_beside) == SIG_DFL &&
	      !setitimer(ITIMER_REAL, &often, NULL));
	while (signals < 200) {
		CHECK(send(in_handler.client, "m", 1, MSG_DONTWAIT) == 1 || errno == EAGAIN);
		do {
			n = recv(in_handler.server, got, sizeof(got), MSG_DONTWAIT);
		} while (n > 0);
		CHECK(n == -1 && errno == EAGAIN);
	}
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	CHECK(set_handler(SIGALRM, SIG_HOLD) == write_beside &&
	      set_handler(SIGALRM, SIG_DFL) == SIG_HOLD);
}

static void count_and_look(int number)
{
	static char octets[65536];
	int err = errno, count;
	(void)number;
	if (!ioctl(in_handler.server, FIONREAD, &count) && count == sizeof(octets) &&
	    recv(in_handler.server, octets, sizeof(octets), MSG_PEEK) > 0)
		signals++;
	errno = err;
}

static void *sleep_on(void *arg)
{
	recv(*(int *)arg, &(char){ 0 }, 1, 0);
	return NULL;
}

/* The handler interrupts malloc(3), whose locks it must not want: recv(2) and ioctl(2) want none. */
static void used_in_handler_within_malloc(void)
{
	static char octets[65536];
	struct sigaction action = { .sa_handler = count_and_look, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	struct ends idle;
	void *pieces[64] = { NULL };
	ends_open(&in_handler);
	ends_open(&idle);
	send_all(in_handler.client, octets, sizeof(octets));
	wait_readable_octets(in_handler.server, sizeof(octets));
	/* malloc(3) takes no locks in a process of one thread. */
	pthread_t thread = thread_start(sleep_on, &idle.server);
	signals = 0;
	CHECK(!sigaction(SIGPROF, &action, NULL) && !setitimer(ITIMER_PROF, &often, NULL));
	for (unsigned i = 0; signals < 100; i++) {
		free(pieces[i % ARRAY_LEN(pieces)]);
		pieces[i % ARRAY_LEN(pieces)] = malloc(2000 + i * 977 % 100000);
	}
	CHECK(!setitimer(ITIMER_PROF, &never, NULL));
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		free(pieces[i]);
	send_text(idle.client, "x");
	thread_join(thread);
}

/* sigaction(2) and signal(2) return what the program has set, and no flag of anybody else's. */
static void handlers_are_told_back(void)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = SA_RESTART }, got;
	struct ends e;
	ends_open(&e);
	sigaddset(&action.sa_mask, SIGUSR2);
	CHECK(!sigaction(SIGUSR1, &action, &got) && got.sa_handler == SIG_DFL);
	CHECK(!sigaction(SIGUSR1, NULL, &got) && got.sa_handler == count_signal);
	CHECK((got.sa_flags & (SA_RESTART | SA_SIGINFO)) == SA_RESTART &&
	      sigismember(&got.sa_mask, SIGUSR2));
	CHECK(signal(SIGUSR1, use_connection) == count_signal);
	CHECK(!sigaction(SIGUSR1, &action, &got) && got.sa_handler == use_connection);
	action.sa_flags = (int)SA_RESETHAND | SA_SIGINFO;
	CHECK(!sigaction(SIGUSR1, &action, &got) && got.sa_handler == count_signal);
	CHECK(!raise(SIGUSR1) && signals == 1);
	CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL && signal(SIGUSR1, SIG_DFL) == SIG_IGN);
}

static int value;

/* As the kernel calls a handler: with the timer's value, sa_mask and the signal blocked, and the mask of before in the context. */
static void look_around(int number, siginfo_t *info, void *context)
{
	const ucontext_t *before = context;
	sigset_t mask;
	CHECK(info->si_code == SI_TIMER && info->si_value.sival_ptr == &value);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &mask));
	CHECK(sigismember(&mask, SIGUSR2) && sigismember(&mask, number) &&
	      !sigismember(&mask, SIGTERM));
	CHECK(!sigismember(&before->uc_sigmask, number) &&
	      sigismember(&before->uc_sigmask, SIGUSR1));
	signals++;
}

static void start_timer(int number, const struct itimerspec *times)
{
	struct sigaction action = { .sa_sigaction = look_around,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = number,
				  .sigev_value.sival_ptr = &value };
	timer_t timer;
	sigaddset(&action.sa_mask, SIGUSR2);
	CHECK(!sigaction(number, &action, NULL));
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!timer_settime(timer, TIMER_ABSTIME, times, NULL));
}

/* Signals come at every moment of a call, not only while it waits, and two at once. */
static void signals_at_every_moment(void)
{
	struct itimerspec often = { { 0, 100000 }, { 0, 0 } };
	sigset_t blocked, got;
	struct ends e;
	ends_open(&e);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &blocked, NULL));
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &often.it_value));
	start_timer(SIGRTMIN, &often);
	start_timer(SIGALRM, &often);
	while (signals < 4000) {
		send_text(e.client, "main");
		expect_text(e.server, "main");
		CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &got) && sigismember(&got, SIGUSR1) &&
		      !sigismember(&got, SIGUSR2) && !sigismember(&got, SIGRTMIN) &&
		      !sigismember(&got, SIGALRM));
	}
}

/* By its own name the header warns of it. */
extern int let_interrupt(int number, int flag) __asm__("siginterrupt");

/* A signal may come before the call waits, too: then the call waits for the next. */
static void interrupted_after_siginterrupt(void)
{
	struct ends e;
	struct poker p;
	char got[8];
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	main_tid = gettid();
	CHECK(signal(SIGUSR1, count_signal) == SIG_DFL && !let_interrupt(SIGUSR1, 1));
	CHECK(signal(SIGUSR1, count_signal) == count_signal);
	poker_start(&p, -1);
	for (int i = 0; i < 100; i++)
		CHECK(recv(e.server, got, 8, 0) == -1 && errno == EINTR);
	poker_stop(&p);
}

static const struct row rows[] = {
	{ "interrupted", interrupted },
	{ "jumped_out", jumped_out },
	{ "waits_interrupted", waits_interrupted },
	{ "restarted", restarted },
	{ "timeout_not_restarted", timeout_not_restarted },
	{ "write_counts", write_counts },
	{ "interrupted_by_a_handler_of_one_run", interrupted_by_a_handler_of_one_run },
	{ "interrupted_after_siginterrupt", interrupted_after_siginterrupt },
	{ "many_messages_count", many_messages_count },
	{ "waitall_counts", waitall_counts },
	{ "signals_come_to_us", signals_come_to_us },
	{ "signal_driven", signal_driven },
	{ "handlers_are_told_back", handlers_are_told_back },
	{ "signals_at_every_moment", signals_at_every_moment },
	{ "used_in_handler", used_in_handler },
	{ "used_in_handler_of_sigset", used_in_handler_of_sigset },
	{ "used_in_handler_within_malloc", used_in_handler_within_malloc },
};
const struct rows signal_rows = { rows, ARRAY_LEN(rows) };
