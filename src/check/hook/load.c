// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers of dlopen and dlvsym: a program that loads libibverbs or librdmacm by name gets this library, in which dlsym finds the
// hooks, and behind them, in the libraries that it needs, all other functions. So does dlvsym, by which NCCL finds its verbs, though
// the hooks have no versions. A path is left alone, since it may be another library, and so is dlsym.
//
// libc looks for a module by the caller's own search path, and knows the caller by the return address: the assembly below therefore
// jumps to libc's function. Where there is none, both are libc's alone.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"

#if defined(__x86_64__) || defined(__aarch64__)

#define AW_LOAD_LOCAL __attribute__((used, visibility("hidden")))

/* libc's function, which the assembly jumps to. */
AW_LOAD_LOCAL __typeof__(dlopen) *aw_hook_load_dlopen;
AW_LOAD_LOCAL __typeof__(dlvsym) *aw_hook_load_dlvsym;
AW_LOAD_LOCAL const char *aw_hook_load_file(const char *file);
AW_LOAD_LOCAL void *aw_hook_load_version(void *handle, const char *name, const char *version);

/* POSIX has dlsym give a function as an object's pointer; the copy says so to the compiler. */
static void next_find(const char *name, void *function)
{
	void *found = dlsym(RTLD_NEXT, name);

	memcpy(function, &found, sizeof(found));
}

/* The library in which the address is; NULL: in none. */
static const struct link_map *library_of(const void *address)
{
	struct link_map *library;
	Dl_info info;

	return dladdr1(address, &info, (void **)&library, RTLD_DL_LINKMAP) ? library : NULL;
}

/* "libibverbs.so.1", "librdmacm.so", without a path. */
static bool is_of_verbs(const char *file)
{
	static const char *const libraries[] = { "libibverbs.so", "librdmacm.so" };

	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		const size_t len = strlen(libraries[i]);

		if (strncmp(file, libraries[i], len) == 0 && (!file[len] || file[len] == '.'))
			return !strchr(file, '/');
	}
	return false;
}

/* Returns the name for libc's dlopen. */
const char *aw_hook_load_file(const char *file)
{
	const int saved = errno;
	Dl_info own;

	next_find("dlopen", &aw_hook_load_dlopen);
	if (file && is_of_verbs(file) && dladdr(&aw_hook_load_dlopen, &own) && own.dli_fname)
		file = own.dli_fname;
	errno = saved;
	return file;
}

/* A hook, where the handle is this library's; NULL: libc's dlvsym is to look. IBVERBS_1.0 has structures of its own. */
void *aw_hook_load_version(void *handle, const char *name, const char *version)
{
	const struct link_map *own = library_of(&aw_hook_load_dlopen);
	void *found;

	next_find("dlvsym", &aw_hook_load_dlvsym);
	if (!own || handle != own || strcmp(version, "IBVERBS_1.0") == 0)
		return NULL;
	found = dlsym(handle, name);
	return found && library_of(found) == own ? found : NULL;
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	subq $24, %rsp\n"
	"	movl %esi, (%rsp)\n"
	"	call aw_hook_load_file\n"
	"	movq %rax, %rdi\n"
	"	movl (%rsp), %esi\n"
	"	addq $24, %rsp\n"
	"	jmp *aw_hook_load_dlopen(%rip)\n"
	".size dlopen, . - dlopen\n"
	".globl dlvsym\n"
	".type dlvsym, @function\n"
	"dlvsym:\n"
	"	subq $24, %rsp\n"
	"	movq %rdi, (%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	movq %rdx, 16(%rsp)\n"
	"	call aw_hook_load_version\n"
	"	movq (%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	movq 16(%rsp), %rdx\n"
	"	addq $24, %rsp\n"
	"	testq %rax, %rax\n"
	"	je 1f\n"
	"	ret\n"
	"1:	jmp *aw_hook_load_dlvsym(%rip)\n"
	".size dlvsym, . - dlvsym\n");
#else
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	str w1, [sp, #16]\n"
	"	bl aw_hook_load_file\n"
	"	ldr w1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	adrp x16, aw_hook_load_dlopen\n"
	"	ldr x16, [x16, :lo12:aw_hook_load_dlopen]\n"
	"	br x16\n"
	".size dlopen, . - dlopen\n"
	".globl dlvsym\n"
	".type dlvsym, %function\n"
	"dlvsym:\n"
	"	stp x29, x30, [sp, #-48]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	str x2, [sp, #32]\n"
	"	bl aw_hook_load_version\n"
	"	mov x9, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldr x2, [sp, #32]\n"
	"	ldp x29, x30, [sp], #48\n"
	"	cbz x9, 1f\n"
	"	mov x0, x9\n"
	"	ret\n"
	"1:	adrp x16, aw_hook_load_dlvsym\n"
	"	ldr x16, [x16, :lo12:aw_hook_load_dlvsym]\n"
	"	br x16\n"
	".size dlvsym, . - dlvsym\n");
#endif

#endif
