// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: dlopen and dlmopen. A module that binds to libc before this library makes calls that no wrapper sees, and on a record
// they would meet FPDUs. libc looks for the module by the caller's own search path, and knows the caller by the return address: the
// assembly below therefore jumps to libc's function, as vfork's does. Where there is none, the two are libc's alone.
#include <dlfcn.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/mode.h"

#if defined(__x86_64__) || defined(__aarch64__)

/* libc's functions, which the assembly jumps to. */
__attribute__((used)) __typeof__(dlopen) *aw_load_dlopen;
__attribute__((used)) __typeof__(dlmopen) *aw_load_dlmopen;
__attribute__((used)) int aw_load_flags(const char *path, int flags);
__attribute__((used)) int aw_load_apart(Lmid_t space, const char *path, int flags);

static bool may_be_on(void)
{
	return aw_mode_may_iwarp(true) || aw_mode_may_iwarp(false);
}

/* Returns the flags for libc's dlopen. */
int aw_load_flags(const char *path, int flags)
{
	int saved = errno;

	aw_load_dlopen = aw_libc()->dlopen;
	if (flags & RTLD_DEEPBIND && may_be_on()) {
		flags &= ~RTLD_DEEPBIND;
		aw_log(AW_LOG_INFO,
		       "dlopen of %s is without RTLD_DEEPBIND, with which a module's reads and writes "
		       "would not be seen: a rule 'off' for this program keeps it",
		       path ? path : "the program");
	}
	errno = saved;
	return flags;
}

/* The calls of another namespace are never seen: the records are bridged, and there are no others. */
int aw_load_apart(Lmid_t space, const char *path, int flags)
{
	int saved = errno;

	aw_load_dlmopen = aw_libc()->dlmopen;
	if (space == LM_ID_BASE)
		return aw_load_flags(path, flags);
	if (may_be_on() && !aw_fdtab_is_vfork_child()) {
		aw_log(AW_LOG_INFO, "dlmopen of %s: no connection is a record from now on",
		       path ? path : "the program");
		aw_mode_end_records();
		aw_framed_bridge_all(false);
	}
	errno = saved;
	return flags;
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	subq $24, %rsp\n"
	"	movq %rdi, (%rsp)\n"
	"	call aw_load_flags\n"
	"	movl %eax, %esi\n"
	"	movq (%rsp), %rdi\n"
	"	addq $24, %rsp\n"
	"	jmp *aw_load_dlopen(%rip)\n"
	".size dlopen, . - dlopen\n"
	".globl dlmopen\n"
	".type dlmopen, @function\n"
	"dlmopen:\n"
	"	subq $24, %rsp\n"
	"	movq %rdi, (%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	call aw_load_apart\n"
	"	movl %eax, %edx\n"
	"	movq (%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	addq $24, %rsp\n"
	"	jmp *aw_load_dlmopen(%rip)\n"
	".size dlmopen, . - dlmopen\n");
#else
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	str x0, [sp, #16]\n"
	"	bl aw_load_flags\n"
	"	mov w1, w0\n"
	"	ldr x0, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	adrp x16, aw_load_dlopen\n"
	"	ldr x16, [x16, :lo12:aw_load_dlopen]\n"
	"	br x16\n"
	".size dlopen, . - dlopen\n"
	".globl dlmopen\n"
	".type dlmopen, %function\n"
	"dlmopen:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl aw_load_apart\n"
	"	mov w2, w0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	adrp x16, aw_load_dlmopen\n"
	"	ldr x16, [x16, :lo12:aw_load_dlmopen]\n"
	"	br x16\n"
	".size dlmopen, . - dlmopen\n");
#endif

#endif
