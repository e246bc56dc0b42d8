// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The victim's command loop. See victim.h for what each line asks and answers.
#include "victim.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX 262144
#define SRQ_WRS 64

static struct in_addr address;

static struct ibv_context *device(void)
{
	static struct ibv_context **devices;

	if (!devices)
		devices = rdma_get_devices(NULL);
	CHECK(devices && devices[0]);
	return devices[0];
}

struct ibv_pd *victim_pd(uint64_t number)
{
	static struct ibv_pd *pds[PDS];

	CHECK(number < PDS);
	if (!pds[number])
		pds[number] = ibv_alloc_pd(device());
	CHECK(pds[number]);
	return pds[number];
}

struct ibv_srq *victim_srq(void)
{
	static struct ibv_srq *srq;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SRQ_WRS, .max_sge = 1 } };

	if (!srq)
		srq = ibv_create_srq(victim_pd(0), &attr);
	CHECK(srq);
	return srq;
}

struct in_addr victim_address(void)
{
	return address;
}

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* "." and ".." and the directory itself */
}

static unsigned long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages;

	CHECK(file && fscanf(file, "%*u %lu", &pages) == 1);
	fclose(file);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

static void stats(const struct ask *ask)
{
	(void)ask;
	printf("%lu %u %llu\n", resident_kib(), open_fds(), (unsigned long long)honest_rounds());
}

static void quit(const struct ask *ask)
{
	(void)ask;
	printf("bye\n");
	fflush(stdout);
	_exit(0);
}

static const struct {
	const char *word;
	void (*run)(const struct ask *ask);
	unsigned int numbers;
} commands[] = {
	{ "region", regions_open, 4 },
	{ "dereg", regions_close, 1 },
	{ "register", regions_register, 3 },
	{ "revoke", regions_revoke, 1 },
	{ "expect", regions_expect, 2 },
	{ "check", regions_check, 0 },
	{ "dump", regions_dump, 3 },
	{ "window", windows_open, 6 },
	{ "rebind", windows_rebind, 6 },
	{ "unbind", windows_close, 1 },
	{ "accept", conns_accept, 5 },
	{ "connect", conns_connect, 4 },
	{ "event", conns_event, 2 },
	{ "failed", conns_failed, 1 },
	{ "recv", conns_recv, 5 },
	{ "srq_recv", conns_srq_recv, 4 },
	{ "srq_limit", conns_srq_limit, 1 },
	{ "send", conns_send, 8 },
	{ "poll", conns_poll, 2 },
	{ "async", conns_async, 2 },
	{ "disconnect", conns_disconnect, 1 },
	{ "drop", conns_drop, 1 },
	{ "refuse", conns_refuse, 0 },
	{ "stats", stats, 0 },
	{ "quit", quit, 0 },
};

static void answer(char *line)
{
	char *word = strtok(line, " \n");
	struct ask ask = { .text = "" };

	CHECK(word);
	for (char *arg = strtok(NULL, " \n"); arg; arg = strtok(NULL, " \n")) {
		char *end;
		uint64_t n = strtoull(arg, &end, 0);

		if (arg[0] == ':') {
			ask.text = arg + 1;
			continue;
		}
		CHECK(*end == '\0' && ask.count < ASK_MAX);
		ask.n[ask.count++] = n;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].word, word) != 0)
			continue;
		CHECK(ask.count == commands[i].numbers);
		commands[i].run(&ask);
		fflush(stdout);
		return;
	}
	CHECK(!"a word that is known");
}

int main(int argc, char **argv)
{
	static char line[LINE_BYTES_MAX];
	struct rlimit files;

	CHECK(argc == 2 && inet_pton(AF_INET, argv[1], &address) == 1);
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	conns_listen();
	honest_start();
	printf("port %u\n", conns_port());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		answer(line);
	return 0;
}
