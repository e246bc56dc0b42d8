// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bytes of rsockets' stream protocol (version 1) in its iWARP form: the private data of connection
// set-up, the messages of 4 bytes that go by Send, and the entries of the SGL and the I/O map
// that go by RDMA Write. Messages and entries are in the receiver's byte order, private data in network
// order. No state; nothing here is believed of a peer but what fits the format.
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
#define AW_XS_CREDIT_SGE \
	(1u << 28) /* between anywarp's ends: this credit is behind an entry of the SGL */
#define AW_XS_IOMAPS_MAX (127u << 8) /* entries that the private data can tell of */

enum aw_xs_op {
	AW_XS_OP_DATA = 0, /* bytes were written into the receive buffer: how many */
	AW_XS_OP_CREDIT = 4, /* the SGL may have changed; the last sequence number granted */
	AW_XS_OP_URGENT =
		5, /* anywarp's: bytes from the next one on to the urgent one, it included */
	AW_XS_OP_IOMAP = 6, /* an entry of the I/O map was written: its index */
	AW_XS_OP_CTRL = 7, /* enum aw_xs_ctrl */
};

enum aw_xs_ctrl {
	AW_XS_CTRL_DISCONNECT = 0,
	AW_XS_CTRL_KEEPALIVE = 1,
	AW_XS_CTRL_SHUTDOWN = 2,
};

/* What anywarp's two ends can agree on; the bytes are reserved in rsockets, and zero there. */
enum aw_xs_ext {
	AW_XS_EXT_URGENT = 1,
	/*
	 * The stream is a record's (record/record.h), with urgent bytes: no credits, no buffers. Bit 2 stays free: it stood
	 * for a record whose end takes TCP's urgent byte out of the middle of an FPDU.
	 */
	AW_XS_EXT_RECORD = 4,
};

struct aw_xs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t len; /* bytes; of a hello's SGL: entries */
};

struct aw_xs_iomap {
	uint64_t offset;
	struct aw_xs_sge sge;
};

struct aw_xs_hello {
	bool net; /* the sender's byte order is the network's */
	uint16_t credits;
	uint16_t iomaps; /* entries behind the SGL */
	bool anywarp;
	uint8_t ext; /* enum aw_xs_ext */
	struct aw_xs_sge sgl;
	struct aw_xs_sge data; /* the first receive buffer */
};

/* Is this machine's byte order the network's? */
bool aw_xs_host_is_net(void);

void aw_xs_hello_put(uint8_t octets[AW_XS_HELLO_LEN], const struct aw_xs_hello *hello);

/* False where the bytes are no hello of version 1. */
__attribute__((warn_unused_result)) bool aw_xs_hello_get(const uint8_t *octets, size_t len,
							 struct aw_xs_hello *hello);

/* The number of I/O map entries, not above n, that a hello can tell of. */
uint16_t aw_xs_iomaps_round(uint16_t n);

/* net: in network byte order, else in the reverse. */
void aw_xs_msg_put(uint8_t octets[AW_XS_MSG_LEN], bool net, enum aw_xs_op op, uint32_t data);
void aw_xs_msg_get(const uint8_t octets[AW_XS_MSG_LEN], bool net, uint32_t *op, uint32_t *data);
void aw_xs_sge_put(uint8_t octets[AW_XS_SGE_LEN], bool net, const struct aw_xs_sge *sge);
void aw_xs_sge_get(const uint8_t octets[AW_XS_SGE_LEN], bool net, struct aw_xs_sge *sge);
void aw_xs_iomap_put(uint8_t octets[AW_XS_IOMAP_LEN], bool net, const struct aw_xs_iomap *map);
void aw_xs_iomap_get(const uint8_t octets[AW_XS_IOMAP_LEN], bool net, struct aw_xs_iomap *map);

#endif
