// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// unload LIBRARY...: opens libraries of ours, lets each start its threads, and closes it, as happens where
// an MPI library closes a plug-in that is linked with it. The code has to stay: a thread may be in it.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

static int fail(const char *what)
{
	printf("%s: %s\n", what, dlerror());
	return 1;
}

static int use_verbs(void *lib)
{
	struct ibv_device **(*list)(int *) = dlsym(lib, "ibv_get_device_list");
	void (*free_list)(struct ibv_device **) = dlsym(lib, "ibv_free_device_list");
	struct ibv_context *(*open_device)(struct ibv_device *) = dlsym(lib, "ibv_open_device");
	int (*close_device)(struct ibv_context *) = dlsym(lib, "ibv_close_device");
	struct ibv_device **devices = list ? list(NULL) : NULL;
	struct ibv_context *context = devices && open_device ? open_device(devices[0]) : NULL;

	if (devices && free_list)
		free_list(devices);
	return context && close_device ? close_device(context) : -1;
}

static int use_cm(void *lib)
{
	struct rdma_event_channel *(*create)(void) = dlsym(lib, "rdma_create_event_channel");
	void (*destroy)(struct rdma_event_channel *) = dlsym(lib, "rdma_destroy_event_channel");
	int (*create_id)(struct rdma_event_channel *, struct rdma_cm_id **, void *,
			 enum rdma_port_space) = dlsym(lib, "rdma_create_id");
	int (*destroy_id)(struct rdma_cm_id *) = dlsym(lib, "rdma_destroy_id");
	struct rdma_event_channel *channel = create ? create() : NULL;
	struct rdma_cm_id *id;

	if (!channel || !destroy || !create_id || !destroy_id ||
	    create_id(channel, &id, NULL, RDMA_PS_TCP) || destroy_id(id))
		return -1;
	destroy(channel);
	return 0;
}

// What it registered for forks has to be there, too.
static int fork_works(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		int err;

		if (!lib)
			return fail(argv[i]);
		err = dlsym(lib, "rdma_create_id") ? use_cm(lib) : use_verbs(lib);
		if (err)
			return fail("cannot be used");
		if (dlclose(lib) || !dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD))
			return fail("its code is gone");
	}
	return argc > 1 && fork_works() ? 0 : fail("fork");
}
