// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rows of 'anywarp sockets --status' for records: connections on the program's own TCP socket,
// which no proxy process carries.
#include "cli/sockets.h"

#include "xsock/framed/census.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

// The kernel's TCP states, by number.
static const char *const states[] = {
	"unknown",   "established", "syn-sent",	  "syn-received", "fin-wait-1", "fin-wait-2",
	"time-wait", "closed",	    "close-wait", "last-ack",	  "listen",	"closing",
};

struct listing {
	struct sockets_table *table;
	struct sockets_row begin; // with the fields that all rows of the process have
};

static void print_address(char field[SOCKETS_FIELD_MAX], bool ipv6, const uint8_t ip[16],
			  uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(ipv6 ? AF_INET6 : AF_INET, ip, text, sizeof(text));
	snprintf(field, SOCKETS_FIELD_MAX, ipv6 ? "[%s]:%u" : "%s:%u", text, port);
}

static void print_counters(struct sockets_row *row, const struct aw_sockdiag_conn *conn)
{
	if (!conn->counted)
		return;
	snprintf(row->fields[SOCKETS_BYTES_IN], SOCKETS_FIELD_MAX, "%llu",
		 (unsigned long long)conn->bytes_in);
	snprintf(row->fields[SOCKETS_BYTES_OUT], SOCKETS_FIELD_MAX, "%llu",
		 (unsigned long long)conn->bytes_out);
	snprintf(row->fields[SOCKETS_RTT], SOCKETS_FIELD_MAX, "%u", conn->rtt_us);
	snprintf(row->fields[SOCKETS_RETRANSMITS], SOCKETS_FIELD_MAX, "%u", conn->retransmits);
}

static const char *mode_name(enum aw_xs_mode mode)
{
	switch (mode) {
	case AW_XS_OFF:
		return "";
	case AW_XS_ON:
		return "on";
	case AW_XS_AUTO:
		return "auto";
	}
	return "";
}

// The kernel's dump has every socket of the network namespace but those that are closed.
static const char *state_name(const struct aw_census_record *record)
{
	size_t state = record->conn.state;

	if (!record->is_known)
		return "closed";
	return state < sizeof(states) / sizeof(states[0]) ? states[state] : "unknown";
}

static void list_record(int fd, const struct aw_census_record *record, void *arg)
{
	const struct aw_sockdiag_conn *conn = &record->conn;
	const struct listing *listing = arg;
	struct sockets_row row = listing->begin;

	snprintf(row.fields[SOCKETS_FD], SOCKETS_FIELD_MAX, "%d", fd);
	strcpy(row.fields[SOCKETS_KIND], "record");
	strcpy(row.fields[SOCKETS_MODE], mode_name(record->mode));
	strcpy(row.fields[SOCKETS_STATE], state_name(record));
	if (record->is_known) {
		print_address(row.fields[SOCKETS_LOCAL], conn->ipv6, conn->local, conn->local_port);
		print_address(row.fields[SOCKETS_PEER], conn->ipv6, conn->peer, conn->peer_port);
		print_counters(&row, conn);
	}
	aw_sockets_table_add(listing->table, &row);
}

bool aw_sockets_records(pid_t pid, bool asked, struct sockets_table *table)
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
