// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fibers.h"

#include "kclock.h"

#include <linux/jiffies.h>

#include <ucontext.h>

#define FIBERS_MAX 64
#define FIBERS_OF_WORK 44
#define STACK_OCTETS (256u * 1024)
#define ROUNDS 8 /* as many waits in a row as any thread has */
#define TURNS 64
#define SETTLE_LOOPS 20000 /* more is a loop without an end */

#ifdef __has_feature
#define FIBERS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define FIBERS_ASAN 1
#else
#define FIBERS_ASAN 0
#endif

#if FIBERS_ASAN
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size) \
	((void)(save), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(save, bottom, size) \
	((void)(save), (void)(bottom), (void)(size))
#endif

struct fiber {
	ucontext_t context;
	char *stack; /* kept for the next one */
	void (*run)(void *arg);
	void *arg;
	bool live;
	bool blocked; /* it could not go on when it ran last */
	void *asan;
};

static struct fiber fibers[FIBERS_MAX];
static ucontext_t home;
static void *home_asan;
static const void *home_bottom;
static size_t home_size;
static struct fiber *now;
static uint64_t state;
static unsigned int odds_of_turn;
static bool runs_on; /* no thread gives its turn away by chance */
static bool ended; /* a thread did, having done something */

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void switch_home(struct fiber *fiber)
{
	__sanitizer_start_switch_fiber(fiber->live ? &fiber->asan : NULL, home_bottom, home_size);
	swapcontext(&fiber->context, &home);
	__sanitizer_finish_switch_fiber(fiber->asan, &home_bottom, &home_size);
}

static void fiber_main(void)
{
	struct fiber *fiber = now;

	__sanitizer_finish_switch_fiber(NULL, &home_bottom, &home_size);
	fiber->run(fiber->arg);
	fiber->live = false;
	switch_home(fiber);
}

static void fiber_resume(struct fiber *fiber)
{
	now = fiber;
	fiber->blocked = false;
	__sanitizer_start_switch_fiber(&home_asan, fiber->stack, STACK_OCTETS);
	swapcontext(&home, &fiber->context);
	__sanitizer_finish_switch_fiber(home_asan, NULL, NULL);
	now = NULL;
	ended |= !fiber->live && !fiber->blocked;
}

static void fiber_yield(bool must)
{
	if (!now) {
		/* The test itself waits for one of its threads. */
		if (must)
			fibers_run(1);
		return;
	}
	if (!must && (runs_on || draw() % odds_of_turn))
		return;
	now->blocked = must;
	switch_home(now);
}

void fibers_begin(uint64_t seed, unsigned int odds)
{
	state = seed;
	odds_of_turn = odds;
	kshim_on_yield = fiber_yield;
}

void fibers_end(void)
{
	KSHIM_CHECK(fibers_live() == 0);
	kshim_on_yield = NULL;
	for (int i = 0; i < FIBERS_MAX; i++) {
		free(fibers[i].stack);
		fibers[i].stack = NULL;
	}
}

static void context_begin(ucontext_t *context, char *stack)
{
	KSHIM_CHECK(stack && getcontext(context) == 0);
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK_OCTETS;
	context->uc_link = NULL;
	makecontext(context, fiber_main, 0);
}

bool fiber_start(void (*run)(void *arg), void *arg)
{
	struct fiber *fiber = fibers;

	while (fiber < fibers + FIBERS_MAX && fiber->live)
		fiber++;
	if (fiber == fibers + FIBERS_MAX)
		return false;
	if (!fiber->stack)
		fiber->stack = malloc(STACK_OCTETS);
	context_begin(&fiber->context, fiber->stack);
	fiber->run = run;
	fiber->arg = arg;
	fiber->live = true;
	fiber->blocked = false;
	return true;
}

unsigned int fibers_live(void)
{
	unsigned int live = 0;

	for (int i = 0; i < FIBERS_MAX; i++)
		live += fibers[i].live;
	return live;
}

static void run_work(void *arg)
{
	now->blocked = !kshim_work_run((unsigned int)(uintptr_t)arg);
}

static void run_timer(void *arg)
{
	(void)arg;
	now->blocked = !kshim_timer_run();
}

static bool timer_is_due(void)
{
	unsigned long expires;

	return kshim_timer_next(&expires) && time_after_eq(jiffies, expires);
}

/* One by chance goes on; maybe one more begins, for what waits. */
static void turn_once(void)
{
	bool room = fibers_live() < FIBERS_OF_WORK;
	unsigned int live, nth;

	if (room && kshim_work_count() > 0 && draw() % 3 == 0)
		fiber_start(run_work, (void *)(uintptr_t)(draw() % kshim_work_count()));
	if (room && timer_is_due() && draw() % 3 == 0)
		fiber_start(run_timer, NULL);
	live = fibers_live();
	nth = live ? draw() % live : 0;
	for (int i = 0; i < FIBERS_MAX && live; i++)
		if (fibers[i].live && nth-- == 0)
			return fiber_resume(&fibers[i]);
}

/* Each goes on as far as it gets, some times in turn. False: all of them wait. */
static bool turn_all(void)
{
	runs_on = true;
	ended = false;
	for (int round = 0; round < ROUNDS && !ended; round++) {
		if (kshim_work_count() > 0)
			fiber_start(run_work, NULL);
		if (timer_is_due())
			fiber_start(run_timer, NULL);
		for (int i = 0; i < FIBERS_MAX; i++)
			if (fibers[i].live)
				fiber_resume(&fibers[i]);
	}
	runs_on = false;
	return ended;
}

void fibers_run(unsigned int turns)
{
	while (turns-- > 0)
		turn_once();
}

bool fibers_wait(unsigned long limit)
{
	unsigned long expires;

	if (!kshim_timer_next(&expires) || time_before(limit, expires))
		return false;
	if (time_before(jiffies, expires))
		jiffies = expires;
	return true;
}

void fibers_settle(void)
{
	unsigned long loops = 0;

	do {
		do {
			KSHIM_CHECK(loops++ < SETTLE_LOOPS);
			ended = false;
			fibers_run(TURNS);
		} while (ended || turn_all());
	} while (fibers_wait(jiffies + 3600ul * HZ));
}
