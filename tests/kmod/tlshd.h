// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In tcp/tls.c's place: handshakes that a test ends as it wants to, in threads of its own. What follows one is not encrypted.
#ifndef KMOD_TEST_TLSHD_H
#define KMOD_TEST_TLSHD_H

#include "kmod/tcp/tls.h"

/* What awk_tls_begin returns; 0: it asks. */
extern int kshim_tls_begins;
/* Handshakes that are asked for. */
unsigned int kshim_tls_waiting(void);
/* The daemon is done with the first of them; false: there is none. */
bool kshim_tls_done(int err);

#endif
