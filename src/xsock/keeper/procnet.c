// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the kernel's tables. Listening sockets come first in them.
#include "xsock/keeper/procnet.h"

#include <arpa/inet.h>
#include <stdio.h>

#define STATE_LISTEN 0x0a

struct row {
	unsigned port, state;
	unsigned long inode;
};

static bool read_row(FILE *file, struct row *row)
{
	char line[512];

	return fgets(line, sizeof(line), file) &&
	       sscanf(line, "%*d: %*[^:]:%x %*s %x %*s %*s %*s %*s %*s %lu", &row->port,
		      &row->state, &row->inode) == 3 &&
	       row->state == STATE_LISTEN;
}

/* Whether is_wanted says so of one that listens; unknown: where nobody can tell. */
static bool find(bool ipv6, bool unknown, bool (*is_wanted)(const struct row *row, const void *arg),
		 const void *arg)
{
	FILE *file = fopen(ipv6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
	char head[512];
	bool found = false;
	struct row row;

	if (!file)
		return unknown;
	if (fgets(head, sizeof(head), file)) {
		while (!found && read_row(file, &row))
			found = is_wanted(&row, arg);
	}
	fclose(file);
	return found;
}

static bool has_inode(const struct row *row, const void *arg)
{
	return row->inode == *(const uint64_t *)arg;
}

/* Where nobody can tell, the program's word stands. */
bool aw_procnet_listens(uint64_t ino, bool ipv6)
{
	return find(ipv6, true, has_inode, &ino);
}

struct place {
	uint16_t port;
	bool (*is_known)(uint64_t ino);
};

static bool is_stranger(const struct row *row, const void *arg)
{
	const struct place *place = arg;

	return row->port == place->port && !place->is_known(row->inode);
}

bool aw_procnet_has_stranger(uint16_t port, bool (*is_known)(uint64_t ino))
{
	const struct place place = { ntohs(port), is_known };

	return find(false, false, is_stranger, &place) || find(true, false, is_stranger, &place);
}
