// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A FRAMED connection whose server has yet to answer: its Reply is due. The program writes meanwhile, as it may write to any
// server that has not accepted yet. The functions take the half's lock that they need.
#ifndef XSOCK_FRAMED_ANSWER_H
#define XSOCK_FRAMED_ANSWER_H

#include "xsock/framed/slot.h"

/* May be wrong while another thread takes the Reply. */
static inline bool aw_answer_is_due(const struct aw_slot *slot)
{
	return __builtin_expect(slot->record.rx.reply_due, 0);
}

/* Takes the Reply if it is there: left unread it would make a close reset the connection. */
void aw_answer_look(struct aw_slot *slot, int fd);
/*
 * The time for the Reply of fd's server is over. Unless the Reply is there, the user is told, the connection is shut down, and
 * the program's next call fails with EPROTO.
 */
void aw_answer_expire(struct aw_slot *slot, int fd);
/*
 * Called before the last fd of the connection is closed. Returns whether the Reply has not come: the connection has to be bridged
 * then, because to a Reply that came to the closed socket the kernel would send a reset.
 */
bool aw_answer_is_owed(struct aw_slot *slot, int fd);
/* The same where there can be no bridge: ends the stream, since a server of ours sends no Reply behind that. */
void aw_answer_close(struct aw_slot *slot, int fd);
/*
 * The caller has the rx half, and a receive has returned n while the Reply was due. Returns whether the server has done something
 * else; without the half, aw_answer_tell tells the user.
 */
bool aw_answer_is_wrong(struct aw_slot *slot, ssize_t n);
void aw_answer_tell(int fd, ssize_t n);
/* The connection has ended in a write while the Reply was due: tells the user, unless the Reply is there. */
void aw_answer_note_end(struct aw_slot *slot, int fd);

#endif
