// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The settings of the environment that are one of some words, or a number: the one place of their right values, for the
// libraries that read them and the command that checks them. ANYWARP_MPA and ANYWARP_SOCKETS_RULES have grammars of
// their own.
#ifndef BASE_SETTING_H
#define BASE_SETTING_H

#include <stdbool.h>

enum aw_setting {
	AW_SETTING_LOG,
	AW_SETTING_PERSONA,
	AW_SETTING_HOST_PATH,
	AW_SETTING_RECORD,
	AW_SETTING_PAIR_MS,
	AW_SETTING_VARY,
	AW_SETTING_TLS,
	AW_SETTING_TLS_RECORDS,
	AW_SETTING_TLS_HOST_PATH,
	AW_SETTINGS,
};

enum aw_setting_found {
	AW_SETTING_UNSET, /* or empty */
	AW_SETTING_RIGHT,
	AW_SETTING_WRONG,
};

#define AW_SETTING_WHY_MAX 160

/* The variable. */
const char *aw_setting_name(enum aw_setting setting);
/* The right words, the default first, with blanks between; NULL: a number. */
const char *aw_setting_words(enum aw_setting setting);

/* Writes the index of the word text, or the number, to *value where it is right. */
enum aw_setting_found aw_setting_parse(enum aw_setting setting, const char *text,
				       unsigned long *value);

/* Writes the name, the text, which is wrong, and the right values, as in "ANYWARP_LOG is 'x': it must be a or b". */
void aw_setting_explain(enum aw_setting setting, const char *text, char why[AW_SETTING_WHY_MAX]);

/*
 * For libraries: reads the variable, which a program with more rights than its user's does not have. *value is its
 * value where that is right, and else what the caller has put there. A wrong one is logged as an error; effect tells
 * what comes of it. The caller sees to it that this is done once.
 */
enum aw_setting_found aw_setting_read(enum aw_setting setting, const char *effect,
				      unsigned long *value);

/*
 * For libraries: true where ANYWARP_TLS requires TLS, or ANYWARP_TLS_RULES may, or the first is wrong and may be meant to, for
 * what has none and must not go on without.
 */
bool aw_setting_wants_tls(void);

#endif
