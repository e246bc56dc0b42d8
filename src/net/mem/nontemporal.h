// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A copy into memory that another core reads next. Non-temporal stores do not fetch the lines
// from that core's cache before they overwrite them, which takes a plain copy most of its time.
#ifndef NET_NONTEMPORAL_H
#define NET_NONTEMPORAL_H

#include <stddef.h>
#include <stdint.h>

/* As memcpy. A release store that follows publishes the bytes, as it does after memcpy. */
void aw_nontemporal_copy(uint8_t *dst, const uint8_t *src, size_t len);

#endif
