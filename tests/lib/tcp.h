// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loopback TCP for tests: a raw peer that speaks whatever octets it likes. Every wait ends in a
// failed assertion after TCP_WAIT_S, so that a test cannot hang.
#ifndef TESTS_LIB_TCP_H
#define TESTS_LIB_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define TCP_WAIT_S 20

/* A bound socket on 127.0.0.1 or ::1, any port; its address in *addr. */
int tcp_bind(int family, struct sockaddr_storage *addr);
/* The same, listening. */
int tcp_listen(int backlog, struct sockaddr_storage *addr);
int tcp_accept(int listener);
/* A blocking socket connected to addr. */
int tcp_connect(const struct sockaddr_storage *addr);
/* The two ends of a connection: the one that has connected, and the one that has accepted. */
void tcp_pair(int fds[2]);
/* A non-blocking, close-on-exec socket, as net/ wants them. */
int tcp_socket(int family);
socklen_t tcp_addr_len(const struct sockaddr_storage *addr);
void tcp_unblock(int fd);

void tcp_send(int fd, const void *octets, size_t len);
/* One octet a segment. */
void tcp_send_slowly(int fd, const void *octets, size_t len);
/* Exactly len octets. */
void tcp_recv(int fd, void *octets, size_t len);
/* The peer's FIN or reset comes next, no octet before it. */
void tcp_assert_over(int fd);
/* A reset instead of a FIN. */
void tcp_reset(int fd);

#endif
