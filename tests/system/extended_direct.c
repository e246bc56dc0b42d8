// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scenes of extended.c: Writes with notes, and reads and writes of the stream in the program's thread
// beside those that go through the pair. A raw system call, which no wrapper sees, uses the pair.
#include <anywarp/sockets.h>

#include "extended.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define PAGE 65536
#define ROUNDS 100
#define TICK_US 10000

static uint8_t page[PAGE], other[PAGE];

struct note {
	struct extent e;
	uint8_t seen;
	uint8_t rest[IWARP_NOTE_MAX - sizeof(struct extent) - 1];
};

/* The thread sanitizer does not know that bytes of a socket order memory. */
__attribute__((no_sanitize_thread)) static bool is_filled(const struct note *note)
{
	for (size_t i = 0; i < note->e.len; i++)
		if (page[note->e.offset + i] != note->seen)
			return false;
	return true;
}

static void notes_serve(int fd)
{
	struct iwarp_mr *mr = offer(fd, page, sizeof(page), IWARP_REMOTE_WRITE);

	for (size_t i = 0; i < ROUNDS; i++) {
		struct note note;
		uint8_t turn;

		read_all(fd, &turn, 1);
		NEED(turn == (uint8_t)i);
		read_all(fd, &note, sizeof(note));
		NEED(is_filled(&note));
		write_all(fd, "", 1);
	}
	NEED(iwarp_dereg_mr(mr) == 0);
}

/* What was written before, also by way of the pair, comes before the note. */
static void notes_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), 0);
	struct iwarp_key key = take_key(fd);
	struct note note = { .seen = 0 };
	struct iwarp_note told = { &note, 0, 1 };
	char done;

	NEED_ERRNO(iwarp_write_notify(mr, 0, 1, &key, 0, &told), EINVAL);
	told.len = IWARP_NOTE_MAX + 1;
	NEED_ERRNO(iwarp_write_notify(mr, 0, 1, &key, 0, &told), EINVAL);
	told.len = sizeof(note);
	NEED_ERRNO(iwarp_write_notify(mr, 0, 1, &key, PAGE, &told), ERANGE);
	for (size_t i = 0; i < ROUNDS; i++) {
		uint8_t turn = (uint8_t)i;

		note.e = draw_extent(PAGE);
		note.seen = (uint8_t)draw(1, 255);
		memset(other, note.seen, note.e.len);
		if (draw(0, 1))
			NEED(syscall(SYS_write, fd, &turn, 1) == 1);
		else
			write_all(fd, &turn, 1);
		told.cookie = i;
		NEED(iwarp_write_notify(mr, 0, note.e.len, &key, note.e.offset, &told) == 0);
		await(fd, i, note.e.len, 0);
		read_all(fd, &done, 1);
	}
	NEED(!has_completion(fd) && iwarp_dereg_mr(mr) == 0);
}

static void each_serve(int fd)
{
	char octet;

	while (read(fd, &octet, 1) == 1)
		write_all(fd, &octet, 1);
}

static char echo(int fd, char octet)
{
	write_all(fd, &octet, 1);
	read_all(fd, &octet, 1);
	return octet;
}

/* A poll, another kind of read and FIONREAD find what comes after a read that has waited. */
static void ways_ask(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	char octet = 0;
	int there = 0;

	NEED(echo(fd, 'a') == 'a');
	write_all(fd, "b", 1);
	NEED(syscall(SYS_read, fd, &octet, 1) == 1 && octet == 'b');
	NEED(echo(fd, 'c') == 'c');
	write_all(fd, "d", 1);
	NEED(poll(&pollfd, 1, 30000) == 1 && pollfd.revents == POLLIN);
	NEED(ioctl(fd, FIONREAD, &there) == 0 && there == 1);
	NEED(recv(fd, &octet, 1, MSG_PEEK) == 1 && octet == 'd');
	NEED(recv(fd, &octet, 1, MSG_DONTWAIT) == 1 && octet == 'd');
	NEED_ERRNO(recv(fd, &octet, 1, MSG_DONTWAIT), EAGAIN);
	NEED(echo(fd, 'e') == 'e');
}

static int ticked_fd;
static bool tells;

static void tick(int sig)
{
	(void)sig;
	if (tells && write(ticked_fd, "t", 1) != 1)
		_exit(1);
	tells = false;
}

static void set_ticks(int flags, bool telling)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = flags };
	struct itimerval every = { { 0, TICK_US }, { 0, TICK_US } };

	tells = telling;
	NEED(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0);
}

/* A read that waits is interrupted, restarted and limited as the kernel's; a handler may write. */
static void signals_ask(int fd)
{
	struct timeval limit = { .tv_usec = TICK_US };
	struct itimerval never = { 0 };
	char octet;

	ticked_fd = fd;
	set_ticks(0, false);
	NEED_ERRNO(read(fd, &octet, 1), EINTR);
	set_ticks(SA_RESTART, true);
	NEED(read(fd, &octet, 1) == 1 && octet == 't');
	NEED(setitimer(ITIMER_REAL, &never, NULL) == 0);
	NEED(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	NEED_ERRNO(read(fd, &octet, 1), EAGAIN);
}

static void *shut_reads(void *fd)
{
	NEED(shutdown(*(int *)fd, SHUT_RD) == 0);
	return NULL;
}

/* Whether the read waits already or not: it returns. */
static void shut_ask(int fd)
{
	pthread_t thread;
	char octet;

	NEED(echo(fd, 'a') == 'a');
	NEED(pthread_create(&thread, NULL, shut_reads, &fd) == 0);
	NEED(read(fd, &octet, 1) == 0);
	pthread_join(thread, NULL);
}

static void *read_one(void *fd)
{
	char octet;

	NEED(read(*(int *)fd, &octet, 1) == 1);
	return NULL;
}

/* Two threads that wait get a byte each. */
static void threads_ask(int fd)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		NEED(pthread_create(&threads[i], NULL, read_one, &fd) == 0);
	write_all(fd, "ab", 2);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

#define MIXED 6000000
#define UNREAD 100000 /* so many bytes, of a reader that waits, leave the pair little room */
#define LOOKS 20000
#define UNDER_WAY 8

static uint8_t mixed_octet(size_t at)
{
	return (uint8_t)(at * 31 + (at >> 8));
}

/* Has the peer run into a full pair, endpoint and pump now and then. A pair of small pieces is full with fewer bytes. */
static void fall_behind(int fd)
{
	int there = 0;

	for (int looks = 0; looks < LOOKS && there < UNREAD; looks++)
		NEED(ioctl(fd, FIONREAD, &there) == 0);
}

static size_t read_some_way(int fd, size_t len)
{
	struct iwarp_completion done;
	ssize_t got;

	switch (draw(0, 2)) {
	case 0:
		got = syscall(SYS_read, fd, page, len);
		break;
	case 1:
		got = read(fd, page, len);
		break;
	default:
		NEED(iwarp_recv_async(fd, page, len, 0) == 0);
		done = next_completion(fd);
		NEED(!done.error);
		got = (ssize_t)done.bytes;
	}
	NEED(got > 0);
	return (size_t)got;
}

static void mixed_serve(int fd)
{
	for (size_t at = 0, got; at < MIXED; at += got) {
		if (!draw(0, 30))
			fall_behind(fd);
		got = read_some_way(fd, draw(1, PAGE));
		for (size_t i = 0; i < got; i++)
			NEED(page[i] == mixed_octet(at + i));
	}
	write_all(fd, "", 1);
}

/* Octets keep their order, whichever way they go, also where each way is full. */
static void mixed_ask(int fd)
{
	static uint8_t sent[UNDER_WAY][PAGE];
	size_t lens[UNDER_WAY], first = 0, next = 0;
	char done;

	for (size_t at = 0, len; at < MIXED; at += len) {
		uint8_t *from = sent[next % UNDER_WAY];

		if (next - first == UNDER_WAY)
			await(fd, first, lens[first % UNDER_WAY], 0), first++;
		len = draw(1, PAGE) % (MIXED - at) + 1;
		len = len < PAGE ? len : PAGE;
		for (size_t i = 0; i < len; i++)
			from[i] = mixed_octet(at + i);
		switch (draw(0, 2)) {
		case 0:
			NEED(syscall(SYS_write, fd, from, len) == (ssize_t)len);
			break;
		case 1:
			write_all(fd, from, len);
			break;
		default:
			NEED(iwarp_send_async(fd, from, len, next) == 0);
			lens[next++ % UNDER_WAY] = len;
		}
	}
	for (; first < next; first++)
		await(fd, first, lens[first % UNDER_WAY], 0);
	read_all(fd, &done, 1);
}

const struct scene direct_scenes[] = {
	{ "notes", notes_serve, notes_ask, 0 },
	{ "ways", each_serve, ways_ask, 0 },
	{ "signals", each_serve, signals_ask, 0 },
	{ "shut", each_serve, shut_ask, 0 },
	{ "threads", each_serve, threads_ask, 0 },
	{ "mixed", mixed_serve, mixed_ask, 0 },
	{ NULL, NULL, NULL, 0 },
};
