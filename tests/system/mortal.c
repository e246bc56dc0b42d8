// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both ends of connections whose other end may die at any moment, by the public interface alone
// (mortal_serve.c, mortal_load.c). Either can be told to kill itself. A wrong octet, or an error
// that nothing explains, is exit status 1.
#include "mortal.h"

#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct mortal mortal;

/* The kernel kills: a handler would run when a sanitizer, which puts signals off, lets it. */
void mortal_start_dying(void)
{
	struct itimerspec in = { .it_value.tv_sec = mortal.die_after_us / 1000000,
				 .it_value.tv_nsec = mortal.die_after_us % 1000000 * 1000 };
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	timer_t timer;

	if (mortal.die_after_us == 0)
		return;
	CHECK(timer_create(CLOCK_MONOTONIC, &kill, &timer) == 0);
	CHECK(timer_settime(timer, 0, &in, NULL) == 0);
}

int mortal_entries(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

void mortal_create_cq(struct ibv_context *verbs)
{
	mortal.comp_channel = ibv_create_comp_channel(verbs);
	CHECK(mortal.comp_channel);
	mortal.cq = ibv_create_cq(verbs, 4096, NULL, mortal.comp_channel, 0);
	mortal.pd = ibv_alloc_pd(verbs);
	CHECK(mortal.cq && mortal.pd && ibv_req_notify_cq(mortal.cq, 0) == 0);
}

struct ibv_qp_init_attr mortal_qp_attr(void)
{
	return (struct ibv_qp_init_attr){ .cap = { 16, 16, 1, 1, 0 },
					  .send_cq = mortal.cq,
					  .recv_cq = mortal.cq,
					  .qp_type = IBV_QPT_RC };
}

static void read_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "die-after-us", required_argument, NULL, 'd' },
		{ "fds", required_argument, NULL, 'f' },
		{ "as-headroom-kib", required_argument, NULL, 'a' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 's' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		unsigned int value = optarg ? (unsigned int)strtoul(optarg, NULL, 10) : 0;

		CHECK(option != '?');
		if (option == 'd')
			mortal.die_after_us = value;
		else if (option == 'f')
			mortal.fds_max = value;
		else if (option == 'a')
			mortal.as_headroom_kib = value;
		else if (option == 'r')
			mortal.rounds_max = value;
		else
			mortal.seed = value;
	}
}

/* Arguments: serve or load, address, port (0: the kernel's choice, for serve), mortal. */
int main(int argc, char **argv)
{
	read_options(argc, argv);
	CHECK(argc - optind == 3);
	setvbuf(stdout, NULL, _IOLBF, 0);
	mortal.channel = rdma_create_event_channel();
	CHECK(mortal.channel);
	uint16_t port = (uint16_t)strtoul(argv[optind + 2], NULL, 10);

	if (!strcmp(argv[optind], "serve"))
		mortal_serve(argv[optind + 1], port);
	CHECK(!strcmp(argv[optind], "load"));
	mortal_load(argv[optind + 1], port);
	return 0;
}
