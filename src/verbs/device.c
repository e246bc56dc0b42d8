// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one device, which is always there: its list, name and GUID.
#include "net/base/fork.h"
#include "net/base/persona.h"
#include "net/base/policy_env.h"
#include "net/base/vary_env.h"
#include "net/tls/context.h"
#include "verbs/guid.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>

/* verbs.h hides this name behind a macro for programs that link providers statically. */
#undef ibv_get_device_list

/*
 * libmlx5 and libefa, which programs link beside us, recognize their devices by the pointer behind
 * the struct, which is never NULL for a device of theirs.
 */
struct vb_device {
	struct ibv_device ibv;
	const void *provider;
};

static struct vb_device device = {
	.ibv = {
		.node_type = IBV_NODE_RNIC,
		.transport_type = IBV_TRANSPORT_IWARP,
		.name = "anywarp0",
		.dev_name = "uverbs_anywarp0",
		.dev_path = "/sys/class/infiniband_verbs/uverbs_anywarp0",
		.ibdev_path = "/sys/class/infiniband/anywarp0",
	},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void take_persona(void)
{
	if (!aw_persona_is_roce())
		return;
	device.ibv.node_type = IBV_NODE_CA;
	device.ibv.transport_type = IBV_TRANSPORT_IB;
}

/* EINVAL: the environment names a persona that does not exist. EDEADLK: aw_fork_check. */
struct ibv_device **ibv_get_device_list(int *num_devices)
{
	int err = aw_fork_check();

	if (!err)
		err = aw_persona_check();
	if (!err)
		err = aw_vary_env_check();
	/* Of a wrong one the user is told before nothing connects. */
	(void)aw_policy_check();
	(void)aw_tls_check();
	struct ibv_device **list = err ? NULL : calloc(2, sizeof(struct ibv_device *));

	if (num_devices)
		*num_devices = list ? 1 : 0;
	if (!list) {
		errno = err ? err : ENOMEM;
		return NULL;
	}
	pthread_once(&once, take_persona);
	list[0] = &device.ibv;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
	(void)dev;
	return vb_guid();
}

/* The index is the kernel's, which does not know the device: not available. */
int ibv_get_device_index(struct ibv_device *dev)
{
	(void)dev;
	return -1;
}
