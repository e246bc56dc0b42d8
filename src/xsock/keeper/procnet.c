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

/* Whether one listens that has the inode, or without one, the port. */
static bool find(bool ipv6, uint64_t ino, uint16_t port)
{
	FILE *file = fopen(ipv6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
	char head[512];
	bool found = false;
	struct row row;

	if (!file)
		return true; /* not known: the program's word stands */
	if (fgets(head, sizeof(head), file)) {
		while (!found && read_row(file, &row))
			found = ino ? row.inode == ino : row.port == port;
	}
	fclose(file);
	return found;
}

bool aw_procnet_listens(uint64_t ino, bool ipv6)
{
	return find(ipv6, ino, 0);
}

bool aw_procnet_port_listens(uint16_t port)
{
	return find(false, 0, ntohs(port)) || find(true, 0, ntohs(port));
}
