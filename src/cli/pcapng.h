// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes a pcapng file of IP packets from one interface. A failed write is found by ferror(3).
#ifndef CLI_PCAPNG_H
#define CLI_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PCAPNG_TEXT_MAX 128 // bytes of a text that are written

struct pcapng_packet {
	uint64_t time_ns; // since 1970
	bool inbound;
	const char *comment; // or NULL
	const uint8_t *bytes; // begins with the IP header
	size_t len;
};

void aw_pcapng_begin(FILE *file, const char *interface);
void aw_pcapng_packet(FILE *file, const struct pcapng_packet *packet);

// The interface's counters, at the end.
void aw_pcapng_end(FILE *file, uint64_t time_ns, uint64_t received, uint64_t dropped);

#endif
