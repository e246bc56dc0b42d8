// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A session's records where the kernel makes and opens them (base/kernel_tls.h), behind OpenSSL's handshake. Each direction is handed over
// where the one layer ends and the other begins: sending when no record of ours waits for the socket; receiving when no byte of
// one has been read, and OpenSSL has had its tickets. A direction never comes back.
//
// So the kernel has a direction only where its keys last: those of ChaCha20-Poly1305, or any where it can change them (RFC 8446 5.5).
#ifndef NET_TLS_KTLS_H
#define NET_TLS_KTLS_H

#include "base/kernel_tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct aw_tls;

enum aw_ktls_way {
	AW_KTLS_USER,
	AW_KTLS_DUE, /* to the kernel, as soon as may be */
	AW_KTLS_KERNEL,
};

struct aw_ktls {
	enum aw_ktls_way sends, receives;
	bool changes_keys;
	uint16_t suite;
	bool owes_close; /* close_notify waits for room in the socket */
	bool has_left; /* TCP had been given all when the session looked last */
	/* Of the records that the kernel has made since the socket had been given base bytes (aw_kernel_tls_given). */
	bool counts; /* this kernel tells */
	uint64_t base;
	uint64_t content; /* bytes in them */
	uint64_t earlier; /* those under keys that were changed */
	uint64_t first; /* the number of the first under these keys */
	/* When the kernel was asked last: the next one's number; and the bytes of content since, which no fewer records hold. */
	uint64_t asked, since;
};

/* Why such a session's records are not for this kernel; NULL: they are. bounded: of the cipher (aw_suite_is_bounded). */
const char *aw_ktls_refusal(const struct aw_kernel_tls *kernel, bool bounded);

/* The records begin: it is decided whether the kernel shall make them. */
void aw_ktls_choose(struct aw_tls *tls);

/* Hand over a direction that is due, if it may be. A kernel that refuses leaves it here, with a line in the log. */
void aw_ktls_begin_sends(struct aw_tls *tls);
void aw_ktls_begin_receives(struct aw_tls *tls);

/* Where the kernel sends: */

/* As sendmsg(2), of data; behind a KeyUpdate that is due. -1 as well: the session is over. */
ssize_t aw_ktls_send(struct aw_tls *tls, const struct iovec *iov, size_t count);
/* Sends a KeyUpdate where one is due. False: errno is EAGAIN, or the session is over. */
bool aw_ktls_update(struct aw_tls *tls) __attribute__((warn_unused_result));
void aw_ktls_put_alert(struct aw_tls *tls, uint8_t alert);
/* Sends a close_notify that is owed. True when TCP has been given that, and all before it. */
bool aw_ktls_flush(struct aw_tls *tls);
bool aw_ktls_has_left(const struct aw_tls *tls);

/* A KeyUpdate has been sent: the next keys. False: the kernel does not take them. */
bool aw_ktls_renew(struct aw_tls *tls) __attribute__((warn_unused_result));

/* Where the kernel receives: */

/*
 * As recvmsg(2), into room for the largest record at least. *type: of the content; the bytes of several records of data come
 * together. 0 of data: TCP has ended. -1: EAGAIN, io_errno says what failed, or the record was wrong, which is a fault of records.
 */
ssize_t aw_ktls_recv(struct aw_tls *tls, void *to, size_t room, uint8_t *type);
/* The peer has changed its keys. False: the kernel does not take them, which is a fault. */
bool aw_ktls_follow(struct aw_tls *tls) __attribute__((warn_unused_result));

#endif
