// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// each_small PORT: uses each wrapper in a thread with the smallest stack that there is, and prints how many bytes of it the use took beyond what
// a thread takes that does nothing. The stack is filled with a pattern before.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "each.h"

#define PATTERN 0xa5

static bool do_nothing(void)
{
	return true;
}

static void *run_use(void *arg)
{
	const struct each_use *each = arg;

	return each->use() ? arg : NULL;
}

static size_t used_bytes(const unsigned char *stack, size_t bytes)
{
	size_t unused = 0;

	while (unused < bytes && stack[unused] == PATTERN)
		unused++;
	return bytes - unused;
}

/* Returns how many bytes of its stack the thread has used. */
static size_t depth_of(const struct each_use *each)
{
	size_t bytes = (size_t)sysconf(_SC_THREAD_STACK_MIN), guard = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *map = mmap(NULL, guard + bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct each_use use = *each;
	pthread_attr_t small;
	pthread_t thread;
	size_t used;
	void *result;

	if (map == MAP_FAILED || mprotect(map, guard, PROT_NONE))
		exit(5);
	memset(map + guard, PATTERN, bytes);
	pthread_attr_init(&small);
	pthread_attr_setstack(&small, map + guard, bytes);
	if (pthread_create(&thread, &small, run_use, &use) || pthread_join(thread, &result) ||
	    !result) {
		fprintf(stderr, "%s failed\n", use.name);
		exit(6);
	}
	used = used_bytes(map + guard, bytes);
	munmap(map, guard + bytes);
	return used;
}

int main(int argc, char **argv)
{
	size_t base = depth_of(&(struct each_use){ "nothing", do_nothing });
	int port;

	if (argc != 2)
		return 2;
	port = atoi(argv[1]);
	for (const struct each_use *each = each_uses; each->name; each++) {
		for (int has_begun = 0; has_begun < 2; has_begun++) {
			each_prepare(port, has_begun);
			printf("%s %zu\n", each->name, depth_of(each) - base);
			each_end();
		}
	}
	return 0;
}
