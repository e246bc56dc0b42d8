// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/tls_options.h"

#include "base/array.h"
#include "base/tls_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RULES "ANYWARP_TLS_RULES"

enum tls_value {
	FILE_READ,
	NAME,
	FILE_WRITTEN,
	FILE_RULES, // asks for TLS itself
};

// Of RDMA programs alone; each has a word of a few.
static const struct {
	const char *option, *variable;
	enum aw_setting setting;
} words[] = {
	{ "--tls-records", "ANYWARP_TLS_RECORDS", AW_SETTING_TLS_RECORDS },
	{ "--tls-host-path", "ANYWARP_TLS_HOST_PATH", AW_SETTING_TLS_HOST_PATH },
};

static const struct {
	const char *option, *variable;
	enum tls_value kind;
} files[] = {
	{ "--tls-cert", "ANYWARP_TLS_CERT", FILE_READ },
	{ "--tls-key", "ANYWARP_TLS_KEY", FILE_READ },
	{ "--tls-ca", "ANYWARP_TLS_CA", FILE_READ },
	{ "--tls-name", "ANYWARP_TLS_NAME", NAME },
	{ "--tls-keylog", "ANYWARP_TLS_KEYLOG", FILE_WRITTEN },
	{ "--tls-rules", RULES, FILE_RULES },
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

// As above; the file need not be there yet.
static enum launch_option set_written(const char *who, size_t of, const char *file)
{
	char folder[PATH_MAX], path[2 * PATH_MAX];
	int fd =
		open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0 || !getcwd(folder, sizeof(folder))) {
		fprintf(stderr, "%s: %s: cannot write '%s': %s\n", who, files[of].option, file,
			strerror(errno));
		return LAUNCH_WRONG;
	}
	close(fd);
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return set(who, files[of].variable, *file == '/' ? file : path);
}

static enum launch_option set_value(const char *who, size_t of, const char *value)
{
	switch (files[of].kind) {
	case FILE_READ:
	case FILE_RULES:
		return set_file(who, of, value);
	case FILE_WRITTEN:
		return set_written(who, of, value);
	case NAME:
		break;
	}
	return set(who, files[of].variable, value);
}

enum launch_option aw_tls_option(const struct launch *launch, char ***arg)
{
	const char *value;

	if (aw_launch_value(arg, "--tls", &value))
		return aw_launch_setting(launch->who, "--tls", AW_SETTING_TLS, value);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (aw_launch_value(arg, words[i].option, &value))
			return aw_launch_setting(launch->who, words[i].option, words[i].setting,
						 value);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (!aw_launch_value(arg, files[i].option, &value))
			continue;
		if (value && *value)
			return set_value(launch->who, i, value);
		fprintf(stderr, "%s: %s needs a %s\n", launch->who, files[i].option,
			files[i].kind == NAME ? "name" : "file");
		return LAUNCH_WRONG;
	}
	return LAUNCH_OTHER;
}

// NULL: nothing asks for TLS.
static const char *asked_by(void)
{
	unsigned long word = AW_TLS_OFF;

	if (has(RULES))
		return "--tls-rules";
	if (aw_setting_parse(AW_SETTING_TLS, getenv("ANYWARP_TLS"), &word) != AW_SETTING_RIGHT ||
	    word == AW_TLS_OFF)
		return NULL;
	return word == AW_TLS_REQUIRE ? "--tls require" : "--tls offer";
}

static bool check_rules(const char *who)
{
	char why[AW_TLS_RULES_WHY_MAX];
	struct aw_tls_rules *rules;

	if (!has(RULES))
		return true;
	if (!aw_tls_rules_read(getenv(RULES), &rules, why)) {
		fprintf(stderr, "%s: --tls-rules: %s\n", who, why);
		return false;
	}
	aw_tls_rules_put(rules);
	return true;
}

// The library finds the same, but only once the program needs it.
bool aw_tls_options_check(const char *who)
{
	const char *asked = asked_by();
	bool right = check_rules(who);

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (asked && files[i].kind == FILE_READ && !has(files[i].variable))
			fprintf(stderr, "%s: %s needs %s FILE, too (%s)\n", who, asked,
				files[i].option, files[i].variable);
		else if (!asked && has(files[i].variable))
			fprintf(stderr,
				"%s: %s (%s) has no effect without --tls require, --tls offer or "
				"--tls-rules\n",
				who, files[i].option, files[i].variable);
		else
			continue;
		right = false;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (asked || !has(words[i].variable))
			continue;
		fprintf(stderr,
			"%s: %s (%s) has no effect without --tls require, --tls offer or "
			"--tls-rules\n",
			who, words[i].option, words[i].variable);
		right = false;
	}
	return right;
}

bool aw_tls_options_required(void)
{
	unsigned long word = AW_TLS_OFF;

	return has(RULES) || (aw_setting_parse(AW_SETTING_TLS, getenv("ANYWARP_TLS"), &word) ==
				      AW_SETTING_RIGHT &&
			      word == AW_TLS_REQUIRE);
}

bool aw_tls_options_are_whole(const char *who)
{
	const char *asked = asked_by();

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!has(words[i].variable))
			continue;
		fprintf(stderr, "%s: %s (%s) is for RDMA programs alone\n", who, words[i].option,
			words[i].variable);
		return false;
	}
	if (!asked || strcmp(asked, "--tls require") == 0)
		return true;
	fprintf(stderr,
		"%s: %s is for RDMA programs alone: use --tls require, and a rule 'off' for sockets that "
		"may do without\n",
		who, asked);
	return false;
}
