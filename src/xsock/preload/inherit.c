// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes and reads the variables. A socket is "INODE:STATE:MODE:SET:ROLE:BESIDE:PAIR:LOCAL:REMOTE",
// with commas between sockets. SET is 1 where the program has set the mode, BESIDE the fd beside the socket, PAIR 1 where that is
// its TCP socket. The addresses, in hex, are those of a bridged socket. The arena is "FD:INODE:SLOTS", where SLOTS has a bit for each
// slot, in hex, behind a digit: 1 if the program is a child's that has yet to lock them, else 0.
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

#include "base/hex.h"
#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/base/text.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/pair/attend.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/settle.h"
#include "xsock/process/deadline.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/memory.h"
#include "xsock/process/mode.h"
#include "xsock/process/name.h"
#include "xsock/process/protect.h"
#include "xsock/process/proxy.h"

#define ADDR_BYTES sizeof(struct sockaddr_in6)
#define ADDR_HEX (2 * ADDR_BYTES)
#define SOCKET_TEXT_MAX (64 + 2 * ADDR_HEX)
#define PRELOAD "LD_PRELOAD="
#define TEXT_MAX 65536 /* a string of the environment has 128 KiB at most */

/*
 * The order of the sockets in the variable, which may be too short for all. First those that only
 * this library knows, then those that the exec leaves open. A bridged socket that is left out still
 * has its name (name.h).
 */
enum text_rank {
	RANK_UNKNOWN,
	RANK_OPEN,
	RANK_OTHER,
	RANKS,
};

struct socket_text {
	char *at; /* a buffer of TEXT_MAX bytes */
	size_t len;
	enum text_rank rank; /* rank of the sockets that are being written */
};

static char *write_address(char *at, const union aw_address *address)
{
	aw_hex_write(at, address, ADDR_BYTES);
	return at + ADDR_HEX;
}

/* Writes sock, if it is no record, has the rank that is being written, and fd is its first fd. */
static void write_socket(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	struct socket_text *text = arg;
	bool is_bridged = sock->state == AW_FD_BRIDGED;
	enum text_rank rank = RANK_UNKNOWN;
	char *at = text->at + text->len;

	if (sock->slot || (sock->state == AW_FD_CANDIDATE && !sock->mode_is_set) ||
	    aw_fdtab_is_in_connect(sock))
		return;
	if (is_bridged)
		rank = aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? RANK_OTHER : RANK_OPEN;
	if (rank != text->rank || fd != aw_fdtab_next_fd(sock, -1) ||
	    text->len + SOCKET_TEXT_MAX > TEXT_MAX)
		return;

	const int numbers[] = { (int)sock->state, (int)sock->mode,	 sock->mode_is_set,
				(int)sock->role,  aw_fdtab_beside(sock), sock->is_pair };

	at = aw_text_add_digits(aw_text_add(at, text->len ? "," : ""), sock->ino, 10, 1);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		at = aw_text_add_number(aw_text_add(at, ":"), numbers[i]);
	at = aw_text_add(at, ":");
	if (is_bridged)
		at = write_address(at, &sock->local);
	at = aw_text_add(at, ":");
	if (is_bridged)
		at = write_address(at, &sock->remote);
	text->len = (size_t)(at - text->at);
}

/* The new environment: the library's variables, and pointers to all variables. */
struct exec_env {
	size_t bytes; /* size of the struct with env */
	struct exec_env *outer; /* that of a call which a signal handler has interrupted */
	bool by_vfork_child; /* a child of vfork has made the struct */
	struct aw_slot_set slots;
	char proxy[64], arena[64 + 2 * sizeof(struct aw_slot_set)];
	char fds[sizeof(AW_INHERIT_FDS) + TEXT_MAX];
	char *preload; /* behind env: room for LD_PRELOAD */
	char *env[];
};

/*
 * The thread's newest struct exec_env. A child of vfork that has called exec leaves it in
 * its parent's memory; the key unmaps it when the thread ends.
 */
static pthread_key_t newest_key;
static bool has_key;

static void unmap_left(void *left)
{
	struct exec_env *copy = left;

	aw_memory_unmap(copy, copy->bytes);
}

static void make_key(void)
{
	has_key = pthread_key_create(&newest_key, unmap_left) == 0;
}

static const char *find_preload(char *const env[])
{
	for (size_t i = 0; env && env[i]; i++)
		if (!strncmp(env[i], PRELOAD, strlen(PRELOAD)))
			return env[i];
	return NULL;
}

static struct exec_env *map_environment(char *const env[])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct exec_env *before, *outer, *copy;
	const char *theirs = find_preload(env), *ours = aw_protect_preload(theirs);
	size_t count = 6 + aw_protect_count(), bytes;

	/* outer is the struct of the interrupted call, if any. One of a child of vfork, which has called exec by now, is unmapped. */
	pthread_once(&once, make_key);
	before = outer = has_key ? pthread_getspecific(newest_key) : NULL;
	if (before && before->by_vfork_child) {
		outer = before->outer;
		aw_memory_unmap(before, before->bytes);
	}

	for (size_t i = 0; env && env[i]; i++)
		count++;
	bytes = sizeof(*copy) + count * sizeof(char *);
	if (ours)
		bytes += strlen(ours) + (theirs ? strlen(theirs) : 0) + 2;
	copy = aw_memory_map(bytes);
	if (copy) {
		copy->preload = (char *)(copy->env + count);
		copy->bytes = bytes;
		copy->outer = outer;
		copy->by_vfork_child = aw_fdtab_is_vfork_child();
	}
	if (has_key)
		(void)pthread_setspecific(newest_key, copy ? copy : outer);
	return copy;
}

static void drop_environment(struct exec_env *copy)
{
	if (has_key)
		(void)pthread_setspecific(newest_key, copy->outer);
	aw_memory_unmap(copy, copy->bytes);
}

/* Writes a variable that names fd and its inode. Returns its end. */
static char *write_file(char *text, const char *name, int fd)
{
	struct stat file = { 0 };

	fstat(fd, &file);
	text = aw_text_add_number(aw_text_add(aw_text_add(text, name), "="), fd);
	return aw_text_add_digits(aw_text_add(text, ":"), file.st_ino, 10, 1);
}

/* Writes the bits up to the last one that is set. */
static void write_slots(char *text, const struct aw_slot_set *slots)
{
	size_t bytes = sizeof(slots->bits);

	while (bytes && !slots->bits[bytes - 1])
		bytes--;
	if (!bytes)
		return;
	*text++ = ':';
	*text++ = slots->expected ? '1' : '0';
	aw_hex_write(text, slots->bits, bytes);
}

/*
 * Where TLS is required, a program whose environment was cleared has this library as well, in front of what else it preloads. Returns
 * whether LD_PRELOAD had to be written.
 */
static bool write_preload(char *at, char *const env[])
{
	const char *theirs = find_preload(env), *ours = aw_protect_preload(theirs);

	if (!ours)
		return false;
	at = aw_text_add(at, ours);
	if (theirs && theirs[strlen(PRELOAD)])
		(void)aw_text_add(aw_text_add(at, ":"), theirs + strlen(PRELOAD));
	return true;
}

static bool is_replaced(const char *variable, bool has_preload)
{
	return strncmp(variable, AW_INHERIT_FDS "=", sizeof(AW_INHERIT_FDS)) == 0 ||
	       strncmp(variable, AW_INHERIT_ARENA "=", sizeof(AW_INHERIT_ARENA)) == 0 ||
	       strncmp(variable, AW_INHERIT_PROXY "=", sizeof(AW_INHERIT_PROXY)) == 0 ||
	       strncmp(variable, AW_INHERIT_JUDGED "=", sizeof(AW_INHERIT_JUDGED)) == 0 ||
	       (has_preload && strncmp(variable, PRELOAD, strlen(PRELOAD)) == 0) ||
	       aw_protect_owns(variable);
}

/* Fills env with the caller's variables and the library's. False: the library has none. */
static bool fill_env(struct exec_env *copy, char *const env[])
{
	bool has_preload = write_preload(copy->preload, env);
	size_t kept = 0;

	for (size_t i = 0; env && env[i]; i++)
		if (!is_replaced(env[i], has_preload))
			copy->env[kept++] = env[i];
	if (has_preload)
		copy->env[kept++] = copy->preload;
	if (aw_protect_is_on())
		copy->env[kept++] = (char *)AW_INHERIT_JUDGED "=1";
	kept += aw_protect_add(copy->env + kept);
	if (copy->fds[0])
		copy->env[kept++] = copy->fds;
	if (copy->proxy[0])
		copy->env[kept++] = copy->proxy;
	if (copy->arena[0])
		copy->env[kept++] = copy->arena;
	return copy->fds[0] || copy->proxy[0] || copy->arena[0] || aw_protect_is_on();
}

/* Sets the flags of what is beside a socket that an exec leaves open. */
static void set_beside_flags(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	const int *flags = arg;
	int beside = aw_fdtab_beside(sock);

	if (beside && !(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
		aw_libc()->fcntl(beside, F_SETFD, *flags);
}

static void keep_besides(bool open)
{
	int flags = open ? 0 : FD_CLOEXEC;

	aw_fdtab_lock();
	aw_fdtab_each(set_beside_flags, &flags);
	aw_fdtab_unlock();
}

char **aw_inherit_env(char *const env[], enum aw_heir heir)
{
	struct exec_env *copy = map_environment(env);
	struct socket_text text = { 0 };
	int proxy, arena;

	aw_framed_prepare_relatives();
	proxy = aw_proxy_export();
	arena = aw_arena_fd_for_exec();
	if (!copy)
		return NULL;

	text.at = copy->fds + sizeof(AW_INHERIT_FDS);
	aw_fdtab_lock();
	for (text.rank = 0; text.rank < RANKS; text.rank++)
		aw_fdtab_each(write_socket, &text);
	aw_fdtab_unlock();
	if (text.len)
		memcpy(copy->fds, AW_INHERIT_FDS "=", sizeof(AW_INHERIT_FDS));

	if (heir != AW_HEIR_STRANGER && arena >= 0)
		aw_framed_list(&copy->slots, heir == AW_HEIR_CHILD);
	if (proxy >= 0)
		(void)write_file(copy->proxy, AW_INHERIT_PROXY, proxy);
	if (arena >= 0)
		write_slots(write_file(copy->arena, AW_INHERIT_ARENA, arena), &copy->slots);
	if (!fill_env(copy, env)) {
		drop_environment(copy);
		return NULL;
	}
	if (proxy >= 0)
		aw_libc()->fcntl(proxy, F_SETFD, 0);
	if (arena >= 0)
		aw_libc()->fcntl(arena, F_SETFD, 0);
	keep_besides(true);
	return copy->env;
}

void aw_inherit_undo(char **env, bool has_failed)
{
	int saved = errno, proxy = aw_proxy_export(), arena = aw_arena_fd_for_exec();
	struct exec_env *copy;

	if (!env)
		return;
	copy = (struct exec_env *)((char *)env - offsetof(struct exec_env, env));
	if (proxy >= 0)
		aw_libc()->fcntl(proxy, F_SETFD, FD_CLOEXEC);
	if (arena >= 0)
		aw_libc()->fcntl(arena, F_SETFD, FD_CLOEXEC);
	keep_besides(false);
	if (has_failed && copy->slots.expected)
		aw_framed_take_back(&copy->slots);
	drop_environment(copy);
	errno = saved;
}

struct survivors {
	int fds[AW_FDTAB_MAX];
	int count;
};

static void find_survivor(struct aw_sock *sock, int fd, void *arg)
{
	struct survivors *found = arg;
	int flags = aw_libc()->fcntl(fd, F_GETFD);

	if (sock->state >= AW_FD_CONNECTING && !aw_fdtab_is_in_connect(sock) && flags >= 0 &&
	    !(flags & FD_CLOEXEC) && found->count < AW_FDTAB_MAX)
		found->fds[found->count++] = fd;
}

void aw_inherit_settle(void)
{
	/* Static, because it is large and an exec is the last thing that a process does. */
	static struct survivors found;

	aw_attend_all(true);
	if (!aw_fdtab_any_undecided() || aw_fdtab_is_vfork_child())
		return;
	found.count = 0;
	aw_fdtab_lock();
	aw_fdtab_each(find_survivor, &found);
	aw_fdtab_unlock();
	aw_settle_fds(found.fds, found.count);
	aw_settle_before_exec();
}

/* The fds of this process that are sockets, each with its inode. */
struct socket_fds {
	int count;
	int fds[AW_FDTAB_MAX];
	ino_t inodes[AW_FDTAB_MAX];
};

/* Adds a socket, with all fds that it has now. False: it has none. */
static bool add_socket(const struct aw_sock *sock, const struct socket_fds *open)
{
	struct aw_change change;
	int first = -1;

	for (int i = 0; i < open->count; i++) {
		if (open->inodes[i] != sock->ino)
			continue;
		if (first < 0 && aw_fdtab_add(open->fds[i], sock)) {
			first = open->fds[i];
		} else if (first >= 0) {
			aw_fdtab_begin_change(&change, -1, first);
			(void)aw_fdtab_end_change(&change, open->fds[i]);
		}
	}
	return first >= 0;
}

/* Adds one socket of the variable. */
static void import_socket(const char *text, const struct socket_fds *open)
{
	struct aw_sock sock = { 0 };
	unsigned long ino;
	int state, mode, is_set, role, beside, is_pair, at = 0;

	if (sscanf(text, "%lu:%d:%d:%d:%d:%d:%d:%n", &ino, &state, &mode, &is_set, &role, &beside,
		   &is_pair, &at) != 7 ||
	    !at || state < AW_FD_CANDIDATE || state > AW_FD_PENDING || state == AW_FD_INTERNAL ||
	    state == AW_FD_FRAMED || mode < AW_XS_OFF || mode > AW_XS_MODE_LAST || role < 0 ||
	    role > AW_ROLE_PASSIVE)
		return;
	sock.state = (enum aw_fd_state)state;
	sock.mode = (enum aw_xs_mode)mode;
	sock.mode_is_set = is_set != 0;
	if (sock.mode_is_set)
		aw_mode_note_program();
	sock.role = (enum aw_role)role;
	sock.proxy = aw_proxy_id();
	if (sock.state == AW_FD_BRIDGED &&
	    (!aw_hex_read(text + at, &sock.local, ADDR_BYTES) ||
	     !aw_hex_read(text + at + ADDR_HEX + 1, &sock.remote, ADDR_BYTES)))
		return;
	sock.ino = ino;
	sock.is_pair = is_pair && sock.state == AW_FD_BRIDGED;
	/* The exec has left the fd beside the socket open; it is close-on-exec again from here on. */
	if (beside > STDERR_FILENO &&
	    aw_sockopt_int(beside, SOL_SOCKET, SO_PROTOCOL, -1) ==
		    (sock.is_pair ? IPPROTO_TCP : 0) &&
	    aw_libc()->fcntl(beside, F_SETFD, FD_CLOEXEC) == 0)
		sock.beside = beside;
	if (sock.state == AW_FD_PENDING)
		sock.due_ns = aw_deadline_begin();
	if (!add_socket(&sock, open) && sock.beside)
		aw_libc()->close(sock.beside);
}

/* Returns memory of the caller's, or NULL. */
static struct socket_fds *list_sockets(void)
{
	struct socket_fds *open = aw_memory_map(sizeof(*open));
	DIR *dir = open ? opendir("/proc/self/fd") : NULL;
	struct dirent *entry;
	struct stat file;

	while (dir && open->count < AW_FDTAB_MAX && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fstat(fd, &file) != 0 || !S_ISSOCK(file.st_mode))
			continue;
		open->fds[open->count] = fd;
		open->inodes[open->count++] = file.st_ino;
	}
	if (dir)
		closedir(dir);
	return open;
}

void aw_inherit_connection(int fd)
{
	struct aw_sock like = { .state = AW_FD_PENDING, .role = AW_ROLE_PASSIVE };
	union aw_address peer;
	socklen_t len = sizeof(peer);

	if (!aw_protect_covers(fd) ||
	    aw_libc()->getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
		return;
	like.mode = aw_mode_of(fd, true, NULL);
	like.due_ns = aw_deadline_begin();
	if (!aw_xs_mode_is_carried(like.mode) || aw_fdtab_add(fd, &like))
		return;
	aw_fdtab_log_left_out(fd, true);
	(void)aw_libc()->shutdown(fd, SHUT_RDWR);
	aw_protect_discard(fd);
}

/* Adds the records, and leaves the slots of those whose sockets the exec has closed. */
static void import_records(const char *text, const struct socket_fds *open)
{
	static struct aw_slot_set slots; /* large, and wanted once */
	size_t bytes = text[0] ? strlen(text + 1) / 2 : 0;
	struct aw_sock sock;

	if (bytes > sizeof(slots.bits) || !aw_hex_read(text + 1, slots.bits, bytes))
		return;
	slots.expected = text[0] == '1';
	for (unsigned number = 0; number < AW_ARENA_SLOTS; number++)
		if (aw_framed_inherit(&slots, number, &sock) && !add_socket(&sock, open))
			aw_arena_leave(sock.slot);
}

/* Returns the fd that write_file has written, if it is still the same file, or -1. */
static int read_file(const char *text, struct stat *file)
{
	unsigned long ino;
	int fd;

	return sscanf(text, "%d:%lu", &fd, &ino) == 2 && fstat(fd, file) == 0 && file->st_ino == ino
		       ? fd
		       : -1;
}

/*
 * stdio reads and writes fds 0 to 2 without a wrapper: sockets at these fds are decided at once.
 */
void aw_inherit_import(void)
{
	const char *proxy = secure_getenv(AW_INHERIT_PROXY), *fds = secure_getenv(AW_INHERIT_FDS);
	const char *arena = secure_getenv(AW_INHERIT_ARENA);
	const char *inode = arena ? strchr(arena, ':') : NULL;
	const char *slots = inode ? strchr(inode + 1, ':') : NULL;
	bool protects = aw_protect_is_on() && !secure_getenv(AW_INHERIT_JUDGED);
	struct socket_fds *open = slots || fds || protects ? list_sockets() : NULL;
	struct stat file;
	int fd;

	fd = proxy ? read_file(proxy, &file) : -1;
	if (fd >= 0 && S_ISSOCK(file.st_mode) && aw_name_is_believed(fd))
		aw_proxy_import(fd);
	fd = arena ? read_file(arena, &file) : -1;
	if (arena && (fd < 0 || !aw_arena_adopt(fd)))
		aw_log(AW_LOG_ERROR,
		       "the records that this program has inherited by exec cannot be mapped");
	if (open && slots)
		import_records(slots + 1, open);
	for (; open && fds; fds = strchr(fds, ',') ? strchr(fds, ',') + 1 : NULL)
		import_socket(fds, open);
	for (int i = 0; open && protects && i < open->count; i++)
		aw_inherit_connection(open->fds[i]);
	unsetenv(AW_INHERIT_PROXY);
	unsetenv(AW_INHERIT_ARENA);
	unsetenv(AW_INHERIT_FDS);
	unsetenv(AW_INHERIT_JUDGED);
	aw_proxy_present();
	for (fd = 0; open && fd <= 2; fd++) {
		(void)aw_first_io(fd, AW_FIRST_HAND_OVER, false);
		(void)aw_framed_bridge(fd);
	}
	aw_memory_unmap(open, sizeof(*open));
}
