// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copies the FPDUs of this process's streams into a ring for 'anywarp capture', while one asks for them
// (net/stat/capture_layout.h). A thread that moves bytes writes the records, so that a process without a progress thread is
// captured as well. It never waits for the capturer: a record that finds no room is dropped and counted.
//
// The process trusts the capturer in nothing but the distance between two positions, and ends a
// run whose beat stands still for 10 s; capturers exclude each other by flock(2). A record begins
// and ends with an FPDU, so that a dissector finds the stream again behind a gap. The command
// makes up IP and TCP headers whose sequence numbers are stream positions, TCP's handshake, and
// MPA's Request and Reply. Bytes that wait for a receive are given to the core more than once;
// `seen` tells which ones were captured.
#ifndef NET_CAPTURE_H
#define NET_CAPTURE_H

#include "net/qp/uqp.h"

/* True while somebody captures: all that the data path pays for otherwise. A QP without a row is not captured. */
static inline bool aw_capture_is_asked(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_capture_request *request;

	if (!qp->stat)
		return false;
	request = __atomic_load_n(&aw_stat_capture, __ATOMIC_RELAXED);
	return __atomic_load_n(&request->run, __ATOMIC_RELAXED) != 0;
}

/* Called with new FPDUs, before any of them is sent; pos: stream position of the first byte. */
void aw_capture_out(struct aw_uqp *qp, uint64_t pos, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock);

/*
 * Called with what the core is about to be given. Bytes that were captured before, and the beginning of an FPDU at the
 * end, are left out.
 */
void aw_capture_in(struct aw_uqp *qp, const uint8_t *buf, size_t len) AW_REQUIRES(qp->lock);

/* The stream is over. */
void aw_capture_stream_gone(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

void aw_capture_fork_prepare(void);
void aw_capture_fork_parent(void);
void aw_capture_fork_child(void);

#endif
