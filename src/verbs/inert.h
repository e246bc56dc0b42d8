// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Answers of names that have no function here. None reads an argument, which every calling convention
// of Linux allows; so all names of one answer are one function. An alias is of its own file, and each
// file has its own copies.
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

/* Answers a number of completions; less than none is an error. */
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
