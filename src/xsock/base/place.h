// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The directories in which proxy processes have their sockets; each belongs to one user alone.
// Called by proxy/status.c for `anywarp sockets --status`.
#ifndef XSOCK_BASE_PLACE_H
#define XSOCK_BASE_PLACE_H

#include <stdbool.h>

/* the number is the effective user's id; in XDG_RUNTIME_DIR or /tmp */
#define AW_PLACE_NAME "anywarp-%u"

/* Returns whether path is a directory of this user's that no other user but root can use. */
bool aw_place_is_ours(const char *path);

#endif
