// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP peers that are not RDMA programs, or break off: blocking sockets with a time-out.
#ifndef TESTS_RAW_H
#define TESTS_RAW_H

#include <stddef.h>
#include <stdint.h>

/* A listening socket on 127.0.0.1; *port in host order. */
int raw_listen(uint16_t *port);
int raw_accept(int listener);
int raw_connect(uint16_t port);

void raw_send(int fd, const void *octets, size_t len);

/* Reads exactly len octets. */
void raw_recv(int fd, void *octets, size_t len);

/* The peer ends the connection, having sent whatever. */
void raw_expect_end(int fd);

/* An MPA Request of revision 2 without private data: peer-to-peer, any RTR (RFC 6581 9). */
#define RAW_REQUEST_LEN 24
extern const uint8_t raw_request[RAW_REQUEST_LEN];

#endif
