// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Encodes and decodes the frames.
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

/* Compared and written without their terminating zero. */
static const char mpa_key[] = "MPA ID Req Frame";
static const char request_key[] = "aw RDMA CM asks?";
static const char reply_key[] = "aw RDMA CM place";

enum aw_opening aw_rendezvous_opening(const uint8_t bytes[AW_RENDEZVOUS_KEY_LEN])
{
	if (memcmp(bytes, mpa_key, AW_RENDEZVOUS_KEY_LEN) == 0)
		return AW_OPENING_MPA;
	if (memcmp(bytes, request_key, AW_RENDEZVOUS_KEY_LEN) == 0)
		return AW_OPENING_REQUEST;
	return AW_OPENING_OTHER;
}

void aw_rendezvous_request_put(uint8_t bytes[AW_RENDEZVOUS_REQUEST_LEN])
{
	memset(bytes, 0, AW_RENDEZVOUS_REQUEST_LEN);
	memcpy(bytes, request_key, AW_RENDEZVOUS_KEY_LEN);
	bytes[VERSION_AT] = VERSION;
}

bool aw_rendezvous_request_is_known(const uint8_t bytes[AW_RENDEZVOUS_REQUEST_LEN])
{
	return bytes[VERSION_AT] == VERSION;
}

void aw_rendezvous_reply_put(uint8_t bytes[AW_RENDEZVOUS_REPLY_LEN], const struct aw_place *place)
{
	memcpy(bytes, reply_key, AW_RENDEZVOUS_KEY_LEN);
	bytes[VERSION_AT] = VERSION;
	bytes[STATUS_AT] = (uint8_t)place->status;
	bytes[PORT_AT] = (uint8_t)(place->port >> 8);
	bytes[PORT_AT + 1] = (uint8_t)place->port;
	memcpy(bytes + TICKET_AT, place->ticket, AW_RENDEZVOUS_TICKET_LEN);
}

/* An unknown status counts as a refusal; a place without a port is invalid. */
bool aw_rendezvous_reply_get(const uint8_t *bytes, size_t len, struct aw_place *place)
{
	uint8_t status;
	uint16_t port;

	if (len < AW_RENDEZVOUS_REPLY_LEN || memcmp(bytes, reply_key, AW_RENDEZVOUS_KEY_LEN) != 0 ||
	    bytes[VERSION_AT] != VERSION)
		return false;
	status = bytes[STATUS_AT];
	port = (uint16_t)(bytes[PORT_AT] << 8 | bytes[PORT_AT + 1]);
	if (status == AW_PLACE_READY && port == 0)
		return false;
	place->status = status > AW_PLACE_VERSION ? AW_PLACE_NONE : (enum aw_place_status)status;
	place->port = port;
	memcpy(place->ticket, bytes + TICKET_AT, AW_RENDEZVOUS_TICKET_LEN);
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

void aw_rendezvous_reject_put(uint8_t bytes[AW_RENDEZVOUS_REJECT_LEN], const struct aw_place *place)
{
	memset(bytes, 0, AW_RENDEZVOUS_MPA_HEADER_LEN);
	memcpy(bytes, MPA_REPLY, AW_RENDEZVOUS_KEY_LEN);
	bytes[MPA_FLAGS_AT] = MPA_REJECT;
	bytes[MPA_REVISION_AT] = 1;
	bytes[MPA_LENGTH_AT + 1] = AW_RENDEZVOUS_REPLY_LEN;
	aw_rendezvous_reply_put(bytes + AW_RENDEZVOUS_MPA_HEADER_LEN, place);
}
