// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The inheritance of sockets by a program that the process becomes or spawns: the sockets, by their inodes, which stay
// the same whatever numbers their fds get; and the fds of the proxy process and of the records' arena. An environment
// variable lists the sockets, but for records: the arena knows them, and a variable says which slots. Callers hold no lock.
#ifndef XSOCK_PRELOAD_INHERIT_H
#define XSOCK_PRELOAD_INHERIT_H

#include <stdbool.h>

#define AW_INHERIT_FDS "ANYWARP_SOCKETS_FDS"
#define AW_INHERIT_PROXY "ANYWARP_SOCKETS_PROXY"
#define AW_INHERIT_ARENA "ANYWARP_SOCKETS_ARENA"
#define AW_INHERIT_JUDGED "ANYWARP_SOCKETS_JUDGED"

/* The new program's relation to the process that holds the slots of records. */
enum aw_heir {
	AW_HEIR_STRANGER, /* it gets none: it may be without this library */
	AW_HEIR_SELF, /* the process becomes the program, and its holds are the program's */
	AW_HEIR_CHILD, /* the program is counted among the holders beforehand */
};

/*
 * Returns a copy of env with the library's variables, which the caller ends by aw_inherit_undo;
 * NULL: env needs none. Until then the fds of the proxy process and of the arena stay open across
 * an exec. has_failed: there is no program, and its holds end.
 */
char **aw_inherit_env(char *const env[], enum aw_heir heir);
void aw_inherit_undo(char **env, bool has_failed);

/* Reads the variables and deletes them, before the program's first call. */
void aw_inherit_import(void);

/*
 * Where TLS is required: fd has come from another process. If it is a connection that a program without this library has accepted, as
 * inetd's, MPA and TLS start at its first I/O, as at the program's own. Where the table has no room it is ended. A program that has
 * this library and executes another one has judged its connections itself, and says so by AW_INHERIT_JUDGED.
 */
void aw_inherit_connection(int fd);

/*
 * Decides, before an exec, the undecided sockets that the exec leaves open, and closes the others
 * so that their peers see the stream end.
 */
void aw_inherit_settle(void);

#endif
