// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// answers LIBIBVERBS LIBRDMACM: calls the pure functions of our libraries and of the system's with
// the same arguments and compares the answers. Exits 77 where the system has no such libraries.
#define _GNU_SOURCE /* dlmopen */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_cma.h>

enum {
	OURS,
	THEIRS,
	ENUM_FIRST = -2,
	ENUM_LAST = 40,
	MULT_LAST = 1000,
	MBPS_LAST = 1300000,
	ROUNDS = 100,
	OBJECT_MAX = 256,
};

static unsigned int differences;

static void differ(const char *function, long argument)
{
	printf("%s differs at %ld\n", function, argument);
	differences++;
}

// Fills f with a function of both libraries.
static void find(void *const libs[2], const char *name, void *f[2])
{
	for (int i = OURS; i <= THEIRS; i++) {
		f[i] = dlsym(libs[i], name);
		if (!f[i]) {
			printf("%s\n", dlerror());
			exit(1);
		}
	}
}

// Ours may know a value that is newer than the system's library.
static void compare_texts(void *const libs[2], const char *name)
{
	const char *(*f[2])(int);

	find(libs, name, (void **)f);
	for (int value = ENUM_FIRST; value <= ENUM_LAST; value++) {
		const char *ours = f[OURS](value), *theirs = f[THEIRS](value);

		if (!strcmp(theirs, "UNKNOWN EVENT") && !strncmp(ours, "RDMA_CM_EVENT_", 14) &&
		    value > RDMA_CM_EVENT_TIMEWAIT_EXIT)
			continue;
		if (strcmp(ours, theirs))
			differ(name, value);
	}
}

static void compare_numbers(void *const libs[2], const char *name, int last)
{
	int (*f[2])(int);

	find(libs, name, (void **)f);
	for (int value = ENUM_FIRST; value <= last; value++)
		if (f[OURS](value) != f[THEIRS](value))
			differ(name, value);
}

static void fill(unsigned char *octets, size_t len)
{
	for (size_t i = 0; i < len; i++)
		octets[i] = (unsigned char)rand();
}

// Padding and members that are not copied must keep what they held: whole objects are compared.
static void compare_copies(void *const libs[2], const char *name, size_t dst_len, size_t src_len)
{
	void (*f[2])(void *dst, void *src);

	find(libs, name, (void **)f);
	for (int round = 0; round < ROUNDS; round++) {
		_Alignas(16) unsigned char src[OBJECT_MAX], dst[2][OBJECT_MAX];

		fill(src, src_len);
		fill(dst[OURS], dst_len);
		memcpy(dst[THEIRS], dst[OURS], dst_len);
		f[OURS](dst[OURS], src);
		f[THEIRS](dst[THEIRS], src);
		if (memcmp(dst[OURS], dst[THEIRS], dst_len))
			differ(name, round);
	}
}

static void compare_files(void *const libs[2])
{
	static const size_t sizes[] = { 256, 16, 2, 1 };
	int (*f[2])(const char *, const char *, char *, size_t);

	find(libs, "ibv_read_sysfs_file", (void **)f);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char buf[2][256] = { "", "" };
		int len[2];

		for (int lib = OURS; lib <= THEIRS; lib++)
			len[lib] = f[lib]("/proc/sys/kernel", "ostype", buf[lib], sizes[i]);
		if (len[OURS] != len[THEIRS] || (len[OURS] >= 0 && strcmp(buf[OURS], buf[THEIRS])))
			differ("ibv_read_sysfs_file", (long)sizes[i]);
	}
	if (f[OURS]("/proc/sys/kernel", "no such file", NULL, 0) != -1)
		differ("ibv_read_sysfs_file", 0);
}

static void compare_verbs(void *const libs[2])
{
	compare_texts(libs, "ibv_node_type_str");
	compare_texts(libs, "ibv_port_state_str");
	compare_texts(libs, "ibv_event_type_str");
	compare_texts(libs, "ibv_wc_status_str");
	compare_numbers(libs, "ibv_rate_to_mult", ENUM_LAST);
	compare_numbers(libs, "ibv_rate_to_mbps", ENUM_LAST);
	compare_numbers(libs, "mult_to_ibv_rate", MULT_LAST);
	compare_numbers(libs, "mbps_to_ibv_rate", MBPS_LAST);
	compare_copies(libs, "ibv_copy_ah_attr_from_kern", sizeof(struct ibv_ah_attr),
		       sizeof(struct ib_uverbs_ah_attr));
	compare_copies(libs, "ibv_copy_qp_attr_from_kern", sizeof(struct ibv_qp_attr),
		       sizeof(struct ib_uverbs_qp_attr));
	compare_copies(libs, "ibv_copy_path_rec_from_kern", sizeof(struct ibv_sa_path_rec),
		       sizeof(struct ib_user_path_rec));
	compare_copies(libs, "ibv_copy_path_rec_to_kern", sizeof(struct ib_user_path_rec),
		       sizeof(struct ibv_sa_path_rec));
	compare_files(libs);
}

// The system's library is the one the loader finds; ours is opened by its path. The system's has a
// namespace to itself: in one namespace our librdmacm would be given its libibverbs.
static int open_both(const char *path, const char *soname, void *libs[2])
{
	libs[THEIRS] = dlmopen(LM_ID_NEWLM, soname, RTLD_NOW | RTLD_LOCAL);
	if (!libs[THEIRS]) {
		printf("%s\n", dlerror());
		return 77;
	}
	libs[OURS] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!libs[OURS]) {
		printf("%s\n", dlerror());
		return 1;
	}
	if (libs[OURS] == libs[THEIRS]) {
		printf("%s is the system's %s\n", path, soname);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	void *verbs[2], *cm[2];
	int rc;

	if (argc != 3)
		return 2;
	unsetenv("LD_LIBRARY_PATH");
	rc = open_both(argv[1], "libibverbs.so.1", verbs);
	if (!rc)
		rc = open_both(argv[2], "librdmacm.so.1", cm);
	if (rc)
		return rc;
	srand(1);
	compare_verbs(verbs);
	compare_texts(cm, "rdma_event_str");
	printf("%u answers differ\n", differences);
	return differences != 0;
}
