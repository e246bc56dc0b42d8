// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads what the kernel and the dynamic loader would read: the file's mode, its first bytes and its
// program headers, the interpreter of a script, and LD_PRELOAD. Allocates nothing, because a child
// of vfork may call it.
#include "xsock/preload/program.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/base/text.h"
#include "xsock/process/memory.h"

#define SCRIPTS_MAX 5 /* an interpreter may be a script; the kernel follows as many */
#define HEADERS_MAX 64
#define LINE_BYTES_MAX 256 /* the kernel reads as much of a script's first line */
#define PRELOAD "LD_PRELOAD="
#define PRELOAD_FILE "/etc/ld.so.preload"
#define SHELL "/bin/sh"
#define CAPABILITIES "security.capability"

static char
	library_name[NAME_MAX + 1]; /* this library's file name; fixed once the library is loaded */

void aw_program_find_library(void)
{
	Dl_info info;
	const char *slash;

	if (!dladdr((void *)&aw_program_preloads, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	slash = slash ? slash + 1 : info.dli_fname;
	if (strlen(slash) < sizeof(library_name))
		strcpy(library_name, slash);
}

/* The memory for pieces of files and for joined paths, which a small stack has no room for. It is mapped for each look at a program. */
struct scratch {
	char path[PATH_MAX], list[PATH_MAX];
	char line[LINE_BYTES_MAX], interpreter[LINE_BYTES_MAX];
	ElfW(Phdr) headers[HEADERS_MAX];
};

/*
 * Returns whether list has this library. The separators are the loader's. A path must be readable, because it may be out of
 * reach after chroot(2).
 */
static bool lists_this_library(struct scratch *scratch, const char *list)
{
	static const char between[] = ": \t\n";
	size_t name_len = strlen(library_name);

	while (*list) {
		size_t len = strcspn(list, between);
		bool is_named = name_len && len >= name_len &&
				memcmp(list + len - name_len, library_name, name_len) == 0;

		if (is_named && len == name_len)
			return true;
		if (is_named && list[len - name_len - 1] == '/' && len < sizeof(scratch->path)) {
			memcpy(scratch->path, list, len);
			scratch->path[len] = '\0';
			if (access(scratch->path, R_OK) == 0)
				return true;
		}
		list += len + strspn(list + len, between);
	}
	return false;
}

/* Returns whether /etc/ld.so.preload has this library. */
static bool is_preloaded_everywhere(struct scratch *scratch)
{
	char *list = scratch->list;
	int fd = open(PRELOAD_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : aw_libc()->read(fd, list, sizeof(scratch->list) - 1);

	if (fd >= 0)
		aw_libc()->close(fd);
	if (len < 0)
		return false;
	list[len] = '\0';
	return lists_this_library(scratch, list);
}

/*
 * Returns whether the program runs with other rights than this process: the loader then ignores the
 * environment.
 */
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

/*
 * Returns whether the dynamic loader of this process's architecture starts the program; false for a
 * static program.
 */
static bool has_interpreter(struct scratch *scratch, int fd)
{
	ElfW(Phdr) *headers = scratch->headers;
	ElfW(Ehdr) start;
	size_t bytes;

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
	bytes = start.e_phnum * sizeof(headers[0]);
	if (pread(fd, headers, bytes, (off_t)start.e_phoff) != (ssize_t)bytes)
		return false;
	for (unsigned i = 0; i < start.e_phnum; i++)
		if (headers[i].p_type == PT_INTERP)
			return true;
	return false;
}

enum program_kind {
	KIND_OTHERS, /* a program that does not load this library */
	KIND_OURS,
	KIND_SCRIPT,
	KIND_NONE, /* neither an ELF file nor a script */
};

static enum program_kind classify_file(struct scratch *scratch, int fd)
{
	char *line = scratch->line;
	struct stat file;
	size_t len;

	memset(line, 0, LINE_BYTES_MAX);
	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) ||
	    pread(fd, line, LINE_BYTES_MAX - 1, 0) < 0)
		return KIND_OTHERS;
	if (memcmp(line, "#!", 2) == 0) {
		line += 2;
		line += strspn(line, " \t");
		len = strcspn(line, " \t\n");
		memcpy(scratch->interpreter, line, len);
		scratch->interpreter[len] = '\0';
		return len > 0 ? KIND_SCRIPT : KIND_NONE;
	}
	if (memcmp(line, ELFMAG, SELFMAG) != 0)
		return KIND_NONE;
	return has_other_rights(fd, &file) || !has_interpreter(scratch, fd) ? KIND_OTHERS
									    : KIND_OURS;
}

static int open_program(int dir, const char *path)
{
	char self[32];

	if (path[0])
		return openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	(void)aw_text_add_number(aw_text_add(self, "/proc/self/fd/"), dir);
	return open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/*
 * Returns whether the program behind fd, or its interpreter, is one that can load this library.
 * Closes fd.
 */
static bool can_load_this_library(struct scratch *scratch, int fd, bool searched)
{
	enum program_kind program_kind = KIND_OTHERS;

	for (int i = 0; fd >= 0 && i <= SCRIPTS_MAX; i++) {
		program_kind = classify_file(scratch, fd);
		aw_libc()->close(fd);
		fd = -1;
		if (program_kind == KIND_SCRIPT)
			fd = open_program(AT_FDCWD, scratch->interpreter);
		else if (program_kind == KIND_NONE && searched)
			fd = open_program(AT_FDCWD, SHELL);
		if (program_kind != KIND_SCRIPT)
			searched = false;
	}
	return program_kind == KIND_OURS;
}

/*
 * Opens the program file as execvp(3) finds it; -1: none. PATH is read by getenv, because execvp
 * reads it so.
 */
static int open_in_path(struct scratch *scratch, const char *file)
{
	const char *list = getenv("PATH");
	char *path = scratch->path;

	for (list = list ? list : "/bin:/usr/bin";; list++) {
		size_t len = strcspn(list, ":");

		if (len + 1 + strlen(file) < PATH_MAX) {
			char *at = aw_text_add_part(path, list, len);

			(void)aw_text_add(aw_text_add(at, len ? "/" : ""), file);
			if (access(path, X_OK) == 0)
				return open_program(AT_FDCWD, path);
		}
		list += len;
		if (!*list)
			return -1;
	}
}

static bool preloads(const struct aw_program *program, struct scratch *scratch)
{
	int fd = program->searched && program->path[0] && !strchr(program->path, '/')
			 ? open_in_path(scratch, program->path)
			 : open_program(program->dir, program->path);
	bool preloaded = false;

	/*
	 * If there is no such file, no program gets the fds: execvp goes on to the next directory.
	 */
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (!can_load_this_library(scratch, fd, program->searched))
		return false;
	/* The loader uses the last LD_PRELOAD. */
	for (char *const *env = program->env; env && *env; env++)
		if (strncmp(*env, PRELOAD, sizeof(PRELOAD) - 1) == 0)
			preloaded = lists_this_library(scratch, *env + sizeof(PRELOAD) - 1);
	return preloaded || is_preloaded_everywhere(scratch);
}

bool aw_program_preloads(const struct aw_program *program)
{
	struct scratch *scratch;
	int saved = errno;
	bool has_us;

	if (!program->path)
		return false;
	scratch = aw_memory_map(sizeof(*scratch));
	has_us = scratch && preloads(program, scratch);
	aw_memory_unmap(scratch, sizeof(*scratch));
	errno = saved;
	return has_us;
}
