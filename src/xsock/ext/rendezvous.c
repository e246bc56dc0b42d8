// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The frames, in bytes.
#include "xsock/ext/rendezvous.h"

#include <string.h>

#define VERSION 1
#define VERSION_AT 16
#define STATUS_AT 17
#define PORT_AT 18
#define TICKET_AT 20

#define MPA_REPLY "MPA ID Rep Frame"
#define MPA_FLAGS_AT 16
#define MPA_REJECT 0x20
#define MPA_REVISION_AT 17
#define MPA_LENGTH_AT 18

/* Without the zero behind them. */
static const char mpa_key[] = "MPA ID Req Frame";
static const char probe_key[] = "aw RDMA CM asks?";
static const char answer_key[] = "aw RDMA CM place";

enum aw_opening aw_rendezvous_opening(const uint8_t octets[AW_RENDEZVOUS_KEY_LEN])
{
	if (memcmp(octets, mpa_key, AW_RENDEZVOUS_KEY_LEN) == 0)
		return AW_OPENING_MPA;
	if (memcmp(octets, probe_key, AW_RENDEZVOUS_KEY_LEN) == 0)
		return AW_OPENING_QUESTION;
	return AW_OPENING_OTHER;
}

void aw_rendezvous_question_put(uint8_t octets[AW_RENDEZVOUS_QUESTION_LEN])
{
	memset(octets, 0, AW_RENDEZVOUS_QUESTION_LEN);
	memcpy(octets, probe_key, AW_RENDEZVOUS_KEY_LEN);
	octets[VERSION_AT] = VERSION;
}

bool aw_rendezvous_question_is_known(const uint8_t octets[AW_RENDEZVOUS_QUESTION_LEN])
{
	return octets[VERSION_AT] == VERSION;
}

void aw_rendezvous_answer_put(uint8_t octets[AW_RENDEZVOUS_ANSWER_LEN],
			      const struct aw_place *place)
{
	memcpy(octets, answer_key, AW_RENDEZVOUS_KEY_LEN);
	octets[VERSION_AT] = VERSION;
	octets[STATUS_AT] = (uint8_t)place->status;
	octets[PORT_AT] = (uint8_t)(place->port >> 8);
	octets[PORT_AT + 1] = (uint8_t)place->port;
	memcpy(octets + TICKET_AT, place->ticket, AW_RENDEZVOUS_TICKET_LEN);
}

/* A status that is not known is a refusal, too; a place without a port is none. */
bool aw_rendezvous_answer_get(const uint8_t *octets, size_t len, struct aw_place *place)
{
	uint8_t status;
	uint16_t port;

	if (len < AW_RENDEZVOUS_ANSWER_LEN ||
	    memcmp(octets, answer_key, AW_RENDEZVOUS_KEY_LEN) != 0 || octets[VERSION_AT] != VERSION)
		return false;
	status = octets[STATUS_AT];
	port = (uint16_t)(octets[PORT_AT] << 8 | octets[PORT_AT + 1]);
	if (status == AW_PLACE_READY && port == 0)
		return false;
	place->status = status > AW_PLACE_VERSION ? AW_PLACE_NONE : (enum aw_place_status)status;
	place->port = port;
	memcpy(place->ticket, octets + TICKET_AT, AW_RENDEZVOUS_TICKET_LEN);
	return true;
}

bool aw_rendezvous_mpa_rest(const uint8_t header[AW_RENDEZVOUS_MPA_HEADER_LEN], size_t *rest)
{
	size_t len = (size_t)header[MPA_LENGTH_AT] << 8 | header[MPA_LENGTH_AT + 1];

	if (len > AW_RENDEZVOUS_MPA_PRIVATE_MAX)
		return false;
	*rest = len;
	return true;
}

void aw_rendezvous_reject_put(uint8_t octets[AW_RENDEZVOUS_REJECT_LEN],
			      const struct aw_place *place)
{
	memset(octets, 0, AW_RENDEZVOUS_MPA_HEADER_LEN);
	memcpy(octets, MPA_REPLY, AW_RENDEZVOUS_KEY_LEN);
	octets[MPA_FLAGS_AT] = MPA_REJECT;
	octets[MPA_REVISION_AT] = 1;
	octets[MPA_LENGTH_AT + 1] = AW_RENDEZVOUS_ANSWER_LEN;
	aw_rendezvous_answer_put(octets + AW_RENDEZVOUS_MPA_HEADER_LEN, place);
}
