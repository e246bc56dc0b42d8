// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In a build without valgrind's headers.
#include "check/base/marker.h"

const struct aw_marker *aw_marker_memcheck(void)
{
	return NULL;
}
