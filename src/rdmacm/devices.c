// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shared context and its default PD. The child of a fork gets its own.
#include "rdmacm/devices.h"

#include "net/base/fork.h"
#include "ring/lock.h"
#include "verbs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_context *shared AW_GUARDED_BY(lock);
static struct ibv_pd *default_pd AW_GUARDED_BY(lock);
static struct ibv_xrcd *default_xrcd AW_GUARDED_BY(lock); /* NULL: nobody has asked for it */
static uint32_t generation AW_GUARDED_BY(lock);

static int open_shared(void) AW_REQUIRES(lock)
{
	struct ibv_context *context;

	if (shared && generation == aw_fork_generation())
		return 0;
	int err = avb_context_shared_get(&context);

	if (err)
		return err;
	struct ibv_pd *pd = ibv_alloc_pd(context);

	if (!pd) {
		err = errno;
		avb_context_shared_put(context);
		return err;
	}
	shared = context;
	default_pd = pd;
	default_xrcd = NULL;
	generation = aw_fork_generation();
	return 0;
}

/* Of a parent's thread that held it no more than the context was left, which the child opens anew. */
static void fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static const struct aw_fork_handlers fork_handlers = { .child = fork_child, .torn = fork_child };

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_CM_DEVICES, &fork_handlers);
}

int aw_cm_device_set(struct rdma_cm_id *id)
{
	aw_lock(&lock);
	int err = open_shared();

	if (!err) {
		id->verbs = shared;
		id->pd = default_pd;
		id->port_num = 1;
	}
	aw_unlock(&lock);
	return err;
}

struct ibv_xrcd *aw_cm_device_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	aw_lock(&lock);
	int err = open_shared();

	if (!err && !default_xrcd) {
		default_xrcd = ibv_open_xrcd(shared, &attr);
		err = default_xrcd ? 0 : errno;
	}
	xrcd = err ? NULL : default_xrcd;
	aw_unlock(&lock);
	errno = err;
	return xrcd;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = calloc(2, sizeof(struct ibv_context *));

	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	aw_lock(&lock);
	int err = open_shared();

	list[0] = shared;
	aw_unlock(&lock);
	if (err) {
		free(list);
		errno = err;
		return NULL;
	}
	if (num_devices)
		*num_devices = 1;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
