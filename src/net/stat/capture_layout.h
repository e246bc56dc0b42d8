// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory that a process and 'anywarp capture' share, in the memfd of the statistics table (net/stat/stat_layout.h): the request in
// the table's head, and behind the rows a ring of records. The process alone writes records, and the capturer alone its
// position and the request. Neither trusts the other.
#ifndef NET_CAPTURE_LAYOUT_H
#define NET_CAPTURE_LAYOUT_H

#include <stdint.h>

#define AW_CAPTURE_RING_LEN (UINT64_C(16) << 20) /* bytes of records */
#define AW_CAPTURE_HEAD_LEN 65536u /* as AW_STAT_HEAD_LEN */
#define AW_CAPTURE_LEN (AW_CAPTURE_HEAD_LEN + AW_CAPTURE_RING_LEN)
#define AW_CAPTURE_ALIGN 16u /* records begin at multiples of it */
/* A capturer that has not changed the beat for so long is dead: the process ends the run. */
#define AW_CAPTURE_SILENT_MS 10000
#define AW_CAPTURE_BEAT_MS 100

struct aw_capture_request {
	uint32_t run; /* a number that the capturer chose at random; 0: nobody captures */
	uint32_t beat; /* the capturer changes it as long as it lives */
	uint32_t error; /* the errno for which the process could not begin */
	uint32_t spare;
};

/* The head of the ring. Positions count bytes since the run began. */
struct aw_capture_ring {
	uint64_t head; /* process: records before it are whole */
	uint64_t dropped; /* process: records for which there was no room, and no memory to read */
	uint32_t run; /* process: the run that the ring is of; written last when a run begins */
	uint32_t spare[11];
	uint64_t tail; /* capturer: records before it are read */
};

enum aw_capture_kind {
	AW_CAPTURE_PAD, /* nothing follows before the ring's end */
	AW_CAPTURE_FPDUS,
};

enum aw_capture_flag {
	AW_CAPTURE_OUT = 1, /* the process sends these FPDUs; else it has received them */
	AW_CAPTURE_FIRST = 2, /* the first record of its stream in this run */
	AW_CAPTURE_INITIATOR = 4, /* the process began the connection */
	AW_CAPTURE_CRC = 8,
	AW_CAPTURE_MARKED_OUT = 16, /* there are markers in what the process sends */
	AW_CAPTURE_MARKED_IN = 32,
};

/* Whole FPDUs of one direction, which follow. */
struct aw_capture_record {
	uint32_t len; /* with the FPDUs, a multiple of AW_CAPTURE_ALIGN */
	uint16_t kind; /* enum aw_capture_kind; of AW_CAPTURE_PAD nothing else holds but len */
	uint16_t flags; /* enum aw_capture_flag */
	uint32_t qpn;
	uint32_t stream; /* another number for each stream of the process */
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint32_t pos; /* stream position, modulo 2^32, of the first byte */
	/* bytes of this direction, and of the other one, since the stream's first record, modulo 2^32 */
	uint32_t seq, ack;
	uint32_t bytes; /* of the FPDUs */
	uint8_t local[16], peer[16]; /* addresses; of IPv4, the first 4 bytes */
	uint16_t local_port, peer_port; /* host byte order */
	uint32_t family; /* AF_INET or AF_INET6 */
};

_Static_assert(sizeof(struct aw_capture_ring) == 72, "the same for programs of 32 bits");
_Static_assert(sizeof(struct aw_capture_record) == 5 * AW_CAPTURE_ALIGN, "likewise");

#endif
