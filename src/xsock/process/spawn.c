// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Starts the proxy process by two clones, each of which shares this process's memory until it execs
// or exits. The first one raises no signal at its end, and no plain wait(2) finds it. The second
// one, which becomes the proxy process, has no parent then.
#include "xsock/process/spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/base/request.h"
#include "xsock/process/memory.h"
#include "xsock/process/protect.h"

#define STACK_BYTES (64u << 10)

struct proxy_spawn {
	int control;
	char **env;
	char *stack; /* stack of the second clone */
	int err;
};

/*
 * The proxy process's file; fixed once the library is loaded, because the program may call chroot
 * or chdir.
 */
static char proxy_path[PATH_MAX];

bool aw_spawn_find_beside(const char *name, char path[PATH_MAX])
{
	Dl_info info;
	char *slash;

	if (!dladdr((void *)&aw_spawn_proxy, &info) || !realpath(info.dli_fname, path))
		return false;
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + 1 - path) + strlen(name) >= PATH_MAX)
		return false;
	strcpy(slash + 1, name);
	return true;
}

void aw_spawn_find_proxy(void)
{
	if (!aw_spawn_find_beside(AW_PROXY_NAME, proxy_path))
		proxy_path[0] = '\0';
}

/* A clone leaves its stack for good, which the sanitizers report as an error. */
#define NOT_SANITIZED __attribute__((no_sanitize_address, no_sanitize_thread))

NOT_SANITIZED static int exec_proxy(void *arg)
{
	struct proxy_spawn *spawn = arg;
	char *argv[] = { proxy_path, NULL };

	if (spawn->control == AW_PROXY_CONTROL)
		aw_libc()->fcntl(AW_PROXY_CONTROL, F_SETFD, 0);
	else
		aw_libc()->dup2(spawn->control, AW_PROXY_CONTROL);
	aw_libc()->execve(proxy_path, argv, spawn->env);
	spawn->err = errno;
	_exit(127);
}

NOT_SANITIZED static int spawn_proxy(void *arg)
{
	struct proxy_spawn *spawn = arg;

	if (aw_libc()->clone(exec_proxy, spawn->stack + STACK_BYTES,
			     CLONE_VM | CLONE_VFORK | SIGCHLD, spawn) < 0)
		spawn->err = errno;
	_exit(0);
}

/* Makes the first clone, with signals blocked, and waits for it. */
static int run_clones(struct proxy_spawn *spawn, char *stacks)
{
	sigset_t all, before;
	pid_t pid;

	spawn->stack = stacks + STACK_BYTES;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pid = aw_libc()->clone(spawn_proxy, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, spawn);
	if (pid < 0)
		spawn->err = errno;
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return spawn->err;
}

int aw_spawn_proxy(int control)
{
	size_t n = 0, kept = 0, bytes;
	struct proxy_spawn spawn = { .control = control };
	struct rlimit processes;
	char *stacks;
	int err;

	if (!proxy_path[0])
		return ENOENT;
	while (environ && environ[n])
		n++;
	bytes = 2 * STACK_BYTES + (n + aw_protect_count() + 1) * sizeof(char *);
	stacks = aw_memory_map(bytes);
	if (!stacks)
		return ENOMEM;
	spawn.env = (char **)(stacks + 2 * STACK_BYTES);
	/* The proxy process's own sockets are TCP. */
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && !aw_protect_owns(environ[i]))
			spawn.env[kept++] = environ[i];
	(void)aw_protect_add(spawn.env + kept);
	err = run_clones(&spawn, stacks);
	if (err == EAGAIN && getrlimit(RLIMIT_NPROC, &processes) == 0)
		aw_log(AW_LOG_ERROR,
		       "cannot start %s: its user may have %llu processes (RLIMIT_NPROC; a program may set it itself): raise the limit",
		       proxy_path, (unsigned long long)processes.rlim_cur);
	else if (err)
		aw_log(AW_LOG_ERROR, "cannot start %s: %s", proxy_path, strerror(err));
	aw_memory_unmap(stacks, bytes);
	return err;
}
