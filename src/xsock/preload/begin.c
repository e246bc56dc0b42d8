// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The library's beginning. It is linked with -z initfirst: this constructor runs before those of all other libraries and
// before the program's .preinit_array, each of which may use a socket. Then libc's own constructors have not run either.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/runtime.h"
#include "crypto/libcrypto.h"
#include "net/base/fork.h"
#include "net/tls/tls_env.h"
#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/framed/tls_start.h"
#include "xsock/preload/inherit.h"
#include "xsock/preload/program.h"
#include "xsock/preload/settle.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/protect.h"
#include "xsock/process/spawn.h"

static void at_fork(bool in_child) AW_REQUIRES(aw_fdtab_mutex)
{
	if (in_child && aw_protect_is_on())
		aw_fdtab_forget_tls();
	aw_framed_at_fork(in_child);
}

/* Where no thread was in OpenSSL, the child goes on with the certificates that its parent has read. */
static void renew_locks(bool in_step)
{
	aw_arena_renew_lock();
	if (in_step)
		aw_fork_renew();
}

const struct aw_fdtab_hooks aw_fdtab_hooks = {
	.settle = aw_settle_all,
	.leave_slot = aw_arena_leave,
	.keep_slot = aw_slot_keep,
	.at_fork = at_fork,
	.end_tls = aw_tls_start_free,
	.renew_locks = renew_locks,
};

/* The thread sanitizer's runtime, where it is linked into the program: it is to be called before it sees another call. */
void __tsan_init(void) __attribute__((weak));

static void write_words(const char *words)
{
	(void)!write(STDERR_FILENO, words, strlen(words));
}

/*
 * A program whose sockets would look protected, and are not, does not begin. libc is not ready for a log here, or for
 * exit(3).
 */
static void protect_or_refuse(void)
{
	const char *why = aw_protect_begin();

	if (!why)
		return;
	write_words("anywarp: ");
	write_words(why);
	write_words("\n");
	_exit(125);
}

__attribute__((constructor(101))) static void begin_library(int argc, char **argv, char **env)
{
	(void)argc;
	if (__tsan_init)
		__tsan_init();

	/* libc sets these variables to the same values in its own constructor. */
	if (!environ)
		environ = env;
	if (!program_invocation_name[0] && argv[0])
		program_invocation_name = argv[0];

	protect_or_refuse();
	aw_tls_getenv = aw_protect_getenv;
	aw_libcrypto_dlopen = aw_libc()->dlopen;
	aw_slot_finish = aw_framed_notify_end;
	aw_runtime_leave();
	aw_fdtab_watch_forks();
	aw_spawn_find_proxy();
	aw_program_find_library();
	aw_inherit_import();
}
