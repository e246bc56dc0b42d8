// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/tls_options.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *option, *variable;
	bool is_needed;
} files[] = {
	{ "--tls-cert", "ANYWARP_TLS_CERT", true },
	{ "--tls-key", "ANYWARP_TLS_KEY", true },
	{ "--tls-ca", "ANYWARP_TLS_CA", true },
	{ "--tls-name", "ANYWARP_TLS_NAME", false },
};

static bool has(const char *variable)
{
	const char *text = getenv(variable);

	return text && *text;
}

static enum launch_option set(const char *who, const char *variable, const char *value)
{
	if (setenv(variable, value, 1) == 0)
		return LAUNCH_TAKEN;
	fprintf(stderr, "%s: cannot set the environment: out of memory\n", who);
	return LAUNCH_WRONG;
}

// The program may have another working directory when it reads the file.
static enum launch_option set_file(const char *who, size_t of, const char *file)
{
	char path[PATH_MAX];

	if (!realpath(file, path) || access(path, R_OK) != 0) {
		fprintf(stderr, "%s: %s: cannot read '%s': %s\n", who, files[of].option, file,
			strerror(errno));
		return LAUNCH_WRONG;
	}
	return set(who, files[of].variable, path);
}

enum launch_option aw_tls_option(const struct launch *launch, char ***arg)
{
	const char *value;

	if (aw_launch_value(arg, "--tls", &value))
		return aw_launch_setting(launch->who, "--tls", AW_SETTING_TLS, value);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (!aw_launch_value(arg, files[i].option, &value))
			continue;
		if (value && *value)
			return files[i].is_needed ? set_file(launch->who, i, value)
						  : set(launch->who, files[i].variable, value);
		fprintf(stderr, "%s: %s needs a %s\n", launch->who, files[i].option,
			files[i].is_needed ? "file" : "name");
		return LAUNCH_WRONG;
	}
	return LAUNCH_OTHER;
}

bool aw_tls_options_required(void)
{
	unsigned long word = 0;

	return aw_setting_parse(AW_SETTING_TLS, getenv("ANYWARP_TLS"), &word) == AW_SETTING_RIGHT &&
	       word == 1;
}

// The library finds the same, but only once the program needs it.
bool aw_tls_options_check(const char *who)
{
	bool required = aw_tls_options_required(), right = true;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (required && files[i].is_needed && !has(files[i].variable))
			fprintf(stderr, "%s: --tls require needs %s FILE, too (%s)\n", who,
				files[i].option, files[i].variable);
		else if (!required && has(files[i].variable))
			fprintf(stderr, "%s: %s (%s) has no effect without --tls require\n", who,
				files[i].option, files[i].variable);
		else
			continue;
		right = false;
	}
	return right;
}
