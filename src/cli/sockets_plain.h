// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The notes of processes about their connections that are plain TCP (xsock/pair/plain.h).
#ifndef CLI_SOCKETS_PLAIN_H
#define CLI_SOCKETS_PLAIN_H

#include <stdint.h>
#include <sys/types.h>

#include "xsock/pair/plain.h"

// Zeroed at first. Processes that share their notes, by fork, are counted once.
struct sockets_plain {
	uint64_t places[AW_PLAIN_PLACES]; // of the process that was read last
	uint64_t counts[AW_PLAIN_REASONS]; // of all processes
	ino_t *seen;
	size_t seen_count;
};

// Reads the notes of the process whose /proc/PID/fd is that directory; without any, no place has one.
void aw_sockets_plain_read(struct sockets_plain *plain, int fds);
// Returns why the socket with that inode is plain TCP; AW_PLAIN_NOT: there is no note.
enum aw_plain aw_sockets_plain_find(const struct sockets_plain *plain, uint64_t ino);
// Prints how many connections have been plain TCP so far, and why.
void aw_sockets_plain_print(const struct sockets_plain *plain);
void aw_sockets_plain_fini(struct sockets_plain *plain);

#endif
