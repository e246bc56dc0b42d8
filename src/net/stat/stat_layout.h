// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The statistics table of a process as it lies in its memfd: a head, then rows of one size,
// then the ring of a capture (net/stat/capture_layout.h), which is a hole while nobody captures. The
// process alone writes the table (net/stat/stat.h), word by word, without a lock. 'anywarp stat' reads
// it (net/stat/stat_read.h) at any time, so that a row may be half of an object that is gone and half
// of its successor.
#ifndef NET_STAT_LAYOUT_H
#define NET_STAT_LAYOUT_H

#include "core/count.h"
#include "net/stat/capture_layout.h"

#include <stdint.h>

#define AW_STAT_NAME "anywarp-stat"
#define AW_STAT_MAGIC UINT64_C(0x5441545357594e41)
#define AW_STAT_LAYOUT 8u /* a table with another layout is of another version and is not read */
/* Devices, QPs, CQs and listeners together. Objects beyond that have no row. */
#define AW_STAT_ROWS (1u << 18)
#define AW_STAT_HEAD_LEN 65536u /* the largest pages that Linux has; mostly a hole */
#define AW_STAT_ROW_LEN 256u
#define AW_STAT_NAME_LEN 128u
#define AW_STAT_RING_AT (AW_STAT_HEAD_LEN + (uint64_t)AW_STAT_ROWS * AW_STAT_ROW_LEN)
#define AW_STAT_FILE_LEN (AW_STAT_RING_AT + AW_CAPTURE_LEN)

enum aw_stat_kind {
	AW_STAT_NONE, /* the row is free */
	AW_STAT_DEVICE,
	AW_STAT_QP,
	AW_STAT_CQ,
	AW_STAT_LISTENER,
};

enum aw_stat_path {
	AW_STAT_PATH_NONE, /* there is no stream */
	AW_STAT_PATH_TCP,
	AW_STAT_PATH_MEMORY,
	AW_STAT_PATH_UDP,
	AW_STAT_PATH_TLS,
	AW_STAT_PATH_TLS_KERNEL, /* the kernel makes and opens the records */
	AW_STAT_PATH_TLS_BOTH, /* it does in one direction */
	AW_STAT_PATH_TLS_MEMORY, /* memory between ends that TLS has proven to each other */
};

/* The causes for which a QP waits. */
enum aw_stat_wait {
	AW_STAT_WAITS_RECEIVE = 1, /* a message has come that finds no receive */
	AW_STAT_WAITS_ROOM = 2, /* the peer has no room for what is to be sent */
	AW_STAT_WAITS_MEMORY = 4, /* no memory for a buffer is to be had */
};

struct aw_stat_head {
	uint64_t magic;
	uint32_t layout;
	uint32_t end; /* no row from here on was ever used */
	uint32_t rowless; /* objects that got no row */
	uint32_t
		totals; /* the mark of the file that rows are added to when they go (totals_layout.h); 0: none */
	/* events of all QPs since the table was made, those that are destroyed among them */
	uint64_t crc_errors;
	uint64_t terminates_sent, terminates_received;
	struct aw_capture_request capture; /* written by a capturer */
};

struct aw_stat_device {
	uint32_t kind;
	uint32_t number;
	uint32_t roce; /* 1: the persona is roce */
	uint32_t pds, mrs;
	uint32_t spare;
	uint64_t mr_bytes;
};

/*
 * The present of a QP, in one word. state is enum aw_qp_state, of a UD QP enum aw_ud_state; waits is bits of enum
 * aw_stat_wait.
 */
#define AW_STAT_QP_NOW(state, waits) ((uint32_t)(state) << 8 | (uint32_t)(waits))
#define AW_STAT_QP_STATE(now) ((now) >> 8)
#define AW_STAT_QP_WAITS(now) ((now)&0xff)

/* The WRs in a QP's queues, in one word. */
#define AW_STAT_QP_WRS(sends, recvs) ((uint64_t)(sends) << 32 | (uint32_t)(recvs))
#define AW_STAT_QP_SENDS(wrs) ((wrs) >> 32)
#define AW_STAT_QP_RECVS(wrs) ((wrs)&UINT32_MAX)

/* The type of a QP. */
enum aw_stat_type {
	AW_STAT_RC,
	AW_STAT_UD,
	AW_STAT_UC,
};

struct aw_stat_qp {
	uint32_t kind;
	uint32_t number; /* of the QP */
	uint32_t now; /* AW_STAT_QP_NOW() */
	uint32_t error, peer_error; /* enum aw_error */
	int32_t fd; /* of the stream's socket; -1: none */
	uint16_t peer_family, peer_port; /* AF_INET, AF_INET6 or 0; host byte order */
	uint32_t streams; /* begun since the QP was made */
	uint64_t peer[2]; /* the address's bytes; of IPv4, the first 4 */
	struct aw_qp_count count;
	uint64_t wrs; /* AW_STAT_QP_WRS() */
	uint32_t send_cq, recv_cq; /* their numbers */
	uint32_t crc_errors, terminates_sent, terminates_received;
	uint16_t type; /* enum aw_stat_type */
	uint16_t path; /* enum aw_stat_path */
	/* the peer's name, as TLS has proven it, cut to what fits; zeroes behind it; all zero: none */
	uint64_t identity[AW_STAT_NAME_LEN / 8];
};

struct aw_stat_cq {
	uint32_t kind;
	uint32_t number;
	uint32_t capacity;
	uint32_t ready; /* CQEs that the program has not polled */
	uint32_t channel; /* 1: it has a completion channel */
	uint32_t overflowed;
	uint64_t cqes; /* since the CQ was made, but for those of direct */
	uint64_t direct; /* that went to the poll which served their QP */
};

struct aw_stat_listener {
	uint32_t kind;
	uint32_t number;
	int32_t fd;
	uint16_t family, port; /* as in struct aw_stat_qp */
	uint64_t address[2];
	uint32_t half_open; /* connections that have sent no whole Request */
	uint32_t spare;
	uint64_t requests, failed; /* connections that became a Request, and that did not */
};

union aw_stat_row {
	struct {
		uint32_t
			kind; /* written last when the row is taken, and first when it is given back */
		uint32_t number;
	} any;
	struct aw_stat_device device;
	struct aw_stat_qp qp;
	struct aw_stat_cq cq;
	struct aw_stat_listener listener;
	uint64_t words[AW_STAT_ROW_LEN / 8];
};

/* A program of 32 bits has the same layout. */
_Static_assert(sizeof(struct aw_stat_head) == 64, "the head's layout");
_Static_assert(sizeof(struct aw_stat_device) == 32, "a row's layout");
_Static_assert(sizeof(struct aw_stat_qp) == AW_STAT_ROW_LEN, "likewise");
_Static_assert(sizeof(struct aw_stat_cq) == 40, "likewise");
_Static_assert(sizeof(struct aw_stat_listener) == 56, "likewise");
_Static_assert(sizeof(union aw_stat_row) == AW_STAT_ROW_LEN, "rows have one size");

#endif
