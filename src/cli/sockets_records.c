// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rows of 'anywarp sockets --status' for records: connections on the program's own TCP socket,
// which no proxy process carries.
#include "cli/sockets.h"

#include "xsock/framed/census.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct listing {
	struct sheet *table;
	struct sheet_row begin; // with the fields that all rows of the process have
};

static const char *mode_name(enum aw_xs_mode mode)
{
	switch (mode) {
	case AW_XS_OFF:
		return "";
	case AW_XS_ON:
		return "on";
	case AW_XS_AUTO:
		return "auto";
	case AW_XS_RSOCKETS:
		return "rsockets";
	case AW_XS_TLS_PLAIN:
	case AW_XS_TLS_ANY:
		return AW_XS_TLS_PLAIN_WORD;
	}
	return "";
}

static void list_record(int fd, const struct aw_census_record *record, void *arg)
{
	const struct aw_sockdiag_conn *conn = &record->conn;
	const struct listing *listing = arg;
	struct sheet_row row = listing->begin;

	aw_sheet_put(&row, SOCKETS_FD, (uint64_t)fd);
	strcpy(row.fields[SOCKETS_KIND], "record");
	strcpy(row.fields[SOCKETS_MODE], mode_name(record->mode));
	// The kernel's dump has every socket of the network namespace but those that are closed.
	strcpy(row.fields[SOCKETS_STATE],
	       record->is_known ? aw_sockets_state(conn->state) : "closed");
	if (record->is_known) {
		aw_sheet_put_address(&row, SOCKETS_LOCAL, conn->ipv6, conn->local,
				     conn->local_port);
		aw_sheet_put_address(&row, SOCKETS_PEER, conn->ipv6, conn->peer, conn->peer_port);
	}
	if (record->is_known && conn->counted) {
		aw_sheet_put(&row, SOCKETS_BYTES_IN, conn->bytes_in);
		aw_sheet_put(&row, SOCKETS_BYTES_OUT, conn->bytes_out);
		aw_sheet_put(&row, SOCKETS_RTT, conn->rtt_us);
		aw_sheet_put(&row, SOCKETS_RETRANSMITS, conn->retransmits);
	}
	aw_sheet_add(listing->table, &row);
}

bool aw_sockets_records(pid_t pid, bool asked, struct sheet *table)
{
	struct listing listing = { table, aw_sockets_row_begin(pid) };

	switch (aw_census_take(pid, list_record, &listing)) {
	case AW_CENSUS_WHOLE:
	case AW_CENSUS_GONE:
		return true;
	case AW_CENSUS_REFUSED:
		return !asked ||
		       aw_sockets_fail("cannot look at the fds of process %d: %s: ask as root",
				       (int)pid, strerror(errno));
	case AW_CENSUS_STRANGE:
		return aw_sockets_fail("process %d has records of another version of anywarp: ask "
				       "with that version's command",
				       (int)pid);
	case AW_CENSUS_ELSEWHERE:
		return aw_sockets_fail("process %d is in another network namespace, which tells "
				       "root alone of its sockets: ask as root",
				       (int)pid);
	case AW_CENSUS_FAILED:
		return aw_sockets_fail("cannot list the records of process %d: %s", (int)pid,
				       strerror(errno));
	}
	return false;
}
