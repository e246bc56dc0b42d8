// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one FPDU that an initiator sends when start-up itself ends in an error: a Terminate
// (RFC 6581 8), as the stream's first FPDU.
#ifndef CORE_SETUP_TERM_H
#define CORE_SETUP_TERM_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_SETUP_TERM_MAX 32 /* 2 + 18 + 4 + 4 octets, and a marker */

/* Writes it to buf (AW_SETUP_TERM_MAX octets); returns its length. */
size_t aw_setup_term(enum aw_error error, bool markers, uint8_t *buf);

#endif
