// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Text in JSON, on standard output.
#ifndef CLI_JSON_H
#define CLI_JSON_H

// Prints the text in quotes. A byte that is no UTF-8 becomes a question mark.
void aw_json_string(const char *text);

#endif
