// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/check_summary.h"

#include "base/slice.h"
#include "check/report/wanted.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define WHO "anywarp check: "

// Calls take for each line, without its newline. False where the file cannot be read.
static bool each_line(const char *path, void (*take)(const char *line, void *arg), void *arg)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	bool is_read;

	if (!file)
		return false;
	while ((len = getline(&line, &room, file)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		take(line, arg);
	}
	is_read = !ferror(file);
	free(line);
	fclose(file);
	return is_read;
}

static void take_count(const char *line, void *arg)
{
	struct check_summary *summary = arg;
	struct aw_slice rest = aw_slice_of(line), kind = aw_slice_cut(&rest, ' ');
	struct aw_slice name = aw_slice_cut(&rest, ' ');
	unsigned long number = 0;
	enum aw_rule rule;

	if (aw_slice_equals(kind, "P"))
		summary->processes++;
	if (!aw_wanted_find(name, &rule))
		return;
	if (aw_slice_equals(kind, "K")) {
		summary->reports[rule]++;
		*(aw_rule_texts[rule].is_risk ? &summary->risks : &summary->faults) += 1;
	}
	if (aw_slice_equals(kind, "R") && aw_slice_number(rest, ULONG_MAX, &number))
		summary->again[rule] += number;
}

bool aw_check_summary_read(const char *path, struct check_summary *summary)
{
	memset(summary, 0, sizeof(*summary));
	return each_line(path, take_count, summary);
}

static void print_rules(const struct check_summary *summary, bool is_risk)
{
	for (unsigned i = 0; i < AW_RULES; i++) {
		const struct aw_rule_text *rule = &aw_rule_texts[i];

		if (!summary->reports[i] || !rule->is_risk == is_risk)
			continue;
		fprintf(stderr, "%7lu  %-18s  %s", summary->reports[i], rule->name, rule->title);
		if (summary->again[i])
			fprintf(stderr, " (and %lu more at the same calls)", summary->again[i]);
		fputc('\n', stderr);
	}
}

static const char *plural(unsigned long number)
{
	return number == 1 ? "" : "s";
}

void aw_check_summary_print(const struct check_summary *summary)
{
	if (summary->faults)
		fprintf(stderr, WHO "%lu report%s\n", summary->faults, plural(summary->faults));
	else
		fputs(WHO "no report\n", stderr);
	print_rules(summary, false);
	if (summary->risks)
		fprintf(stderr, WHO "%lu risk%s, by which the exit status does not change\n",
			summary->risks, plural(summary->risks));
	print_rules(summary, true);
	if (!summary->processes && !summary->faults && !summary->risks)
		fputs(WHO
		      "nothing was checked: no process has loaded libanywarp-check.so. A program that is linked statically, "
		      "or that has more rights than its user, loads none: check one that is linked dynamically, or a copy of it\n",
		      stderr);
}

struct copy {
	FILE *output;
	char kind;
	bool is_behind; // another one, so that a comma goes before
};

static void take_copy(const char *line, void *arg)
{
	struct copy *copy = arg;

	if (line[0] != copy->kind || line[1] != ' ')
		return;
	fprintf(copy->output, "%s%s", copy->is_behind ? ",\n" : "", line + 2);
	copy->is_behind = true;
}

static bool copy_lines(const char *path, char kind, FILE *output)
{
	struct copy copy = { output, kind, false };

	return each_line(path, take_copy, &copy);
}

static bool is_written(FILE *output)
{
	return fflush(output) == 0 && !ferror(output);
}

bool aw_check_summary_json(const char *path, FILE *output)
{
	bool is_read;

	fputs("[\n", output);
	is_read = copy_lines(path, 'J', output);
	fputs("\n]\n", output);
	return is_read && is_written(output);
}

bool aw_check_summary_sarif(const char *path, FILE *output)
{
	bool is_read;

	fputs("{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":"
	      "{\"name\":\"anywarp check\",\"semanticVersion\":\"" AW_VERSION "\",\"rules\":[\n",
	      output);
	// The texts of rules are ASCII without a character that JSON escapes (tests/unit/test_check_rule.c).
	for (unsigned i = 0; i < AW_RULES; i++) {
		const struct aw_rule_text *rule = &aw_rule_texts[i];

		fputs(i ? ",\n" : "", output);
		fprintf(output,
			"{\"id\":\"%s\",\"shortDescription\":{\"text\":\"%s\"},\"fullDescription\":{\"text\":\"%s\"},"
			"\"help\":{\"text\":\"Follows: %s. Remedy: %s.\"},\"defaultConfiguration\":{\"level\":\"%s\"},"
			"\"properties\":{\"tags\":[\"class-%u\"]}}",
			rule->name, rule->title, rule->title, rule->reference, rule->remedy,
			rule->is_risk ? "warning" : "error", rule->class);
	}
	fputs("\n]}},\"columnKind\":\"utf16CodeUnits\",\"results\":[\n", output);
	is_read = copy_lines(path, 'S', output);
	fputs("\n]}]}\n", output);
	return is_read && is_written(output);
}
