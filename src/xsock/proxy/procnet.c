// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads /proc/net/tcp and tcp6. Listening sockets come first there.
#include "xsock/proxy/procnet.h"

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

int aw_procnet_listeners(uint16_t port, bool ipv6, uint64_t *inodes, int max)
{
	FILE *file = fopen(ipv6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
	char head[512];
	int count = 0;
	struct row row;

	if (!file)
		return -1;
	if (fgets(head, sizeof(head), file)) {
		while (count < max && read_row(file, &row)) {
			if (row.port == ntohs(port))
				inodes[count++] = row.inode;
		}
	}
	fclose(file);
	return count;
}
