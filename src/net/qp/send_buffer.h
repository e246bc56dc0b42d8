// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How much TCP's send buffer of a stream may hold. TCP lets it grow to megabytes, so that a long path is never empty. Where
// the path is short the buffer only fills with bytes that leave the caches before the peer copies them: on such a path it is
// bounded by what the caches hold.
#ifndef NET_SEND_BUFFER_H
#define NET_SEND_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

/* Of a stream; zero before. The lock of its QP guards it. */
struct aw_send_buffer {
	bool one_host; /* bounded for the stream's life */
	bool bounded; /* now */
	bool is_tcps; /* the kernel could not take a bound back, so there is none */
};

/* Sets the first bound on a socket that is connected. segment_size: TCP's. */
void aw_send_buffer_ready(int fd, uint32_t segment_size);

/* Behind aw_send_buffer_ready, of a socket with that segment size. */
void aw_send_buffer_begin(struct aw_send_buffer *buffer, uint32_t segment_size);

/* Looks at the round trip times that TCP has measured. Called now and then while the stream sends. */
void aw_send_buffer_look(struct aw_send_buffer *buffer, int fd);

/* The decision. min_rtt_us: the least of the last minutes; rtt_us: TCP's mean of the last ones. */
bool aw_send_buffer_is_bounded(uint32_t min_rtt_us, uint32_t rtt_us);

#endif
