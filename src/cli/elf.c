// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file may be damaged: each offset is used for a read alone, which fails beyond the end.
#include "cli/elf.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#define TAGS_MAX 256

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

// A RUNPATH, which comes behind LD_LIBRARY_PATH, is in the place of the RPATH.
bool aw_elf_rpath(const struct elf *elf, char list[PATH_MAX])
{
	const ElfW(Phdr) *dynamic = find_header(elf, PT_DYNAMIC);
	bool has_rpath = false, has_runpath = false;
	ElfW(Addr) strings = 0;
	ElfW(Off) rpath = 0, at;
	ssize_t got;

	for (size_t i = 0; dynamic && i < TAGS_MAX; i++) {
		ElfW(Dyn) tag;

		if (!read_at(elf->fd, &tag, sizeof(tag), dynamic->p_offset + i * sizeof(tag)) ||
		    tag.d_tag == DT_NULL)
			break;
		if (tag.d_tag == DT_STRTAB)
			strings = tag.d_un.d_ptr;
		else if (tag.d_tag == DT_RPATH)
			rpath = tag.d_un.d_val;
		has_rpath |= tag.d_tag == DT_RPATH;
		has_runpath |= tag.d_tag == DT_RUNPATH;
	}
	if (!has_rpath || has_runpath || !find_offset(elf, strings, &at))
		return false;
	got = pread(elf->fd, list, PATH_MAX - 1, (off_t)(at + rpath));
	list[got > 0 ? got : 0] = '\0';
	return got > 0;
}
