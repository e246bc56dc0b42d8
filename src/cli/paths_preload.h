// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The declarations that the wrappers of libanywarp-paths.so share.
#ifndef CLI_PATHS_PRELOAD_H
#define CLI_PATHS_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

// The next definition of that call, which is called as name is.
#define NEXT(name) ((__typeof__(&(name)))aw_paths_next(#name))

// Returns the path to use instead; to holds it where it is another. It is absolute then. dir: where a relative path begins,
// an fd or AT_FDCWD.
const char *aw_paths_moved(const char *path, char to[PATH_MAX]);
const char *aw_paths_moved_at(int dir, const char *path, char to[PATH_MAX]);

// The length of what aw_paths_moved has put before a path.
size_t aw_paths_root_len(void);

// Takes the directory of the files off an absolute path, so that the program sees the one that it knows. Returns path, NULL where
// that is NULL.
char *aw_paths_shown(char *path);

void *aw_paths_next(const char *name);

// Returns the fd that was opened by that path. In the place of a file whose text is made anew it has that text; of an unused entry of
// the GID table reading is EINVAL, as of the kernel's.
int aw_paths_opened(int fd, const char *path);

// The text of a live file, by its name below the port; false: it is none of them, and keeps what is in it.
#define PATHS_TEXT_MAX 64
bool aw_paths_live(const char *root, const char *name, char text[PATHS_TEXT_MAX]);

#endif
