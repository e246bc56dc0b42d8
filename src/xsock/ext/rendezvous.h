// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What two ends of a TCP connection say there to meet by rdma_cm, where one of their librdmacm has no
// anywarp/cm.h; bytes to values and back. docs/extensions.md has the words. Numbers are in network order.
//
//     question   bytes 0-15 its key, byte 16 the version, 1, bytes 17-19 zero
//     answer     bytes 0-15 its key, byte 16 the version, 1, byte 17 a status, bytes 18-19 a port,
//                bytes 20-35 a random ticket
//
// An answer is also the private data of the MPA Reply that rejects, where the question was an MPA Request.
#ifndef XSOCK_EXT_RENDEZVOUS_H
#define XSOCK_EXT_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_RENDEZVOUS_KEY_LEN 16
#define AW_RENDEZVOUS_QUESTION_LEN 20
#define AW_RENDEZVOUS_ANSWER_LEN 36
#define AW_RENDEZVOUS_TICKET_LEN 16

/* RFC 5044 7.1.1: what the frames of an MPA start-up begin with. */
#define AW_RENDEZVOUS_MPA_HEADER_LEN 20
#define AW_RENDEZVOUS_MPA_PRIVATE_MAX 512
#define AW_RENDEZVOUS_REJECT_LEN (AW_RENDEZVOUS_MPA_HEADER_LEN + AW_RENDEZVOUS_ANSWER_LEN)

/* Who begins an extended connection says one of these first. */
enum aw_opening {
	AW_OPENING_MPA, /* an MPA Request */
	AW_OPENING_QUESTION,
	AW_OPENING_OTHER,
};

enum aw_place_status {
	AW_PLACE_READY,
	AW_PLACE_NO_DEVICE, /* none has the connection's address */
	AW_PLACE_NONE, /* for any other reason */
	AW_PLACE_VERSION, /* the question's is not known */
};

struct aw_place {
	enum aw_place_status status;
	uint16_t port; /* of rdma_cm, at the address of TCP's end */
	uint8_t ticket[AW_RENDEZVOUS_TICKET_LEN]; /* who has it is the one who was told */
};

enum aw_opening aw_rendezvous_opening(const uint8_t octets[AW_RENDEZVOUS_KEY_LEN]);

void aw_rendezvous_question_put(uint8_t octets[AW_RENDEZVOUS_QUESTION_LEN]);
/* Whether its version is known. */
bool aw_rendezvous_question_is_known(const uint8_t octets[AW_RENDEZVOUS_QUESTION_LEN]);

void aw_rendezvous_answer_put(uint8_t octets[AW_RENDEZVOUS_ANSWER_LEN],
			      const struct aw_place *place);
/* False: it is no answer. */
bool aw_rendezvous_answer_get(const uint8_t *octets, size_t len, struct aw_place *place);

/* How many bytes follow the header of an MPA Request; false: more than may. */
bool aw_rendezvous_mpa_rest(const uint8_t header[AW_RENDEZVOUS_MPA_HEADER_LEN], size_t *rest);
/* The rejecting Reply, of revision 1, which every initiator reads. */
void aw_rendezvous_reject_put(uint8_t octets[AW_RENDEZVOUS_REJECT_LEN],
			      const struct aw_place *place);

#endif
