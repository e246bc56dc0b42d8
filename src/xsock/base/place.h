// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where proxy processes have their sockets: directories of their user's alone. `anywarp sockets --status` looks there, too.
#ifndef XSOCK_BASE_PLACE_H
#define XSOCK_BASE_PLACE_H

#include <stdbool.h>

#define AW_PLACE_NAME "anywarp-%u" /* of the effective user; in XDG_RUNTIME_DIR or /tmp */
#define AW_PLACE_DOOR \
	"door." /* and the proxy process's process id: it takes RELEASE (xsock/order.h) there */

/* Whether nobody but our user and root can put a socket there, or reach one. */
bool aw_place_is_ours(const char *path);

#endif
