// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A page in a file without a name, and a pipe that nobody writes to.
#include "xsock/preload/legacy.h"

#include <sys/mman.h>

#include "xsock/preload/fdtab.h"
#include "xsock/preload/keeper.h"
#include "xsock/preload/libc.h"

void aw_legacy_close(const struct aw_legacy *legacy)
{
	const int fds[] = { legacy->memory, legacy->lifeline[0] };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			aw_libc()->close(fds[i]);
}

void aw_legacy_open(struct aw_legacy *legacy)
{
	void *page = MAP_FAILED;

	*legacy = (struct aw_legacy){ .lifeline = { -1, -1 } };
	legacy->memory = memfd_create("anywarp", MFD_CLOEXEC);
	if (legacy->memory >= 0 && ftruncate(legacy->memory, AW_XS_WILL_OCTETS) == 0)
		page = mmap(NULL, AW_XS_WILL_OCTETS, PROT_READ | PROT_WRITE, MAP_SHARED,
			    legacy->memory, 0);
	if (page == MAP_FAILED)
		return;
	if (pipe2(legacy->lifeline, O_CLOEXEC) != 0) {
		munmap(page, AW_XS_WILL_OCTETS);
		return;
	}
	legacy->lifeline[1] = aw_keeper_move_high(legacy->lifeline[1]);
	aw_fdtab_hide(legacy->lifeline[1]);
	legacy->will = page;
}
