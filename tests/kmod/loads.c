// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A compiler that was asked to (-fsanitize-coverage=trace-loads) announces each load by these, before it is done: so a
// plain read of what a program may change is seen, too.
#include "kshim.h"

static void load_tell(const volatile void *at, size_t len)
{
	if (kshim_on_load)
		kshim_on_load(at, len);
}

void __sanitizer_cov_load1(const void *at);
void __sanitizer_cov_load2(const void *at);
void __sanitizer_cov_load4(const void *at);
void __sanitizer_cov_load8(const void *at);
void __sanitizer_cov_load16(const void *at);

void __sanitizer_cov_load1(const void *at)
{
	load_tell(at, 1);
}

void __sanitizer_cov_load2(const void *at)
{
	load_tell(at, 2);
}

void __sanitizer_cov_load4(const void *at)
{
	load_tell(at, 4);
}

void __sanitizer_cov_load8(const void *at)
{
	load_tell(at, 8);
}

void __sanitizer_cov_load16(const void *at)
{
	load_tell(at, 16);
}
