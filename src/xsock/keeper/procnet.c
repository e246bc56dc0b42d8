// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the kernel's tables. Listening sockets come first in them.
#include "xsock/keeper/procnet.h"

#include <stdio.h>

#define STATE_LISTEN 0x0a

bool aw_procnet_listens(uint64_t ino, bool ipv6)
{
	FILE *file = fopen(ipv6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
	char line[512];
	bool found = false, over = false;

	if (!file)
		return true; /* not known: the program's word stands */
	if (!fgets(line, sizeof(line), file))
		over = true;
	while (!found && !over && fgets(line, sizeof(line), file)) {
		unsigned state;
		unsigned long inode;

		over = sscanf(line, "%*d: %*s %*s %x %*s %*s %*s %*s %*s %lu", &state, &inode) !=
			       2 ||
		       state != STATE_LISTEN;
		found = !over && inode == ino;
	}
	fclose(file);
	return found;
}
