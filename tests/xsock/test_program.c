// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which programs will have the library, which is this test here: programs in a directory of its own, made from /bin/true.
#include "xsock/preload/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534
#define PROGRAM_MAX (1 << 20)

static char folder[] = "/tmp/anywarp-program-XXXXXX";
static char self[PATH_MAX], preload[PATH_MAX + 32];
static char program[PROGRAM_MAX];
static size_t program_len;

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void make(const char *name, const void *octets, size_t len)
{
	int fd = open(path_of(name), O_CREAT | O_WRONLY | O_TRUNC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, octets, len), len);
	close(fd);
}

static void make_script(const char *name, const char *interpreter)
{
	char line[PATH_MAX];

	make(name, line, (size_t)snprintf(line, sizeof(line), "#! %s -x\n", interpreter));
}

/* A program that no loader starts. */
static void make_static(const char *name)
{
	ElfW(Ehdr) *start = (ElfW(Ehdr) *)program;
	ElfW(Phdr) *headers = (ElfW(Phdr) *)(program + start->e_phoff);

	for (unsigned i = 0; i < start->e_phnum; i++)
		if (headers[i].p_type == PT_INTERP)
			headers[i].p_type = PT_NULL;
	make(name, program, program_len);
}

static int begin(void **state)
{
	int fd = open("/bin/true", O_RDONLY);
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	assert_true(len > 0 && mkdtemp(folder));
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", self);
	program_len = (size_t)read(fd, program, sizeof(program));
	close(fd);
	make("dynamic", program, program_len);
	make_static("static");
	return 0;
}

static int end(void **state)
{
	static const char *const names[] = { "dynamic", "static", "script", "other", "text" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path_of(names[i]));
	return rmdir(folder);
}

static bool has_us(const char *name, const char *entry)
{
	char *env[] = { "HOME=/", (char *)entry, NULL };

	return aw_program_preloads(&(struct aw_program){ AT_FDCWD, path_of(name), false, env });
}

static void program__by_its_loader(void **state)
{
	(void)state;
	assert_true(has_us("dynamic", preload));
	assert_false(has_us("static", preload));
	assert_true(has_us("none", preload)); /* no program comes */
}

static void program__by_the_environment(void **state)
{
	const char *name = strrchr(self, '/') + 1;
	char entry[2 * PATH_MAX];

	(void)state;
	assert_false(has_us("dynamic", NULL));
	assert_false(has_us("dynamic", "LD_PRELOAD="));
	assert_false(has_us("dynamic", "LD_PRELOAD=/lib/libother.so"));
	snprintf(entry, sizeof(entry), "LD_PRELOAD=libother.so:%s other.so", self);
	assert_true(has_us("dynamic", entry));
	snprintf(entry, sizeof(entry), "LD_PRELOAD=%s", name);
	assert_true(has_us("dynamic", entry));
	snprintf(entry, sizeof(entry), "LD_PRELOAD=x%s", name);
	assert_false(has_us("dynamic", entry));
	snprintf(entry, sizeof(entry), "LD_PRELOAD=/none/%s", name);
	assert_false(has_us("dynamic", entry));
}

static void program__of_other_rights(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path_of("dynamic"), NOBODY, 0), 0);
	assert_true(has_us("dynamic", preload));
	assert_int_equal(chmod(path_of("dynamic"), 04755), 0);
	assert_false(has_us("dynamic", preload));
	assert_int_equal(chmod(path_of("dynamic"), 0755), 0);
}

static void program__by_a_scripts_interpreter(void **state)
{
	char *env[] = { preload, NULL };
	struct aw_program found = { AT_FDCWD, "script", true, env };

	(void)state;
	make_script("script", path_of("dynamic"));
	assert_true(has_us("script", preload));
	make_script("other", path_of("script"));
	assert_true(has_us("other", preload));
	make_script("script", path_of("static"));
	assert_false(has_us("other", preload));
	make_script("script", path_of("script"));
	assert_false(has_us("script", preload));
	make_script("script", "");
	assert_false(has_us("script", preload));
	assert_int_equal(setenv("PATH", folder, 1), 0);
	assert_true(aw_program_preloads(&(struct aw_program){ AT_FDCWD, "dynamic", true, env }));
	assert_false(aw_program_preloads(&found)); /* it has no interpreter */
	found.path = "none";
	assert_true(aw_program_preloads(&found));
}

/* execvp(3) gives it to the shell, execve(2) to nobody. */
static void program__of_no_kind(void **state)
{
	char *env[] = { preload, NULL };

	(void)state;
	make("text", "echo\n", 5);
	assert_false(has_us("text", preload));
	assert_int_equal(setenv("PATH", folder, 1), 0);
	assert_true(aw_program_preloads(&(struct aw_program){ AT_FDCWD, "text", true, env }));
	make("text", program, sizeof(ElfW(Ehdr)) - 1);
	assert_false(has_us("text", preload));
}

static void program__by_its_fd(void **state)
{
	char *env[] = { preload, NULL };
	int fd = open(path_of("dynamic"), O_PATH);

	(void)state;
	assert_true(aw_program_preloads(&(struct aw_program){ fd, "", false, env }));
	close(fd);
	assert_true(aw_program_preloads(&(struct aw_program){ fd, "", false, env }));
	assert_false(aw_program_preloads(&(struct aw_program){ AT_FDCWD, NULL, false, env }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program__by_its_loader),
		cmocka_unit_test(program__by_the_environment),
		cmocka_unit_test(program__of_other_rights),
		cmocka_unit_test(program__by_a_scripts_interpreter),
		cmocka_unit_test(program__of_no_kind),
		cmocka_unit_test(program__by_its_fd),
	};

	aw_program_find_library();
	return cmocka_run_group_tests(tests, begin, end);
}
