// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ciphers of records under TLS in this process.
#ifndef XSOCK_FRAMED_CIPHER_H
#define XSOCK_FRAMED_CIPHER_H

#include "record/key.h"

/* Of aw_record_calls. Its functions need aw_libcrypto_load(). */
extern const struct aw_record_cipher aw_cipher;

#endif
