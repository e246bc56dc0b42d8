// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the keeper is given of a direct connection, beside its TCP socket (xsock/will.h).
#ifndef XSOCK_PRELOAD_LEGACY_H
#define XSOCK_PRELOAD_LEGACY_H

#include "xsock/will.h"

/* What the keeper has of a connection: to end it if we are killed, and to tell of it. */
struct aw_legacy {
	struct aw_xs_will *will; /* NULL: nothing */
	int memory, lifeline[2];
};

/* Where there is no memory, or no fd, there is no will: whoever is killed resets this connection. */
void aw_legacy_open(struct aw_legacy *legacy);
/* What is the keeper's by now; the will and our end of the lifeline are the endpoint's. */
void aw_legacy_close(const struct aw_legacy *legacy);

#endif
