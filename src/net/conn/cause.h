// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a start-up fails, in words for the user who can mend it.
#ifndef NET_CONN_CAUSE_H
#define NET_CONN_CAUSE_H

#include "net/conn/conn_machine.h"

#define AW_CONN_CAUSE_MAX 256 /* bytes of a cause's text */

/* Writes what is wrong with the peer's frame, and where the user can mend it how. */
void aw_conn_print_cause(const struct aw_conn *conn, enum aw_setup setup,
			 const struct mpa_frame *frame, char cause[AW_CONN_CAUSE_MAX])
	AW_REQUIRES(conn->lock);

/* For a peer whose first bytes are no MPA frame. stranger: it has connected, and may be anybody. */
const char *aw_conn_strange_cause(const struct aw_conn *conn, bool stranger)
	AW_REQUIRES(conn->lock);

#endif
