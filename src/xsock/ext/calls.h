// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of functions by which libanywarp-sockets.so calls the engine of the extended calls,
// libanywarp-xsock.so; it loads the engine at the first such call. Both are of one build.
#ifndef XSOCK_EXT_CALLS_H
#define XSOCK_EXT_CALLS_H

#include <sys/socket.h>
#include <sys/types.h>

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

struct aw_ext_calls {
	const char *version;
	int (*start)(const struct aw_ext_request *request); /* returns 0 or an errno */
	/* TCP's options and SO_ERROR of connection ino; return and errno as getsockopt(2). */
	int (*get_option)(ino_t ino, int level, int name, void *value, socklen_t *len);
	int (*set_option)(ino_t ino, int level, int name, const void *value, socklen_t len);
	/* described in anywarp/sockets.h */
	struct iwarp_mr *(*reg_mr)(int fd, void *addr, size_t len, int access);
	int (*dereg_mr)(struct iwarp_mr *mr);
	int (*mr_key)(const struct iwarp_mr *mr, struct iwarp_key *key);
	int (*write)(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		     uint64_t key_offset, uint64_t cookie);
	int (*read)(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		    uint64_t key_offset, uint64_t cookie);
	int (*send_async)(int fd, const void *buf, size_t len, uint64_t cookie);
	int (*send_mr)(struct iwarp_mr *mr, size_t offset, size_t len, uint64_t cookie);
	int (*recv_async)(int fd, void *buf, size_t len, uint64_t cookie);
	int (*cq_fd)(int fd);
	int (*cq_poll)(int fd, struct iwarp_completion *completions, int n);
};

extern const struct aw_ext_calls aw_ext_calls;

#endif
