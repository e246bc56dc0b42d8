// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrapper: prctl, by which a process enters a seccomp sandbox. From then on the library makes no
// system calls on its own account, because the filter may kill the process for one.
#include "xsock/process/sandbox.h"

#include <stdarg.h>
#include <sys/prctl.h>

#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/wrap/wrap.h"

_Atomic(bool) aw_sandbox_on;

void aw_sandbox_prepare(void)
{
	aw_framed_bridge_all(false);
}

AW_WRAPPER int prctl(int option, ...)
{
	unsigned long a[4];
	va_list list;
	int result;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		aw_sandbox_prepare();
	result = aw_libc()->prctl(option, a[0], a[1], a[2], a[3]);
	if (result == 0 && option == PR_SET_SECCOMP)
		aw_sandbox_enter();
	return result;
}
AW_WRAPPER_TIME64(__prctl_time64, prctl);
