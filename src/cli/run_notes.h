// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The notes of 'anywarp run' and 'anywarp check' on standard error, before they start a program that will hardly run over anywarp.
#ifndef CLI_RUN_NOTES_H
#define CLI_RUN_NOTES_H

// Notes another library that the loader takes before anywarp's, and a script that sets LD_LIBRARY_PATH anew. Every
// note begins with who.
void aw_run_notes(const char *who, const char *program);

#endif
