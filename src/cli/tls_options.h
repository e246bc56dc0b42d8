// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options by which 'anywarp run' and the like have a program's connections protected by TLS, and the variables that they set.
#ifndef CLI_TLS_OPTIONS_H
#define CLI_TLS_OPTIONS_H

#include "cli/launch.h"

// Takes --tls, --tls-cert, --tls-key, --tls-ca, --tls-name, --tls-keylog or --tls-rules at *arg.
enum launch_option aw_tls_option(const struct launch *launch, char ***arg);

// Checks what the options and the environment say together. False: an error was printed.
bool aw_tls_options_check(const char *who);

// True when the options or the environment require TLS, or have rules that may.
bool aw_tls_options_required(void);

// For sockets programs, which may have all connections under TLS and no rules for it. False: an error was printed.
bool aw_tls_options_are_whole(const char *who);

#endif
