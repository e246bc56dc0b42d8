// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket calls of a library whose file is named as a verbs library's, for test_check_wire.c.
#ifndef TESTS_UNIT_CHECK_WIRE_CALLS_H
#define TESTS_UNIT_CHECK_WIRE_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

int verbs_connect(int fd, const struct sockaddr *to, socklen_t len);
int verbs_accept(int fd);
ssize_t verbs_send(int fd, const void *bytes, size_t len);
ssize_t verbs_sendmsg(int fd, const void *bytes, size_t len);
ssize_t verbs_recv(int fd, void *bytes, size_t len, int flags);
int verbs_shutdown(int fd);
int verbs_close(int fd);

#endif
