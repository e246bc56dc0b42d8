// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One direction of the virtual wire: an ordered octet pipe with a bounded buffer, as TCP gives it,
// and the faults of a seed: one octet changed, FIN or RST at an octet. Where the stream goes through TLS, its octets come in
// records, of which each opens once it is whole, or never: if an octet of it was changed, or the stream ended within it.
#ifndef SIM_PIPE_H
#define SIM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pipe {
	uint8_t *buf;
	size_t cap, head, len;
	uint64_t written, read;
	bool fin; /* behind the last octet */
	bool rst; /* the connection is gone, octets in the buffer too */
	uint64_t flip_at; /* position of the octet to change; UINT64_MAX: none */
	uint8_t flip_with;
	uint64_t cut_at; /* position where the connection ends */
	bool cut_rst;
	bool flipped, cut;
	/* Octets of a record at most; 0: there are no records. */
	size_t record_max;
	uint64_t record, record_end; /* the one that is being written */
	uint64_t opened; /* position up to which the reader may have octets */
	bool spoiled; /* a record was changed */
};

void pipe_init(struct pipe *pipe, size_t cap);
/* Makes room for cap octets, if there is less. */
void pipe_widen(struct pipe *pipe, size_t cap);
void pipe_fini(struct pipe *pipe);
/* Returns the octets taken; 0 when full. Octets behind a cut are taken and lost. */
size_t pipe_write(struct pipe *pipe, const void *data, size_t len);
size_t pipe_read(struct pipe *pipe, void *data, size_t len);
/* The octets that have come are lost. True when there were any. */
bool pipe_drop(struct pipe *pipe);
/* True when the reader has all that will ever open, and that is not the end which the writer made (close_notify). */
bool pipe_is_torn(const struct pipe *pipe);

#endif
