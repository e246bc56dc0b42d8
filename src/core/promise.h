// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The core's promises to itself. A broken promise stops the program at once, also in a kernel: to
// go on could place a peer's octets where they do not belong. Never used for what a peer sends.
#ifndef CORE_PROMISE_H
#define CORE_PROMISE_H

#define AW_PROMISE(claim)                          \
	do {                                       \
		if (__builtin_expect(!(claim), 0)) \
			__builtin_trap();          \
	} while (0)

#endif
