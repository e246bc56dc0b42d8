// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copies to and from memory that is gone, and whose handler a fault comes to. Each test is a process of its own,
// which begins with the kernel's own handling of faults.
#define _GNU_SOURCE // memfd_create
#include "../lib/emulated.h"
#include "../lib/gone.h"
#include "net/mem/fault.h"
#include "net/mem/guard.h"
#include "wire/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

enum {
	LENGTH = 1 << 17,
	HANG_S = 60,
};

enum way {
	UNMAPPED,
	CUT_OFF,
	PROTECTED,
	WAYS,
};

#define REQUIRE(what)                           \
	do {                                    \
		if (!(what))                    \
			_exit(__LINE__ & 0xff); \
	} while (0)

static uint8_t own[LENGTH];
static uint8_t *memory; /* the first page is there */
static size_t page;

static void gone(enum way way)
{
	int file = memfd_create("gone", MFD_CLOEXEC);

	REQUIRE(ftruncate(file, LENGTH) == 0);
	memory = gone_map(file, LENGTH);
	REQUIRE(memory != MAP_FAILED);
	memset(memory, 7, LENGTH);
	if (way == UNMAPPED)
		REQUIRE(munmap(memory + page, LENGTH - page) == 0);
	else if (way == CUT_OFF)
		REQUIRE(ftruncate(file, (off_t)page) == 0);
	else if (way == PROTECTED)
		REQUIRE(mprotect(memory + page, LENGTH - page, PROT_NONE) == 0);
	close(file);
}

/* Runs test in a child; returns its status. */
static int run(void (*test)(void))
{
	static const struct sigaction kernels = { .sa_handler = SIG_DFL };
	const struct rlimit no_core = { 0, 0 };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(limit_s(HANG_S));
		setrlimit(RLIMIT_CORE, &no_core);
		page = (size_t)sysconf(_SC_PAGESIZE);
		sigaction(SIGSEGV, &kernels, NULL);
		sigaction(SIGBUS, &kernels, NULL);
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void each_copy(void)
{
	const struct rdmap_atomic_req add = { .op = RDMAP_FETCH_ADD, .add_swap_data = 1 };
	uint64_t before = 0, after;
	uint32_t crc;

	for (enum way way = UNMAPPED; way < WAYS; way++) {
		/* qemu-user reports another address than that of the fault. */
		if (way == CUT_OFF && is_emulated())
			continue;
		gone(way);
		crc = 1;
		REQUIRE(aw_guard_gather(own, memory, page) && own[page - 1] == 7);
		REQUIRE(aw_guard_place(memory, (const uint8_t *)"123", 3) && memory[2] == '3');
		REQUIRE(aw_guard_atomic(memory + 8, &add, &before) && (uint8_t)before == 7);
		memcpy(&after, memory + 8, sizeof(after));
		REQUIRE(after == before + 1);
		REQUIRE(!aw_guard_gather(own, memory + page - 1, 2));
		REQUIRE(!aw_guard_gather(own, memory, LENGTH));
		own[page - 1] = 0;
		REQUIRE(aw_guard_gather_nontemporal(own, memory, page) && own[page - 1] == 7);
		REQUIRE(!aw_guard_gather_nontemporal(own, memory, LENGTH));
		own[page - 1] = 0;
		REQUIRE(aw_guard_gather_folding(own, memory, page, &crc) && own[page - 1] == 7);
		REQUIRE(crc == crc32c_update(1, own, page));
		after = crc;
		REQUIRE(!aw_guard_gather_folding(own, memory + page - 1, 2, &crc));
		REQUIRE(!aw_guard_gather_folding(own, memory, LENGTH, &crc) && crc == after);
		REQUIRE(!aw_guard_place(memory + page, own, 1));
		REQUIRE(!aw_guard_place(memory, own, LENGTH));
		REQUIRE(!aw_guard_atomic(memory + page, &add, &before));
		REQUIRE(aw_guard_gather(own, memory, page));
		munmap(memory, page);
	}
	crc = 1;
	REQUIRE(aw_guard_gather(own, NULL, 0) && aw_guard_place(NULL, own, 0));
	REQUIRE(aw_guard_gather_folding(own, NULL, 0, &crc) && crc == 1);
}

static void caught(void)
{
	aw_fault_watch();
	REQUIRE(aw_fault_is_caught());
	each_copy();
}

static void guard__gone(void **state)
{
	(void)state;
	assert_int_equal(run(caught), 0);
}

/* Where no handler of ours is called, process_vm_readv copies. */
static void skip_without_kernel_copies(void)
{
	if (is_emulated())
		skip();
}

/* Nobody registered anything: no handler is there. */
static void guard__unwatched(void **state)
{
	(void)state;
	skip_without_kernel_copies();
	assert_int_equal(run(each_copy), 0);
}

/* After so many looks the program's handler is in the place of ours; -1: it never is. */
static int looks_until_replaced = -1;

bool __real_aw_fault_is_caught(void);
bool __wrap_aw_fault_is_caught(void);

bool __wrap_aw_fault_is_caught(void)
{
	if (looks_until_replaced < 0)
		return __real_aw_fault_is_caught();
	return looks_until_replaced > 0 && looks_until_replaced-- > 0;
}

static void folds_meanwhile(void)
{
	memory = own + page;
	memset(memory, 7, page);
	for (int looks = 0; looks < 4; looks++) {
		uint32_t crc = 1;

		looks_until_replaced = looks;
		REQUIRE(aw_guard_gather_folding(own, memory, page, &crc));
		REQUIRE(crc == crc32c_update(1, memory, page));
	}
}

/* The program installs a handler while a copy is made. */
static void guard__replaced_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(run(folds_meanwhile), 0);
}

static void *deaf(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	REQUIRE(!aw_fault_is_caught());
	each_copy();
	return arg;
}

static void in_a_deaf_thread(void)
{
	pthread_t thread;

	aw_fault_watch();
	REQUIRE(aw_fault_is_caught());
	REQUIRE(pthread_create(&thread, NULL, deaf, NULL) == 0);
	pthread_join(thread, NULL);
}

static void guard__signals_blocked(void **state)
{
	(void)state;
	skip_without_kernel_copies();
	assert_int_equal(run(in_a_deaf_thread), 0);
}

/* The program's own handlers. */

static volatile sig_atomic_t calls;
static void *volatile fault_at;
static sigset_t blocked;
static struct sigaction before, own_action;
static sigjmp_buf out;

static void touch(void)
{
	*(volatile uint8_t *)(memory + page) = 1;
}

/* Lets the store be done once more, and well. */
static void mend(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	calls++;
	fault_at = info->si_addr;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	mprotect(memory + page, LENGTH - page, PROT_READ | PROT_WRITE);
}

static void mend_plainly(int sig)
{
	(void)sig;
	calls++;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	mprotect(memory + page, LENGTH - page, PROT_READ | PROT_WRITE);
}

static void jump_out(int sig)
{
	(void)sig;
	calls++;
	siglongjmp(out, 1);
}

/* As Python's faulthandler does: what it does not know goes to whoever was there before. */
static void hand_back(int sig, siginfo_t *info, void *context)
{
	calls++;
	before.sa_sigaction(sig, info, context);
}

static void install(void (*plain)(int), void (*full)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_flags = flags };

	if (full) {
		action.sa_sigaction = full;
		action.sa_flags |= SA_SIGINFO;
	} else {
		action.sa_handler = plain;
	}
	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(SIGSEGV, &action, &before);
	own_action = action;
}

static void protect(void)
{
	mprotect(memory + page, LENGTH - page, PROT_NONE);
	calls = 0;
}

/* What the handler blocks with us, which has just run, and without us. */
static void require_mask(void)
{
	struct sigaction ours;
	sigset_t now = blocked;

	sigaction(SIGSEGV, NULL, &ours);
	sigaction(SIGSEGV, &own_action, NULL);
	protect();
	touch();
	REQUIRE(sigismember(&blocked, SIGUSR1) && sigismember(&now, SIGUSR1));
	REQUIRE(sigismember(&blocked, SIGSEGV) == sigismember(&now, SIGSEGV));
	sigaction(SIGSEGV, &ours, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	REQUIRE(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGSEGV));
}

/* Who asks whether calls are restarted hears what holds without us. */
static void require_restart(int flag)
{
	struct sigaction now;

	REQUIRE(sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_RESTART) == flag);
}

static void installed_before(void)
{
	gone(PROTECTED);
	install(NULL, mend, 0);
	aw_fault_watch();
	require_restart(0);
	REQUIRE(!aw_guard_gather(own, memory + page, 1) && calls == 0);
	touch();
	REQUIRE(calls == 1 && fault_at == memory + page && memory[page] == 1);
	require_mask();
}

static void installed_after(void)
{
	gone(PROTECTED);
	aw_fault_watch();
	require_restart(SA_RESTART);
	install(mend_plainly, NULL, SA_NODEFER);
	aw_fault_watch();
	REQUIRE(aw_fault_is_caught());
	REQUIRE(!aw_guard_gather(own, memory + page, 1) && calls == 0);
	touch();
	REQUIRE(calls == 1 && memory[page] == 1);
	require_mask();
}

/* Nobody has looked since: the kernel copies as soon as that is seen. */
static void replaced(void)
{
	gone(PROTECTED);
	aw_fault_watch();
	REQUIRE(aw_fault_is_caught());
	install(mend_plainly, NULL, 0);
	while (aw_fault_is_caught())
		;
	REQUIRE(!aw_guard_gather(own, memory + page, 1) && calls == 0);
	touch();
	REQUIRE(calls == 1);
}

static void hands_back_to_us(void)
{
	gone(PROTECTED);
	install(NULL, mend, 0);
	aw_fault_watch();
	install(NULL, hand_back, 0);
	aw_fault_watch();
	touch();
	REQUIRE(calls == 2 && fault_at == memory + page);
}

/* Each fault is a new one. */
static void jumps_out(void)
{
	gone(PROTECTED);
	install(mend_plainly, NULL, 0);
	aw_fault_watch();
	install(jump_out, NULL, 0);
	aw_fault_watch();
	for (int i = 1; i <= 3; i++) {
		if (sigsetjmp(out, 1) == 0)
			touch();
		REQUIRE(calls == i && memory[0] == 7);
	}
	REQUIRE(!aw_guard_gather(own, memory + page, 1) && calls == 3);
}

static void fault__comes_to_the_program(void **state)
{
	(void)state;
	skip_without_kernel_copies();
	assert_int_equal(run(installed_before), 0);
	assert_int_equal(run(installed_after), 0);
	assert_int_equal(run(replaced), 0);
	assert_int_equal(run(hands_back_to_us), 0);
	assert_int_equal(run(jumps_out), 0);
}

/* Two in turn. */
static void installs_on_and_on(void)
{
	gone(PROTECTED);
	for (int i = 0; i < 100; i++) {
		install(i % 2 ? mend_plainly : jump_out, NULL, 0);
		aw_fault_watch();
	}
	REQUIRE(!aw_guard_gather(own, memory + page, 1) && aw_fault_is_caught());
	touch();
	REQUIRE(calls == 1 && memory[page] == 1);
}

/* More than are kept: the last of them is called all the same. */
static void installs_many(void)
{
	gone(PROTECTED);
	for (int sig = SIGRTMIN; sig < SIGRTMAX; sig++) {
		struct sigaction action = { .sa_handler = mend_plainly };

		sigaddset(&action.sa_mask, sig);
		sigaction(SIGSEGV, &action, NULL);
		aw_fault_watch();
	}
	while (aw_fault_is_caught())
		;
	REQUIRE(!aw_guard_gather(own, memory + page, 1) && calls == 0);
	touch();
	REQUIRE(calls == 1);
}

static void fault__many_handlers(void **state)
{
	(void)state;
	skip_without_kernel_copies();
	assert_int_equal(run(installs_on_and_on), 0);
	assert_int_equal(run(installs_many), 0);
}

/* What ends the process without us ends it with us, by the same signal. */

static void faults(void)
{
	gone(PROTECTED);
	aw_fault_watch();
	touch();
}

static void faults_while_ignored(void)
{
	gone(PROTECTED);
	install(SIG_IGN, NULL, 0);
	aw_fault_watch();
	raise(SIGSEGV);
	touch();
}

static void faults_twice(void)
{
	gone(PROTECTED);
	install(mend_plainly, NULL, SA_RESETHAND);
	aw_fault_watch();
	touch();
	REQUIRE(calls == 1);
	mprotect(memory + page, LENGTH - page, PROT_NONE);
	touch();
}

static void is_sent_one(void)
{
	aw_fault_watch();
	raise(SIGSEGV);
}

/* In a copy, but not of the memory that is guarded. */
static void copies_to_nowhere(void)
{
	gone(PROTECTED);
	memset(own, 1, LENGTH);
	aw_fault_watch();
	REQUIRE(!aw_guard_gather(memory + page, own, 1));
}

static void fault__ends_the_process(void **state)
{
	static void (*const tests[])(void) = { faults, faults_while_ignored, faults_twice,
					       is_sent_one, copies_to_nowhere };

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		int status = run(tests[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSEGV);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guard__gone),
		cmocka_unit_test(guard__unwatched),
		cmocka_unit_test(guard__replaced_meanwhile),
		cmocka_unit_test(guard__signals_blocked),
		cmocka_unit_test(fault__comes_to_the_program),
		cmocka_unit_test(fault__many_handlers),
		cmocka_unit_test(fault__ends_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
