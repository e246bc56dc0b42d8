// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Starts the proxy process. Two clones, each in our memory until it execs or exits: the first one raises no
// signal at its end and is seen by no plain wait(2); the second one, the proxy process, is nobody's child.
#include "xsock/process/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "xsock/base/libc.h"
#include "xsock/base/log.h"
#include "xsock/base/request.h"
#include "xsock/process/memory.h"

#define STACK_OCTETS (64u << 10)

struct birth {
	int control;
	char **env;
	char *stack; /* of the second clone */
	int err;
};

static char path[PATH_MAX]; /* fixed once loaded: the program may chroot or change directory */

__attribute__((constructor)) static void find_proxy(void)
{
	Dl_info info;
	char *slash;

	if (!dladdr((void *)&aw_spawn_proxy, &info) || !realpath(info.dli_fname, path))
		return;
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + 1 - path) + sizeof(AW_PROXY_NAME) > sizeof(path))
		path[0] = '\0';
	else
		strcpy(slash + 1, AW_PROXY_NAME);
}

/* The sanitizers take a stack of ours for broken when it is left for good. */
#define NOT_SANITIZED __attribute__((no_sanitize_address, no_sanitize_thread))

NOT_SANITIZED static int exec_proxy(void *arg)
{
	struct birth *birth = arg;
	char *argv[] = { path, NULL };

	if (birth->control == AW_PROXY_CONTROL)
		aw_libc()->fcntl(AW_PROXY_CONTROL, F_SETFD, 0);
	else
		aw_libc()->dup2(birth->control, AW_PROXY_CONTROL);
	aw_libc()->execve(path, argv, birth->env);
	birth->err = errno;
	_exit(127);
}

NOT_SANITIZED static int spawn_proxy(void *arg)
{
	struct birth *birth = arg;

	if (clone(exec_proxy, birth->stack + STACK_OCTETS, CLONE_VM | CLONE_VFORK | SIGCHLD,
		  birth) < 0)
		birth->err = errno;
	_exit(0);
}

static size_t count_environment(void)
{
	size_t n = 0;

	while (environ && environ[n])
		n++;
	return n;
}

/* The proxy process must not preload us: its sockets are TCP. env is zeroed, and has room for one more. */
static void copy_environment(char **env, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			env[kept++] = environ[i];
	}
}

static int bear(struct birth *birth, char *stacks)
{
	sigset_t all, before;
	pid_t pid;

	birth->stack = stacks + STACK_OCTETS;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pid = clone(spawn_proxy, stacks + STACK_OCTETS, CLONE_VM | CLONE_VFORK, birth);
	if (pid < 0)
		birth->err = errno;
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return birth->err;
}

int aw_spawn_proxy(int control)
{
	size_t n = count_environment(), octets = 2 * STACK_OCTETS + (n + 1) * sizeof(char *);
	struct birth birth = { .control = control };
	char *stacks;
	int err;

	if (!path[0])
		return ENOENT;
	stacks = aw_memory_map(octets);
	if (!stacks)
		return ENOMEM;
	birth.env = (char **)(stacks + 2 * STACK_OCTETS);
	copy_environment(birth.env, n);
	err = bear(&birth, stacks);
	if (err)
		aw_xs_log(AW_XS_LOG_ERROR, "cannot start %s: %s", path, strerror(err));
	aw_memory_unmap(stacks, octets);
	return err;
}
