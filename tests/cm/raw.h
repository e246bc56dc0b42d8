// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP peers that are not RDMA programs, or break off: blocking sockets with a time-out.
#ifndef TESTS_RAW_H
#define TESTS_RAW_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* A listening socket on 127.0.0.1; *port in host order. */
int raw_listen(uint16_t *port);
int raw_accept(int listener);
int raw_connect(uint16_t port);

void raw_send(int fd, const void *octets, size_t len);

/* Reads exactly len octets. */
void raw_recv(int fd, void *octets, size_t len);

/* One FPDU without markers, its pad and CRC32c made here. */
#define RAW_ULPDU_MAX 256
void raw_send_fpdu(int fd, const void *ulpdu, size_t len);

/* Reads one FPDU, whose CRC must be right; returns the ULPDU's length. */
size_t raw_recv_fpdu(int fd, uint8_t ulpdu[RAW_ULPDU_MAX]);

/* The peer ends the connection, having sent whatever. */
void raw_expect_end(int fd);

/* Ends it with a reset. */
void raw_reset(int fd);

/* Whether a connection waits to be accepted. */
int raw_pending(int listener);

/* Closes two connections at their Requests, answers the third's (revision 1) with reply. */
struct raw_server {
	pthread_t thread;
	int listener, fd;
	const void *reply;
	size_t reply_len;
};

void raw_server_start(struct raw_server *server, int listener, const void *reply, size_t len);
/* The third connection. */
int raw_server_join(struct raw_server *server);

/* An MPA Request of revision 2 without private data: peer-to-peer, any RTR (RFC 6581 9). */
#define RAW_REQUEST_LEN 24
#define RAW_PLAIN_LEN 20 /* of a frame of revision 1 */
extern const uint8_t raw_request[RAW_REQUEST_LEN];

/* The ULPDU of an RTR that is a Write: last, STag 1, nothing in it. */
#define RAW_RTR_WRITE_LEN 14
extern const uint8_t raw_rtr_write[RAW_RTR_WRITE_LEN];

#endif
