// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Faults of the wire: wrappers of the calls of libc that anywarp's libibverbs and librdmacm make on their TCP sockets. A
// connection is watched from its connect(2) or accept4(2) on, if one of these libraries made the call and the plan has a fault
// of the wire; all other calls go straight to libc. rdma-core's libraries make no such connections.
//
// The faults are the kernel's own where it has them: a reset is a disconnect by connect(2), silence on receipt is a filter that
// drops each segment unacknowledged, where the user may attach one, a slow wire is TCP's pacing. Silence on sending is ours: the bytes are taken and go
// nowhere, while the kernel acknowledges what it receives.
#include "base/array.h"
#include "base/log.h"
#include "check/faults/faults.h"
#include "check/report/report.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 65536 /* a connection with a higher fd has no faults */

#define AW_WRAPPER __attribute__((visibility("default")))

struct connection {
	struct aw_fault_stream stream;
	_Atomic bool is_silent; /* on sending: neither FIN nor RST may go out */
};

/* Allocated at the fd's first connection and never freed, since a thread may be in a call while another one closes the fd. */
static _Atomic(struct connection *) connections[FDS_MAX];
static _Atomic bool watched[FDS_MAX];

/* libc's. Stored by real_find; fixed from then on. */
static struct {
	int (*connect)(int fd, const struct sockaddr *to, socklen_t len);
	int (*accept4)(int fd, struct sockaddr *from, socklen_t *len, int flags);
	ssize_t (*send)(int fd, const void *bytes, size_t len, int flags);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	ssize_t (*recv)(int fd, void *bytes, size_t len, int flags);
	ssize_t (*recv_chk)(int fd, void *bytes, size_t len, size_t room, int flags);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
} real;
static _Atomic bool is_found; /* released by real_find, acquired by is_planned */
static pthread_once_t once = PTHREAD_ONCE_INIT;

ssize_t __recv_chk(int fd, void *bytes, size_t len, size_t room, int flags);

/* Stores dlsym()'s result without a cast that ISO C forbids. */
static void find(const char *name, void *function)
{
	void *address = dlsym(RTLD_NEXT, name);

	memcpy(function, &address, sizeof(address));
}

static void real_find(void)
{
	find("connect", &real.connect);
	find("accept4", &real.accept4);
	find("send", &real.send);
	find("sendmsg", &real.sendmsg);
	find("recv", &real.recv);
	find("__recv_chk", &real.recv_chk);
	find("shutdown", &real.shutdown);
	find("close", &real.close);
	atomic_store_explicit(&is_found, true, memory_order_release);
}

/* Finds libc's functions in any case. A report's own files are none of the plan's. */
static bool is_planned(void)
{
	if (!atomic_load_explicit(&is_found, memory_order_acquire))
		pthread_once(&once, real_find);
	return !aw_report_is_under_way() && aw_fault_wire_planned();
}

static struct connection *connection_of(int fd)
{
	if (!is_planned() || fd < 0 || fd >= FDS_MAX ||
	    !atomic_load_explicit(&watched[fd], memory_order_acquire))
		return NULL;
	return atomic_load_explicit(&connections[fd], memory_order_relaxed);
}

/* True where the code is that of a verbs library, rather than the program's. */
static bool is_of_verbs(const void *code)
{
	static const char *const libraries[] = { "libibverbs.so", "librdmacm.so" };
	const char *name;
	Dl_info info;

	if (dladdr(code, &info) == 0 || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
			return true;
	return false;
}

static bool is_tcp(int fd)
{
	socklen_t len = sizeof(int);
	int protocol = 0;

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
	       protocol == IPPROTO_TCP;
}

static struct connection *connection_make(int fd)
{
	struct connection *conn;

	if (fd >= FDS_MAX) {
		aw_log(AW_LOG_ERROR, "fd %d is over %d: its connection has no fault of the wire",
		       fd, FDS_MAX - 1);
		return NULL;
	}
	conn = atomic_load_explicit(&connections[fd], memory_order_relaxed);
	if (conn)
		return conn;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		aw_log(AW_LOG_ERROR, "fd %d has no fault of the wire: out of memory", fd);
	atomic_store_explicit(&connections[fd], conn, memory_order_relaxed);
	return conn;
}

/* The connection begins. Until then no other thread uses its fd. Keeps errno. */
static void watch(int fd)
{
	int err = errno;
	struct connection *conn = is_tcp(fd) ? connection_make(fd) : NULL;

	if (conn) {
		aw_fault_wire_begin(&conn->stream);
		atomic_store_explicit(&conn->is_silent, false, memory_order_relaxed);
		atomic_store_explicit(&watched[fd], true, memory_order_release);
	}
	errno = err;
}

static void reset(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (real.connect(fd, &none, sizeof(none)) != 0)
		aw_log(AW_LOG_ERROR, "cannot reset fd %d: %s", fd, strerror(errno));
}

/* Drops what the socket receives from now on, and what it has received. */
static void deafen(int fd, bool is_first)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &drop };
	char bytes[4096];

	/* Some kernels let only root do it. */
	if (is_first && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0)
		aw_log(AW_LOG_WARN,
		       "wire:silence:recv: the kernel acknowledges what the peer sends to fd %d, though it is dropped, since this user may attach no filter: %s",
		       fd, strerror(errno));
	while (real.recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void slow_down(int fd, uint64_t bytes_per_s)
{
	unsigned rate = bytes_per_s < UINT_MAX ? (unsigned)bytes_per_s : UINT_MAX - 1;

	if (setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) != 0)
		aw_log(AW_LOG_ERROR, "cannot slow fd %d: %s", fd, strerror(errno));
}

/* Does what the step says besides moving bytes. False: bytes may be moved. *result and errno: of the call otherwise. */
static bool is_instead(int fd, struct connection *conn, enum aw_wire_direction direction,
		       const struct aw_wire_step *step, size_t len, ssize_t *result)
{
	bool sends = direction == AW_WIRE_SEND;

	switch (step->what) {
	case AW_WIRE_RESET:
		if (step->is_first)
			reset(fd);
		*result = -1;
		errno = ECONNRESET;
		return true;
	case AW_WIRE_FIN:
		if (step->is_first)
			real.shutdown(fd, sends ? SHUT_WR : SHUT_RD);
		*result = sends ? -1 : 0;
		errno = EPIPE;
		return true;
	case AW_WIRE_SILENCE:
		if (sends)
			atomic_store_explicit(&conn->is_silent, true, memory_order_relaxed);
		else
			deafen(fd, step->is_first);
		*result = sends ? (ssize_t)len : -1;
		errno = EAGAIN;
		return true;
	case AW_WIRE_SLOW:
		slow_down(fd, step->rate);
		return false;
	case AW_WIRE_PASS:
	case AW_WIRE_FLIP:
	case AW_WIRE_STOP:
	case AW_WIRE_KILL:
		return false;
	}
	return false;
}

static bool moves(const struct aw_wire_step *step)
{
	return step->what == AW_WIRE_PASS || step->what == AW_WIRE_FLIP;
}

/* The step that moves bytes; false: the call has its result already. */
static bool next_move(int fd, struct connection *conn, enum aw_wire_direction direction, size_t len,
		      struct aw_wire_step *step, ssize_t *result)
{
	do {
		*step = aw_fault_wire_next(&conn->stream, direction, len);
		if (is_instead(fd, conn, direction, step, len, result))
			return false;
	} while (!moves(step));
	return true;
}

/* Notes what was moved, and does what is due at the byte that was reached. Keeps errno. */
static void finish_move(int fd, struct connection *conn, enum aw_wire_direction direction,
			const struct aw_wire_step *step, ssize_t moved)
{
	int err = errno;
	struct aw_wire_step due;
	ssize_t unused;

	if (moved > 0) {
		aw_fault_wire_moved(&conn->stream, direction, step, (size_t)moved);
		next_move(fd, conn, direction, 0, &due, &unused);
	}
	errno = err;
}

static size_t total(const struct msghdr *msg)
{
	size_t bytes = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		bytes += msg->msg_iov[i].iov_len;
	return bytes;
}

/* Adds the bytes from..to of a piece that begins at the message's byte `begin`. */
static void add_part(struct iovec *parts, size_t *count, const struct iovec *piece, size_t from,
		     size_t to)
{
	if (to > from)
		parts[(*count)++] = (struct iovec){ (char *)piece->iov_base + from, to - from };
}

/* Writes the first step->len bytes of the message to parts, with *flipped in the place of the byte that is changed. */
static size_t cut(const struct msghdr *msg, const struct aw_wire_step *step, struct iovec *parts,
		  unsigned char *flipped)
{
	size_t begin = 0, count = 0;

	for (size_t i = 0; i < msg->msg_iovlen && begin < step->len; i++) {
		const struct iovec *piece = &msg->msg_iov[i];
		size_t left = step->len - begin;
		size_t len = piece->iov_len < left ? piece->iov_len : left;
		size_t at = step->at - begin; /* huge where the byte lies before */

		if (step->what == AW_WIRE_FLIP && step->at >= begin && at < len) {
			*flipped = ((unsigned char *)piece->iov_base)[at] ^ 1;
			add_part(parts, &count, piece, 0, at);
			parts[count++] = (struct iovec){ flipped, 1 };
			add_part(parts, &count, piece, at + 1, len);
		} else {
			add_part(parts, &count, piece, 0, len);
		}
		begin += len;
	}
	return count;
}

static ssize_t send_cut(int fd, const struct msghdr *msg, const struct aw_wire_step *step,
			int flags)
{
	struct iovec *parts = calloc(msg->msg_iovlen + 2, sizeof(*parts));
	struct msghdr changed = *msg;
	unsigned char flipped;
	ssize_t sent;

	if (!parts) {
		errno = ENOBUFS;
		return -1;
	}
	changed.msg_iov = parts;
	changed.msg_iovlen = cut(msg, step, parts, &flipped);
	sent = real.sendmsg(fd, &changed, flags);
	free(parts);
	return sent;
}

static ssize_t send_message(int fd, struct connection *conn, const struct msghdr *msg, int flags)
{
	size_t len = total(msg);
	struct aw_wire_step step;
	ssize_t sent;

	if (!next_move(fd, conn, AW_WIRE_SEND, len, &step, &sent))
		return sent;
	sent = step.what == AW_WIRE_PASS && step.len == len ? real.sendmsg(fd, msg, flags)
							    : send_cut(fd, msg, &step, flags);
	finish_move(fd, conn, AW_WIRE_SEND, &step, sent);
	return sent;
}

static ssize_t receive(int fd, struct connection *conn, void *bytes, size_t len, int flags)
{
	struct aw_wire_step step;
	ssize_t got;

	if (!next_move(fd, conn, AW_WIRE_RECV, len, &step, &got))
		return got;
	got = real.recv(fd, bytes, step.len, flags);
	if (step.what == AW_WIRE_FLIP && got > 0 && (size_t)got > step.at)
		((unsigned char *)bytes)[step.at] ^= 1;
	if (!(flags & MSG_PEEK))
		finish_move(fd, conn, AW_WIRE_RECV, &step, got);
	return got;
}

AW_WRAPPER int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	struct connection *conn = connection_of(fd);
	/* A second call for one connection asks how the first one fares. */
	bool is_new = !conn || conn->stream.of[AW_WIRE_SEND].offset;

	if (is_planned() && is_new && is_of_verbs(__builtin_return_address(0)))
		watch(fd);
	return real.connect(fd, to, len);
}

AW_WRAPPER int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	bool planned = is_planned();
	int accepted = real.accept4(fd, from, len, flags);

	if (planned && accepted >= 0 && is_of_verbs(__builtin_return_address(0)))
		watch(accepted);
	return accepted;
}

AW_WRAPPER ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	struct connection *conn = connection_of(fd);
	struct iovec piece = { (void *)(uintptr_t)bytes, len };
	const struct msghdr msg = { .msg_iov = &piece, .msg_iovlen = 1 };

	return conn ? send_message(fd, conn, &msg, flags) : real.send(fd, bytes, len, flags);
}

AW_WRAPPER ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct connection *conn = connection_of(fd);

	return conn ? send_message(fd, conn, msg, flags) : real.sendmsg(fd, msg, flags);
}

AW_WRAPPER ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
	struct connection *conn = connection_of(fd);

	return conn ? receive(fd, conn, bytes, len, flags) : real.recv(fd, bytes, len, flags);
}

/* recv(2) of a library that is built with _FORTIFY_SOURCE. */
AW_WRAPPER ssize_t __recv_chk(int fd, void *bytes, size_t len, size_t room, int flags)
{
	struct connection *conn = connection_of(fd);

	if (conn && len <= room)
		return receive(fd, conn, bytes, len, flags);
	return real.recv_chk(fd, bytes, len, room, flags);
}

AW_WRAPPER int shutdown(int fd, int how)
{
	struct connection *conn = connection_of(fd);

	if (conn && how != SHUT_RD && atomic_load_explicit(&conn->is_silent, memory_order_relaxed))
		return 0;
	return real.shutdown(fd, how);
}

AW_WRAPPER int close(int fd)
{
	struct connection *conn = connection_of(fd);

	if (conn) {
		/* A copy of the fd keeps the kernel from telling the peer until the process ends. */
		if (atomic_load_explicit(&conn->is_silent, memory_order_relaxed))
			(void)!fcntl(fd, F_DUPFD_CLOEXEC, 0);
		atomic_store_explicit(&watched[fd], false, memory_order_relaxed);
	}
	return real.close(fd);
}
