// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's TLS of TCP sockets (Linux's Documentation/networking/tls.rst), for TLS 1.3: what this kernel has, and how a
// socket gets its keys. One that has got them in a direction keeps the kernel's TLS there until it is closed.
#ifndef BASE_KERNEL_TLS_H
#define BASE_KERNEL_TLS_H

#include <stdbool.h>
#include <stdint.h>

#define AW_KERNEL_TLS_WHY_MAX 160
#define AW_KERNEL_TLS_KEY_MAX 32 /* bytes */
#define AW_KERNEL_TLS_IV 12

/* linux/tls.h's and linux/socket.h's, which older headers lack in part. */
#define AW_SOL_TLS 282
enum aw_kernel_tls_option {
	AW_KERNEL_TLS_SENDS = 1, /* TLS_TX */
	AW_KERNEL_TLS_RECEIVES = 2, /* TLS_RX */
	AW_KERNEL_TLS_NO_PAD = 4, /* TLS_RX_EXPECT_NO_PAD */
};
/* Control messages: the type of the record that is sent, or was received. */
#define AW_KERNEL_TLS_SET_TYPE 1
#define AW_KERNEL_TLS_GET_TYPE 2

struct aw_kernel_tls {
	bool has; /* sockets take it */
	bool changes_keys; /* those of a direction may be set again: Linux 6.14 */
	char why[AW_KERNEL_TLS_WHY_MAX]; /* of !has: the cause, with a remedy */
};

/* Asks the kernel, by a connection of this process to itself. */
void aw_kernel_tls_ask(struct aw_kernel_tls *found);

/* The socket is connected. 0 or an errno, which changes nothing: ENOENT means that the kernel has no TLS. */
int aw_kernel_tls_attach(int fd) __attribute__((warn_unused_result));

struct aw_kernel_tls_keys {
	uint16_t suite; /* of RFC 8446 B.4: 0x1301, 0x1302 or 0x1303 */
	uint8_t key[AW_KERNEL_TLS_KEY_MAX];
	uint8_t iv[AW_KERNEL_TLS_IV];
	uint64_t number; /* of the next record */
};

/* Behind attach. 0 or an errno; the direction then is what it was. EBUSY: it has keys, and this kernel changes none. */
int aw_kernel_tls_set(int fd, enum aw_kernel_tls_option direction,
		      const struct aw_kernel_tls_keys *keys) __attribute__((warn_unused_result));

/* The peer pads no record, so that they are opened to where they are read; one that does costs another try. Older kernels do without. */
void aw_kernel_tls_expect_no_pad(int fd);

/* The number of the next record that the socket sends. False: this kernel does not tell. */
bool aw_kernel_tls_next(int fd, uint16_t suite, uint64_t *number)
	__attribute__((warn_unused_result));

/* The bytes that TCP has been given on this socket, but for a constant: sent, or waiting to be. False: this kernel does not tell. */
bool aw_kernel_tls_given(int fd, uint64_t *bytes) __attribute__((warn_unused_result));

#endif
