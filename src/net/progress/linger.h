// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closes a socket so that bytes that TCP already holds reach the peer: sends a FIN, then reads and
// drops what still comes until the peer's FIN or a deadline. Closing with unread input would reset
// the connection instead.
#ifndef NET_LINGER_H
#define NET_LINGER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Takes over fd, which is in no watch any more. Never blocks, never fails (at worst it closes at
 * once). The caller holds an engine reference.
 */
void aw_linger(int fd);

/* The socket of a stream that is over. */
struct aw_linger_socket {
	int fd;
	bool watched; /* its last watch has passed it on (aw_watch_pass_fd) */
	bool fin_sent;
	void (*told)(uint32_t handle, uint32_t number); /* or NULL */
	uint32_t handle;
};

/*
 * As aw_linger. told(handle, number) is called on the progress thread, with no lock held, when the socket is closed: the peer has sent
 * its FIN, or is silent. Returns the number, which no other lingering socket has; 0: the socket is closed already.
 */
uint32_t aw_linger_stream(const struct aw_linger_socket *socket);

/*
 * As aw_linger, for a connection that the program never accepted. When too many of those linger
 * (AW_FILES_LINGERING), the oldest is closed. They never displace connections of the program.
 */
void aw_linger_stranger(int fd);

/* Closes all lingering sockets; called as the engine stops. */
void aw_linger_flush(void);

/*
 * For net/progress/engine.c. The child closes its copies of the fds: the connections are the
 * parent's.
 */
void aw_linger_fork_prepare(void);
void aw_linger_fork_parent(void);
void aw_linger_fork_child(void);

#endif
