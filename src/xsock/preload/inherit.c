// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes and reads the variables. A socket is "INODE:STATE:MODE:ROLE:LOCAL:REMOTE", with commas
// between sockets; the addresses are a bridged one's, in hex, and a framed one has its slot's number instead.
#include "xsock/preload/inherit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/base/log.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/memory.h"
#include "xsock/process/name.h"
#include "xsock/process/proxy.h"

#define ADDR_OCTETS sizeof(struct sockaddr_in6)
#define ADDR_HEX (2 * ADDR_OCTETS)
#define SOCKET_TEXT_MAX (64 + 2 * ADDR_HEX)
#define FDS_MAX 4096
#define TEXT_MAX 65536 /* a string of the environment is of 128 KiB at most */

/*
 * Which sockets come first: those that only we can tell of, then those that stay open as they are. A bridged one that
 * is left out still has its name.
 */
enum rank {
	RANK_UNKNOWN,
	RANK_OPEN,
	RANK_OTHER,
	RANKS,
};

struct text {
	char *at; /* of room for TEXT_MAX */
	size_t len;
	enum rank rank; /* of what is written now */
};

static void put_hex(char *to, const void *from)
{
	const unsigned char *octets = from;

	for (size_t i = 0; i < ADDR_OCTETS; i++)
		sprintf(to + 2 * i, "%02x", octets[i]);
}

static bool get_hex(const char *from, void *to)
{
	unsigned char *octets = to;

	for (size_t i = 0; i < ADDR_OCTETS; i++) {
		if (sscanf(from + 2 * i, "%2hhx", &octets[i]) != 1)
			return false;
	}
	return true;
}

static enum rank rank_of(const struct aw_sock *sock, int fd)
{
	if (sock->state != AW_FD_BRIDGED && sock->state != AW_FD_FRAMED)
		return RANK_UNKNOWN;
	return aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? RANK_OTHER : RANK_OPEN;
}

/* Once a socket: at its first fd. */
static void write_socket(struct aw_sock *sock, int fd, void *arg)
{
	struct text *text = arg;
	char local[ADDR_HEX + 1] = "", remote[ADDR_HEX + 1] = "";

	if (sock->state == AW_FD_CANDIDATE || aw_fdtab_is_called(sock) ||
	    rank_of(sock, fd) != text->rank || fd != aw_fdtab_next(sock, -1) ||
	    text->len + SOCKET_TEXT_MAX > TEXT_MAX)
		return;
	if (sock->state == AW_FD_BRIDGED) {
		put_hex(local, &sock->local);
		put_hex(remote, &sock->remote);
	} else if (sock->state == AW_FD_FRAMED) {
		sprintf(local, "%u", aw_arena_number(sock->slot));
	}
	text->len += (size_t)sprintf(text->at + text->len, "%s%lu:%d:%d:%d:%s:%s",
				     text->len ? "," : "", (unsigned long)sock->ino, sock->state,
				     (int)sock->mode, (int)sock->role, local, remote);
}

static bool is_ours(const char *entry)
{
	return strncmp(entry, AW_INHERIT_FDS "=", sizeof(AW_INHERIT_FDS)) == 0 ||
	       strncmp(entry, AW_INHERIT_ARENA "=", sizeof(AW_INHERIT_ARENA)) == 0 ||
	       strncmp(entry, AW_INHERIT_PROXY "=", sizeof(AW_INHERIT_PROXY)) == 0;
}

/* What is passed on: the two strings, then the pointers. */
struct bequest {
	size_t octets; /* of all of it */
	struct bequest *outer; /* of a call that a signal's handler has interrupted */
	bool borrowed; /* a child of vfork's */
	char proxy[64], arena[64];
	char fds[sizeof(AW_INHERIT_FDS) + TEXT_MAX];
	char *env[];
};

/* A child of vfork that has exec'ed has left its bequest in its parent's memory, and in the thread's care. */
static pthread_key_t left_behind;
static bool has_key;

static void let_go(void *left)
{
	struct bequest *bequest = left;

	aw_memory_unmap(bequest, bequest->octets);
}

__attribute__((constructor)) static void make_key(void)
{
	has_key = pthread_key_create(&left_behind, let_go) == 0;
}

static size_t count_entries(char *const env[])
{
	size_t count = 0;

	while (env && env[count])
		count++;
	return count;
}

/* Who was before and is a child of vfork has exec'ed by now. */
static struct bequest *outer_of(void)
{
	struct bequest *before = has_key ? pthread_getspecific(left_behind) : NULL, *outer = before;

	if (before && before->borrowed) {
		outer = before->outer;
		aw_memory_unmap(before, before->octets);
	}
	return outer;
}

static struct bequest *new_bequest(char *const env[])
{
	size_t octets = sizeof(struct bequest) + (count_entries(env) + 4) * sizeof(char *);
	struct bequest *bequest = aw_memory_map(octets), *outer = outer_of();

	if (bequest) {
		bequest->octets = octets;
		bequest->outer = outer;
		bequest->borrowed = aw_fdtab_is_borrowed();
	}
	if (has_key)
		(void)pthread_setspecific(left_behind, bequest ? bequest : outer);
	return bequest;
}

static void drop(struct bequest *bequest)
{
	if (has_key)
		(void)pthread_setspecific(left_behind, bequest->outer);
	aw_memory_unmap(bequest, bequest->octets);
}

static void write_sockets(struct bequest *bequest)
{
	struct text text = { .at = bequest->fds + sizeof(AW_INHERIT_FDS) };

	aw_fdtab_lock();
	for (text.rank = 0; text.rank < RANKS; text.rank++)
		aw_fdtab_each(write_socket, &text);
	aw_fdtab_unlock();
	if (text.len)
		memcpy(bequest->fds, AW_INHERIT_FDS "=", sizeof(AW_INHERIT_FDS));
}

/* As a variable: a file, by its inode. */
static void write_file(char *text, const char *name, int fd)
{
	struct stat file = { 0 };

	if (fd < 0)
		return;
	fstat(fd, &file);
	sprintf(text, "%s=%d:%lu", name, fd, (unsigned long)file.st_ino);
}

/* False: env will do as it is. */
static bool assemble(struct bequest *bequest, char *const env[])
{
	size_t kept = 0;

	for (size_t i = 0; env && env[i]; i++) {
		if (!is_ours(env[i]))
			bequest->env[kept++] = env[i];
	}
	if (bequest->fds[0])
		bequest->env[kept++] = bequest->fds;
	if (bequest->proxy[0])
		bequest->env[kept++] = bequest->proxy;
	if (bequest->arena[0])
		bequest->env[kept++] = bequest->arena;
	return bequest->fds[0] || bequest->proxy[0] || bequest->arena[0];
}

char **aw_inherit_env(char *const env[])
{
	struct bequest *bequest = new_bequest(env);
	int proxy = aw_proxy_export(), arena;

	aw_framed_prepare_relatives();
	arena = aw_arena_bequest();
	if (!bequest)
		return NULL;
	write_sockets(bequest);
	write_file(bequest->proxy, AW_INHERIT_PROXY, proxy);
	write_file(bequest->arena, AW_INHERIT_ARENA, arena);
	if (!assemble(bequest, env)) {
		drop(bequest);
		return NULL;
	}
	if (proxy >= 0)
		aw_libc()->fcntl(proxy, F_SETFD, 0);
	if (arena >= 0)
		aw_libc()->fcntl(arena, F_SETFD, 0);
	return bequest->env;
}

void aw_inherit_undo(char **env)
{
	int saved = errno, proxy = aw_proxy_export(), arena = aw_arena_bequest();

	if (env && proxy >= 0)
		aw_libc()->fcntl(proxy, F_SETFD, FD_CLOEXEC);
	if (env && arena >= 0)
		aw_libc()->fcntl(arena, F_SETFD, FD_CLOEXEC);
	if (env)
		drop((struct bequest *)((char *)env - offsetof(struct bequest, env)));
	errno = saved;
}

struct survivors {
	int fds[FDS_MAX];
	int count;
};

static void find_survivor(struct aw_sock *sock, int fd, void *arg)
{
	struct survivors *found = arg;
	int flags = aw_libc()->fcntl(fd, F_GETFD);

	if (sock->state >= AW_FD_CONNECTING && !aw_fdtab_is_called(sock) && flags >= 0 &&
	    !(flags & FD_CLOEXEC) && found->count < FDS_MAX)
		found->fds[found->count++] = fd;
}

void aw_inherit_settle(void)
{
	static struct survivors found; /* exec is the last thing that a process does */

	if (!aw_fdtab_any_undecided() || aw_fdtab_is_borrowed())
		return;
	found.count = 0;
	aw_fdtab_lock();
	aw_fdtab_each(find_survivor, &found);
	aw_fdtab_unlock();
	aw_first_io_each(found.fds, found.count);
	aw_first_io_closing_range(0, UINT_MAX);
}

/* Closed by the exec: it is the process's no more. */
static void leave_slot(unsigned number, unsigned long ino)
{
	struct aw_slot *slot = aw_arena_find(number, ino);

	if (slot)
		aw_arena_leave(slot);
}

/* One socket of the variable, at whichever fds it has now. */
static void take_socket(const char *text, const int *fds, const struct stat *files, int count)
{
	struct aw_sock sock = { 0 };
	unsigned long ino;
	unsigned number;
	int state, mode, role, at = 0, first = -1;

	if (sscanf(text, "%lu:%d:%d:%d:%n", &ino, &state, &mode, &role, &at) != 4 || !at ||
	    state < AW_FD_LISTENER || state > AW_FD_PENDING || state == AW_FD_INTERNAL ||
	    mode < AW_XS_OFF || mode > AW_XS_AUTO || role < 0 || role > AW_ROLE_PASSIVE)
		return;
	sock.state = (enum aw_fd_state)state;
	sock.mode = (enum aw_xs_mode)mode;
	sock.role = (enum aw_role)role;
	sock.proxy = aw_proxy_id();
	if (sock.state == AW_FD_BRIDGED &&
	    (!get_hex(text + at, &sock.local) || !get_hex(text + at + ADDR_HEX + 1, &sock.remote)))
		return;
	sock.ino = ino;
	if (sock.state == AW_FD_FRAMED &&
	    (sscanf(text + at, "%u", &number) != 1 || !aw_framed_inherit(&sock, number)))
		return;
	for (int i = 0; i < count; i++) {
		if (!S_ISSOCK(files[i].st_mode) || files[i].st_ino != ino)
			continue;
		if (first < 0 && aw_fdtab_add(fds[i], &sock))
			first = fds[i];
		else if (first >= 0)
			aw_fdtab_copy(first, fds[i], false);
	}
	if (first < 0 && sock.slot)
		leave_slot(number, ino);
}

static int list_fds(int *fds, struct stat *files)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;

	while (dir && count < FDS_MAX && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(dir) && fstat(fd, &files[count]) == 0)
			fds[count++] = fd;
	}
	if (dir)
		closedir(dir);
	return count;
}

static void take_sockets(const char *text)
{
	int *fds = calloc(FDS_MAX, sizeof(*fds));
	struct stat *files = calloc(FDS_MAX, sizeof(*files));

	if (fds && files) {
		int count = list_fds(fds, files);

		for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
			take_socket(text, fds, files, count);
	}
	free(files);
	free(fds);
}

/* The file that write_file has written of, or -1. */
static int read_file(const char *text, struct stat *file)
{
	unsigned long ino;
	int fd;

	return sscanf(text, "%d:%lu", &fd, &ino) == 2 && fstat(fd, file) == 0 && file->st_ino == ino
		       ? fd
		       : -1;
}

static void take_proxy(const char *text)
{
	struct stat file;
	int fd = read_file(text, &file);

	if (fd >= 0 && S_ISSOCK(file.st_mode) && aw_name_is_believed(fd))
		aw_proxy_import(fd);
}

static void take_arena(const char *text)
{
	struct stat file;
	int fd = read_file(text, &file);

	if (fd < 0 || !aw_arena_adopt(fd))
		aw_xs_log(AW_XS_LOG_ERROR,
			  "the records that this program was left with cannot be mapped");
}

/* stdio reads and writes behind our back: what came as fd 0, 1 or 2 is settled at once. */
__attribute__((constructor(200))) static void inherit(void)
{
	const char *proxy = getenv(AW_INHERIT_PROXY), *fds = getenv(AW_INHERIT_FDS);
	const char *arena = getenv(AW_INHERIT_ARENA);

	if (proxy)
		take_proxy(proxy);
	if (arena)
		take_arena(arena);
	if (fds)
		take_sockets(fds);
	unsetenv(AW_INHERIT_PROXY);
	unsetenv(AW_INHERIT_ARENA);
	unsetenv(AW_INHERIT_FDS);
	aw_proxy_present();
	for (int fd = 0; fds && fd <= 2; fd++) {
		(void)aw_first_io(fd, AW_FIRST_WRITE, false);
		(void)aw_framed_bridge(fd);
	}
}
