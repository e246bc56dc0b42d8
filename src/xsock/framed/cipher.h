// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ciphers of records under TLS: libcrypto's AEADs and HKDF. libcrypto is loaded by the first process that needs it, so
// that this library goes on needing libc alone, and building it needs no header of OpenSSL's. Its functions call each
// other without a look at the program's (OpenSSL links it with -Bsymbolic): a program with another OpenSSL keeps its own.
#ifndef XSOCK_FRAMED_CIPHER_H
#define XSOCK_FRAMED_CIPHER_H

#include "record/key.h"

/*
 * Loads libcrypto, if that was not done. False: there is none that will do, for the process's life; *why (unless NULL) says
 * what to install.
 */
bool aw_cipher_load(const char **why) __attribute__((warn_unused_result));

/* Of aw_record_calls. Its functions need aw_cipher_load(). */
extern const struct aw_record_cipher aw_cipher;

#endif
