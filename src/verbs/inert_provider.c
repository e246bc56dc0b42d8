// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The functions that a provider library calls to add its devices. Programs that link libmlx5 or
// libefa run verbs_register_driver_34 before main: it must do nothing and must not fail. No device
// of theirs ever exists, so the others are called only by mistake, and fail.
#include "verbs/inert.h"

#include <stdbool.h>
#include <stdint.h>

// Programs may set this variable. Our device is never taken away, so nothing reads it.
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

void verbs_register_driver_34(void) NOTHING;
void verbs_init_cq(void) NOTHING;
void verbs_set_ops(void) NOTHING;
void verbs_uninit_context(void) NOTHING;
void *verbs_open_device(void) NO_OBJECT;
void *_verbs_init_and_alloc_context(void) NO_OBJECT;
int ibv_read_ibdev_sysfs_file(void) ABSENT;
const char *ibv_wr_opcode_str(void) UNKNOWN;

void __verbs_log(void *context, uint32_t level, const char *format, ...);

// A provider's message about a device that we do not have.
void __verbs_log(void *context, uint32_t level, const char *format, ...)
{
	(void)context;
	(void)level;
	(void)format;
}
