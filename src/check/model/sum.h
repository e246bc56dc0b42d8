// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sum over a work request's source, by which a change is found. Fast, and no protection against intent.
#ifndef CHECK_MODEL_SUM_H
#define CHECK_MODEL_SUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t aw_sum(uint64_t seed, const void *bytes, size_t len);

#endif
