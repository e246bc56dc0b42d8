// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The extended calls between two processes: this one serves, its child asks. Each scene has a
// connection of its own. extended [SCENE]: all of them, or one.
#include <anywarp/sockets.h>

#include "extended.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE (1 << 20)
#define ROUNDS 100
#define FEW 10
#define ANSWER 300

static uint8_t page[PAGE], other[PAGE];

/* The thread sanitizer does not know that bytes of a socket order memory. */
#define UNSEEN __attribute__((no_sanitize_thread))

/* The n-th octet of a sequence that no shift of it equals. */
static uint8_t octet_of(size_t n)
{
	return (uint8_t)((n * 2654435761u) >> 13);
}

UNSEEN static void fill(uint8_t *at, size_t len, size_t first)
{
	for (size_t i = 0; i < len; i++)
		at[i] = octet_of(first + i);
}

UNSEEN static void check(const uint8_t *at, size_t len, size_t first)
{
	for (size_t i = 0; i < len; i++)
		NEED(at[i] == octet_of(first + i));
}

/* A Write is there when an octet that was sent after it comes. */
static void writes_serve(int fd)
{
	struct iwarp_mr *mr = offer(fd, page, sizeof(page), IWARP_REMOTE_WRITE);

	for (size_t i = 0; i < ROUNDS; i++) {
		struct extent e;

		read_all(fd, &e, sizeof(e));
		check(page + e.offset, e.len, i);
		write_all(fd, "", 1);
	}
	NEED(iwarp_dereg_mr(mr) == 0);
}

static void writes_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), 0);
	struct iwarp_key key = take_key(fd);
	char seen;

	NEED(mr);
	for (size_t i = 0; i < ROUNDS; i++) {
		struct extent e = draw_extent(PAGE);

		fill(other, e.len, i);
		NEED(iwarp_write(mr, 0, e.len, &key, e.offset, i) == 0);
		write_all(fd, &e, sizeof(e));
		await(fd, i, e.len, 0);
		read_all(fd, &seen, 1);
	}
	NEED(iwarp_dereg_mr(mr) == 0);
}

static void reads_serve(int fd)
{
	struct iwarp_mr *mr;
	char done;

	fill(page, sizeof(page), 0);
	mr = offer(fd, page, sizeof(page), IWARP_REMOTE_READ);
	read_all(fd, &done, 1);
	NEED(iwarp_dereg_mr(mr) == 0);
}

static void reads_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), IWARP_REMOTE_WRITE);
	struct iwarp_key key = take_key(fd);

	for (size_t i = 0; i < ROUNDS; i++) {
		struct extent e = draw_extent(PAGE);

		NEED(iwarp_read(mr, e.offset, e.len, &key, e.offset, i) == 0);
		await(fd, i, e.len, 0);
		check(other + e.offset, e.len, e.offset);
	}
	write_all(fd, "", 1);
	NEED(iwarp_dereg_mr(mr) == 0);
}

/* Octets keep their order, whichever way they go. */
static void sends_serve(int fd)
{
	size_t at = 0;
	ssize_t got;

	while ((got = read(fd, page, sizeof(page))) > 0) {
		check(page, (size_t)got, at);
		at += (size_t)got;
	}
	NEED(got == 0 && at == PAGE);
}

static void sends_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), 0);
	unsigned under_way = 0;

	fill(other, sizeof(other), 0);
	for (size_t at = 0; at < PAGE;) {
		size_t len = draw(1, 20000) % (PAGE - at) + 1;

		switch (draw(0, 2)) {
		case 0:
			write_all(fd, other + at, len);
			break;
		case 1:
			NEED(iwarp_send_async(fd, other + at, len, at) == 0);
			under_way++;
			break;
		default:
			NEED(iwarp_send_mr(mr, at, len, at) == 0);
			under_way++;
		}
		at += len;
	}
	shutdown(fd, SHUT_WR);
	for (; under_way; under_way--)
		NEED(next_completion(fd).error == 0);
	NEED(read(fd, page, 1) == 0 && iwarp_dereg_mr(mr) == 0);
}

static void receives_serve(int fd)
{
	struct iwarp_completion done = { 0 };

	for (size_t at = 0; at <= PAGE; at += done.bytes) {
		size_t len = draw(1, 20000);

		memset(page, 0, len);
		if (draw(0, 1)) {
			ssize_t got = read(fd, page, len);

			NEED(got >= 0);
			done.bytes = (size_t)got;
		} else {
			NEED(iwarp_recv_async(fd, page, len, at) == 0);
			done = next_completion(fd);
			NEED(!has_completion(fd));
			NEED(done.cookie == at && !done.error && done.bytes <= len);
		}
		check(page, done.bytes, at);
		if (!done.bytes) {
			NEED(at == PAGE);
			return;
		}
	}
	NEED(0);
}

static void receives_ask(int fd)
{
	fill(other, sizeof(other), 0);
	for (size_t at = 0; at < PAGE;) {
		size_t len = draw(1, 40000) % (PAGE - at) + 1;

		write_all(fd, other + at, len);
		at += len;
	}
}

static void limits_serve(int fd)
{
	struct iwarp_mr *mr = offer(fd, page, 100, IWARP_REMOTE_WRITE);
	char done;

	read_all(fd, &done, 1);
	check(page, 100, 0);
	NEED(iwarp_dereg_mr(mr) == 0);
}

/* What is refused does nothing: the bounds of either memory, one past them, and keys that are none. */
static void limits_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, 100, 0);
	struct iwarp_key key = take_key(fd), wrong = key;
	struct iwarp_completion none;

	fill(other, 100, 0);
	NEED_ERRNO(iwarp_reg_mr(fd, other, 0, 0) ? 0 : -1, EINVAL);
	NEED_ERRNO(iwarp_reg_mr(fd, other, 1, 4) ? 0 : -1, EINVAL);
	NEED_ERRNO(iwarp_write(mr, 0, 101, &key, 0, 1), ERANGE);
	NEED_ERRNO(iwarp_write(mr, 1, 100, &key, 0, 1), ERANGE);
	NEED_ERRNO(iwarp_write(mr, 0, 100, &key, 1, 1), ERANGE);
	NEED_ERRNO(iwarp_read(mr, SIZE_MAX, 2, &key, 0, 1), ERANGE);
	NEED_ERRNO(iwarp_write(mr, 0, 2, &key, UINT64_MAX, 1), ERANGE);
	NEED_ERRNO(iwarp_write(mr, 0, 0, &key, 0, 1), EINVAL);
	NEED_ERRNO(iwarp_send_mr(mr, 100, 1, 1), ERANGE);
	NEED_ERRNO(iwarp_send_async(fd, other, 0, 1), EINVAL);
	NEED_ERRNO(iwarp_recv_async(fd, other, 0, 1), EINVAL);
	wrong.bytes[23] ^= 1;
	NEED_ERRNO(iwarp_write(mr, 0, 1, &wrong, 0, 1), EINVAL);
	NEED_ERRNO(iwarp_start(fd, IWARP_ACTIVE), EOPNOTSUPP);
	NEED(iwarp_cq_poll(fd, &none, 1) == 0);
	NEED(iwarp_write(mr, 0, 100, &key, 0, 7) == 0);
	write_all(fd, "", 1);
	await(fd, 7, 100, 0);
	NEED(iwarp_dereg_mr(mr) == 0);
}

/* More than may be under way at once. */
static void many_serve(int fd)
{
	reads_serve(fd);
}

static void many_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), IWARP_REMOTE_WRITE);
	struct iwarp_key key = take_key(fd);
	size_t posted = 0, done = 0;

	while (done < 1000) {
		size_t at = posted * 1000;

		if (posted < 1000 && iwarp_read(mr, at, 1000, &key, at, posted) == 0) {
			posted++;
			continue;
		}
		NEED(posted == 1000 || errno == EAGAIN);
		await(fd, done++, 1000, 0);
	}
	check(other, 1000000, 0);
	write_all(fd, "", 1);
	NEED(iwarp_dereg_mr(mr) == 0);
}

/* Memory that may be read only is written: it stays as it is, and the connection ends. */
static void access_serve(int fd)
{
	struct iwarp_completion done;
	struct iwarp_mr *mr;

	fill(page, 100, 0);
	mr = offer(fd, page, 100, IWARP_REMOTE_READ);
	NEED(iwarp_recv_async(fd, other, 1, 1) == 0);
	done = next_completion(fd);
	NEED(done.cookie == 1 && (done.error || !done.bytes));
	check(page, 100, 0);
	NEED(iwarp_dereg_mr(mr) == 0);
}

static void access_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, 100, 0);
	struct iwarp_key key = take_key(fd);
	char none;

	NEED(iwarp_write(mr, 0, 100, &key, 0, 1) == 0);
	(void)next_completion(fd);
	NEED(read(fd, &none, 1) <= 0);
	NEED(iwarp_write(mr, 0, 100, &key, 0, 2) == -1 || next_completion(fd).error);
	NEED(iwarp_dereg_mr(mr) == 0);
}

static void killed_serve(int fd)
{
	struct iwarp_completion done;

	NEED(iwarp_recv_async(fd, page, 2, 1) == 0);
	done = next_completion(fd);
	NEED(done.bytes == 1 && !done.error);
	NEED(iwarp_recv_async(fd, page, 2, 2) == 0);
	done = next_completion(fd);
	NEED(done.cookie == 2 && !done.bytes && (!done.error || done.error == ECONNRESET));
}

static void killed_ask(int fd)
{
	await_taken(fd);
	raise(SIGKILL);
}

/* Nor does a read take what was cut off for a whole stream, also where nothing was wrong when it was asked. */
static void reset_serve(int fd)
{
	socklen_t len = sizeof(int);
	int error = -1;
	char octet;

	NEED(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0);
	read_all(fd, &octet, 1);
	write_all(fd, &octet, 1);
	NEED_ERRNO(read(fd, &octet, 1), ECONNRESET);
	NEED(read(fd, &octet, 1) == 0);
	NEED(iwarp_recv_async(fd, page, 1, 1) == 0);
	NEED(next_completion(fd).error == ECONNRESET);
}

static void reset_ask(int fd)
{
	char octet = 'x';

	write_all(fd, &octet, 1);
	read_all(fd, &octet, 1);
	raise(SIGKILL);
}

/* What sockets do goes on: names, options, poll, dup, and a child's use of the stream. */
static void socket_serve(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int copy = dup(fd), on = 1;
	char octet;

	NEED(getpeername(copy, (struct sockaddr *)&name, &len) == 0 && name.ss_family == AF_INET);
	NEED(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	on = 0;
	len = sizeof(on);
	NEED(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len) == 0 && on);
	NEED(getsockopt(copy, SOL_SOCKET, SO_ERROR, &on, &len) == 0 && on == 0);
	NEED(dup2(STDOUT_FILENO, fd) == fd); /* our caller will close the number again */
	NEED(iwarp_cq_fd(copy) >= 0);
	read_all(copy, &octet, 1);
	write_all(copy, &octet, 1);
	NEED(read(copy, &octet, 1) == 0);
	close(copy);
}

static void socket_ask(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	char octet = 'x';

	if (in_child()) {
		NEED_ERRNO(iwarp_cq_fd(fd), EOPNOTSUPP);
		write_all(fd, &octet, 1);
		NEED(poll(&pollfd, 1, -1) == 1);
		read_all(fd, &octet, 1);
		_exit(octet != 'x');
	}
	NEED(child_is_well());
}

/* exit(3) loses nothing of what was written. */
static void leaves_serve(int fd)
{
	sends_serve(fd);
}

static void leaves_ask(int fd)
{
	fill(other, sizeof(other), 0);
	write_all(fd, other, sizeof(other));
	exit(0);
}

/* Each operation completes once, though the stream has ended both ways when it does. */
static void ends_before_reads_serve(int fd)
{
	struct iwarp_mr *mr = offer(fd, page, sizeof(page), IWARP_REMOTE_READ);
	char octet;

	NEED(shutdown(fd, SHUT_WR) == 0);
	NEED(read(fd, &octet, 1) == 0);
	NEED(iwarp_dereg_mr(mr) == 0);
}

static void ends_before_reads_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), IWARP_REMOTE_WRITE);
	struct iwarp_key key = take_key(fd);
	char octet;

	NEED(read(fd, &octet, 1) == 0);
	for (uint64_t i = 0; i < FEW; i++)
		NEED(iwarp_read(mr, 0, PAGE, &key, 0, i) == 0);
	NEED(shutdown(fd, SHUT_WR) == 0);
	for (uint64_t i = 0; i < FEW; i++)
		NEED(next_completion(fd).cookie == i);
	NEED(!has_completion(fd) && iwarp_dereg_mr(mr) == 0);
}

/* The peer closes, and takes none of what is sent. */
static void closes_before_sends_serve(int fd)
{
	char octet;

	read_all(fd, &octet, 1);
}

static void closes_before_sends_ask(int fd)
{
	struct iwarp_mr *mr = iwarp_reg_mr(fd, other, sizeof(other), 0);
	uint64_t count = 0;

	while (count < FEW && iwarp_send_mr(mr, 0, PAGE, count) == 0)
		count++;
	NEED(count > 0);
	for (uint64_t i = 0; i < count; i++)
		NEED(next_completion(fd).cookie == i);
	NEED(!has_completion(fd) && iwarp_dereg_mr(mr) == 0);
}

/* What came before the peer closed is read, though a write has failed. */
static void answers_and_closes_serve(int fd)
{
	read_all(fd, page, 100);
	fill(page, ANSWER, 0);
	write_all(fd, page, ANSWER);
}

static void answers_and_closes_ask(int fd)
{
	signal(SIGPIPE, SIG_IGN);
	write_all(fd, other, 100);
	read_all(fd, page, 10);
	while (write(fd, other, 1000) > 0)
		;
	NEED(errno == EPIPE || errno == ECONNRESET);
	read_all(fd, page + 10, ANSWER - 10);
	check(page, ANSWER, 0);
}

static const struct scene scenes[] = {
	{ "writes", writes_serve, writes_ask, 0 },
	{ "reads", reads_serve, reads_ask, 0 },
	{ "sends", sends_serve, sends_ask, 0 },
	{ "receives", receives_serve, receives_ask, 0 },
	{ "limits", limits_serve, limits_ask, 0 },
	{ "many", many_serve, many_ask, 0 },
	{ "access", access_serve, access_ask, 0 },
	{ "killed", killed_serve, killed_ask, SIGKILL },
	{ "reset", reset_serve, reset_ask, SIGKILL },
	{ "socket", socket_serve, socket_ask, 0 },
	{ "leaves", leaves_serve, leaves_ask, 0 },
	{ "ends_before_reads", ends_before_reads_serve, ends_before_reads_ask, 0 },
	{ "closes_before_sends", closes_before_sends_serve, closes_before_sends_ask, 0 },
	{ "answers_and_closes", answers_and_closes_serve, answers_and_closes_ask, 0 },
};

static void play_if(const struct scene *scene, const char *only)
{
	if (!only || strcmp(only, scene->name) == 0)
		play(scene);
}

int main(int argc, char **argv)
{
	const char *only = argc < 2 ? NULL : argv[1];

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		play_if(&scenes[i], only);
	for (const struct scene *scene = direct_scenes; scene->name; scene++)
		play_if(scene, only);
	for (const struct scene *scene = end_scenes; scene->name; scene++)
		play_if(scene, only);
	play_without_connection();
	return 0;
}
