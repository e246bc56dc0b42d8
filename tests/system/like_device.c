// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the transport and the node type of the first device, as the contexts of rdma_cm have it and as ibv_get_device_list has it.
#include <err.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>

static void show(const char *where, const struct ibv_device *device)
{
	printf("%s: transport %d, node %d\n", where, device->transport_type, device->node_type);
}

int main(void)
{
	struct ibv_context **contexts = rdma_get_devices(NULL);
	struct ibv_device **devices;

	if (!contexts || !contexts[0])
		errx(1, "rdma_cm has no device");
	show("rdma_cm", contexts[0]->device);
	rdma_free_devices(contexts);
	devices = ibv_get_device_list(NULL);
	if (!devices || !devices[0])
		errx(1, "no device");
	show("list", devices[0]);
	ibv_free_device_list(devices);
	return 0;
}
