// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/base/inside.h"

/* Without a call to the dynamic linker, which could allocate in a wrapper of free. */
static _Thread_local unsigned depth __attribute__((tls_model("initial-exec")));

void aw_inside_enter(void)
{
	depth++;
}

void aw_inside_leave(void)
{
	depth--;
}

unsigned aw_inside_depth(void)
{
	return depth;
}
