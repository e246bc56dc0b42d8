// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The plan of a process, which it reads once: each test is a process of its own.
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "check/faults/count.h"
#include "check/faults/faults.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char logged[4096];

static void keep_line(const char *line, size_t len)
{
	size_t at = strlen(logged);

	if (at + len < sizeof(logged))
		memcpy(logged + at, line, len);
}

struct aw_log_output aw_log_output = { .write = keep_line, .once = PTHREAD_ONCE_INIT };

/* The status of a process that has the plan and calls judge; it ends by judge's result. */
static int run_with(const char *text, int (*judge)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		setenv("ANYWARP_FAULTS", text, 1);
		_exit(judge());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	return status;
}

static void expect(bool claim, int line)
{
	if (claim)
		return;
	fprintf(stderr, "line %d: logged: %s\n", line, logged);
	_exit(1);
}

#define EXPECT(claim) expect(claim, __LINE__)

static int no_plan(void)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	enum ibv_wc_status status;
	int err = 0;

	errno = EXDEV;
	EXPECT(!aw_fault_planned() && !aw_fault_wire_planned());
	EXPECT(!aw_fault_call("ibv_reg_mr", &err) && aw_fault_post("ibv_post_send", 1, &err) == -1);
	EXPECT(!aw_fault_completion(&wc, &status) && !aw_fault_qp_error() &&
	       !aw_fault_cq_overrun());
	EXPECT(aw_fault_async_due_ns() == UINT64_MAX);
	EXPECT(!*logged && errno == EXDEV);
	return 0;
}

static void planned__without_a_plan(void **state)
{
	(void)state;
	assert_int_equal(run_with("", no_plan), 0);
}

static int wrong_plan(void)
{
	int err;

	EXPECT(!aw_fault_call("ibv_reg_mr", &err));
	EXPECT(strstr(logged, "ANYWARP_FAULTS 'nht': ") && strstr(logged, "no fault occurs"));
	return 0;
}

static void planned__with_a_wrong_plan(void **state)
{
	(void)state;
	assert_int_equal(run_with("ibv_reg_mr:nht=1", wrong_plan), 0);
}

static int calls(void)
{
	int err = 0;

	EXPECT(aw_fault_planned() && !aw_fault_wire_planned());
	EXPECT(!aw_fault_call("ibv_reg_mr", &err) && !err);
	EXPECT(!aw_fault_call("ibv_dereg_mr", &err) && !err);
	EXPECT(aw_fault_call("ibv_reg_mr", &err) && err == EAGAIN);
	EXPECT(strstr(logged, "fault ibv_reg_mr:nth=2:error=EAGAIN occurs: ibv_reg_mr 2\n"));
	EXPECT(!aw_fault_call("ibv_reg_mr", &err));
	return 0;
}

static void call__by_its_name(void **state)
{
	(void)state;
	assert_int_equal(run_with("ibv_reg_mr:nth=2:error=EAGAIN", calls), 0);
}

static int calls_of_a_pattern(void)
{
	int err = 0;

	EXPECT(!aw_fault_call("rdma_listen", &err) && !err);
	EXPECT(aw_fault_call("ibv_dereg_mr", &err) && err == EBUSY);
	EXPECT(aw_fault_call("ibv_reg_mr", &err) && err == ENOMEM);
	EXPECT(aw_fault_call("rdma_connect", &err) && err == EIO);
	return 0;
}

static void call__by_a_pattern(void **state)
{
	(void)state;
	assert_int_equal(run_with("ibv_*_mr,rdma_c*:error=EIO", calls_of_a_pattern), 0);
}

static int slow_call(void)
{
	int64_t before = aw_now_ns();
	int err = 0;

	EXPECT(!aw_fault_call("ibv_reg_mr", &err) && !err);
	EXPECT(aw_now_ns() - before >= 2000000);
	return 0;
}

static void call__slow(void **state)
{
	(void)state;
	assert_int_equal(run_with("ibv_reg_mr:delay=2ms", slow_call), 0);
}

static int posts(void)
{
	int err = 0;

	EXPECT(aw_fault_post("ibv_post_send", 1, &err) == -1);
	EXPECT(aw_fault_post("ibv_post_recv", 3, &err) == 0 && err == EINVAL);
	EXPECT(aw_fault_post("ibv_post_send", 2, &err) == 1 && err == ENOMEM);
	EXPECT(aw_fault_post("ibv_post_send", 4, &err) == 1);
	return 0;
}

static void post__in_the_middle_of_a_list(void **state)
{
	(void)state;
	assert_int_equal(run_with("ibv_post_send:wr=2,ibv_post_recv:error=EINVAL", posts), 0);
}

static int completions(void)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND };
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	EXPECT(!aw_fault_completion(&wc, &status));
	wc.opcode = IBV_WC_RDMA_WRITE;
	EXPECT(!aw_fault_completion(&wc, &status));
	wc.status = IBV_WC_WR_FLUSH_ERR;
	EXPECT(!aw_fault_completion(&wc, &status));
	wc.status = IBV_WC_SUCCESS;
	EXPECT(aw_fault_completion(&wc, &status) && status == IBV_WC_RETRY_EXC_ERR);
	EXPECT(aw_fault_cq_overrun() && !aw_fault_cq_overrun());
	EXPECT(!aw_fault_qp_error() && aw_fault_qp_error() && !aw_fault_qp_error());
	return 0;
}

static void completion__of_an_operation(void **state)
{
	(void)state;
	assert_int_equal(run_with("completion:op=write:nth=2:status=RETRY_EXC_ERR,cq:overrun,"
				  "qp:error:nth=2",
				  completions),
			 0);
}

static int events(void)
{
	enum rdma_cm_event_type event = RDMA_CM_EVENT_ROUTE_RESOLVED;
	enum ibv_event_type type;
	uint64_t due = aw_fault_async_due_ns();
	int status = 0;

	EXPECT(!aw_fault_cm_event(&event, &status));
	event = RDMA_CM_EVENT_ADDR_RESOLVED;
	EXPECT(aw_fault_cm_event(&event, &status));
	EXPECT(event == RDMA_CM_EVENT_ADDR_ERROR && status == -ENODEV);
	EXPECT(aw_fault_cm_late(RDMA_CM_EVENT_ESTABLISHED) == 500000000);
	EXPECT(aw_fault_cm_late(RDMA_CM_EVENT_DISCONNECTED) == 0);
	EXPECT(!aw_fault_async(due - 1, &type));
	EXPECT(aw_fault_async(due, &type) && type == IBV_EVENT_PORT_ERR);
	EXPECT(!aw_fault_async(due, &type) && aw_fault_async_due_ns() == due + 1000000000);
	EXPECT(aw_fault_async(due + 1000000000, &type) && type == IBV_EVENT_PORT_ACTIVE);
	EXPECT(aw_fault_async_due_ns() == UINT64_MAX);
	return 0;
}

static void event__in_place_or_late_or_due(void **state)
{
	(void)state;
	assert_int_equal(run_with("cm:ADDR_ERROR:error=ENODEV,cm:ESTABLISHED:delay=500ms,"
				  "async:PORT_ACTIVE:after=3s,async:PORT_ERR:after=2s",
				  events),
			 0);
}

static int late_events(void)
{
	uint64_t due = aw_fault_async_due_ns() + 10000000000;
	enum ibv_event_type type;

	EXPECT(aw_fault_async(due, &type) && type == IBV_EVENT_PORT_ERR);
	EXPECT(aw_fault_async(due, &type) && type == IBV_EVENT_PORT_ACTIVE);
	EXPECT(!aw_fault_async(due, &type));
	return 0;
}

/* A program that asks late gets them in the order of their times. */
static void event__that_are_due_together(void **state)
{
	(void)state;
	assert_int_equal(
		run_with("async:PORT_ACTIVE:after=3s,async:PORT_ERR:after=2s", late_events), 0);
}

static int two_posts(void)
{
	int err;

	aw_fault_call("ibv_reg_mr", &err);
	for (int i = 0; i < 2; i++)
		aw_fault_post("ibv_post_send", 1, &err);
	return 0;
}

static int sleeper(void)
{
	EXPECT(aw_fault_planned());
	pause();
	return 1;
}

static int bytes(void)
{
	struct aw_fault_stream stream;
	struct aw_wire_step step;

	EXPECT(aw_fault_wire_planned());
	aw_fault_wire_begin(&stream);
	step = aw_fault_wire_next(&stream, AW_WIRE_SEND, 10);
	EXPECT(step.what == AW_WIRE_PASS && step.len == 4);
	aw_fault_wire_moved(&stream, AW_WIRE_SEND, &step, 4);
	aw_fault_wire_next(&stream, AW_WIRE_SEND, 10);
	return 0;
}

/* The process ends at the call, at the byte or at the time. */
static void call__of_a_process_that_ends(void **state)
{
	static const struct {
		const char *text;
		int (*judge)(void);
		int signal; /* 0: the process ends by itself */
	} rows[] = {
		{ "self:kill:at=ibv_post_send:nth=2", two_posts, SIGKILL },
		{ "self:kill:at=ibv_post_send:nth=3", two_posts, 0 },
		{ "self:stop:nth=3", two_posts, SIGSTOP },
		{ "self:kill:after=1ms", sleeper, SIGKILL },
		{ "self:stop:after=1ms", sleeper, SIGSTOP },
		{ "self:kill:byte=4", bytes, SIGKILL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int status = run_with(rows[i].text, rows[i].judge);
		int signal = WIFSIGNALED(status)  ? WTERMSIG(status)
			     : WIFSTOPPED(status) ? WSTOPSIG(status)
						  : 0;

		if (signal != rows[i].signal || (!signal && status != 0))
			fail_msg("%s: status %#x", rows[i].text, (unsigned)status);
	}
}

/* The file has the most calls of one process, and outlives one that is killed. */
static void counts__in_a_file(void **state)
{
	char path[] = "/tmp/anywarp-countsXXXXXX";
	int fd = mkstemp(path);
	struct aw_fault_counts *file;

	(void)state;
	assert_true(fd >= 0 && ftruncate(fd, sizeof(*file)) == 0);
	setenv("ANYWARP_FAULTS_COUNT", path, 1);
	assert_int_equal(run_with("", two_posts), 0);
	assert_int_equal(WTERMSIG(run_with("self:kill:at=ibv_post_send:nth=2", two_posts)),
			 SIGKILL);
	unsetenv("ANYWARP_FAULTS_COUNT");
	file = aw_fault_counts_map(path);
	assert_non_null(file);
	assert_int_equal(file->calls[aw_fault_name_find(aw_slice_of("ibv_post_send"))], 2);
	assert_int_equal(file->calls[aw_fault_name_find(aw_slice_of("ibv_reg_mr"))], 1);
	assert_int_equal(file->calls[aw_fault_name_find(aw_slice_of("ibv_dereg_mr"))], 0);
	assert_int_equal(file->injected, 1);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planned__without_a_plan),
		cmocka_unit_test(planned__with_a_wrong_plan),
		cmocka_unit_test(call__by_its_name),
		cmocka_unit_test(call__by_a_pattern),
		cmocka_unit_test(call__slow),
		cmocka_unit_test(post__in_the_middle_of_a_list),
		cmocka_unit_test(completion__of_an_operation),
		cmocka_unit_test(event__in_place_or_late_or_due),
		cmocka_unit_test(event__that_are_due_together),
		cmocka_unit_test(call__of_a_process_that_ends),
		cmocka_unit_test(counts__in_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
