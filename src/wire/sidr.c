// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The header of service ID resolution, and private data behind it.
#include "wire/sidr.h"

#include "wire/gid.h"
#include "wire/octets.h"

#include <string.h>

enum {
	MAGIC = 0,
	VERSION = 4,
	KIND = 5,
	STATUS = 6,
	PD_LEN = 7,
	ID = 8,
	QPN = 16,
	QKEY = 20,
};

enum {
	MAGIC_VALUE = 0x61775349, /* "awSI" */
	VERSION_VALUE = 1,
};

static bool numbers_valid(const struct sidr_msg *msg)
{
	if (msg->kind == SIDR_REQUEST)
		return msg->status == 0 && msg->qpn == 0 && msg->qkey == 0;
	return msg->kind == SIDR_REPLY && msg->qpn <= QPN_MAX;
}

bool sidr_parse(const uint8_t *datagram, size_t len, struct sidr_msg *msg)
{
	if (len < SIDR_HDR_LEN || get_be32(datagram + MAGIC) != MAGIC_VALUE ||
	    datagram[VERSION] != VERSION_VALUE || len != SIDR_HDR_LEN + (size_t)datagram[PD_LEN])
		return false;
	const struct sidr_msg found = {
		.kind = (enum sidr_kind)datagram[KIND],
		.status = datagram[STATUS],
		.id = get_be64(datagram + ID),
		.qpn = get_be32(datagram + QPN),
		.qkey = get_be32(datagram + QKEY),
		.pd_len = datagram[PD_LEN],
		.pd = datagram + SIDR_HDR_LEN,
	};

	if (!numbers_valid(&found))
		return false;
	*msg = found;
	return true;
}

size_t sidr_build(const struct sidr_msg *msg, uint8_t *p)
{
	put_be32(p + MAGIC, MAGIC_VALUE);
	p[VERSION] = VERSION_VALUE;
	p[KIND] = (uint8_t)msg->kind;
	p[STATUS] = msg->status;
	p[PD_LEN] = msg->pd_len;
	put_be64(p + ID, msg->id);
	put_be32(p + QPN, msg->qpn);
	put_be32(p + QKEY, msg->qkey);
	if (msg->pd_len > 0)
		memcpy(p + SIDR_HDR_LEN, msg->pd, msg->pd_len);
	return SIDR_HDR_LEN + (size_t)msg->pd_len;
}
