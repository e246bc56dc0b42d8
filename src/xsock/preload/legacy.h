// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the keeper is given of a direct connection, beside its TCP socket (xsock/will.h).
#ifndef XSOCK_PRELOAD_LEGACY_H
#define XSOCK_PRELOAD_LEGACY_H

#include <stdbool.h>

#include "xsock/will.h"

/* What the keeper has of a connection: to end it if we are killed, and to tell of it. */
struct aw_legacy {
	struct aw_xs_will *will; /* NULL: nothing */
	int memory, lifeline[2];
};

/*
 * Whether fd may be direct: the fds of all direct connections are an eighth of what the process may have, at the most,
 * and the program's own no more than half of it; and the page's file may be written, which would be a SIGXFSZ
 * otherwise.
 */
bool aw_legacy_is_within_limits(int fd);

/* Where there is no memory, or no fd, there is no will: whoever is killed resets this connection. */
void aw_legacy_open(struct aw_legacy *legacy);
/* What is the keeper's by now; the will and our end of the lifeline are the endpoint's. */
void aw_legacy_close(const struct aw_legacy *legacy);

#endif
