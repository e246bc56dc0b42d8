// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls that carry octets: each form once, in both directions, with its counts.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#define BULK (24 << 20)
#define SENT 100000 /* octets: more than a pipe takes */
#define SPLICED (1 << 19) /* octets: more than a connection whose peer reads nothing takes */

static void plain_calls(void)
{
	struct ends e;
	char got[16];
	ends_open(&e);
	CHECK(write(e.client, "write", 5) == 5);
	CHECK(wait_for(e.server, POLLIN) == POLLIN);
	CHECK(read(e.server, got, sizeof(got)) == 5 && !memcmp(got, "write", 5));
	CHECK(send(e.server, "send", 4, 0) == 4);
	CHECK(wait_for(e.client, POLLIN) == POLLIN);
	CHECK(recv(e.client, got, sizeof(got), 0) == 4 && !memcmp(got, "send", 4));
	CHECK(sendto(e.client, "to", 2, 0, NULL, 0) == 2);
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	CHECK(wait_for(e.server, POLLIN) == POLLIN);
	/* TCP leaves no address. */
	CHECK(recvfrom(e.server, got, 16, 0, (struct sockaddr *)&from, &len) == 2 && len == 0);
	CHECK(write(e.client, "", 0) == 0 && send(e.client, "", 0, 0) == 0);
	CHECK(write(e.client, "x", 1) == 1 && wait_for(e.server, POLLIN) == POLLIN);
	CHECK(recv(e.server, got, 0, 0) == 0);
	expect_text(e.server, "x");
	/* Of the empty ones nothing comes, before it or behind it. */
	struct pollfd p = { .fd = e.server, .events = POLLIN };
	CHECK(poll(&p, 1, 0) == 0);
}

/* Linux's TCP takes no notice of it, where a unix socket says EISCONN. */
static void address_is_ignored(void)
{
	struct ends e;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	ends_open(&e);
	CHECK(!getpeername(e.client, (struct sockaddr *)&name, &len));
	for (int touched = 0; touched < 2; touched++) {
		struct iovec iov = { "msg", 3 };
		struct msghdr msg = { &name, len, &iov, 1, NULL, 0, 0 };
		CHECK(sendto(e.client, "to", 2, 0, (struct sockaddr *)&name, len) == 2);
		CHECK(sendmsg(e.client, &msg, 0) == 3);
		expect_text(e.server, "tomsg");
	}
}

static void vector_calls(void)
{
	struct ends e;
	char a[3], b[64];
	ends_open(&e);
	struct iovec out[] = { { "one", 3 }, { "", 0 }, { "three", 5 } };
	struct iovec in[] = { { a, sizeof(a) }, { b, sizeof(b) } };
	CHECK(writev(e.client, out, 3) == 8);
	wait_readable_octets(e.server, 8);
	CHECK(readv(e.server, in, 2) == 8 && !memcmp(a, "one", 3) && !memcmp(b, "three", 5));
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 3 };
	CHECK(sendmsg(e.server, &msg, 0) == 8);
	wait_readable_octets(e.client, 8);
	struct sockaddr_in name;
	char control[64];
	msg = (struct msghdr){ &name, sizeof(name), in, 2, control, sizeof(control), 77 };
	CHECK(recvmsg(e.client, &msg, 0) == 8 && !memcmp(b, "three", 5));
	CHECK(msg.msg_namelen == 0 && msg.msg_controllen == 0 && !(msg.msg_flags & ~MSG_EOR));
	CHECK(syscall(SYS_writev, e.client, out, 5000) == -1 && errno == EINVAL);
	CHECK(preadv(e.server, in, 2, 0) == -1 && errno == ESPIPE);
	CHECK(preadv2(e.server, in, 2, -1, RWF_NOWAIT) == -1 && errno == EAGAIN);
	CHECK(pwritev2(e.client, out, 3, -1, 0) == 8);
	wait_readable_octets(e.server, 8);
	CHECK(preadv2(e.server, in, 2, -1, 0) == 8);
}

static void many_message_calls(void)
{
	struct ends e;
	char got[2][4];
	ends_open(&e);
	struct iovec out[] = { { "first", 5 }, { "second", 6 } };
	struct mmsghdr msgs[2] = { { .msg_hdr = { .msg_iov = &out[0], .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &out[1], .msg_iovlen = 1 } } };
	CHECK(sendmmsg(e.client, msgs, 2, 0) == 2);
	CHECK(msgs[0].msg_len == 5 && msgs[1].msg_len == 6);
	wait_readable_octets(e.server, 11);
	struct iovec in[] = { { got[0], 4 }, { got[1], 4 } };
	struct mmsghdr room[2] = { { .msg_hdr = { .msg_iov = &in[0], .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &in[1], .msg_iovlen = 1 } } };
	CHECK(recvmmsg(e.server, room, 2, 0, NULL) == 2);
	CHECK(room[0].msg_len == 4 && room[1].msg_len == 4);
	CHECK(!memcmp(got[0], "firs", 4) && !memcmp(got[1], "tsec", 4));
	CHECK(recvmmsg(e.server, room, 2, MSG_WAITFORONE, NULL) == 1 && room[0].msg_len == 3);
	CHECK(recvmmsg(e.server, room, 2, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
	/* The time is over behind the first message: the second is not waited for. */
	CHECK(send(e.client, "more", 4, 0) == 4);
	CHECK(recvmmsg(e.server, room, 2, 0, &(struct timespec){ 0, 1 }) == 1 &&
	      room[0].msg_len == 4);
}

/* At the end of the stream each message is one of no octets. */
static void many_messages_at_the_end(void)
{
	struct ends e;
	char got[2][4];
	struct iovec in[] = { { got[0], 4 }, { got[1], 4 } };
	struct mmsghdr room[2] = { { .msg_hdr = { .msg_iov = &in[0], .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &in[1], .msg_iovlen = 1 } } };
	ends_open(&e);
	send_text(e.client, "last");
	CHECK(!shutdown(e.client, SHUT_WR));
	CHECK(recvmmsg(e.server, room, 2, 0, NULL) == 2);
	CHECK(room[0].msg_len == 4 && room[1].msg_len == 0);
	CHECK(recvmmsg(e.server, room, 2, 0, NULL) == 2);
	CHECK(room[0].msg_len == 0 && room[1].msg_len == 0);
}

#define MANY_BUFFERS 1025 /* one more than the kernel takes */

/* Of a message, other than of readv and writev, too many buffers are EMSGSIZE. */
static void too_many_buffers(void)
{
	static struct iovec iov[MANY_BUFFERS];
	static const size_t counts[] = { MANY_BUFFERS, (size_t)1 << 31, SIZE_MAX };
	struct ends e;
	char octet = 'x';
	ends_open(&e);
	for (size_t i = 0; i < MANY_BUFFERS; i++)
		iov[i] = (struct iovec){ &octet, 1 };
	for (int touched = 0; touched < 2; touched++) {
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			struct msghdr msg = { .msg_iov = iov, .msg_iovlen = counts[i] };
			CHECK(sendmsg(e.client, &msg, 0) == -1 && errno == EMSGSIZE);
			CHECK(recvmsg(e.client, &msg, 0) == -1 && errno == EMSGSIZE);
		}
		CHECK(readv(e.client, iov, MANY_BUFFERS) == -1 && errno == EINVAL);
		CHECK(writev(e.client, iov, MANY_BUFFERS) == -1 && errno == EINVAL);
		CHECK(writev(e.client, iov, MANY_BUFFERS - 1) == MANY_BUFFERS - 1);
		wait_readable_octets(e.server, MANY_BUFFERS - 1);
		CHECK(readv(e.server, iov, MANY_BUFFERS - 1) == MANY_BUFFERS - 1);
	}
}

/* A flag that the kernel does not know is refused, and nothing is read. */
static void unknown_flags(void)
{
	struct ends e;
	char octet = 'x';
	struct iovec iov = { &octet, 1 };
	int pipes[2];
	ends_open(&e);
	CHECK(!pipe(pipes) && write(pipes[1], "z", 1) == 1);
	for (int touched = 0; touched < 2; touched++) {
		send_text(e.client, "y");
		wait_readable_octets(e.server, 1);
		CHECK(preadv2(e.server, &iov, 1, -1, 1 << 30) == -1 && errno == EOPNOTSUPP);
		CHECK(pwritev2(e.server, &iov, 1, -1, 1 << 30) == -1 && errno == EOPNOTSUPP);
		CHECK(splice(e.server, NULL, pipes[1], NULL, 1, 1 << 30) == -1 && errno == EINVAL);
		CHECK(splice(pipes[0], NULL, e.server, NULL, 1, 1 << 30) == -1 && errno == EINVAL);
		expect_text(e.server, "y");
	}
}

static int memory_file(size_t len)
{
	int fd = memfd_create("pattern", 0);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)len));
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	pattern_fill(map, len, 0);
	munmap(map, len);
	return fd;
}

struct task {
	int fd;
	size_t len;
};

static void *reader(void *arg)
{
	struct task *t = arg;
	expect_pattern(t->fd, t->len);
	return NULL;
}

static void sendfile_call(void)
{
	struct ends e;
	const size_t len = 3 << 20;
	int file = memory_file(len);
	off_t at = 0;
	ends_open(&e);
	struct task task = { e.server, len };
	pthread_t thread = thread_start(reader, &task);
	while (at < (off_t)len / 2) {
		off_t before = at;
		ssize_t n = sendfile(e.client, file, &at, len / 2 - (size_t)at);
		CHECK(n > 0 && at == before + n);
	}
	CHECK(lseek(file, 0, SEEK_CUR) == 0);
	CHECK(lseek(file, at, SEEK_SET) == at);
	while (at < (off_t)len) {
		ssize_t n = sendfile(e.client, file, NULL, len);
		CHECK(n > 0);
		at += n;
	}
	CHECK(lseek(file, 0, SEEK_CUR) == (off_t)len);
	CHECK(sendfile(e.client, file, NULL, 1) == 0);
	thread_join(thread);
	CHECK(sendfile(file, e.server, NULL, 1) == -1 && errno == EINVAL);
}

static void splice_call(void)
{
	struct ends e;
	int in[2], out[2];
	char got[16];
	ends_open(&e);
	CHECK(!pipe(in) && !pipe(out));
	CHECK(write(in[1], "through pipes", 13) == 13);
	CHECK(splice(in[0], NULL, e.client, NULL, 100, 0) == 13);
	wait_readable_octets(e.server, 13);
	CHECK(splice(e.server, NULL, out[1], NULL, 7, SPLICE_F_MOVE) == 7);
	CHECK(read(out[0], got, sizeof(got)) == 7 && !memcmp(got, "through", 7));
	expect_text(e.server, " pipes");
	set_nonblocking(e.server, true);
	CHECK(splice(e.server, NULL, out[1], NULL, 7, 0) == -1 && errno == EAGAIN);
	set_nonblocking(e.server, false);
	CHECK(splice(e.server, NULL, e.client, NULL, 7, 0) == -1 && errno == EINVAL);
	shutdown(e.client, SHUT_WR);
	CHECK(wait_for(e.server, POLLIN) & POLLIN);
	CHECK(splice(e.server, NULL, out[1], NULL, 7, 0) == 0);
}

/* Moves what splice moves without waiting from one end to the other; how much that was. */
static size_t splice_all(int in, int out)
{
	size_t moved = 0;
	ssize_t n;
	while ((n = splice(in, NULL, out, NULL, SPLICED, SPLICE_F_NONBLOCK)) > 0)
		moved += (size_t)n;
	CHECK(n == -1 && errno == EAGAIN);
	return moved;
}

/* Reads so much pattern, which begins at offset. */
static void read_pattern(int fd, size_t len, size_t offset)
{
	uint8_t chunk[4096];
	while (len > 0) {
		ssize_t n = read(fd, chunk, len < sizeof(chunk) ? len : sizeof(chunk));
		CHECK(n > 0);
		pattern_check(chunk, (size_t)n, offset);
		offset += (size_t)n;
		len -= (size_t)n;
	}
}

/* As a proxy does: the pipe blocks, is never empty, and has too little room for what has come. */
static void splice_waits_for_no_pipe(void)
{
	struct ends e;
	uint8_t *data = malloc(SENT);
	size_t in_pipe = 10, done = 0;
	int out[2];
	ends_open(&e);
	set_nonblocking(e.server, true);
	CHECK(data && !pipe(out));
	pattern_fill(data, SENT, 0);
	CHECK(write(out[1], data, in_pipe) == (ssize_t)in_pipe);
	send_all(e.client, data + in_pipe, SENT - in_pipe);
	while (done + in_pipe < SENT) {
		CHECK(wait_for(e.server, POLLIN) == POLLIN);
		in_pipe += splice_all(e.server, out[1]);
		CHECK(in_pipe > 1);
		read_pattern(out[0], in_pipe - 1, done);
		done += in_pipe - 1;
		in_pipe = 1;
	}
	free(data);
}

/* O_NONBLOCK of a full pipe is enough; of one that nobody reads splice takes notice before it takes octets. */
static void splice_minds_the_pipe(void)
{
	static const char zeros[4096];
	struct ends e;
	int out[2];
	ends_open(&e);
	CHECK(!pipe2(out, O_NONBLOCK) && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	for (int touched = 0; touched < 2; touched++) {
		send_text(e.client, "stays");
		wait_readable_octets(e.server, 5);
		while (write(out[1], zeros, sizeof(zeros)) > 0)
			;
		CHECK(splice(e.server, NULL, out[1], NULL, 5, 0) == -1 && errno == EAGAIN);
		expect_text(e.server, "stays");
	}
	send_text(e.client, "stays");
	wait_readable_octets(e.server, 5);
	close(out[0]);
	CHECK(splice(e.server, NULL, out[1], NULL, 5, 0) == -1 && errno == EPIPE);
	expect_text(e.server, "stays");
}

/* The peer reads nothing for a while: the pipe keeps what the connection does not take. */
static void splice_waits_for_no_peer(void)
{
	struct ends e;
	uint8_t *data = malloc(SPLICED);
	int in[2], little = 16384;
	size_t done = 0;
	ends_open(&e);
	CHECK(data && !pipe(in) && fcntl(in[1], F_SETPIPE_SZ, SPLICED) >= SPLICED);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)));
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)));
	set_nonblocking(e.client, true);
	pattern_fill(data, SPLICED, 0);
	CHECK(write(in[1], data, SPLICED) == SPLICED);
	while (done < SPLICED) {
		CHECK(wait_for(e.client, POLLOUT) == POLLOUT);
		size_t more = splice_all(in[0], e.client);
		CHECK(more > 0 && (done > 0 || more < SPLICED));
		read_pattern(e.server, more, done);
		done += more;
	}
	free(data);
}

/* A socket and a pipe have no offset; of no octets splice asks nobody. */
static void splice_arguments(void)
{
	struct ends e;
	int pipes[2];
	off64_t at = 0;
	char got[8];
	ends_open(&e);
	CHECK(!pipe(pipes) && write(pipes[1], "x", 1) == 1);
	for (int touched = 0; touched < 2; touched++) {
		send_text(e.client, "y");
		wait_readable_octets(e.server, 1);
		CHECK(splice(e.server, &at, pipes[1], NULL, 1, 0) == -1 && errno == EINVAL);
		CHECK(splice(e.server, NULL, pipes[1], &at, 1, 0) == -1 && errno == ESPIPE);
		CHECK(splice(pipes[0], &at, e.server, NULL, 1, 0) == -1 && errno == ESPIPE);
		CHECK(splice(pipes[0], NULL, e.server, &at, 1, 0) == -1 && errno == EINVAL);
		CHECK(splice(e.server, NULL, pipes[1], NULL, 0, 0) == 0);
		CHECK(splice(pipes[0], NULL, e.server, NULL, 0, 0) == 0);
		expect_text(e.server, "y");
		CHECK(splice(e.server, NULL, pipes[1], NULL, 0, 0) == 0);
	}
	CHECK(read(pipes[0], got, sizeof(got)) == 1);
}

/* sendfile wants a file whose position can be set; what another one has stays there. */
static void sendfile_from_a_pipe(void)
{
	struct ends e;
	int pipes[2];
	off_t at = 0;
	char got[8];
	ends_open(&e);
	CHECK(!pipe(pipes) && write(pipes[1], "stays", 5) == 5);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(sendfile(e.client, pipes[0], NULL, 5) == -1 && errno == EINVAL);
		CHECK(sendfile(e.client, pipes[0], &at, 5) == -1 && errno == ESPIPE);
		CHECK(sendfile(e.client, -1, NULL, 0) == -1 && errno == EBADF);
		send_text(e.client, "x");
		expect_text(e.server, "x");
	}
	CHECK(read(pipes[0], got, sizeof(got)) == 5 && !memcmp(got, "stays", 5));
}

static void pass_over(int number)
{
	(void)number;
}

/* A signal ends a splice that waits for its peer; what the connection has not taken is in the pipe. */
static void splice_interrupted(void)
{
	struct sigaction action = { .sa_handler = pass_over };
	struct itimerval soon = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct ends e;
	uint8_t *data = malloc(SPLICED);
	int in[2], queued = 0;
	ssize_t n;
	ends_open(&e);
	CHECK(data && !pipe(in) && fcntl(in[1], F_SETPIPE_SZ, SPLICED) >= SPLICED);
	size_t filled = fill_up(e.client);
	pattern_fill(data, SPLICED, filled);
	CHECK(write(in[1], data, SPLICED) == SPLICED);
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	n = splice(in[0], NULL, e.client, NULL, SPLICED, 0);
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	CHECK(n > 0 || (n == -1 && errno == EINTR));
	CHECK(!ioctl(in[0], FIONREAD, &queued));
	CHECK(queued + (n > 0 ? n : 0) == SPLICED);
	struct task task = { e.server, filled + SPLICED };
	pthread_t thread = thread_start(reader, &task);
	while (queued > 0) {
		n = splice(in[0], NULL, e.client, NULL, (size_t)queued, 0);
		CHECK(n > 0);
		queued -= (int)n;
	}
	thread_join(thread);
	free(data);
}

/* As Go and static programs do: not through libc. */
static void raw_calls(void)
{
	struct ends e;
	char got[8];
	ends_open(&e);
	send_text(e.client, "begin");
	expect_text(e.server, "begin");
	CHECK(syscall(SYS_write, e.client, "raw", 3) == 3);
	CHECK(wait_for(e.server, POLLIN) == POLLIN);
	CHECK(syscall(SYS_read, e.server, got, 8) == 3 && !memcmp(got, "raw", 3));
	CHECK(syscall(SYS_sendto, e.server, "kernel", 6, 0, NULL, 0) == 6);
	struct pollfd p = { .fd = e.client, .events = POLLIN };
#ifdef SYS_poll
	CHECK(syscall(SYS_poll, &p, 1, WAIT_MS) == 1 && p.revents == POLLIN);
#else /* arm64 and riscv64 */
	struct timespec wait = { .tv_sec = WAIT_MS / 1000 };
	CHECK(syscall(SYS_ppoll, &p, 1, &wait, NULL, 0) == 1 && p.revents == POLLIN);
#endif
	CHECK(syscall(SYS_recvfrom, e.client, got, 8, 0, NULL, NULL) == 6);
	CHECK(!syscall(SYS_shutdown, e.client, SHUT_WR));
	expect_end(e.server);
	CHECK(!syscall(SYS_close, e.server));
	expect_end(e.client);
}

static void *bulk_writer(void *arg)
{
	struct task *t = arg;
	uint8_t *chunk = malloc(1 << 20);
	for (size_t at = 0; at < t->len; at += 1 << 20) {
		pattern_fill(chunk, 1 << 20, at);
		send_all(t->fd, chunk, 1 << 20);
	}
	CHECK(!shutdown(t->fd, SHUT_WR));
	free(chunk);
	return NULL;
}

/* Both ways at once, threads on one fd. */
static void bulk_both_ways(void)
{
	struct ends e;
	pthread_t threads[4];
	ends_open(&e);
	struct task tasks[] = { { e.client, BULK }, { e.server, BULK } };
	for (int i = 0; i < 2; i++) {
		threads[i] = thread_start(bulk_writer, &tasks[i]);
		threads[2 + i] = thread_start(reader, &tasks[i]);
	}
	for (int i = 0; i < 4; i++)
		thread_join(threads[i]);
	expect_end(e.client);
	expect_end(e.server);
}

static void stdio_streams(void)
{
	struct ends e;
	char line[64], *long_line = NULL;
	size_t room = 0;
	ends_open(&e);
	FILE *client = fdopen(e.client, "r+"), *server = fdopen(e.server, "w");
	FILE *server_in = fdopen(dup(e.server), "r");
	CHECK(client && server && server_in);
	setvbuf(server, NULL, _IOLBF, 0);
	CHECK(fprintf(client, "GET %s %d\n", "/", 11) == 9 && !fflush(client));
	CHECK(fgets(line, sizeof(line), server_in) && !strcmp(line, "GET / 11\n"));
	fprintf(server, "answer %d\n", 1);
	CHECK(getline(&long_line, &room, client) == 9 && !strcmp(long_line, "answer 1\n"));
	CHECK(dprintf(e.client, "direct\n") == 7);
	CHECK(fscanf(server_in, "%63s", line) == 1 && !strcmp(line, "direct"));
	CHECK(fputs("last", client) >= 0 && !fflush(client) && !shutdown(fileno(client), SHUT_WR));
	CHECK(getc(server_in) == '\n');
	CHECK(fread(line, 1, sizeof(line), server_in) == 4 && feof(server_in));
	CHECK(!fclose(server) && !fclose(server_in));
	CHECK(getc(client) == EOF && feof(client) && !ferror(client));
	CHECK(!fclose(client));
	free(long_line);
}

/* A read without room returns 0 at once, and takes nothing; recv waits. */
static void read_of_nothing(void)
{
	struct ends e;
	char octet;
	struct iovec none[2] = { { &octet, 0 }, { &octet, 0 } };
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(read(e.server, &octet, 0) == 0);
		CHECK(readv(e.server, none, 2) == 0 && readv(e.server, none, 0) == 0);
		CHECK(preadv2(e.server, none, 2, -1, 0) == 0);
		CHECK(recv(e.server, &octet, 0, MSG_DONTWAIT) == -1 && errno == EAGAIN);
		send_text(e.client, "x");
		wait_readable_octets(e.server, 1);
		CHECK(read(e.server, &octet, 0) == 0 && readv(e.server, none, 2) == 0);
		expect_text(e.server, "x");
	}
}

static void bad_memory(void)
{
	struct ends e;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		send_text(e.client, "kept");
		wait_readable_octets(e.server, 4);
		CHECK(syscall(SYS_recvfrom, e.server, (void *)8, 4, 0, NULL, NULL) == -1);
		CHECK(errno == EFAULT);
		CHECK(syscall(SYS_sendto, e.client, (void *)8, 4, 0, NULL, 0) == -1);
		CHECK(errno == EFAULT);
		expect_text(e.server, "kept");
	}
}

static const struct row rows[] = {
	{ "plain_calls", plain_calls },
	{ "address_is_ignored", address_is_ignored },
	{ "vector_calls", vector_calls },
	{ "many_message_calls", many_message_calls },
	{ "many_messages_at_the_end", many_messages_at_the_end },
	{ "too_many_buffers", too_many_buffers },
	{ "unknown_flags", unknown_flags },
	{ "splice_arguments", splice_arguments },
	{ "sendfile_from_a_pipe", sendfile_from_a_pipe },
	{ "splice_interrupted", splice_interrupted },
	{ "splice_minds_the_pipe", splice_minds_the_pipe },
	{ "sendfile_call", sendfile_call },
	{ "splice_call", splice_call },
	{ "splice_waits_for_no_pipe", splice_waits_for_no_pipe },
	{ "splice_waits_for_no_peer", splice_waits_for_no_peer },
	{ "raw_calls", raw_calls },
	{ "bulk_both_ways", bulk_both_ways },
	{ "stdio_streams", stdio_streams },
	{ "read_of_nothing", read_of_nothing },
	{ "bad_memory", bad_memory },
};
const struct rows io_rows = { rows, ARRAY_LEN(rows) };
