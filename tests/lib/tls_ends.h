// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two ends of a connection of this process that are under TLS where ANYWARP_TEST_TLS asks for it. Their certificates: tls_files.h.
#ifndef TESTS_LIB_TLS_ENDS_H
#define TESTS_LIB_TLS_ENDS_H

#include "net/tls/tls.h"

#include <stdbool.h>

/* True where the tests run under TLS; and for cmocka, of a group: the files, where they do. */
bool tls_is_asked(void);
int tls_group_setup(void **state);
int tls_group_teardown(void **state);

/* Sessions over two sockets that do not block: of the end that connects, and of the one that accepts. */
void tls_shake_hands(const int fd[2], struct aw_tls *tls[2]);

#endif
