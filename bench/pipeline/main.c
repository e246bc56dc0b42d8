// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A pipeline of filters, after DataCutter: read, transform, view. The server has the filters in the middle, the client the first
// and the last: PROGRAM server ADDRESS PORT, PROGRAM client ADDRESS PORT updates|bound|balance SECONDS BLOCK|MICROSECONDS.
#include "pipeline/pipeline.h"

#include "worker/fail.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static struct sockaddr_in read_address(char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, argv[0], &at.sin_addr) != 1)
		fail("%s: give an IPv4 address", argv[0]);
	at.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	return at;
}

static void serve(char **argv)
{
	const struct sockaddr_in at = read_address(argv);
	struct link *links[LINKS];
	struct header header;
	const void *payload;

	link_listen(&at);
	puts("ready");
	fflush(stdout);
	for (unsigned int i = 0; i < LINKS; i++)
		links[i] = link_accept();
	while (link_recv(links[0], &header, &payload) && header.kind == KIND_HELLO) {
		if (header.arg == TASK_WORK) {
			work(links);
			break;
		}
		transform(links);
	}
	for (unsigned int i = 0; i < LINKS; i++)
		link_close(links[i]);
}

/* The server leaves when it is told so in place of a further task. */
static void say_goodbye(struct link **links, bool waits)
{
	if (waits) {
		link_buffer(links[0]);
		link_send(links[0], &(struct header){ .kind = KIND_END });
	}
	for (unsigned int i = 0; i < LINKS; i++)
		link_close(links[i]);
}

static void ask(char **argv)
{
	const struct sockaddr_in to = read_address(argv);
	const double seconds = strtod(argv[3], NULL);
	const uint64_t number = strtoull(argv[4], NULL, 10);
	bool bound = strcmp(argv[2], "bound") == 0, work = strcmp(argv[2], "balance") == 0;
	struct link *links[LINKS];
	struct json json;

	if (!bound && (number < sizeof(uint64_t) || number > BLOCK_MAX || number & (number - 1)))
		fail("a block has 8 to %u octets, a power of two", BLOCK_MAX);
	for (unsigned int i = 0; i < LINKS; i++)
		links[i] = link_connect(&to);
	json_begin(&json);
	json_text(&json, "transport", link_name);
	if (bound)
		view_bound(links, seconds, number, &json);
	else if (work)
		balance(links, seconds, number, &json);
	else
		view_updates(links, seconds, number, &json);
	json_end(&json);
	say_goodbye(links, !work);
	if (!json_print(&json, stdout))
		fail_errno("cannot print");
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "server") == 0)
		serve(argv + 2);
	else if (argc == 7 && strcmp(argv[1], "client") == 0)
		ask(argv + 2);
	else
		return EXIT_USAGE;
	return 0;
}
