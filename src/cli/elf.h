// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program's file tells how the loader treats it. Files for machines of another word size tell nothing.
#ifndef CLI_ELF_H
#define CLI_ELF_H

#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#define ELF_HEADERS_MAX 64

struct elf {
	int fd; // borrowed
	ElfW(Phdr) headers[ELF_HEADERS_MAX];
	size_t count;
};

// Reads the program headers of an open file. False: it is no ELF file.
bool aw_elf_read(int fd, struct elf *elf);

// False: it is linked statically, and loads no library.
bool aw_elf_has_interpreter(const struct elf *elf);

// Writes the directories of its RPATH, with colons between, which the loader searches before those of LD_LIBRARY_PATH.
// False: it has none.
bool aw_elf_rpath(const struct elf *elf, char list[PATH_MAX]);

// Writes the name of a library that it needs, by its number in the file's order. False: there are no more.
bool aw_elf_needed(const struct elf *elf, size_t number, char name[PATH_MAX]);

// True if a dynamic symbol has that name; false, too, when out of memory.
bool aw_elf_has_name(const struct elf *elf, const char *name);

#endif
