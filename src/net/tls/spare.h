// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers for the records of sessions, which have one only while bytes are under way: those that came, or those that wait for the
// socket. Some are kept for the next session, since from the heap they would come and go with each send.
#ifndef NET_TLS_SPARE_H
#define NET_TLS_SPARE_H

#include <stddef.h>
#include <stdint.h>

#define AW_TLS_SPARE_BYTES (96u * 1024)

/* A buffer of so many bytes. NULL: memory is out. */
uint8_t *aw_tls_spare_take(void);
void aw_tls_spare_give(uint8_t *spare);

#endif
