// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A module that is loaded with RTLD_DEEPBIND: its calls go to libc past the library under test.
#include <stddef.h>
#include <sys/socket.h>

int accept_deep(int listener);

int accept_deep(int listener)
{
	return accept(listener, NULL, NULL);
}
