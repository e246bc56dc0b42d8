// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: exec and posix_spawn. The new program gets the library's variables (preload/inherit.h),
// and goes on with the sockets that it inherits.
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/inherit.h"
#include "xsock/preload/program.h"
#include "xsock/preload/settle.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/memory.h"

/* Arguments of execl and the like that are on the stack, which may be a small thread's. */
#define FEW_ARGUMENTS 8

/* The environment that the program that is about to be started gets. */
struct exec_state {
	char *const *env;
	char **own; /* the same, if aw_inherit_env has made it; else NULL */
};

/*
 * Returns whether framed connections stay framed in the new program. Its file is read only if there
 * are such connections.
 */
static bool can_inherit(const struct aw_program *program)
{
	return (!aw_framed_any() && !aw_fdtab_any_undecided()) ||
	       (aw_arena_fd_for_exec() >= 0 && aw_program_preloads(program));
}

static struct exec_state make_state(char *const env[], enum aw_heir heir)
{
	char **own = aw_inherit_env(env, heir);

	return (struct exec_state){ own ? own : env, own };
}

/*
 * Prepares the process's sockets for an exec. A child of vfork shares its parent's table: it shares
 * or bridges its own fds, and leaves the parent's as they are.
 */
static struct exec_state prepare_exec(const struct aw_program *program)
{
	bool is_vfork_child = aw_fdtab_is_vfork_child();

	aw_inherit_settle();
	if (can_inherit(program))
		return make_state(program->env, is_vfork_child ? AW_HEIR_CHILD : AW_HEIR_SELF);
	if (is_vfork_child)
		aw_framed_bridge_borrowed();
	else
		aw_settle_for_stranger(true);
	return make_state(program->env, AW_HEIR_STRANGER);
}

/* Takes back what was prepared, since the call has failed. Returns result. */
static int undo_prepare(const struct exec_state *state, int result)
{
	aw_inherit_undo(state->own, true);
	return result;
}

AW_WRAPPER int execve(const char *path, char *const argv[], char *const env[])
{
	struct exec_state state = prepare_exec(&(struct aw_program){ AT_FDCWD, path, false, env });

	return undo_prepare(&state, aw_libc()->execve(path, argv, state.env));
}

AW_WRAPPER int execvpe(const char *file, char *const argv[], char *const env[])
{
	struct exec_state state = prepare_exec(&(struct aw_program){ AT_FDCWD, file, true, env });

	return undo_prepare(&state, aw_libc()->execvpe(file, argv, state.env));
}

AW_WRAPPER int fexecve(int fd, char *const argv[], char *const env[])
{
	struct exec_state state = prepare_exec(&(struct aw_program){ fd, "", false, env });

	return undo_prepare(&state, aw_libc()->fexecve(fd, argv, state.env));
}

AW_WRAPPER int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
	struct exec_state state = prepare_exec(&(struct aw_program){ dir, path, false, env });

	return undo_prepare(&state, (int)aw_libc()->syscall(SYS_execveat, dir, path, argv,
							    state.env, flags));
}

AW_WRAPPER int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

AW_WRAPPER int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The thread's mapped arguments. Those of a child of vfork, which has become another program, are left in its parent's memory. */
static _Thread_local struct {
	char **at;
	size_t bytes;
} mapped;

/*
 * Calls exec with the arguments from first up to the NULL, and with the environment: the one behind the NULL if has_env,
 * else the process's.
 */
static int exec_list(__typeof__(execve) *exec, const char *path, const char *first, va_list args,
		     bool has_env)
{
	char *few[FEW_ARGUMENTS], **argv = few;
	size_t count = 1; /* with first and the NULL */
	va_list rest;

	va_copy(rest, args);
	for (const char *argument = first; argument; argument = va_arg(rest, char *))
		count++;
	va_end(rest);
	if (count > FEW_ARGUMENTS) {
		aw_memory_unmap(mapped.at, mapped.bytes);
		mapped.bytes = count * sizeof(char *);
		argv = mapped.at = aw_memory_map(mapped.bytes);
	}
	if (!argv)
		return aw_fail_with(E2BIG);
	argv[0] = (char *)first;
	for (size_t i = 1; i < count; i++)
		argv[i] = va_arg(args, char *);
	return exec(path, argv, has_env ? va_arg(args, char *const *) : environ);
}

AW_WRAPPER int execl(const char *path, const char *arg, ...)
{
	va_list args;
	int result;

	va_start(args, arg);
	result = exec_list(execve, path, arg, args, false);
	va_end(args);
	return result;
}

AW_WRAPPER int execlp(const char *file, const char *arg, ...)
{
	va_list args;
	int result;

	va_start(args, arg);
	result = exec_list(execvpe, file, arg, args, false);
	va_end(args);
	return result;
}

AW_WRAPPER int execle(const char *path, const char *arg, ...)
{
	va_list args;
	int result;

	va_start(args, arg);
	result = exec_list(execve, path, arg, args, true);
	va_end(args);
	return result;
}

/*
 * Prepares the sockets for a spawn, whose child may go on with them, as after a fork. The child's
 * file actions may keep an fd open that an exec would close.
 */
static struct exec_state prepare_spawn(const struct aw_program *program,
				       const posix_spawn_file_actions_t *actions)
{
	aw_settle_before_spawn();
	if (can_inherit(program))
		return make_state(program->env, AW_HEIR_CHILD);
	aw_settle_for_stranger(!actions);
	return make_state(program->env, AW_HEIR_STRANGER);
}

static int end_spawn(const struct exec_state *state, int err)
{
	aw_inherit_undo(state->own, err != 0);
	return err;
}

AW_WRAPPER int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, path, false, env };
	struct exec_state state = prepare_spawn(&program, actions);

	return end_spawn(&state, aw_libc()->posix_spawn(pid, path, actions, attr, argv, state.env));
}

AW_WRAPPER int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, file, true, env };
	struct exec_state state = prepare_spawn(&program, actions);

	return end_spawn(&state,
			 aw_libc()->posix_spawnp(pid, file, actions, attr, argv, state.env));
}

/*
 * glibc has these two since 2.39. Where libc has none, the program gets ENOSYS, as on a kernel that
 * cannot do it.
 */
AW_WRAPPER int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, path, false, env };
	__typeof__(pidfd_spawn) *spawn = aw_libc_newer("pidfd_spawn");
	struct exec_state state;

	if (!spawn)
		return ENOSYS;
	state = prepare_spawn(&program, actions);
	return end_spawn(&state, spawn(pidfd, path, actions, attr, argv, state.env));
}

AW_WRAPPER int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	const struct aw_program program = { AT_FDCWD, file, true, env };
	__typeof__(pidfd_spawn) *spawn = aw_libc_newer("pidfd_spawnp");
	struct exec_state state;

	if (!spawn)
		return ENOSYS;
	state = prepare_spawn(&program, actions);
	return end_spawn(&state, spawn(pidfd, file, actions, attr, argv, state.env));
}
