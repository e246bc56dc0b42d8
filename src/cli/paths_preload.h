// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The declarations that the wrappers of libanywarp-paths.so share.
#ifndef CLI_PATHS_PRELOAD_H
#define CLI_PATHS_PRELOAD_H

#include <limits.h>

#define EXPORT __attribute__((visibility("default")))

// The next definition of that call, which is called as name is.
#define NEXT(name) ((__typeof__(&(name)))aw_paths_next(#name))

// Returns the path to use instead; to holds it where it is another.
const char *aw_paths_moved(const char *path, char to[PATH_MAX]);

void *aw_paths_next(const char *name);

// Returns the fd that was opened by that path. An unused entry of the GID table has an empty file
// here; reading the kernel's is EINVAL, so reading this one becomes so, too.
int aw_paths_opened(int fd, const char *path);

#endif
