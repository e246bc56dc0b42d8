// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two records under TLS without a handshake: the secrets are put in by hand.
#ifndef LIB_RECORD_TLS_H
#define LIB_RECORD_TLS_H

#include "crypto/libcrypto.h"
#include "record/record.h"
#include "xsock/framed/cipher.h"

#define RECORD_TLS_SUITES 3

/* Returns whether libcrypto is there: a machine that a test is emulated on may lack it. */
bool record_tls_is_there(void);

/* The secrets of one end, which are the other's as well. suite: 0 to RECORD_TLS_SUITES - 1. */
struct aw_record_secrets record_tls_secrets(unsigned suite, bool is_client);

/* Initializes both, the client first: under TLS where suite is less than RECORD_TLS_SUITES and libcrypto is there, else without. */
void record_tls_begin(struct aw_record records[2], const int fds[2], unsigned suite);

#endif
