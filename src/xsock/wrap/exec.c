// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: exec and posix_spawn, which tell the new program of its sockets.
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/inherit.h"
#include "xsock/preload/program.h"

/* Room for the arguments of the list forms: ARG_MAX has far fewer in practice. */
#define LIST_MAX 4096

/* What a program that is about to be started is given. */
struct bequest {
	char *const *env;
	char **own; /* the same, where it is ours; else NULL */
	bool shared; /* slots are held for it */
};

/* Whether framed connections stay what they are in the other program; where there are none, nothing is asked of its file. */
static bool can_inherit(const struct aw_program *program)
{
	return !aw_framed_any() || (aw_arena_bequest() >= 0 && aw_program_has_us(program));
}

static void give_env(struct bequest *bequest, char *const env[])
{
	bequest->own = aw_inherit_env(env);
	bequest->env = bequest->own ? bequest->own : env;
}

/* What a child of vfork's leaves to a program it does not take from its parent. */
static struct bequest prepare_exec(const struct aw_program *program)
{
	struct bequest bequest = { 0 };
	bool borrowed = aw_fdtab_is_borrowed(), framed;

	aw_inherit_settle();
	framed = can_inherit(program);
	bequest.shared = framed && borrowed;
	if (bequest.shared)
		aw_framed_share();
	else if (borrowed)
		aw_framed_bridge_borrowed();
	else if (!framed)
		aw_framed_bridge_all(true);
	give_env(&bequest, program->env);
	return bequest;
}

/* There is no such program after all. */
static void undo(const struct bequest *bequest)
{
	if (bequest->shared)
		aw_framed_unshare();
	aw_inherit_undo(bequest->own);
}

AW_WRAPPER int execve(const char *path, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, path, false, env };
	struct bequest bequest = prepare_exec(&program);
	int result = aw_libc()->execve(path, argv, bequest.env);

	undo(&bequest);
	return result;
}

AW_WRAPPER int execvpe(const char *file, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, file, true, env };
	struct bequest bequest = prepare_exec(&program);
	int result = aw_libc()->execvpe(file, argv, bequest.env);

	undo(&bequest);
	return result;
}

AW_WRAPPER int fexecve(int fd, char *const argv[], char *const env[])
{
	const struct aw_program program = { fd, "", false, env };
	struct bequest bequest = prepare_exec(&program);
	int result = aw_libc()->fexecve(fd, argv, bequest.env);

	undo(&bequest);
	return result;
}

AW_WRAPPER int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
	const struct aw_program program = { dir, path, false, env };
	struct bequest bequest = prepare_exec(&program);
	int result = (int)aw_libc()->syscall(SYS_execveat, dir, path, argv, bequest.env, flags);

	undo(&bequest);
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

/*
 * The child may go on with what is pending, as after a fork. Its actions may leave open what is closed on exec otherwise.
 */
static struct bequest prepare_spawn(const struct aw_program *program,
				    const posix_spawn_file_actions_t *actions)
{
	struct bequest bequest = { 0 };

	aw_first_io_before_spawn();
	bequest.shared = can_inherit(program);
	if (bequest.shared)
		aw_framed_share();
	else
		aw_framed_bridge_all(!actions);
	give_env(&bequest, program->env);
	return bequest;
}

static int end_spawn(struct bequest *bequest, int err)
{
	if (!err)
		bequest->shared = false;
	undo(bequest);
	return err;
}

AW_WRAPPER int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, path, false, env };
	struct bequest bequest = prepare_spawn(&program, actions);

	return end_spawn(&bequest,
			 aw_libc()->posix_spawn(pid, path, actions, attr, argv, bequest.env));
}

AW_WRAPPER int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, file, true, env };
	struct bequest bequest = prepare_spawn(&program, actions);

	return end_spawn(&bequest,
			 aw_libc()->posix_spawnp(pid, file, actions, attr, argv, bequest.env));
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
	const struct aw_program program = { AT_FDCWD, path, false, env };
	pidfd_spawn_fn *spawn = find_newer("pidfd_spawn");
	struct bequest bequest;

	if (!spawn)
		return ENOSYS;
	bequest = prepare_spawn(&program, actions);
	return end_spawn(&bequest, spawn(pidfd, path, actions, attr, argv, bequest.env));
}

AW_WRAPPER int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, file, true, env };
	pidfd_spawn_fn *spawn = find_newer("pidfd_spawnp");
	struct bequest bequest;

	if (!spawn)
		return ENOSYS;
	bequest = prepare_spawn(&program, actions);
	return end_spawn(&bequest, spawn(pidfd, file, actions, attr, argv, bequest.env));
}
