// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file may be damaged: each offset is used for a read alone, which fails beyond the end.
#define _GNU_SOURCE // memmem
#include "cli/elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAGS_MAX 256
#define NAMES_BYTES_MAX (256u << 20) // of all dynamic symbols

static bool read_at(int fd, void *to, size_t len, ElfW(Off) at)
{
	return pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

bool aw_elf_read(int fd, struct elf *elf)
{
	ElfW(Ehdr) start;

	if (!read_at(fd, &start, sizeof(start), 0) || memcmp(start.e_ident, ELFMAG, SELFMAG) != 0 ||
	    start.e_phentsize != sizeof(elf->headers[0]) || start.e_phnum > ELF_HEADERS_MAX)
		return false;
	elf->fd = fd;
	elf->count = start.e_phnum;
	return read_at(fd, elf->headers, elf->count * sizeof(elf->headers[0]), start.e_phoff);
}

static const ElfW(Phdr) * find_header(const struct elf *elf, ElfW(Word) type)
{
	for (size_t i = 0; i < elf->count; i++)
		if (elf->headers[i].p_type == type)
			return &elf->headers[i];
	return NULL;
}

bool aw_elf_has_interpreter(const struct elf *elf)
{
	return find_header(elf, PT_INTERP);
}

// Writes where in the file the byte is that the loader puts at the address.
static bool find_offset(const struct elf *elf, ElfW(Addr) address, ElfW(Off) * at)
{
	for (size_t i = 0; i < elf->count; i++) {
		const ElfW(Phdr) *header = &elf->headers[i];

		if (header->p_type != PT_LOAD || address < header->p_vaddr ||
		    address - header->p_vaddr >= header->p_filesz)
			continue;
		*at = header->p_offset + (address - header->p_vaddr);
		return true;
	}
	return false;
}

// Reads a tag of the dynamic section by its number. False: there are no more.
static bool read_tag(const struct elf *elf, size_t number, ElfW(Dyn) * tag)
{
	const ElfW(Phdr) *dynamic = find_header(elf, PT_DYNAMIC);

	return dynamic && number < TAGS_MAX &&
	       read_at(elf->fd, tag, sizeof(*tag), dynamic->p_offset + number * sizeof(*tag)) &&
	       tag->d_tag != DT_NULL;
}

// Writes where in the file the strings of the dynamic section are, and their length.
static bool find_strings(const struct elf *elf, ElfW(Off) * at, size_t *len)
{
	ElfW(Addr) strings = 0;
	ElfW(Dyn) tag;

	*len = 0;
	for (size_t i = 0; read_tag(elf, i, &tag); i++) {
		if (tag.d_tag == DT_STRTAB)
			strings = tag.d_un.d_ptr;
		else if (tag.d_tag == DT_STRSZ)
			*len = tag.d_un.d_val;
	}
	return find_offset(elf, strings, at);
}

// Writes the string of the dynamic section that a tag names by its offset.
static bool read_string(const struct elf *elf, ElfW(Off) offset, char text[PATH_MAX])
{
	size_t len;
	ElfW(Off) at;
	ssize_t got;

	if (!find_strings(elf, &at, &len))
		return false;
	got = pread(elf->fd, text, PATH_MAX - 1, (off_t)(at + offset));
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

// A RUNPATH, which comes behind LD_LIBRARY_PATH, is in the place of the RPATH.
bool aw_elf_rpath(const struct elf *elf, char list[PATH_MAX])
{
	bool has_rpath = false;
	ElfW(Off) rpath = 0;
	ElfW(Dyn) tag;

	for (size_t i = 0; read_tag(elf, i, &tag); i++) {
		if (tag.d_tag == DT_RUNPATH)
			return false;
		if (tag.d_tag == DT_RPATH) {
			rpath = tag.d_un.d_val;
			has_rpath = true;
		}
	}
	return has_rpath && read_string(elf, rpath, list);
}

bool aw_elf_needed(const struct elf *elf, size_t number, char name[PATH_MAX])
{
	ElfW(Dyn) tag;

	for (size_t i = 0; read_tag(elf, i, &tag); i++)
		if (tag.d_tag == DT_NEEDED && number-- == 0)
			return read_string(elf, tag.d_un.d_val, name);
	return false;
}

// Linkers let a name be the end of a longer one.
bool aw_elf_has_name(const struct elf *elf, const char *name)
{
	size_t len;
	char *strings, *found = NULL;
	ElfW(Off) at;

	if (!find_strings(elf, &at, &len) || len > NAMES_BYTES_MAX)
		return false;
	strings = malloc(len);
	if (strings && read_at(elf->fd, strings, len, at))
		found = memmem(strings, len, name, strlen(name) + 1);
	free(strings);
	return found;
}
