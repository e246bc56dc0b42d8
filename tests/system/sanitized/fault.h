// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fault of the program's own, which its sanitizer has to report with the name of the function.
#ifndef TESTS_SYSTEM_SANITIZED_FAULT_H
#define TESTS_SYSTEM_SANITIZED_FAULT_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_INLINED __attribute__((noinline, unused))

static volatile int fault_sum;

/* AddressSanitizer's, and valgrind's: a byte behind the block. */
NOT_INLINED static void fault_overflow(size_t len)
{
	volatile char *block = malloc(len);

	block[len] = 1;
	free((void *)block);
}

/* AddressSanitizer's, by a signal. */
NOT_INLINED static void fault_segv(size_t len)
{
	volatile char *volatile nowhere = NULL;

	nowhere[len] = 1;
}

/* LeakSanitizer's, which is a part of AddressSanitizer. */
NOT_INLINED static void fault_leak(size_t len)
{
	char *volatile block = malloc(len);

	block = NULL;
	(void)block;
}

/* UndefinedBehaviorSanitizer's. */
NOT_INLINED static void fault_shift(size_t len)
{
	volatile unsigned bits = 24 + (unsigned)len;

	fault_sum = 1 << bits;
}

/* MemorySanitizer's, and valgrind's. */
NOT_INLINED static void fault_undefined(size_t len)
{
	volatile char bytes[64];

	if (bytes[len])
		puts("not zero");
}

static void *fault_write(void *arg)
{
	fault_sum++;
	return arg;
}

/* ThreadSanitizer's. */
NOT_INLINED static void fault_race(size_t len)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fault_write, NULL) != 0)
		exit(1);
	fault_sum += (int)len;
	pthread_join(thread, NULL);
}

/* Each library of the variable, with colons between, must be here. */
static void expect_loaded(void)
{
	const char *list = getenv("EXPECT_LOADED");
	char name[256], line[4096];

	while (list && *list) {
		int len = (int)strcspn(list, ":");
		FILE *maps = fopen("/proc/self/maps", "r");
		int found = 0;

		snprintf(name, sizeof(name), "%.*s", len, list);
		while (maps && !found && fgets(line, sizeof(line), maps))
			found = strstr(line, name) != NULL;
		if (!found) {
			fprintf(stderr, "%s is not loaded\n", name);
			exit(1);
		}
		fclose(maps);
		list += len + (list[len] == ':');
	}
}

/* "right" is no fault. */
static void fault_make(const char *word)
{
	static const struct {
		const char *word;
		void (*make)(size_t len);
	} faults[] = { { "overflow", fault_overflow },	 { "segv", fault_segv },
		       { "leak", fault_leak },		 { "shift", fault_shift },
		       { "undefined", fault_undefined }, { "race", fault_race } };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!strcmp(word, faults[i].word))
			faults[i].make(8);
}

#endif
