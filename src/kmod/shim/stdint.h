// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// <stdint.h> for wire/ and core/ in the kernel.
#ifndef SHIM_STDINT_H
#define SHIM_STDINT_H

#include <linux/limits.h>
#include <linux/types.h>

#ifndef UINT8_MAX
#define UINT8_MAX U8_MAX
#endif
#ifndef UINT16_MAX
#define UINT16_MAX U16_MAX
#endif
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif

#endif
