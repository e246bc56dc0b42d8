// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bytes of rsockets' stream protocol (version 1) in its iWARP form: the private data of
// connection set-up ("hello"), the messages of 4 bytes that go by Send, and the entries of the SGL
// and the I/O map that go by RDMA Write. Messages and entries are in the receiver's byte order,
// private data in network byte order. Encoders and decoders without state; they check only the
// format. Called by this directory and framed/.
#ifndef XSOCK_STREAM_MSG_H
#define XSOCK_STREAM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_XS_HELLO_LEN 40
#define AW_XS_MSG_LEN 4
#define AW_XS_SGE_LEN 16
#define AW_XS_IOMAP_LEN 24

#define AW_XS_MSG_DATA_MAX 0x1fffffffu /* 29 bits */
/* between anywarp's ends: this credit follows an entry of the SGL */
#define AW_XS_CREDIT_SGE (1u << 28)
#define AW_XS_IOMAPS_MAX (127u << 8) /* entries that the private data can express */

enum aw_xs_op {
	AW_XS_OP_DATA = 0, /* how many bytes were written into the receive buffer */
	AW_XS_OP_CREDIT = 4, /* the last sequence number granted; the SGL may have changed */
	/* anywarp's: how many bytes the urgent one is ahead, itself included */
	AW_XS_OP_URGENT = 5,
	AW_XS_OP_IOMAP = 6, /* the index of an entry of the I/O map that was written */
	AW_XS_OP_CTRL = 7, /* enum aw_xs_ctrl */
};

enum aw_xs_ctrl {
	AW_XS_CTRL_DISCONNECT = 0,
	AW_XS_CTRL_KEEPALIVE = 1,
	AW_XS_CTRL_SHUTDOWN = 2,
};

/* The extensions that two anywarp ends can agree on. rsockets reserves the bytes and sends zero. */
enum aw_xs_ext {
	AW_XS_EXT_URGENT = 1,
	/*
	 * The connection is a record (record/record.h), with urgent bytes: no credits, no buffers.
	 * Bit 2 stays unused: it stood for a record whose end takes TCP's urgent byte out of the
	 * middle of an FPDU.
	 */
	AW_XS_EXT_RECORD = 4,
	/* Within TLS, beside AW_XS_EXT_RECORD: each FPDU is one TLS record (record/frame.h). */
	AW_XS_EXT_RECORD_TLS = 8,
};

struct aw_xs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t len; /* in bytes; of a hello's SGL: in entries */
};

struct aw_xs_iomap {
	uint64_t offset;
	struct aw_xs_sge sge;
};

struct aw_xs_hello {
	bool net; /* the sender's byte order is big-endian */
	uint16_t credits;
	uint16_t iomaps; /* entries of the I/O map, behind the SGL */
	bool anywarp;
	uint8_t ext; /* enum aw_xs_ext */
	struct aw_xs_sge sgl;
	struct aw_xs_sge data; /* the first receive buffer */
};

/* Returns whether this machine is big-endian. */
bool aw_xs_host_is_net(void);

void aw_xs_hello_put(uint8_t bytes[AW_XS_HELLO_LEN], const struct aw_xs_hello *hello);

/* False: the bytes are no hello of version 1. */
__attribute__((warn_unused_result)) bool aw_xs_hello_get(const uint8_t *bytes, size_t len,
							 struct aw_xs_hello *hello);

/* Returns the largest number of I/O map entries, at most n, that a hello can express. */
uint16_t aw_xs_iomaps_round(uint16_t n);

/* net: big-endian; else little-endian. */
void aw_xs_msg_put(uint8_t bytes[AW_XS_MSG_LEN], bool net, enum aw_xs_op op, uint32_t data);
void aw_xs_msg_get(const uint8_t bytes[AW_XS_MSG_LEN], bool net, uint32_t *op, uint32_t *data);
void aw_xs_sge_put(uint8_t bytes[AW_XS_SGE_LEN], bool net, const struct aw_xs_sge *sge);
void aw_xs_sge_get(const uint8_t bytes[AW_XS_SGE_LEN], bool net, struct aw_xs_sge *sge);
void aw_xs_iomap_put(uint8_t bytes[AW_XS_IOMAP_LEN], bool net, const struct aw_xs_iomap *map);
void aw_xs_iomap_get(const uint8_t bytes[AW_XS_IOMAP_LEN], bool net, struct aw_xs_iomap *map);

#endif
