// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides at the first I/O how a connection in mode `on` begins: by the MPA Request of a client, which has to be whole, and without
// asking where the program itself is the client. The functions take no lock, and may wait for the peer: the caller holds none.
#ifndef XSOCK_PRELOAD_VERDICT_H
#define XSOCK_PRELOAD_VERDICT_H

#include "xsock/preload/first_io.h"

enum aw_verdict {
	AW_VERDICT_ENDPOINT, /* the proxy process carries the connection */
	AW_VERDICT_RECORD,
	AW_VERDICT_ENDED, /* the peer has ended the connection, and the program learns that from the kernel */
	AW_VERDICT_REFUSED, /* the connect has failed */
	AW_VERDICT_LATER, /* the peer's bytes do not decide yet */
	AW_VERDICT_STRANGER, /* the peer speaks something else */
	AW_VERDICT_SILENT, /* the client has sent no whole Request in its time */
	AW_VERDICT_FAILED, /* the program's call fails with errno */
};

/* The program's call that makes the first I/O. */
struct aw_first_io_call {
	int fd;
	enum aw_first_io kind;
	bool dontwait;
	bool connects; /* a connect call, which has succeeded: an error is for the next call */
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
