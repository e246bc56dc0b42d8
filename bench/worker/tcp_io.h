// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shared by the ways of moving many messages over TCP: batches and the end of a phase.
#ifndef BENCH_TCP_IO_H
#define BENCH_TCP_IO_H

#include "worker/pace.h"
#include "worker/tcp.h"

#define TCP_BATCH_MAX 128

/* Messages that follow each other, all out of one buffer of one size. */
struct tcp_batch {
	uint8_t *buf;
	size_t size;
};

/* Connections a thread has. */
static inline uint64_t tcp_lane_streams(const struct session *session)
{
	return tcp.count / session->args.threads;
}

/* The buffer of a receiver: the message's size, but 64 KiB to 1 MiB. */
size_t tcp_receive_octets(const struct args *args);

/* Sends some of the bytes that are left of a batch, in one call. */
size_t tcp_send_some(int fd, const struct tcp_batch *batch, size_t left, int flags);

/* Returns whether these bytes, the newest of so many, end with the last message of the phase. */
bool tcp_ends(const struct args *args, uint64_t octets, const uint8_t *buf, size_t got);

#endif
