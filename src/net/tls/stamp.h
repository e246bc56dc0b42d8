// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// By which a file that was renewed is known.
#ifndef NET_TLS_STAMP_H
#define NET_TLS_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>

/* All zero: there is no such file. */
struct aw_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec written;
};

static inline struct aw_stamp aw_stamp_of(const char *file)
{
	struct aw_stamp stamp = { 0 };
	struct stat st;

	if (stat(file, &st) != 0)
		return stamp;
	stamp.dev = st.st_dev;
	stamp.ino = st.st_ino;
	stamp.size = st.st_size;
	stamp.written = st.st_mtim;
	return stamp;
}

static inline bool aw_stamp_is_same(const struct aw_stamp *a, const struct aw_stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec;
}

#endif
