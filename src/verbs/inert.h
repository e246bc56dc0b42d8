// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions behind names that are not implemented here. They read no argument, which every
// calling convention of Linux allows, so one function serves all names with the same result. An
// alias and its function must be in one file, so each file has its own copies.
#ifndef VERBS_INERT_H
#define VERBS_INERT_H

#include <errno.h>
#include <stddef.h>

#define INERT static __attribute__((unused))

INERT int unsupported(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* Returns a number of completions; a negative one is an error. */
INERT int unsupported_poll(void)
{
	errno = EOPNOTSUPP;
	return -EOPNOTSUPP;
}

INERT void *no_object(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

INERT int no_fd(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

INERT int absent(void)
{
	errno = ENOENT;
	return -1;
}

INERT void nothing(void)
{
}

INERT const char *unknown(void)
{
	return "unknown";
}

#define UNSUPPORTED __attribute__((alias("unsupported")))
#define UNSUPPORTED_POLL __attribute__((alias("unsupported_poll")))
#define NO_OBJECT __attribute__((alias("no_object")))
#define NO_FD __attribute__((alias("no_fd")))
#define ABSENT __attribute__((alias("absent")))
#define NOTHING __attribute__((alias("nothing")))
#define UNKNOWN __attribute__((alias("unknown")))

#endif
