// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The findings about what a program would see of the device: its persona, and its files for
// programs that look for them themselves. Nothing is made here; `anywarp run` does that.
#include "cli/doctor.h"

#include "base/setting.h"
#include "cli/cli.h"
#include "cli/finding.h"
#include "cli/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERSONA_ENV "ANYWARP_PERSONA"

static bool is_roce(void)
{
	const char *word = getenv(PERSONA_ENV);

	return word && !strcmp(word, "roce");
}

// A wrong word is a finding about the environment.
void aw_doctor_persona(void)
{
	unsigned long word = 0;

	if (aw_setting_parse(AW_SETTING_PERSONA, getenv(PERSONA_ENV), &word) == AW_SETTING_WRONG)
		return;
	if (is_roce())
		aw_finding_print(FINDING_OK, "persona", NULL,
				 "roce, by " PERSONA_ENV ": ibv_modify_qp connects, and so does "
				 "rdma_cm");
	else
		aw_finding_print(FINDING_OK, "persona", NULL,
				 "iwarp: rdma_cm connects; for programs that exchange QP numbers "
				 "themselves: anywarp run --persona roce");
}

// A program of the roce persona always gets the files, so that it does not run without them.
static void tell_where(enum paths_base where, const char *base)
{
	switch (where) {
	case PATHS_NOWHERE:
		aw_finding_print(is_roce() ? FINDING_FAIL : FINDING_WARN, "device files",
				 "set XDG_RUNTIME_DIR to a directory of yours",
				 "%s cannot be written to: %s fails", base,
				 is_roce() ? "anywarp run" : "anywarp run --device-files");
		break;
	case PATHS_FALLBACK:
		aw_finding_print(FINDING_WARN, "device files",
				 "set XDG_RUNTIME_DIR to a directory of yours",
				 "XDG_RUNTIME_DIR is no directory of yours that can be written to: "
				 "--device-files puts them in %s",
				 base);
		break;
	case PATHS_AS_WANTED:
		aw_finding_print(FINDING_OK, "device files", NULL,
				 "%s shows a program both, by files in %s",
				 is_roce() ? "anywarp run" : "anywarp run --device-files", base);
		break;
	}
}

void aw_doctor_device_files(void)
{
	static const char *const machine_paths[] = { "/dev/infiniband", "/sys/class/infiniband" };
	char dir[PATH_MAX], library[PATH_MAX], base[PATH_MAX];

	// The machine's own files are those of an adapter's driver. Nothing of anywarp needs them.
	for (size_t i = 0; i < sizeof(machine_paths) / sizeof(machine_paths[0]); i++)
		aw_finding_print(FINDING_OK, "device files", NULL,
				 "%s is %s; anywarp does not need it", machine_paths[i],
				 access(machine_paths[i], F_OK) == 0 ? "here" : "not here");

	// In their place `anywarp run` would show others.
	if (!aw_libdir_find(dir))
		return; /* the finding about the libraries says so */
	if (snprintf(library, sizeof(library), "%s/%s", dir, CLI_PATHS_LIB) >= PATH_MAX ||
	    access(library, R_OK) != 0)
		aw_finding_print(FINDING_WARN, "device files", "build or install anywarp again",
				 "--device-files has nothing to offer: no " CLI_PATHS_LIB " in %s",
				 dir);
	else
		tell_where(aw_paths_base(base), base);
}
