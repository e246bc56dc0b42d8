// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many connections in one process, each made, used by a Write and a Send, and closed, leave no fd,
// thread or memory behind. What is held after the first few is the measure: those fill caches.
#include "link.h"

#include <dirent.h>
#include <malloc.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 1000
#define WARM_CONNECTIONS 50
#define OPEN_AT_ONCE 10
#define MESSAGE_OCTETS 4096
/* What the device and the default PD may hold once they are in use. */
#define DEVICE_FDS_MAX 4
#define DEVICE_THREADS_MAX 2
#define SETTLE_SECONDS_MAX 15
#define PROGRAM_SECONDS_MAX 240
/* The allocator keeps some of what was freed; a leak of 65 octets a connection shows. */
#define MALLOC_GROWTH_MAX (64 * 1024)
#define RSS_GROWTH_MAX (4 * 1024 * 1024)

struct held {
	int fds;
	int threads;
	size_t malloc_octets;
	size_t rss_octets;
};

static char out[MESSAGE_OCTETS], in[MESSAGE_OCTETS], target[MESSAGE_OCTETS];

static int entries(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	CHECK(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static size_t rss_octets(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t all, resident;

	CHECK(file && fscanf(file, "%zu %zu", &all, &resident) == 2);
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static struct held held_now(void)
{
	return (struct held){ .fds = entries("/proc/self/fd"),
			      .threads = entries("/proc/self/task"),
			      .malloc_octets = mallinfo2().uordblks,
			      .rss_octets = rss_octets() };
}

static void print_held(const char *when, const struct held *held)
{
	printf("%-7s fds %d threads %d malloc %zu rss %zu\n", when, held->fds, held->threads,
	       held->malloc_octets, held->rss_octets);
}

static void complete(struct rdma_cm_id *id, bool is_send)
{
	struct ibv_wc wc;
	int count = is_send ? rdma_get_send_comp(id, &wc) : rdma_get_recv_comp(id, &wc);

	CHECK(count == 1);
	CHECK(wc.status == IBV_WC_SUCCESS);
	CHECK(is_send || wc.byte_len == MESSAGE_OCTETS);
}

static void use(struct link *link, int number)
{
	struct ibv_mr *out_mr = rdma_reg_msgs(link->active, out, MESSAGE_OCTETS);
	struct ibv_mr *in_mr = rdma_reg_msgs(link->passive, in, MESSAGE_OCTETS);
	struct ibv_mr *target_mr = rdma_reg_write(link->passive, target, MESSAGE_OCTETS);

	CHECK(out_mr && in_mr && target_mr);
	memset(out, number, MESSAGE_OCTETS);
	CHECK(rdma_post_recv(link->passive, NULL, in, MESSAGE_OCTETS, in_mr) == 0);
	CHECK(rdma_post_write(link->active, NULL, out, MESSAGE_OCTETS, out_mr, 0, (uintptr_t)target,
			      target_mr->rkey) == 0);
	CHECK(rdma_post_send(link->active, NULL, out, MESSAGE_OCTETS, out_mr, IBV_SEND_SIGNALED) ==
	      0);
	complete(link->passive, false);
	complete(link->active, true);
	CHECK(memcmp(out, in, MESSAGE_OCTETS) == 0);
	CHECK(memcmp(out, target, MESSAGE_OCTETS) == 0);
	CHECK(rdma_dereg_mr(out_mr) == 0);
	CHECK(rdma_dereg_mr(in_mr) == 0);
	CHECK(rdma_dereg_mr(target_mr) == 0);
}

static void churn(struct meeting *meeting, int count)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct link links[OPEN_AT_ONCE];

	for (int done = 0; done < count; done += OPEN_AT_ONCE) {
		for (int i = 0; i < OPEN_AT_ONCE; i++)
			link_open(meeting, NULL, &attr, &links[i]);
		for (int i = 0; i < OPEN_AT_ONCE; i++)
			use(&links[i], done + i);
		for (int i = 0; i < OPEN_AT_ONCE; i++)
			link_close(meeting, &links[i]);
	}
}

static bool is_settled(const struct held *now, const struct held *wanted)
{
	return now->fds <= wanted->fds && now->threads <= wanted->threads;
}

/* Sockets may linger a moment for their peer's FIN; returns what is held when they are gone. */
static struct held settle(const struct held *wanted)
{
	const struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };
	time_t deadline = time(NULL) + SETTLE_SECONDS_MAX;
	struct held now = held_now();

	while (!is_settled(&now, wanted) && time(NULL) < deadline) {
		nanosleep(&step, NULL);
		now = held_now();
	}
	return now;
}

static void check_growth(const struct held *before, const struct held *after, bool with_memory)
{
	CHECK(after->fds <= before->fds);
	CHECK(after->threads <= before->threads);
	if (!with_memory)
		return;
	CHECK(after->malloc_octets <= before->malloc_octets + MALLOC_GROWTH_MAX);
	CHECK(after->rss_octets <= before->rss_octets + RSS_GROWTH_MAX);
}

/* A sanitizer's allocator keeps what is freed; there, memory is left to its own leak check. */
int main(int argc, char **argv)
{
	bool with_memory = argc == 2 && !strcmp(argv[1], "--memory");
	struct meeting meeting;
	struct held idle, before, after;

	give_up_after(PROGRAM_SECONDS_MAX);
	meeting_open(&meeting);
	idle = held_now();
	idle.fds += DEVICE_FDS_MAX;
	idle.threads += DEVICE_THREADS_MAX;
	churn(&meeting, WARM_CONNECTIONS);
	before = settle(&idle);
	churn(&meeting, CONNECTIONS);
	after = settle(&before);
	meeting_close(&meeting);
	print_held("before", &before);
	print_held("after", &after);
	check_growth(&idle, &before, false);
	check_growth(&before, &after, with_memory);
	return 0;
}
