// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A library that test_check_symbol.c loads after it has named addresses.
__attribute__((noinline)) static void *return_address(void)
{
	return __builtin_return_address(0);
}

__attribute__((visibility("default"))) void *symbol_late_return(void);
__attribute__((visibility("default"), noinline)) void *symbol_late_return(void)
{
	void *pc = return_address(); // line 11

	__asm__ volatile("" : "+r"(pc));
	return pc;
}

/* Of C++, without debug information. Nothing calls it. */
__asm__(".text\n.globl _ZN4late7mangledEv\n.type _ZN4late7mangledEv, %function\n_ZN4late7mangledEv:\n.skip 16\n"
	".size _ZN4late7mangledEv, 16\n");
