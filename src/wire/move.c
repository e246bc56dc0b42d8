// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "wire/move.h"

#include <string.h>

#define NO_SEGMENT 0x00 /* neither tagged nor last, DDP version 0 */

size_t move_data_len(enum move_kind kind)
{
	switch (kind) {
	case MOVE_HELLO:
		return MOVE_HELLO_LEN;
	case MOVE_VERDICT:
		return MOVE_VERDICT_LEN;
	case MOVE_MSG_NONE:
	case MOVE_LAST:
		return 0;
	}
	return 0;
}

size_t move_put(const struct move_msg *msg, uint8_t *p)
{
	size_t len = move_data_len(msg->kind);

	p[0] = NO_SEGMENT;
	p[1] = (uint8_t)msg->kind;
	memcpy(p + MOVE_HDR_LEN, msg->data, len);
	return MOVE_HDR_LEN + len;
}

bool move_get(const uint8_t *ulpdu, size_t len, struct move_msg *msg)
{
	if (len < MOVE_HDR_LEN || ulpdu[0] != NO_SEGMENT || ulpdu[1] == MOVE_MSG_NONE ||
	    ulpdu[1] > MOVE_LAST || len != MOVE_HDR_LEN + move_data_len((enum move_kind)ulpdu[1]))
		return false;
	msg->kind = (enum move_kind)ulpdu[1];
	memcpy(msg->data, ulpdu + MOVE_HDR_LEN, len - MOVE_HDR_LEN);
	return true;
}
