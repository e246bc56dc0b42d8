// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What both ends of a connection do at the same time: steps, each of one kind of operation, whose
// octets, sizes and flags the other end verifies before either goes on. Wrong data ends the program
// (CHECK); a function returns false when the connection ended. For tests only.
#ifndef SYSTEM_EXCHANGE_H
#define SYSTEM_EXCHANGE_H

#include "end.h"

struct step;
#define EXCHANGE_STEPS_MAX 32

struct exchange {
	struct end *end;
	const struct step *const *steps; /* NULL is behind the last */
	uint32_t turn; /* counts the steps; the data are made from it */
	uint64_t my_cell, peer_cell;
};

/* Writes the steps that a list like "write,read,send" names, and NULL; false for a wrong name. */
bool exchange_parse(const char *names, const struct step **steps);

/* What must be known of an end before it is connected: its first data. */
void exchange_begin(struct exchange *exchange, struct end *end, const struct step *const *steps);

/* Every step once, with messages of so many octets. */
bool exchange_round(struct exchange *exchange, size_t size);

/*
 * The last words: the speaker Writes, Sends and disconnects without waiting for anything, the other
 * end must have it all.
 */
bool exchange_last_words(struct exchange *exchange, size_t size, bool is_speaker);

/* As its last word the speaker Reads: the data come behind its FIN, and must be right. */
bool exchange_last_read(struct exchange *exchange, size_t size, bool is_speaker);

/* The speaker Writes where it must not; true when both ends have lost the connection by that. */
bool exchange_violate(struct exchange *exchange, bool is_speaker);

#endif
