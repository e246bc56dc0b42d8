// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a connection is plain TCP: the reasons, as a user understands them, and the file in which a process notes them for
// `anywarp sockets --status` (src/cli). The reader includes this header alone.
//
// A new reason goes into the enum before AW_PLAIN_REASONS, of which there are 32 at the most, since another process reads the
// numbers (any other change of them needs a new AW_PLAIN_NAME); its words into plain.c; where it is found, into offer.c, hint.c,
// take.c or the wrappers of connect and accept; anywarp-sockets(1); a row of tests/sockets/test_plain.py.
#ifndef XSOCK_PAIR_PLAIN_H
#define XSOCK_PAIR_PLAIN_H

#include <stdatomic.h>
#include <stdint.h>

enum aw_plain {
	AW_PLAIN_NOT, /* the connection is not plain TCP */
	AW_PLAIN_OFF,
	AW_PLAIN_BEYOND,
	AW_PLAIN_OTHER_HOST,
	AW_PLAIN_NO_LISTENER,
	AW_PLAIN_LATE,
	AW_PLAIN_LATE_BEFORE,
	AW_PLAIN_HANDSHAKE,
	AW_PLAIN_SERVER_FIRST,
	AW_PLAIN_NO_OFFER,
	AW_PLAIN_OWN_LISTENER,
	AW_PLAIN_FORKED,
	AW_PLAIN_VFORK,
	AW_PLAIN_FEW_FDS,
	AW_PLAIN_SANDBOX,
	AW_PLAIN_NO_SOCKET,
	AW_PLAIN_REASONS,
};

/* The text completes "the connection is plain TCP:", and the remedy tells what to do. */
struct aw_plain_words {
	const char *word; /* one word, for a column */
	const char *text;
	const char *remedy; /* NULL: none is known */
};

extern const struct aw_plain_words aw_plain_words[AW_PLAIN_REASONS];

/*
 * The file is a memfd of that name, which the process and those that it forks have open and mapped. A place is overwritten
 * when another socket comes to have it: that one is listed then, and the count is right nevertheless.
 */
#define AW_PLAIN_NAME "anywarp-plain-1" /* another layout has another name */
#define AW_PLAIN_PLACES 8192u

struct aw_plain_table {
	/* The place of a TCP socket is its inode modulo AW_PLAIN_PLACES: the inode, shifted by 8 bits, and the reason. 0: free. */
	_Atomic(uint64_t) places[AW_PLAIN_PLACES];
	_Atomic(uint32_t) counts[32]; /* connections so far, by reason */
};

_Static_assert(AW_PLAIN_REASONS <= 32, "each reason has a count");

#endif
