// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The number of this process in a chain of forks. Objects that an earlier process made are the
// parent's here: their threads are gone, their locks may stay taken for ever, their fds are shared.
#ifndef RDMACM_PROCESS_H
#define RDMACM_PROCESS_H

#include <stdint.h>

/* A number that changes in the child of a fork. */
uint32_t aw_cm_process(void);

#endif
