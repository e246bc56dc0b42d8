// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The number of an array's elements.
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
