// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libdw is loaded when the first report needs it, so that neither the library nor a package depends on it. One session is kept,
// with the debug information that it has read.
#define _GNU_SOURCE // dl_iterate_phdr
#include "check/base/dwarf.h"

#include "base/array.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBDW "libdw.so.1"

static struct {
	__typeof__(&dwfl_begin) begin;
	__typeof__(&dwfl_report_begin) report_begin;
	__typeof__(&dwfl_linux_proc_report) report_process;
	__typeof__(&dwfl_report_end) report_end;
	__typeof__(&dwfl_addrmodule) module_at;
	__typeof__(&dwfl_module_addrname) symbol_at;
	__typeof__(&dwfl_module_getsrc) line_at;
	__typeof__(&dwfl_lineinfo) line_info;
	__typeof__(&dwfl_line_comp_dir) line_directory;
	__typeof__(&dwfl_module_addrdie) unit_at;
	__typeof__(&dwarf_getscopes) scopes_at;
	__typeof__(&dwarf_getscopes_die) scopes_of;
	__typeof__(&dwarf_tag) tag;
	__typeof__(&dwarf_diename) name;
	__typeof__(&dwarf_attr) attribute;
	__typeof__(&dwarf_formudata) number;
	__typeof__(&dwarf_getsrcfiles) files_of;
	__typeof__(&dwarf_filesrc) file_name;
	__typeof__(&dwfl_linux_proc_find_elf) find_elf;
	__typeof__(&dwfl_build_id_find_debuginfo) find_debuginfo;
} dw;

static const struct {
	const char *name;
	void *function;
} functions[] = {
	{ "dwfl_begin", &dw.begin },
	{ "dwfl_report_begin", &dw.report_begin },
	{ "dwfl_linux_proc_report", &dw.report_process },
	{ "dwfl_report_end", &dw.report_end },
	{ "dwfl_addrmodule", &dw.module_at },
	{ "dwfl_module_addrname", &dw.symbol_at },
	{ "dwfl_module_getsrc", &dw.line_at },
	{ "dwfl_lineinfo", &dw.line_info },
	{ "dwfl_line_comp_dir", &dw.line_directory },
	{ "dwfl_module_addrdie", &dw.unit_at },
	{ "dwarf_getscopes", &dw.scopes_at },
	{ "dwarf_getscopes_die", &dw.scopes_of },
	{ "dwarf_tag", &dw.tag },
	{ "dwarf_diename", &dw.name },
	{ "dwarf_attr", &dw.attribute },
	{ "dwarf_formudata", &dw.number },
	{ "dwarf_getsrcfiles", &dw.files_of },
	{ "dwarf_filesrc", &dw.file_name },
	{ "dwfl_linux_proc_find_elf", &dw.find_elf },
	{ "dwfl_build_id_find_debuginfo", &dw.find_debuginfo },
};

static struct {
	bool is_tried;
	Dwfl *dwfl; /* NULL: there is no libdw */
	Dwfl_Callbacks callbacks;
	unsigned long long changes; /* of the list of modules, when it was reported last */
} session;

/* A place in a source. */
struct source_place {
	const char *directory;
	const char *file; /* NULL: not known */
	unsigned line;
};

static void session_begin(void)
{
	void *library = dlopen(LIBDW, RTLD_LAZY | RTLD_LOCAL);

	session.is_tried = true;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *found = library ? dlsym(library, functions[i].name) : NULL;

		if (!found)
			return;
		memcpy(functions[i].function, &found, sizeof(found));
	}
	session.callbacks.find_elf = dw.find_elf;
	session.callbacks.find_debuginfo = dw.find_debuginfo;
	session.dwfl = dw.begin(&session.callbacks);
}

static int count_changes(struct dl_phdr_info *object, size_t size, void *changes)
{
	(void)size;
	*(unsigned long long *)changes = object->dlpi_adds + object->dlpi_subs;
	return 1;
}

/* False where no modules are known. */
static bool session_update(void)
{
	unsigned long long changes = 0;

	if (!session.is_tried)
		session_begin();
	if (!session.dwfl)
		return false;
	dl_iterate_phdr(count_changes, &changes);
	if (changes == session.changes)
		return true;
	dw.report_begin(session.dwfl);
	session.changes = dw.report_process(session.dwfl, getpid()) == 0 ? changes : 0;
	return dw.report_end(session.dwfl, NULL, NULL) == 0;
}

static struct source_place find_place(Dwfl_Module *module, Dwarf_Addr address)
{
	Dwfl_Line *line = dw.line_at(module, address);
	struct source_place place = { NULL, NULL, 0 };
	int number = 0;

	if (!line)
		return place;
	place.file = dw.line_info(line, NULL, &number, NULL, NULL, NULL);
	place.directory = dw.line_directory(line);
	place.line = number > 0 ? (unsigned)number : 0;
	return place;
}

static bool find_number(Dwarf_Die *die, unsigned name, Dwarf_Word *number)
{
	Dwarf_Attribute attribute;

	return dw.attribute(die, name, &attribute) && dw.number(&attribute, number) == 0;
}

/* Where an inlined function was called. */
static struct source_place find_call(Dwarf_Die *unit, Dwarf_Die *inlined, const char *directory)
{
	struct source_place place = { directory, NULL, 0 };
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t count;

	if (find_number(inlined, DW_AT_call_file, &file) &&
	    find_number(inlined, DW_AT_call_line, &line) &&
	    dw.files_of(unit, &files, &count) == 0 && file < count) {
		place.file = dw.file_name(files, file, NULL, NULL);
		place.line = (unsigned)line;
	}
	return place;
}

static void write_symbol(const char *function, const struct source_place *place,
			 struct aw_symbol *symbol)
{
	memset(symbol, 0, sizeof(*symbol));
	snprintf(symbol->function, sizeof(symbol->function), "%s", function ? function : "");
	if (place->file) {
		aw_symbol_path(place->directory, place->file, symbol->file);
		symbol->line = place->line;
	}
}

static size_t find_functions(Dwarf_Die *unit, Dwarf_Addr address, struct source_place place,
			     struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX])
{
	const char *directory = place.directory;
	Dwarf_Die *innermost, *scopes = NULL, die;
	size_t found = 0;
	int count = 0;

	/* The scopes that hold an address, each in the next; inlined functions stand where they were inlined. */
	if (dw.scopes_at(unit, address, &innermost) > 0) {
		die = innermost[0];
		free(innermost);
		count = dw.scopes_of(&die, &scopes);
	}
	for (int i = 0; i < count && found < AW_SYMBOL_INLINED_MAX; i++) {
		int tag = dw.tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		write_symbol(dw.name(&scopes[i]), &place, &symbols[found++]);
		if (tag == DW_TAG_subprogram)
			break;
		place = find_call(unit, &scopes[i], directory);
	}
	free(scopes);
	return found;
}

size_t aw_dwarf_find(uintptr_t address, struct aw_symbol symbols[AW_SYMBOL_INLINED_MAX])
{
	Dwfl_Module *module;
	struct source_place place;
	Dwarf_Addr bias = 0;
	Dwarf_Die *unit;
	const char *name;
	size_t found = 0;

	if (!session_update())
		return 0;
	module = dw.module_at(session.dwfl, address);
	if (!module)
		return 0;
	place = find_place(module, address);
	unit = dw.unit_at(module, address, &bias);
	if (unit)
		found = find_functions(unit, address - bias, place, symbols);
	name = dw.symbol_at(module, address);
	if (!found && (name || place.file))
		write_symbol(name, &place, &symbols[found++]);
	return found;
}
