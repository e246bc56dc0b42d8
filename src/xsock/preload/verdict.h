// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides at the first I/O what a connection becomes. A client in `auto` sends the UDP probe to its
// server. A server in `auto` looks for the key of the MPA Request; if its program writes first, it
// asks the proxy process whether the client has sent the probe. The functions take no lock, and
// may wait for the peer: the caller holds none.
#ifndef XSOCK_PRELOAD_VERDICT_H
#define XSOCK_PRELOAD_VERDICT_H

#include "xsock/preload/first_io.h"

enum aw_verdict {
	AW_VERDICT_IWARP,
	AW_VERDICT_RECORD, /* iWARP, and both ends have records */
	AW_VERDICT_PLAIN,
	AW_VERDICT_OVER, /* the program closes the fd, and the proxy process answers the client */
	AW_VERDICT_REFUSED, /* the connect has failed */
	AW_VERDICT_LATER, /* the peer's bytes do not decide yet */
	AW_VERDICT_FAILED, /* the program's call fails with errno */
};

/* The program's call that makes the first I/O. */
struct aw_first_io_call {
	int fd;
	enum aw_first_io kind;
	bool dontwait;
	bool connects; /* a connect call, which has succeeded: an error is for the next call */
	const struct aw_deadline *by; /* the call waits until then at most; NULL: no limit */
};

/*
 * Judges the connection of sock, a copy of what the table has for the call's fd. With
 * FAILED errno is set.
 */
enum aw_verdict aw_verdict_judge(const struct aw_sock *sock, const struct aw_first_io_call *call);

/*
 * Returns whether the peer of fd has closed or reset the connection before a Request came: the
 * program learns that from the kernel.
 */
bool aw_verdict_has_ended(int fd);

#endif
