// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/report/suppress.h"

#include "base/slice.h"
#include "check/report/wanted.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUOTE_MAX 48
#define NAMES_MAX 640

/* Reads the whole file and ends it with a NUL. */
static bool read_text(const char *path, char text[AW_SUPPRESS_BYTES_MAX],
		      char why[AW_SUPPRESS_WHY_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;

	if (fd < 0) {
		snprintf(why, AW_SUPPRESS_WHY_MAX, "cannot read '%.400s': %s", path,
			 strerror(errno));
		return false;
	}
	while ((got = read(fd, text + len, AW_SUPPRESS_BYTES_MAX - len)) > 0)
		len += (size_t)got;
	if (got < 0)
		snprintf(why, AW_SUPPRESS_WHY_MAX, "cannot read '%.400s': %s", path,
			 strerror(errno));
	else if (len == AW_SUPPRESS_BYTES_MAX)
		snprintf(why, AW_SUPPRESS_WHY_MAX, "'%.400s' has more than %d bytes", path,
			 AW_SUPPRESS_BYTES_MAX - 1);
	close(fd);
	if (got < 0 || len == AW_SUPPRESS_BYTES_MAX)
		return false;
	text[len] = '\0';
	return true;
}

static struct aw_slice strip(struct aw_slice line)
{
	while (line.len > 0 && strchr(" \t\r", line.at[0]))
		line = (struct aw_slice){ line.at + 1, line.len - 1 };
	while (line.len > 0 && strchr(" \t\r", line.at[line.len - 1]))
		line.len--;
	return line;
}

/* Takes one line, of which the glob is ended by a NUL where the line ends. */
static bool add_line(struct aw_suppressions *suppressions, struct aw_slice line)
{
	struct aw_slice name = aw_slice_cut(&line, ':');
	bool has_glob = name.at[name.len] == ':';
	enum aw_rule rule;

	if (!aw_wanted_find(name, &rule) || (has_glob && line.len == 0))
		return false;
	if (!has_glob) {
		suppressions->everywhere |= UINT64_C(1) << rule;
		return true;
	}
	suppressions->text[line.at + line.len - suppressions->text] = '\0';
	suppressions->lines[suppressions->count].rule = rule;
	suppressions->lines[suppressions->count++].glob = line.at;
	return true;
}

static bool parse_lines(const char *path, struct aw_suppressions *suppressions,
			char why[AW_SUPPRESS_WHY_MAX])
{
	struct aw_slice rest = aw_slice_of(suppressions->text);

	for (unsigned number = 1; rest.len > 0; number++) {
		struct aw_slice whole = aw_slice_cut(&rest, '\n'),
				line = strip(aw_slice_cut(&whole, '#'));

		if (line.len == 0)
			continue;
		if (suppressions->count == AW_SUPPRESS_MAX) {
			snprintf(
				why, AW_SUPPRESS_WHY_MAX,
				"%.200s, line %u: more than %d lines with a glob: join some of them",
				path, number, AW_SUPPRESS_MAX);
			return false;
		}
		if (!add_line(suppressions, line)) {
			char quoted[QUOTE_MAX + 8], names[NAMES_MAX];

			aw_slice_quote(line, QUOTE_MAX, quoted);
			aw_wanted_names(names, sizeof(names));
			snprintf(
				why, AW_SUPPRESS_WHY_MAX,
				"%.200s, line %u: %sno such rule: a line is RULE, RULE:GLOB or a comment behind #; the rules are %s",
				path, number, quoted, names);
			return false;
		}
	}
	return true;
}

bool aw_suppress_read(const char *path, struct aw_suppressions *suppressions,
		      char why[AW_SUPPRESS_WHY_MAX])
{
	suppressions->count = 0;
	suppressions->everywhere = 0;
	if (read_text(path, suppressions->text, why) && parse_lines(path, suppressions, why))
		return true;
	suppressions->count = 0;
	suppressions->everywhere = 0;
	return false;
}

static bool is_match(const char *glob, const struct aw_symbol *frame)
{
	return fnmatch(glob, frame->function, 0) == 0 || fnmatch(glob, frame->file, 0) == 0 ||
	       fnmatch(glob, aw_trace_base(frame->file), 0) == 0 ||
	       fnmatch(glob, frame->module, 0) == 0 ||
	       fnmatch(glob, aw_trace_base(frame->module), 0) == 0;
}

bool aw_suppress_matches(const struct aw_suppressions *suppressions, enum aw_rule rule,
			 const struct aw_trace *trace)
{
	if (aw_wanted_has(suppressions->everywhere, rule))
		return true;
	for (unsigned i = 0; i < suppressions->count; i++) {
		if (suppressions->lines[i].rule != rule)
			continue;
		for (unsigned j = 0; j < trace->frames; j++)
			if (is_match(suppressions->lines[i].glob, &trace->frame[j]))
				return true;
	}
	return false;
}
