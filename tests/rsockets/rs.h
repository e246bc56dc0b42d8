// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the tests of rsockets share: both ends of a connection within one process. Whatever a test waits
// for in vain ends it by SIGALRM.
#ifndef TESTS_RS_H
#define TESTS_RS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdbool.h>

#define RS_WAIT_S 60
#define RS_WAIT_MS 20000 /* far more than anything takes: a test that needs it has failed */

struct rs_ends {
	int listener, client, server;
};

/* -1 and this errno. */
#define rs_fails(call, error)                      \
	do {                                       \
		errno = 0;                         \
		assert_int_equal((int)(call), -1); \
		assert_int_equal(errno, error);    \
	} while (0)

/* setup of every test. */
int rs_guard(void **state);

/* 127.0.0.1 and a port in host order. */
struct sockaddr_in rs_address(uint16_t port);
uint16_t rs_port(int fd);

int rs_socket(void);
/* On 127.0.0.1 and any port. */
int rs_listener(int backlog);
/* A connected socket to the listener's address. */
int rs_client(int listener);

void rs_open(struct rs_ends *ends);
void rs_close(struct rs_ends *ends);

void rs_unblock(int fd);
void rs_set(int fd, int level, int option, int value);
int rs_get(int fd, int level, int option);

/* What rpoll says of one fd, which must be something within RS_WAIT_MS. */
short rs_poll_one(int fd, short events);

/* Until no thread but the caller runs: whoever was to sleep does. */
void rs_until_others_sleep(void);

void rs_send_all(int fd, const void *octets, size_t len);
void rs_recv_all(int fd, void *octets, size_t len);

/* Runs fn in a child; its exit status, 0 for one that returns. */
int rs_in_child(void (*fn)(void *), void *arg);

#endif
