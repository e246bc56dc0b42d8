// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The frames by which two ends of a TCP connection agree to meet by rdma_cm, where one of their
// librdmacm has no anywarp/cm.h. docs/rsockets.md describes them. Numbers are in network byte
// order.
//
//     request    bytes 0-15 its key, byte 16 the version, 1, bytes 17-19 zero
//     reply      bytes 0-15 its key, byte 16 the version, 1, byte 17 a status, bytes 18-19 a port,
//                bytes 20-35 a random ticket
//
// A reply is also the private data of the MPA Reply that rejects, where an MPA Request was sent.
// Encoders and decoders only. Called by ext_connect.c.
#ifndef XSOCK_EXT_RENDEZVOUS_H
#define XSOCK_EXT_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_RENDEZVOUS_KEY_LEN 16
#define AW_RENDEZVOUS_REQUEST_LEN 20
#define AW_RENDEZVOUS_REPLY_LEN 36
#define AW_RENDEZVOUS_TICKET_LEN 16

/* RFC 5044 7.1.1: the header of MPA's Request and Reply frames. */
#define AW_RENDEZVOUS_MPA_HEADER_LEN 20
#define AW_RENDEZVOUS_MPA_PRIVATE_MAX 512
#define AW_RENDEZVOUS_REJECT_LEN (AW_RENDEZVOUS_MPA_HEADER_LEN + AW_RENDEZVOUS_REPLY_LEN)

/* The first frame of the active end of an extended connection. */
enum aw_opening {
	AW_OPENING_MPA, /* an MPA Request */
	AW_OPENING_REQUEST,
	AW_OPENING_OTHER,
};

enum aw_place_status {
	AW_PLACE_READY,
	AW_PLACE_NO_DEVICE, /* no device has the connection's address */
	AW_PLACE_NONE, /* there is no place, for another reason */
	AW_PLACE_VERSION, /* the request's version is not known */
};

struct aw_place {
	enum aw_place_status status;
	uint16_t port; /* of rdma_cm, at the address of the TCP socket */
	/* proves that the peer is the one that was sent the reply */
	uint8_t ticket[AW_RENDEZVOUS_TICKET_LEN];
};

enum aw_opening aw_rendezvous_opening(const uint8_t bytes[AW_RENDEZVOUS_KEY_LEN]);

void aw_rendezvous_request_put(uint8_t bytes[AW_RENDEZVOUS_REQUEST_LEN]);
/* Returns whether the request's version is known. */
bool aw_rendezvous_request_is_known(const uint8_t bytes[AW_RENDEZVOUS_REQUEST_LEN]);

void aw_rendezvous_reply_put(uint8_t bytes[AW_RENDEZVOUS_REPLY_LEN], const struct aw_place *place);
/* False: these bytes are no reply. */
bool aw_rendezvous_reply_get(const uint8_t *bytes, size_t len, struct aw_place *place);

/* Stores how many bytes follow the header of an MPA Request. False: more than RFC 5044 allows. */
bool aw_rendezvous_mpa_rest(const uint8_t header[AW_RENDEZVOUS_MPA_HEADER_LEN], size_t *rest);
/* Writes a rejecting MPA Reply of revision 1, which every initiator reads. */
void aw_rendezvous_reject_put(uint8_t bytes[AW_RENDEZVOUS_REJECT_LEN],
			      const struct aw_place *place);

#endif
