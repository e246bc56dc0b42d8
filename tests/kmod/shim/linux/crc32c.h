// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef KSHIM_CRC32C_H
#define KSHIM_CRC32C_H

#include "wire/crc32c.h"

#define crc32c(crc, data, len) crc32c_update(crc, data, len)

#endif
