// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The inheritance of sockets by a program that the process becomes or spawns: the sockets, in an
// environment variable by their inodes, which stay the same whatever numbers their fds get; and the
// fds of the proxy process and of the records' arena. Callers hold no lock.
#ifndef XSOCK_PRELOAD_INHERIT_H
#define XSOCK_PRELOAD_INHERIT_H

#define AW_INHERIT_FDS "ANYWARP_SOCKETS_FDS"
#define AW_INHERIT_PROXY "ANYWARP_SOCKETS_PROXY"
#define AW_INHERIT_ARENA "ANYWARP_SOCKETS_ARENA"

/*
 * Returns a copy of env with the library's variables, which the caller ends by aw_inherit_undo;
 * NULL: env needs none. Until then the fds of the proxy process and of the arena stay open across
 * an exec.
 */
char **aw_inherit_env(char *const env[]);
void aw_inherit_undo(char **env);

/*
 * Decides, before an exec, the undecided sockets that the exec leaves open, and closes the others
 * so that their peers see the stream end.
 */
void aw_inherit_settle(void);

#endif
