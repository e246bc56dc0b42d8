// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MRs in memory that an fd stands for: a memfd always, and a dma-buf where this machine makes them (udmabuf).
#define _GNU_SOURCE // memfd_create
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	SIZE = 4 * PAGE,
	OFFSET = PAGE + 16, /* where MRs begin */
	LENGTH = PAGE, /* so that they end in another page */
	READS = IBV_ACCESS_REMOTE_READ,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

static const uint64_t iova = (UINT64_C(7) << 32) + OFFSET % PAGE;

static int memfd_make(void)
{
	int fd = memfd_create("dmabuf-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	return fd;
}

/* How many mappings of memfd_make's this process has. */
static unsigned int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "dmabuf-test") != NULL;
	fclose(maps);
	return count;
}

/* A Write to the middle of the MR, and a Read of it: the fd's memory is what both meet. */
static void peer_writes_and_reads(struct fixture *f, int fd, const struct ibv_mr *mr)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = iova + LENGTH - 8, .rkey = mr->rkey },
	};
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	uint8_t *memory;
	struct pair p;

	pair_make(&p, f, NULL);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memcpy(p.a.memory, "written!", 8);
	sge = side_sge(&p.a, 0, 8);
	wr.sg_list = &sge;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_READ; /* behind the Write, which its response shows */
	sge = side_sge(&p.a, 8, 8);
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.memory + 8, "written!", 8);
	assert_memory_equal(memory + OFFSET + LENGTH - 8, "written!", 8);
	/* One octet beyond the MR, which the buffer has. */
	wr.wr.rdma.remote_addr++;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
	munmap(memory, SIZE);
	pair_destroy(&p);
}

/* Who holds the fd, too, makes the file shorter: the peer that writes there is refused, and no process dies. */
static void reg_dmabuf_mr__of_a_memfd_that_is_cut_off(void **state)
{
	struct fixture *f = *state;
	int fd = memfd_make();
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(f->pd, OFFSET, LENGTH, iova, fd, ALL);
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = iova + LENGTH - 8 },
	};
	struct ibv_send_wr *bad;
	struct pair p;

	assert_non_null(mr);
	pair_make(&p, f, NULL);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	sge = side_sge(&p.a, 0, 8);
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	wr.opcode = IBV_WR_RDMA_READ; /* behind the Write */
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_not_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	pair_destroy(&p);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(fd);
}

static void reg_dmabuf_mr__of_a_memfd(void **state)
{
	struct fixture *f = *state;
	int fd = memfd_make();
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(f->pd, OFFSET, LENGTH, iova, fd, ALL);

	assert_non_null(mr);
	assert_ptr_equal(mr->addr, (void *)OFFSET); /* as rdma-core's */
	assert_int_equal(mr->length, LENGTH);
	assert_ptr_equal(mr->pd, f->pd);
	peer_writes_and_reads(f, fd, mr);
	assert_int_equal(mappings(), 1);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, READS),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mappings(), 0);
	close(fd);
}

/* The MR keeps the memory, as with an adapter. */
static void reg_dmabuf_mr__whose_fd_is_closed(void **state)
{
	struct fixture *f = *state;
	int fd = memfd_make(), again = dup(fd);
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(f->pd, OFFSET, LENGTH, iova, again, ALL);

	assert_non_null(mr);
	close(again);
	peer_writes_and_reads(f, fd, mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(fd);
}

static void reg_dmabuf_mr__within_the_buffer(void **state)
{
	struct fixture *f = *state;
	int fd = memfd_make();
	struct ibv_mr *whole = ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, fd, ALL);
	struct ibv_mr *last = ibv_reg_dmabuf_mr(f->pd, SIZE - 1, 1, SIZE - 1, fd, ALL);

	assert_non_null(whole);
	assert_non_null(last);
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE + 1, 0, fd, ALL));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, SIZE, 1, 0, fd, ALL));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, SIZE + PAGE, 1, 0, fd, ALL));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, PAGE, SIZE_MAX, 0, fd, ALL));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, UINT64_MAX, 2, PAGE - 1, fd, ALL));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, 0, 0, fd, ALL));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, OFFSET, LENGTH, iova + 1, fd, ALL));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE, UINT64_MAX - PAGE + 1, fd, ALL));
	assert_int_equal(mappings(), 2);
	assert_int_equal(ibv_dereg_mr(whole), 0);
	assert_int_equal(ibv_dereg_mr(last), 0);
	close(fd);
}

static void reg_dmabuf_mr__access_flags(void **state)
{
	struct fixture *f = *state;
	int fd = memfd_make(), read_only;
	char path[64];
	struct ibv_mr *mr;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read_only >= 0);
	FAILS_WITH(EACCES, ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, read_only, ALL));
	mr = ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, read_only, READS | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, fd, IBV_ACCESS_REMOTE_WRITE));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, fd, ALL | IBV_ACCESS_ZERO_BASED));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, fd, ALL | IBV_ACCESS_MW_BIND));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, fd, ALL | IBV_ACCESS_ON_DEMAND));
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE, 0, fd, ALL | 1 << 12));
	assert_int_equal(mappings(), 0);
	close(read_only);
	close(fd);
}

static void reg_dmabuf_mr__of_what_cannot_be_mapped(void **state)
{
	struct fixture *f = *state;
	int pipes[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	FAILS_WITH(EOPNOTSUPP, ibv_reg_dmabuf_mr(f->pd, 0, PAGE, 0, pipes[0], ALL));
	FAILS_WITH(EOPNOTSUPP, ibv_reg_dmabuf_mr(f->pd, 0, PAGE, 0, null, ALL));
	close(pipes[0]);
	FAILS_WITH(EBADF, ibv_reg_dmabuf_mr(f->pd, 0, PAGE, 0, pipes[0], ALL));
	close(pipes[1]);
	close(null);
}

/* struct ibv_mr_init_attr of newer headers, and its masks of an iova, an fd and an offset. */
struct newer_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
};

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, const struct newer_attr *attr);

static void reg_mr_ex__of_a_memfd(void **state)
{
	struct fixture *f = *state;
	struct newer_attr attr = { .length = LENGTH,
				   .access = ALL,
				   .comp_mask = 1 << 0 | 1 << 2 | 1 << 3,
				   .iova = iova,
				   .fd = memfd_make(),
				   .fd_offset = OFFSET };
	struct ibv_mr *mr = ibv_reg_mr_ex(f->pd, &attr);

	assert_non_null(mr);
	peer_writes_and_reads(f, attr.fd, mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.comp_mask |= 1 << 1;
	FAILS_WITH(EINVAL, ibv_reg_mr_ex(f->pd, &attr));
	attr.comp_mask = 1 << 2;
	FAILS_WITH(EINVAL, ibv_reg_mr_ex(f->pd, &attr));
	close(attr.fd);
}

static void reg_dmabuf_mr__of_a_dmabuf(void **state)
{
	struct fixture *f = *state;
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memfd, fd;
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE };
	struct ibv_mr *mr;

	if (device < 0) {
		print_message("no /dev/udmabuf here that we may open: %s\n", strerror(errno));
		skip();
	}
	memfd = memfd_make();
	assert_int_equal(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	create.memfd = (uint32_t)memfd;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	assert_true(fd >= 0);
	mr = ibv_reg_dmabuf_mr(f->pd, OFFSET, LENGTH, iova, fd, ALL);
	assert_non_null(mr);
	peer_writes_and_reads(f, fd, mr);
	FAILS_WITH(EINVAL, ibv_reg_dmabuf_mr(f->pd, 0, SIZE + 1, 0, fd, ALL));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(fd);
	close(memfd);
	close(device);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(reg_dmabuf_mr__of_a_memfd),
		WITH(reg_dmabuf_mr__of_a_memfd_that_is_cut_off),
		WITH(reg_dmabuf_mr__whose_fd_is_closed),
		WITH(reg_dmabuf_mr__within_the_buffer),
		WITH(reg_dmabuf_mr__access_flags),
		WITH(reg_dmabuf_mr__of_what_cannot_be_mapped),
		WITH(reg_mr_ex__of_a_memfd),
		WITH(reg_dmabuf_mr__of_a_dmabuf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
