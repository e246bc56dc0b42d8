// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The look at the program that is to be run: a preloaded library must be able to see its sockets where a rule says that they are
// iWARP and nothing else. The program's file is looked for as execvp(3) does, and read as the kernel does.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/elf.h"
#include "cli/sockets.h"

#define NOTES_MAX 4096
#define GO_NOTE "Go" // the owner of the note with a Go program's build id

// Opens the program, or returns -1: the exec, which fails, says why.
static int open_program(const char *name)
{
	const char *list = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	for (list = list ? list : "/bin:/usr/bin"; list;
	     list = strchr(list, ':') ? strchr(list, ':') + 1 : NULL) {
		int len = (int)strcspn(list, ":");

		if (snprintf(path, sizeof(path), "%.*s%s%s", len, list, len ? "/" : "", name) <
			    PATH_MAX &&
		    access(path, X_OK) == 0)
			return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	return -1;
}

// A segment of notes: its owner's name stands behind the three lengths of each note.
static bool has_note_of_go(int fd, const ElfW(Phdr) * header)
{
	char notes[NOTES_MAX];
	ssize_t got = pread(fd, notes,
			    header->p_filesz < sizeof(notes) ? header->p_filesz : sizeof(notes),
			    (off_t)header->p_offset);

	for (size_t at = 0; got > 0 && at + sizeof(ElfW(Nhdr)) + sizeof(GO_NOTE) <= (size_t)got;) {
		ElfW(Nhdr) note;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		if (note.n_namesz >= sizeof(GO_NOTE) &&
		    memcmp(notes + at, GO_NOTE, sizeof(GO_NOTE)) == 0)
			return true;
		at += (size_t)((note.n_namesz + 3) & ~3u) + (size_t)((note.n_descsz + 3) & ~3u);
	}
	return false;
}

const char *aw_sockets_unseen(const char *program)
{
	int fd = open_program(program);
	const char *why = NULL;
	bool is_go = false;
	struct stat file;
	struct elf elf;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &file) == 0 &&
	    ((file.st_mode & S_ISUID && file.st_uid != geteuid()) ||
	     (file.st_mode & S_ISGID && file.st_mode & S_IXGRP && file.st_gid != getegid()) ||
	     (geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)))
		why = "it runs with other rights, and the loader ignores LD_PRELOAD then";

	// A file that is not ELF is an interpreter's, or the exec's to refuse.
	if (!why && aw_elf_read(fd, &elf)) {
		for (size_t i = 0; i < elf.count && !is_go; i++)
			is_go = elf.headers[i].p_type == PT_NOTE &&
				has_note_of_go(fd, &elf.headers[i]);
		if (is_go)
			why = "it is a Go program, which makes its own system calls";
		else if (!aw_elf_has_interpreter(&elf))
			why = "it is linked statically, and so loads no library";
	}
	close(fd);
	return why;
}
