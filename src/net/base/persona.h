// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the device presents itself: as an iWARP adapter, or, in the roce persona, as an adapter for
// RDMA over Converged Ethernet, for programs that exchange QP numbers and GIDs themselves. The wire
// is iWARP in both.
#ifndef NET_PERSONA_H
#define NET_PERSONA_H

#include <stdbool.h>

/* The environment is read once a process. An unknown word is logged and taken as iwarp. */
bool aw_persona_is_roce(void);

/* 0, or EINVAL when the environment holds an unknown word: then there is no device. */
int aw_persona_check(void);

#endif
