// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: the functions by which liburing makes a ring, and libaio a context. Both libraries make their system calls inline,
// so that the wrapper of syscall(2) does not see them, and a ring or a context would move the bytes of MPA as
// data. A program that may have a socket in mode `on` gets ENOSYS, as on a kernel without them.
#include <errno.h>
#include <stddef.h>

#include "xsock/base/libc.h"
#include "xsock/process/mode.h"
#include "xsock/wrap/wrap.h"

struct io_uring;
struct io_uring_params;

int io_uring_setup(unsigned int entries, struct io_uring_params *params);
int io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags);
int io_uring_queue_init_try_nosqarr(unsigned int entries, struct io_uring *ring,
				    unsigned int flags);
int io_uring_queue_init_params(unsigned int entries, struct io_uring *ring,
			       struct io_uring_params *params);
int io_uring_queue_init_mem(unsigned int entries, struct io_uring *ring,
			    struct io_uring_params *params, void *memory, size_t size);

/* libaio's */
int io_setup(int events, void **context);
int io_queue_init(int events, void **context);

/* A program that uses them goes on without them on a kernel that has none. */
bool aw_uring_is_refused(enum aw_log_level level)
{
	if (!aw_mode_may_iwarp(true) && !aw_mode_may_iwarp(false))
		return false;
	aw_log(level,
	       "io_uring and io_submit are refused (ENOSYS), because they cannot carry sockets in mode "
	       "'on': a rule 'auto' or 'off' for this program allows them");
	return true;
}

/* The functions of both return what these macros return: a negative errno. */
#define NEXT(name) ((__typeof__(name) *)aw_libc_newer(#name))
#define RING(name, ...)                                                       \
	do {                                                                  \
		__typeof__(name) *next;                                       \
                                                                              \
		if (aw_uring_is_refused(AW_LOG_WARN) || !(next = NEXT(name))) \
			return -ENOSYS;                                       \
		return next(__VA_ARGS__);                                     \
	} while (0)

AW_WRAPPER int io_uring_setup(unsigned int entries, struct io_uring_params *params)
{
	RING(io_uring_setup, entries, params);
}

AW_WRAPPER int io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags)
{
	RING(io_uring_queue_init, entries, ring, flags);
}

AW_WRAPPER int io_uring_queue_init_try_nosqarr(unsigned int entries, struct io_uring *ring,
					       unsigned int flags)
{
	RING(io_uring_queue_init_try_nosqarr, entries, ring, flags);
}

AW_WRAPPER int io_uring_queue_init_params(unsigned int entries, struct io_uring *ring,
					  struct io_uring_params *params)
{
	RING(io_uring_queue_init_params, entries, ring, params);
}

AW_WRAPPER int io_uring_queue_init_mem(unsigned int entries, struct io_uring *ring,
				       struct io_uring_params *params, void *memory, size_t size)
{
	RING(io_uring_queue_init_mem, entries, ring, params, memory, size);
}

AW_WRAPPER int io_setup(int events, void **context)
{
	RING(io_setup, events, context);
}

AW_WRAPPER int io_queue_init(int events, void **context)
{
	RING(io_queue_init, events, context);
}
