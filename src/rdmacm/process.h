// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which process of a chain of forks this is. What an earlier one made is the parent's here: its
// threads are gone, its locks may stay taken for ever, its fds are shared.
#ifndef RDMACM_PROCESS_H
#define RDMACM_PROCESS_H

#include <stdint.h>

/* A number that changes in the child of a fork, but not in one that carries on (anywarp_fork_hold). */
uint32_t aw_cm_process(void);

#endif
