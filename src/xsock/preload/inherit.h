// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What execve(2) passes on: sockets in an environment variable by their inodes, which hold whatever
// numbers their fds get on the way, and the fds of the proxy process and of the arena of records.
#ifndef XSOCK_PRELOAD_INHERIT_H
#define XSOCK_PRELOAD_INHERIT_H

#define AW_INHERIT_FDS "ANYWARP_SOCKETS_FDS"
#define AW_INHERIT_PROXY "ANYWARP_SOCKETS_PROXY"
#define AW_INHERIT_ARENA "ANYWARP_SOCKETS_ARENA"

/*
 * env with what is to be passed on, until aw_inherit_undo; NULL: env as it is will do. The fds of proxy process
 * and arena stay open across exec from here on, until aw_inherit_undo.
 */
char **aw_inherit_env(char *const env[]);
void aw_inherit_undo(char **env);

/* Before an exec: what is pending and stays open must not need us any more. */
void aw_inherit_settle(void);

#endif
