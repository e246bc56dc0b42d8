// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A kernel's TLS of sockets, in the test's own process, since the kernel that tests run under may have none: setsockopt, send, sendmsg
// and recvmsg of the C library, for any stream socket. The records are TLS 1.3's, sealed by libcrypto.
#ifndef TESTS_LIB_KERNEL_TLS_H
#define TESTS_LIB_KERNEL_TLS_H

#include <stdbool.h>

/* What the next calls find, and what was called. */
struct kernel_tls {
	int attach_errno, sends_errno, receives_errno; /* 0: the call does what it is for */
	int refused_fd; /* whose keys to send are refused; 0: none */
	bool changes_keys;
	bool is_full; /* TCP takes nothing: records wait, until kernel_tls_make_room */
	unsigned int sends_set, receives_set; /* times that keys were set */
};

extern struct kernel_tls kernel_tls;

/* TCP takes what waits on the socket. */
void kernel_tls_make_room(int fd);

#endif
