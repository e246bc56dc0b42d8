// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Names of addresses. AW_TEST_HAVE_LIBDW: with files and lines, of inlined functions as well.
#define _GNU_SOURCE // RTLD_NOW
#include "check/base/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/base/stack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct aw_stack stack;
static struct aw_symbol names[AW_SYMBOL_INLINED_MAX];

static inline __attribute__((always_inline)) void take_inlined(void)
{
	aw_stack_take(&stack);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static int take_here(void)
{
	int line = __LINE__ + 2;

	take_inlined();
	__asm__ volatile("" ::: "memory");
	return line;
}

static void find__inlined_functions_and_lines(void **state)
{
	int line = take_here();
	size_t count = aw_symbol_find(stack.pc[0], names);

	(void)state;
	assert_non_null(strstr(names[0].module, "unit_check_symbol"));
	assert_true(names[0].offset > 0);
	if (!AW_TEST_HAVE_LIBDW)
		return;
	assert_int_equal(count, 2);
	assert_string_equal(names[0].function, "take_inlined");
	assert_string_equal(names[1].function, "take_here");
	assert_int_equal(names[1].line, line);
	assert_int_equal(names[1].file[0], '/');
	assert_string_equal(strrchr(names[1].file, '/'), "/test_check_symbol.c");
	assert_string_equal(names[1].module, names[0].module);
}

static void find__a_module_that_is_loaded_later(void **state)
{
	void *library, *pc;
	void *(*late)(void);

	(void)state;
	aw_symbol_find(stack.pc[0], names);
	library = dlopen(AW_TEST_LATE, RTLD_NOW);
	assert_non_null(library);
	*(void **)&late = dlsym(library, "symbol_late_return");
	assert_non_null(late);
	pc = late();
	assert_int_equal(aw_symbol_find(pc, names), 1);
	assert_string_equal(names[0].function, "symbol_late_return");
	assert_non_null(strstr(names[0].module, "check_symbol_late"));
	if (AW_TEST_HAVE_LIBDW)
		assert_int_equal(names[0].line, 11);
	dlclose(library);
	aw_symbol_find(pc, names);
	assert_string_equal(names[0].module, "");
	assert_string_equal(names[0].function, "");
}

static void find__reads_names_of_cxx(void **state)
{
	void *cxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL), *library, *mangled;

	(void)state;
	if (!cxx)
		skip();
	library = dlopen(AW_TEST_LATE, RTLD_NOW);
	assert_non_null(library);
	mangled = dlsym(library, "_ZN4late7mangledEv");
	assert_non_null(mangled);
	aw_symbol_find((char *)mangled + 2, names);
	assert_string_equal(names[0].function, "late::mangled()");
	dlclose(library);
	dlclose(cxx);
}

static void find__an_address_in_no_module(void **state)
{
	(void)state;
	assert_int_equal(aw_symbol_find((void *)17, names), 1);
	assert_string_equal(names[0].function, "");
	assert_string_equal(names[0].file, "");
	assert_string_equal(names[0].module, "");
	assert_int_equal(names[0].offset, 16);
}

static void *find_often(void *arg)
{
	struct aw_symbol mine[AW_SYMBOL_INLINED_MAX];

	(void)arg;
	for (int i = 0; i < 200; i++)
		aw_symbol_find(stack.pc[i % 2], mine);
	return NULL;
}

/* A child that was forked while another thread was naming would wait for ever. */
static void find__in_threads_and_in_children_of_fork(void **state)
{
	pthread_t threads[3];

	(void)state;
	take_here();
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_often, NULL), 0);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child) {
			aw_symbol_find(stack.pc[0], names);
			/* At an exit ThreadSanitizer would miss the parent's threads. */
			raise(names[0].module[0] ? SIGKILL : SIGTERM);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void path__is_absolute_and_without_dots(void **state)
{
	static const char *const paths[][3] = {
		{ "/b/build", "../src/a.c", "/b/src/a.c" },
		{ NULL, "../src/./a.c", "../src/a.c" },
		{ "/b", "/x//y/../a.c", "/x/a.c" },
		{ "/b/", "./a.c", "/b/a.c" },
		{ "/", "../../a.c", "/a.c" },
		{ "", "a/../../b.c", "../b.c" },
		{ "/b", "..a/b..", "/b/..a/b.." },
		{ NULL, "../../a.c", "../../a.c" },
	};
	char file[AW_SYMBOL_FILE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		aw_symbol_path(paths[i][0], paths[i][1], file);
		assert_string_equal(file, paths[i][2]);
	}
}

static void path__has_its_bound(void **state)
{
	char file[AW_SYMBOL_FILE_MAX], longer[2 * AW_SYMBOL_FILE_MAX];

	(void)state;
	memset(longer, 'a', sizeof(longer));
	for (size_t i = 0; i < sizeof(longer); i += 8)
		longer[i] = '/';
	longer[sizeof(longer) - 1] = '\0';
	aw_symbol_path(longer, longer, file);
	assert_true(strlen(file) < sizeof(file));
	assert_true(strlen(file) > sizeof(file) - 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__inlined_functions_and_lines),
		cmocka_unit_test(find__a_module_that_is_loaded_later),
		cmocka_unit_test(find__reads_names_of_cxx),
		cmocka_unit_test(find__an_address_in_no_module),
		cmocka_unit_test(find__in_threads_and_in_children_of_fork),
		cmocka_unit_test(path__is_absolute_and_without_dots),
		cmocka_unit_test(path__has_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
