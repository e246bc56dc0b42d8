// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a provider library calls to add its devices. Programs that link libmlx5 or libefa run
// verbs_register_driver_34 before main: it must do nothing and must not fail. A device of theirs
// never comes to exist, so the rest is only reached by mistake and answers so.
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Programs may set it. Our device is never taken away, so nothing reads it.
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

static __attribute__((used)) void nothing(void)
{
}

static __attribute__((used)) void *unsupported(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static __attribute__((used)) int absent(void)
{
	errno = ENOENT;
	return -1;
}

#define NOTHING __attribute__((alias("nothing")))
#define UNSUPPORTED __attribute__((alias("unsupported")))
#define ABSENT __attribute__((alias("absent")))

void verbs_register_driver_34(void) NOTHING;
void verbs_init_cq(void) NOTHING;
void verbs_set_ops(void) NOTHING;
void verbs_uninit_context(void) NOTHING;
void *verbs_open_device(void) UNSUPPORTED;
void *_verbs_init_and_alloc_context(void) UNSUPPORTED;
int ibv_read_ibdev_sysfs_file(void) ABSENT;

void __verbs_log(void *context, uint32_t level, const char *format, ...);

// A provider's message about a device that we do not have.
void __verbs_log(void *context, uint32_t level, const char *format, ...)
{
	(void)context;
	(void)level;
	(void)format;
}
