// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stage of extended.c: two processes, connected, and what both do in every scene.
#ifndef SYSTEM_EXTENDED_H
#define SYSTEM_EXTENDED_H

#include <anywarp/sockets.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scene {
	const char *name;
	void (*serve)(int fd);
	void (*ask)(int fd);
	int asker_dies_of; /* a signal, or 0 */
};

/* The scene has closed its fd: its number may be a file of the library's by now. */
extern bool scene_has_closed;

struct extent {
	size_t offset, len;
};

/* extended_direct.c, extended_end.c; both end with a scene without a name. */
extern const struct scene direct_scenes[], end_scenes[];

void need(bool holds, const char *claim, const char *file, int line);
#define NEED(claim) need(claim, #claim, __FILE__, __LINE__)
#define NEED_ERRNO(call, error) \
	need((call) == -1 && errno == (error), #call ": " #error, __FILE__, __LINE__)

void play(const struct scene *scene);
/* What the calls say of fds that are none of theirs. */
void play_without_connection(void);

/* From low to high; the seed is printed. */
size_t draw(size_t low, size_t high);
struct extent draw_extent(size_t size);

void write_all(int fd, const void *buf, size_t len);
void read_all(int fd, void *buf, size_t len);
/* Sends an octet, which is on its way when this returns, with all before it. */
void await_taken(int fd);

/* Registers memory and sends its key; takes the peer's. */
struct iwarp_mr *offer(int fd, void *at, size_t len, int access);
struct iwarp_key take_key(int fd);

bool has_completion(int fd);
/* Waits for it at the queue's fd. */
struct iwarp_completion next_completion(int fd);
void await(int fd, uint64_t cookie, size_t bytes, int error);

/* exit(3), which must not want to wait for longer than half a minute, and has that time passed. */
void exit_out_of_time(void);

bool in_child(void);
bool child_is_well(void);

#endif
