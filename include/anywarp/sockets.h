/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Extended sockets: options that choose which sockets are iWARP and, for programs that link with
 * -lanywarp-sockets, what RDMA has beyond a stream: memory that the peer writes and reads by itself,
 * operations that complete later, sends without a copy. libanywarp-sockets(7) describes the modes,
 * anywarp_sockets(3) the calls.
 */
#ifndef ANYWARP_SOCKETS_H
#define ANYWARP_SOCKETS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* setsockopt and getsockopt of a TCP socket, with an int. */
#define SOL_IWARP 0x6957
#define IWARP_MODE 1
#define IWARP_ROLE 2

/* IWARP_MODE: before connect or listen, or on a connection that has carried no byte yet. */
#define IWARP_OFF 0
#define IWARP_ON 1 /* iWARP; the peer must be told so, too */
#define IWARP_AUTO 2 /* never iWARP: the kernel's AF_UNIX sockets within a host, TCP else */

/* IWARP_ROLE: which end starts iWARP, if connect and accept do not decide it. */
#define IWARP_ACTIVE 1 /* as the end that connects */
#define IWARP_PASSIVE 2 /* as the end that accepts */

/* The calls below return -1 or NULL with errno if they fail. They may be made in any thread. */

/*
 * Makes a connected TCP socket an extended one: iWARP, whose end is in this process. Both programs call
 * it, one of them as IWARP_ACTIVE and the other as IWARP_PASSIVE, when each has received all that the other
 * has sent. It waits until they have agreed. fd can still be used as a socket. The connection lives as
 * long as this process: a child may use the stream, but makes none of these calls.
 *
 * EINVAL (role), EBADF, ENOTCONN, EOPNOTSUPP (no TCP socket, or iWARP already), ECONNRESET, EPROTO,
 * ETIMEDOUT (the peer does not do the same), ENOENT (the libraries are not there), ENOMEM, EMFILE, ENODEV,
 * ECONNREFUSED and EPROTONOSUPPORT (no place to meet, where a verbs library takes no sockets).
 */
int iwarp_start(int fd, int role);

/* The rights of the peer to registered memory. Without either it is for this end's own operations. */
#define IWARP_REMOTE_READ 1
#define IWARP_REMOTE_WRITE 2

struct iwarp_mr;

/*
 * Registers len bytes, at least one, at addr for the connection of fd. The memory stays the program's, and
 * must stay mapped until iwarp_dereg_mr, which waits for nothing: no operation with the memory may be
 * under way. Memory that is still registered at close(fd) has to be deregistered all the same.
 *
 * EINVAL, EBADF, EFAULT (not mapped so), ENOMEM; EOPNOTSUPP (fd is no extended socket, or the peer's end
 * does not know of such calls), as with all calls below.
 */
struct iwarp_mr *iwarp_reg_mr(int fd, void *addr, size_t len, int access);
int iwarp_dereg_mr(struct iwarp_mr *mr);

/*
 * The name of registered memory, which the program sends to the peer as it is. Its bytes mean the same on
 * any machine. A process that has it can do what access grants, until iwarp_dereg_mr or the connection's end.
 */
struct iwarp_key {
	uint8_t bytes[24];
};

int iwarp_mr_key(const struct iwarp_mr *mr, struct iwarp_key *key);

/*
 * Copies len bytes, 1 to 1 GiB, between mr and the peer's memory, at these offsets in them. The peer's program
 * does nothing for it and does not notice. One completion comes with the cookie; before, the program neither
 * reuses the memory nor looks at it. A Write is placed before any byte that is sent on the socket after the call.
 *
 * EINVAL (key is none), ERANGE (not within mr, or key's memory), EAGAIN (too many are under way: take completions
 * first), ENOTCONN, ECONNRESET.
 *
 * iwarp_write_notify also sends a note of 1 to IWARP_NOTE_MAX bytes on the socket, behind the Write and together
 * with it: the peer reads it when the Write is there. It costs much less than a write(2) of its own. The one
 * completion, with the note's cookie, is the Write's; the note was copied when the call returns. EINVAL (note), EAGAIN
 * (no room for the note: the peer does not read), EPIPE.
 */
#define IWARP_NOTE_MAX 256

struct iwarp_note {
	const void *bytes;
	size_t len;
	uint64_t cookie; /* of the completion */
};

int iwarp_write(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		uint64_t key_offset, uint64_t cookie);
int iwarp_write_notify(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		       uint64_t key_offset, const struct iwarp_note *note);
int iwarp_read(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
	       uint64_t key_offset, uint64_t cookie);

/*
 * Send and receive bytes of the stream, in order with send(2) and recv(2), without waiting: a completion
 * tells when buf is the program's again. iwarp_send_mr sends from registered memory without a copy. A send
 * completes when all its bytes are on their way; a receive when there are some, len at the most, and with 0
 * bytes at the end of the stream. EAGAIN as above, EPIPE, EINVAL (len is 0).
 */
int iwarp_send_async(int fd, const void *buf, size_t len, uint64_t cookie);
int iwarp_send_mr(struct iwarp_mr *mr, size_t offset, size_t len, uint64_t cookie);
int iwarp_recv_async(int fd, void *buf, size_t len, uint64_t cookie);

struct iwarp_completion {
	uint64_t cookie;
	size_t bytes; /* that the operation has moved */
	int error; /* 0 or an errno; ECONNRESET also if the peer's memory does not allow the access */
};

/*
 * An fd of the connection's completion queue, which poll(2) and the like find readable while there is a
 * completion. It is the connection's: it goes with the close of the socket's last fd, and is not read or closed.
 */
int iwarp_cq_fd(int fd);

/* Takes up to n completions, oldest first, and returns how many; 0 where there is none. */
int iwarp_cq_poll(int fd, struct iwarp_completion *completions, int n);

#ifdef __cplusplus
}
#endif

#endif
