// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: exec and posix_spawn, which tell the new program of its sockets.
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "xsock/framed/framed.h"
#include "xsock/preload/inherit.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/touch.h"

/* Room for the arguments of the list forms: ARG_MAX has far fewer in practice. */
#define LIST_MAX 4096

/* What a child of vfork's leaves to a program it does not take from its parent. */
static char **prepare_exec(char *const env[])
{
	aw_inherit_settle();
	if (aw_fdtab_is_borrowed())
		aw_framed_share();
	return aw_inherit_env(env);
}

static void undo_exec(char **more)
{
	if (aw_fdtab_is_borrowed())
		aw_framed_unshare();
	aw_inherit_undo(more);
}

AW_WRAPPER int execve(const char *path, char *const argv[], char *const env[])
{
	char **more;
	int result;

	more = prepare_exec(env);
	result = aw_libc()->execve(path, argv, more ? more : env);
	undo_exec(more);
	return result;
}

AW_WRAPPER int execvpe(const char *file, char *const argv[], char *const env[])
{
	char **more;
	int result;

	more = prepare_exec(env);
	result = aw_libc()->execvpe(file, argv, more ? more : env);
	undo_exec(more);
	return result;
}

AW_WRAPPER int fexecve(int fd, char *const argv[], char *const env[])
{
	char **more;
	int result;

	more = prepare_exec(env);
	result = aw_libc()->fexecve(fd, argv, more ? more : env);
	undo_exec(more);
	return result;
}

AW_WRAPPER int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
	char **more;
	int result;

	more = prepare_exec(env);
	result = (int)aw_libc()->syscall(SYS_execveat, dir, path, argv, more ? more : env, flags);
	undo_exec(more);
	return result;
}

AW_WRAPPER int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

AW_WRAPPER int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* Collects arguments up to the NULL; false when there are too many. */
static bool collect(const char *first, va_list args, char *argv[LIST_MAX])
{
	size_t count = 0;

	argv[count] = (char *)first;
	while (argv[count]) {
		if (++count == LIST_MAX) {
			errno = E2BIG;
			return false;
		}
		argv[count] = va_arg(args, char *);
	}
	return true;
}

AW_WRAPPER int execl(const char *path, const char *arg, ...)
{
	char *argv[LIST_MAX];
	va_list args;
	bool fits;

	va_start(args, arg);
	fits = collect(arg, args, argv);
	va_end(args);
	return fits ? execve(path, argv, environ) : -1;
}

AW_WRAPPER int execlp(const char *file, const char *arg, ...)
{
	char *argv[LIST_MAX];
	va_list args;
	bool fits;

	va_start(args, arg);
	fits = collect(arg, args, argv);
	va_end(args);
	return fits ? execvpe(file, argv, environ) : -1;
}

AW_WRAPPER int execle(const char *path, const char *arg, ...)
{
	char *argv[LIST_MAX];
	char *const *env;
	va_list args;
	bool fits;

	va_start(args, arg);
	fits = collect(arg, args, argv);
	env = va_arg(args, char *const *);
	va_end(args);
	return fits ? execve(path, argv, env) : -1;
}

/* The child may go on with what is pending, as after a fork. */
static char **prepare_spawn(char *const env[])
{
	aw_touch_before_spawn();
	aw_framed_share();
	return aw_inherit_env(env);
}

static int end_spawn(char **more, int err)
{
	if (err)
		aw_framed_unshare();
	aw_inherit_undo(more);
	return err;
}

AW_WRAPPER int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	char **more = prepare_spawn(env);
	int err = aw_libc()->posix_spawn(pid, path, actions, attr, argv, more ? more : env);

	return end_spawn(more, err);
}

AW_WRAPPER int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	char **more = prepare_spawn(env);
	int err = aw_libc()->posix_spawnp(pid, file, actions, attr, argv, more ? more : env);

	return end_spawn(more, err);
}

/* glibc has two since 2.39. Without them a program is told what it is told of a kernel that cannot do it. */
typedef __typeof__(pidfd_spawn) pidfd_spawn_fn;

static pidfd_spawn_fn *find_newer(const char *name)
{
	void *address = aw_libc_newer(name);
	pidfd_spawn_fn *spawn;

	memcpy(&spawn, &address, sizeof(spawn));
	return spawn;
}

AW_WRAPPER int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	pidfd_spawn_fn *spawn = find_newer("pidfd_spawn");
	char **more;
	int err;

	if (!spawn)
		return ENOSYS;
	more = prepare_spawn(env);
	err = spawn(pidfd, path, actions, attr, argv, more ? more : env);
	return end_spawn(more, err);
}

AW_WRAPPER int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	pidfd_spawn_fn *spawn = find_newer("pidfd_spawnp");
	char **more;
	int err;

	if (!spawn)
		return ENOSYS;
	more = prepare_spawn(env);
	err = spawn(pidfd, file, actions, attr, argv, more ? more : env);
	return end_spawn(more, err);
}
