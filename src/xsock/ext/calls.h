// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of functions by which libanywarp-sockets.so calls the engine of the extended calls,
// libanywarp-xsock.so; it loads the engine at the first such call. Both are of one build.
#ifndef XSOCK_EXT_CALLS_H
#define XSOCK_EXT_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "anywarp/sockets.h"

#define AW_EXT_ENGINE "libanywarp-xsock.so"
#define AW_EXT_CALLS "aw_ext_calls"
#define AW_EXT_VERSION AW_VERSION

/* A connection to start. The engine takes tcp and far, also when start fails. */
struct aw_ext_request {
	int tcp; /* connected */
	int far; /* the far end of the pair that replaces the program's socket */
	int fd; /* the program's fd */
	ino_t ino; /* of the pair's near end, by which the calls find the connection */
	int role;
	int nodelay; /* TCP_NODELAY */
};

// clang-format off
/* The calls of anywarp/sockets.h that the engine makes. */
#define AW_EXT_PUBLIC_CALLS(F) \
	F(reg_mr) F(dereg_mr) F(mr_key) F(write) F(write_notify) F(read) F(send_async) F(send_mr) \
	F(recv_async) F(cq_fd) F(cq_poll)
// clang-format on

struct aw_ext_calls {
	const char *version;
	int (*start)(const struct aw_ext_request *request); /* returns 0 or an errno */
	/* The program is about to close fd, the last one of its connection, whose SO_LINGER is linger. */
	void (*closing)(int fd, const struct linger *linger);
	/* How many connections leave the peer's bytes to the reads of their program. */
	const _Atomic(unsigned) *directs;
	/*
	 * The stream without its pair. send and recv do not wait; they return how many bytes were
	 * moved, or 0: the pair has to be used. recv also returns -EAGAIN: there are none, or
	 * -ENODATA: the pair has the next ones. waits: the program's call waits for bytes. wait:
	 * until there may be bytes; returns 0, -EAGAIN after timeout_ns (-1: no limit), -EINTR, or
	 * -EBADF: fd is another file by now. It may be left by siglongjmp and cancelled.
	 */
	ssize_t (*stream_send)(int fd, const struct iovec *iov, int n, int flags);
	ssize_t (*stream_recv)(int fd, const struct iovec *iov, int n, int flags, bool waits);
	int (*stream_wait)(int fd, int64_t timeout_ns);
	/* From now on the peer's bytes go to the pair at once: the program polls it. */
	void (*watch)(int fd);
	/* TCP's options and SO_ERROR of connection ino; return and errno as getsockopt(2). */
	int (*get_option)(ino_t ino, int level, int name, void *value, socklen_t *len);
	int (*set_option)(ino_t ino, int level, int name, const void *value, socklen_t len);
	/* the public calls, each of which has the type of iwarp_NAME */
#define AW_EXT_FIELD(name) __typeof__(iwarp_##name) *name;
	AW_EXT_PUBLIC_CALLS(AW_EXT_FIELD)
#undef AW_EXT_FIELD
};

extern const struct aw_ext_calls aw_ext_calls;

#endif
