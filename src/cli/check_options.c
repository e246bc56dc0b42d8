// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every option is judged here, before the program starts.
#include "cli/check_options.h"

#include "base/array.h"
#include "base/setting.h"
#include "base/slice.h"
#include "check/base/settings.h"
#include "check/report/suppress.h"
#include "check/report/wanted.h"
#include "check/vary/like.h"
#include "cli/cli.h"
#include "cli/faults.h"
#include "cli/run_options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHO "anywarp check"
#define NAMES_MAX 640

__attribute__((format(printf, 1, 2))) static enum launch_option refuse(const char *format, ...)
{
	va_list args;

	fputs(WHO ": ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return LAUNCH_WRONG;
}

static enum launch_option take_rules(struct check_options *options, const char *list)
{
	struct aw_slice wrong = { "", 0 };
	char names[NAMES_MAX];
	uint64_t set;

	options->rules = list;
	if (list && *list && aw_wanted_parse(aw_slice_of(list), &set, &wrong))
		return LAUNCH_TAKEN;
	aw_wanted_names(names, sizeof(names));
	if (!list || !*list)
		return refuse("--rules needs one of: all none %s", names);
	return refuse(
		"--rules: no rule '%.*s' at %zu: it must be all, none, or names with + between: %s",
		(int)wrong.len, wrong.at, (size_t)(wrong.at - list) + 1, names);
}

static enum launch_option take_number(const char *option, const char *text, unsigned long max,
				      unsigned long *number)
{
	if (!aw_slice_number(aw_slice_of(text), max, number))
		return refuse("%s needs a number from 0 to %lu", option, max);
	return LAUNCH_TAKEN;
}

static enum launch_option take_text(const char *option, const char *needed, const char *text,
				    const char **taken)
{
	if (!text || !*text)
		return refuse("%s needs %s", option, needed);
	*taken = text;
	return LAUNCH_TAKEN;
}

// How a program's device, or its peer, behaves.
static enum launch_option take_behaviour(struct check_options *options, char ***arg)
{
	unsigned long number;
	char names[NAMES_MAX];
	const char *value;
	size_t len = 0;

	if (aw_launch_value(arg, "--vary", &value)) {
		options->vary = value;
		return take_number("--vary", value, AW_CHECK_SEED_MAX, &number);
	}
	if (aw_launch_value(arg, "--like", &value)) {
		options->like = value;
		if (value && aw_like_find(value))
			return LAUNCH_TAKEN;
		/* Completions take the names apart at blanks. */
		for (const char *at = aw_like_names(); *at && len < sizeof(names) - 1; at++)
			if (*at != ',')
				names[len++] = *at;
		names[len] = '\0';
		if (value && *value)
			return refuse("--like: no adapter '%s': it needs one of: %s", value, names);
		return refuse("--like needs one of: %s", names);
	}
	if (aw_launch_value(arg, "--faults", &value))
		return take_text("--faults",
				 "a plan, for example ibv_reg_mr:nth=3: see anywarp-faults(7)",
				 value, &options->faults);
	if (aw_launch_value(arg, "--seed", &value)) {
		options->seed = value;
		return take_number("--seed", value, ULONG_MAX, &number);
	}
	return LAUNCH_OTHER;
}

static enum launch_option take_report(struct check_options *options, char ***arg)
{
	static struct aw_suppressions suppressions;
	char why[AW_SUPPRESS_WHY_MAX];
	const char *value;

	if (!strcmp(**arg, "--halt")) {
		options->halt_on = true;
		return LAUNCH_TAKEN;
	}
	if (aw_launch_value(arg, "--rules", &value))
		return take_rules(options, value);
	if (aw_launch_value(arg, "--exit-code", &value))
		return take_number("--exit-code", value, AW_CHECK_EXIT_MAX, &options->exit_status);
	if (aw_launch_value(arg, "--json", &value))
		return take_text("--json", "a file to write", value, &options->json);
	if (aw_launch_value(arg, "--sarif", &value))
		return take_text("--sarif", "a file to write", value, &options->sarif);
	if (aw_launch_value(arg, "--suppress", &value)) {
		if (!value || !*value)
			return refuse(
				"--suppress needs a file with one rule, or RULE:GLOB, a line");
		if (!aw_suppress_read(value, &suppressions, why))
			return refuse("--suppress: %s", why);
		options->suppress = value;
		return LAUNCH_TAKEN;
	}
	return LAUNCH_OTHER;
}

static enum launch_option take_sweep(struct check_options *options, char ***arg)
{
	const char *option = **arg;
	bool wrong;

	if (!strcmp(option, "--sweep")) {
		options->is_sweep = true;
		return LAUNCH_TAKEN;
	}
	if (aw_cli_sweep_option(&options->sweep, arg, &wrong)) {
		options->of_sweep = options->of_sweep ? options->of_sweep : option;
		return LAUNCH_TAKEN;
	}
	return wrong ? LAUNCH_WRONG : LAUNCH_OTHER;
}

static enum launch_option take_option(struct check_options *options, char ***arg)
{
	static const char *const of_one_run[] = { "--explain", "--faults", "--seed",	 "--json",
						  "--sarif",   "--halt",   "--exit-code" };
	static const char *const devices[] = { "anywarp", "system" };
	const char *option = **arg, *value;
	enum launch_option taken;
	size_t found;

	if (!options->of_one_run && aw_slice_find((struct aw_slice){ option, strcspn(option, "=") },
						  of_one_run, ARRAY_LEN(of_one_run), &found))
		options->of_one_run = option;
	if (!strcmp(option, "--explain")) {
		options->is_explain = true;
		return LAUNCH_TAKEN;
	}
	if (aw_launch_value(arg, "--device", &value)) {
		if (!aw_slice_find(aw_slice_of(value), devices, ARRAY_LEN(devices), &found))
			return refuse("--device needs one of: anywarp system");
		options->launch.keeps_libraries = found == 1;
		return LAUNCH_TAKEN;
	}
	taken = take_report(options, arg);
	if (taken != LAUNCH_OTHER) {
		options->of_reports = options->of_reports ? options->of_reports : option;
		return taken;
	}
	taken = take_behaviour(options, arg);
	if (taken == LAUNCH_OTHER)
		taken = take_sweep(options, arg);
	if (taken != LAUNCH_OTHER)
		return taken;
	taken = aw_run_option(&options->launch, arg);
	if (taken == LAUNCH_TAKEN && strncmp(option, "--log", strlen("--log")) != 0)
		options->of_device = options->of_device ? options->of_device : option;
	return taken;
}

// Options that are right one by one.
static bool check_together(const struct check_options *options)
{
	if (options->is_explain && options->of_reports) {
		refuse("%.*s is about reports, and --explain makes none: leave one of the two out",
		       (int)strcspn(options->of_reports, "="), options->of_reports);
		return false;
	}
	if (options->launch.keeps_libraries && options->of_device) {
		refuse("%.*s is of anywarp's device: leave it out, or use --device anywarp",
		       (int)strcspn(options->of_device, "="), options->of_device);
		return false;
	}
	if (options->is_sweep && options->of_one_run) {
		refuse("%.*s is not for --sweep, which has many runs: leave one of the two out",
		       (int)strcspn(options->of_one_run, "="), options->of_one_run);
		return false;
	}
	if (!options->is_sweep && options->of_sweep) {
		refuse("%.*s has an effect with --sweep alone: add --sweep, or leave it out",
		       (int)strcspn(options->of_sweep, "="), options->of_sweep);
		return false;
	}
	if (options->seed && !options->faults) {
		refuse("--seed has an effect with --faults alone: add --faults PLAN, or leave --seed out");
		return false;
	}
	return true;
}

bool aw_check_options_parse(char **argv, struct check_options *options)
{
	char **arg = argv + 1;

	*options = (struct check_options){ .launch = { .who = WHO },
					   .exit_status = AW_CHECK_EXIT,
					   .sweep = { .who = WHO } };
	for (; *arg && **arg == '-'; arg++) {
		enum launch_option option;

		if (!strcmp(*arg, "--")) {
			arg++;
			break;
		}
		option = take_option(options, &arg);
		if (option == LAUNCH_OTHER)
			options->launch.helped = aw_cli_help_asked(&aw_cli_check, *arg);
		if (option == LAUNCH_OTHER && !options->launch.helped)
			refuse("unknown option '%s': see 'anywarp help check'", *arg);
		if (option != LAUNCH_TAKEN)
			return false;
	}
	options->command = options->sweep.command = arg;
	if (!check_together(options))
		return false;
	if (!*arg)
		refuse("no program to check: for example 'anywarp check -- rping -s -v'");
	return *arg != NULL;
}

// Programs connect the QPs of such adapters by ibv_modify_qp as well, which anywarp's device takes in the roce persona alone.
static bool set_persona(const struct check_options *options)
{
	const struct aw_like *like = options->like ? aw_like_find(options->like) : NULL;
	const char *variable = aw_setting_name(AW_SETTING_PERSONA);

	if (!like || like->transport == IBV_TRANSPORT_IWARP || options->launch.keeps_libraries ||
	    getenv(variable))
		return true;
	fprintf(stderr, WHO ": note: %s is no iWARP adapter, so %s is roce\n", like->name,
		variable);
	if (setenv(variable, "roce", 1) == 0)
		return true;
	refuse("cannot set the environment: out of memory");
	return false;
}

bool aw_check_options_export(const struct check_options *options)
{
	char list[AW_CHECK_TEXT_MAX], suppress[PATH_MAX] = "", why[AW_CHECK_WHY_MAX];
	struct aw_check_settings settings;
	int len;

	// The program may change its directory. The list of settings has commas between.
	if (options->suppress && !realpath(options->suppress, suppress)) {
		refuse("--suppress: cannot find '%s': %s", options->suppress, strerror(errno));
		return false;
	}
	if (strchr(suppress, ',')) {
		refuse("--suppress: the path '%s' has a comma: give a copy of the file without one",
		       suppress);
		return false;
	}
	if (!set_persona(options))
		return false;

	len = snprintf(list, sizeof(list), "rules=%s,explain=on,halt=%s,exit=%lu%s%s%s%s%s%s",
		       options->is_explain ? "none"
		       : options->rules	   ? options->rules
					   : "all",
		       options->halt_on ? "on" : "off", options->exit_status,
		       suppress[0] ? ",suppress=" : "", suppress, options->vary ? ",vary=" : "",
		       options->vary ? options->vary : "", options->like ? ",like=" : "",
		       options->like ? options->like : "");
	if (len < 0 || (size_t)len >= sizeof(list)) {
		refuse("the options are too long: the library takes %zu bytes", sizeof(list) - 1);
		return false;
	}
	if (!aw_check_settings_parse(list, &settings, why)) {
		refuse("%s", why);
		return false;
	}
	if (setenv(AW_CHECK_ENV, list, 1) != 0) {
		refuse("cannot set the environment: out of memory");
		return false;
	}
	return !options->faults ||
	       aw_cli_faults(WHO, options->faults, options->seed, !options->launch.keeps_libraries);
}
