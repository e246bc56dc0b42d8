// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads what the kernel and the dynamic loader would read: the file's mode, its first bytes and its program headers, the
// interpreter of a script, and LD_PRELOAD. A child of vfork's may be the caller: nothing is allocated.
#include "xsock/preload/program.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "xsock/base/libc.h"

#define SCRIPTS_MAX 5 /* an interpreter may be a script; the kernel follows as many */
#define HEADERS_MAX 64
#define LINE_MAX_OCTETS 256 /* of a script's first line the kernel reads as much */
#define PRELOAD "LD_PRELOAD="
#define PRELOAD_FILE "/etc/ld.so.preload"
#define SHELL "/bin/sh"
#define CAPABILITIES "security.capability"

static char name[NAME_MAX + 1]; /* this library's, without its directory; fixed once loaded */

__attribute__((constructor)) static void find_name(void)
{
	Dl_info info;
	const char *slash;

	if (!dladdr((void *)&aw_program_has_us, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	slash = slash ? slash + 1 : info.dli_fname;
	if (strlen(slash) < sizeof(name))
		strcpy(name, slash);
}

/* A library of a list; one that is named by its path may be out of reach, behind a chroot(2). */
static bool is_us(const char *library, size_t len)
{
	size_t name_len = strlen(name);
	char path[PATH_MAX];

	if (!name_len || len < name_len || memcmp(library + len - name_len, name, name_len) != 0)
		return false;
	if (len == name_len)
		return true;
	if (library[len - name_len - 1] != '/' || len >= sizeof(path))
		return false;
	memcpy(path, library, len);
	path[len] = '\0';
	return access(path, R_OK) == 0;
}

/* As the loader takes the list apart. */
static bool lists_us(const char *list)
{
	static const char between[] = ": \t\n";

	while (*list) {
		size_t len = strcspn(list, between);

		if (is_us(list, len))
			return true;
		list += len + strspn(list + len, between);
	}
	return false;
}

/* The loader goes by the last one. */
static bool is_preloaded_by(char *const env[])
{
	bool found = false;

	for (; env && *env; env++)
		if (strncmp(*env, PRELOAD, sizeof(PRELOAD) - 1) == 0)
			found = lists_us(*env + sizeof(PRELOAD) - 1);
	return found;
}

static bool is_preloaded_everywhere(void)
{
	char list[PATH_MAX];
	int fd = open(PRELOAD_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : aw_libc()->read(fd, list, sizeof(list) - 1);

	if (fd >= 0)
		aw_libc()->close(fd);
	if (len < 0)
		return false;
	list[len] = '\0';
	return lists_us(list);
}

/* Of other rights than this process: the loader then ignores the environment. */
static bool has_other_rights(int fd, const struct stat *file)
{
	if (geteuid() != getuid() || getegid() != getgid())
		return true;
	if (file->st_mode & S_ISUID && file->st_uid != geteuid())
		return true;
	if (file->st_mode & S_ISGID && file->st_mode & S_IXGRP && file->st_gid != getegid())
		return true;
	return geteuid() != 0 && fgetxattr(fd, CAPABILITIES, NULL, 0) > 0;
}

/* Whether the loader of programs such as this one starts it: not of a static program, nor of another machine's. */
static bool is_loaded(int fd)
{
	ElfW(Phdr) headers[HEADERS_MAX];
	ElfW(Ehdr) start;
	size_t octets;

	if (pread(fd, &start, sizeof(start), 0) != (ssize_t)sizeof(start) ||
	    start.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    start.e_phentsize != sizeof(headers[0]) || start.e_phnum > HEADERS_MAX)
		return false;
#if defined(__x86_64__)
	if (start.e_machine != EM_X86_64)
		return false;
#elif defined(__aarch64__)
	if (start.e_machine != EM_AARCH64)
		return false;
#endif
	octets = start.e_phnum * sizeof(headers[0]);
	if (pread(fd, headers, octets, (off_t)start.e_phoff) != (ssize_t)octets)
		return false;
	for (unsigned i = 0; i < start.e_phnum; i++)
		if (headers[i].p_type == PT_INTERP)
			return true;
	return false;
}

/* The interpreter that a script's first line names. */
static bool read_interpreter(const char *line, char interpreter[LINE_MAX_OCTETS])
{
	size_t len;

	line += 2;
	line += strspn(line, " \t");
	len = strcspn(line, " \t\n");
	memcpy(interpreter, line, len);
	interpreter[len] = '\0';
	return len > 0;
}

enum kind {
	KIND_OTHERS, /* no wrapper will be there */
	KIND_OURS,
	KIND_SCRIPT,
	KIND_NONE, /* no program */
};

static enum kind look_at(int fd, char interpreter[LINE_MAX_OCTETS])
{
	char line[LINE_MAX_OCTETS] = "";
	struct stat file;

	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) ||
	    pread(fd, line, sizeof(line) - 1, 0) < 0)
		return KIND_OTHERS;
	if (memcmp(line, "#!", 2) == 0)
		return read_interpreter(line, interpreter) ? KIND_SCRIPT : KIND_NONE;
	if (memcmp(line, ELFMAG, SELFMAG) != 0)
		return KIND_NONE;
	return has_other_rights(fd, &file) || !is_loaded(fd) ? KIND_OTHERS : KIND_OURS;
}

static int open_program(int dir, const char *path)
{
	char self[32];

	if (path[0])
		return openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	return open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Takes fd. */
static bool is_loaded_with_us(int fd, bool searched)
{
	char interpreter[LINE_MAX_OCTETS];
	enum kind kind = KIND_OTHERS;

	for (int i = 0; fd >= 0 && i <= SCRIPTS_MAX; i++) {
		kind = look_at(fd, interpreter);
		aw_libc()->close(fd);
		fd = -1;
		if (kind == KIND_SCRIPT)
			fd = open_program(AT_FDCWD, interpreter);
		else if (kind == KIND_NONE && searched)
			fd = open_program(AT_FDCWD, SHELL);
		if (kind != KIND_SCRIPT)
			searched = false;
	}
	return kind == KIND_OURS;
}

/* The first file of the name that could be started, as execvp(3) finds it; -1: none. */
static int open_in_path(const char *file)
{
	const char *list = getenv("PATH");
	char path[PATH_MAX];

	for (list = list ? list : "/bin:/usr/bin";; list++) {
		int len = (int)strcspn(list, ":");
		int written =
			snprintf(path, sizeof(path), "%.*s%s%s", len, list, len ? "/" : "", file);

		if (written > 0 && (size_t)written < sizeof(path) && access(path, X_OK) == 0)
			return open_program(AT_FDCWD, path);
		list += len;
		if (!*list)
			return -1;
	}
}

bool aw_program_has_us(const struct aw_program *program)
{
	int saved = errno, fd;
	bool has_us;

	if (!program->path)
		return false;
	fd = program->searched && program->path[0] && !strchr(program->path, '/')
		     ? open_in_path(program->path)
		     : open_program(program->dir, program->path);
	/* Where there is no such file no program comes to the fds: a search goes on to the next directory. */
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		has_us = true;
	else
		has_us = is_loaded_with_us(fd, program->searched) &&
			 (is_preloaded_by(program->env) || is_preloaded_everywhere());
	errno = saved;
	return has_us;
}
