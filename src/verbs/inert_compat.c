// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The names of the 1.0 interface, for binaries linked before 2007. Its structs differ from today's,
// so nothing here may look into an argument. ibv_get_device_list finds no device; the rest, which
// such a program then has nothing to call with, fails. No name here is ever used by a new program.
//
// One function serves all names with the same result. It reads no argument, which every calling
// convention of Linux allows.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define COMPAT(answer, name, node)                                               \
	extern __typeof__(answer) compat_##name __attribute__((alias(#answer))); \
	__asm__(".symver compat_" #name "," #name "@" node)

static __attribute__((used)) void *no_object(void)
{
	errno = ENOSYS;
	return NULL;
}

static __attribute__((used)) void *no_devices(int *num)
{
	if (num)
		*num = 0;
	errno = ENOSYS;
	return NULL;
}

static __attribute__((used)) int error_number(void)
{
	errno = ENOSYS;
	return ENOSYS;
}

static __attribute__((used)) int minus_one(void)
{
	errno = ENOSYS;
	return -1;
}

static __attribute__((used)) uint64_t no_guid(void)
{
	return 0;
}

static __attribute__((used)) void nothing(void)
{
}

COMPAT(no_devices, ibv_get_device_list, "IBVERBS_1.0");
COMPAT(nothing, ibv_free_device_list, "IBVERBS_1.0");
COMPAT(no_object, ibv_get_device_name, "IBVERBS_1.0");
COMPAT(no_guid, ibv_get_device_guid, "IBVERBS_1.0");
COMPAT(no_object, ibv_open_device, "IBVERBS_1.0");
COMPAT(minus_one, ibv_close_device, "IBVERBS_1.0");

COMPAT(minus_one, ibv_get_async_event, "IBVERBS_1.0");
COMPAT(nothing, ibv_ack_async_event, "IBVERBS_1.0");
COMPAT(minus_one, ibv_get_cq_event, "IBVERBS_1.0");
COMPAT(nothing, ibv_ack_cq_events, "IBVERBS_1.0");

COMPAT(error_number, ibv_query_device, "IBVERBS_1.0");
COMPAT(error_number, ibv_query_port, "IBVERBS_1.0");
COMPAT(minus_one, ibv_query_gid, "IBVERBS_1.0");
COMPAT(minus_one, ibv_query_pkey, "IBVERBS_1.0");

COMPAT(no_object, ibv_alloc_pd, "IBVERBS_1.0");
COMPAT(error_number, ibv_dealloc_pd, "IBVERBS_1.0");
COMPAT(no_object, ibv_reg_mr, "IBVERBS_1.0");
COMPAT(error_number, ibv_dereg_mr, "IBVERBS_1.0");
COMPAT(no_object, ibv_create_ah, "IBVERBS_1.0");
COMPAT(error_number, ibv_destroy_ah, "IBVERBS_1.0");

COMPAT(no_object, ibv_create_cq, "IBVERBS_1.0");
COMPAT(error_number, ibv_resize_cq, "IBVERBS_1.0");
COMPAT(error_number, ibv_destroy_cq, "IBVERBS_1.0");

COMPAT(no_object, ibv_create_srq, "IBVERBS_1.0");
COMPAT(error_number, ibv_modify_srq, "IBVERBS_1.0");
COMPAT(error_number, ibv_query_srq, "IBVERBS_1.0");
COMPAT(error_number, ibv_destroy_srq, "IBVERBS_1.0");

COMPAT(no_object, ibv_create_qp, "IBVERBS_1.0");
COMPAT(error_number, ibv_modify_qp, "IBVERBS_1.0");
COMPAT(error_number, ibv_query_qp, "IBVERBS_1.0");
COMPAT(error_number, ibv_destroy_qp, "IBVERBS_1.0");
COMPAT(error_number, ibv_attach_mcast, "IBVERBS_1.0");
COMPAT(error_number, ibv_detach_mcast, "IBVERBS_1.0");

// Providers registered themselves by this name before verbs_register_driver_34.
COMPAT(nothing, ibv_register_driver, "IBVERBS_1.1");
