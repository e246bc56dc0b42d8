// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reasons that follow from a number alone: errnos, statuses of completions, events of rdma_cm; and how they are written.
#include "check/explain/explain.h"
#include "check/explain/words.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void expect(const char *why, const char *text)
{
	assert_true(strlen(why) + 1 < AW_EXPLAIN_MAX);
	if (strcmp(why, text) != 0)
		fail_msg("\n  %s\ninstead of\n  %s", why, text);
}

static const struct {
	const char *call;
	int err;
	const char *text;
} errno_rows[] = {
	{ "ibv_open_device", EACCES,
	  "EACCES: the user may not open /dev/infiniband/uverbs*: see its mode and group, or the container's device rules" },
	{ "ibv_open_device", ENOENT,
	  "ENOENT: /dev/infiniband/uverbs* does not exist: ib_uverbs is not loaded, or the container was not given the device (docker: --device)" },
	{ "ibv_open_device", ENODEV,
	  "ENODEV: the device is gone: it was removed, or its driver unloaded" },
	{ "ibv_get_cq_event", EAGAIN,
	  "EAGAIN: the fd is non-blocking and there is no event now: wait by poll(2)" },
	{ "ibv_poll_cq", EIO,
	  "EIO: the CQ was overrun: more completions were due than its cqe; make it larger, or poll it more often" },
	{ "ibv_query_gid_ex", ENODATA, "ENODATA: this entry of the GID table is empty" },
	{ "ibv_attach_mcast", EOPNOTSUPP,
	  "EOPNOTSUPP: the device has no multicast, or not for a QP of this type: iWARP has none" },
	{ "ibv_fork_init", EINVAL,
	  "EINVAL: memory was registered before: call ibv_fork_init before every other verb" },
	{ "ibv_alloc_mw", EINVAL, "EINVAL: the type is neither IBV_MW_TYPE_1 nor IBV_MW_TYPE_2" },
	{ "ibv_resize_cq", EINVAL,
	  "EINVAL: cqe is below 1 or above the device's max_cqe, or the CQ holds more completions than that: poll it first" },
	{ "ibv_create_flow", EOPNOTSUPP,
	  "EOPNOTSUPP: the device or its provider does not have this call, or one of the attributes asked for" },
	{ "rdma_create_event_channel", ENODEV,
	  "ENODEV: there is no RDMA device, or rdma_ucm is not loaded: see rdma link (or ibv_devices); modprobe rdma_ucm" },
	{ "rdma_bind_addr", EADDRINUSE,
	  "EADDRINUSE: another id, or over iWARP a TCP socket, has the port; RDMA_OPTION_ID_REUSEADDR shares it where none of the two listens" },
	{ "rdma_bind_addr", ENODEV,
	  "ENODEV: no RDMA device has this address: its network interface has no device (rdma link), or the address is loopback" },
	{ "rdma_resolve_addr", EINVAL,
	  "EINVAL: the id was resolved already or is not fresh or bound, or source and destination are of different families" },
	{ "rdma_listen", EADDRINUSE,
	  "EADDRINUSE: another id, or over iWARP a TCP socket, listens on the port or holds it" },
	{ "rdma_create_qp", EINVAL,
	  "EINVAL: most likely the id has no device (id->verbs is NULL: bind or resolve it first) or has a QP already; or qp_type is not the id's, the PD is of another device, or an attribute is beyond the device's limits" },
	{ "rdma_disconnect", EINVAL,
	  "EINVAL: the id is not connected (any more), or is of RDMA_PS_UDP" },
	{ "rdma_migrate_id", EINVAL,
	  "EINVAL: an argument is NULL or not valid, or the id is not in the state that this call needs" },
	{ "ibv_open_device", EXDEV, "EXDEV: Invalid cross-device link" },
	{ "rdma_notify", 12345, "error 12345, which is no errno number" },
};

static void errno__a_call_s_own_text_comes_first(void **state)
{
	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(errno_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_errno(errno_rows[i].call, errno_rows[i].err, why);
		expect(why, errno_rows[i].text);
	}
}

/* Each text fits with the longest name of an errno, and no row hides behind an earlier one. */
static void errno__every_row_is_reached(void **state)
{
	const struct aw_errno_text *const tables[] = { aw_verbs_errnos, aw_cm_errnos };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(tables); i++) {
		for (const struct aw_errno_text *row = tables[i]; row->call; row++) {
			char call[64], why[AW_EXPLAIN_MAX], text[2 * AW_EXPLAIN_MAX];

			snprintf(call, sizeof(call), "%s", row->call);
			/* A name that no other row has stands for all of a '*'. */
			if (call[strlen(call) - 1] == '*')
				call[strlen(call) - 1] = '\0';
			aw_explain_errno(call, row->err, why);
			snprintf(text, sizeof(text), "%s: %s", aw_errno_name(row->err), row->text);
			expect(why, text);
		}
	}
}

static const struct {
	const char *call;
	struct aw_explain_users users;
	int err;
	const char *text;
} destroy_rows[] = {
	{ "ibv_dealloc_pd",
	  { .qps = 1, .mrs = 2, .ahs = 1 },
	  EBUSY,
	  "still held by 1 QP, 2 MRs and 1 address handle" },
	{ "ibv_destroy_cq", { .qps = 3 }, EBUSY, "still held by 3 QPs" },
	{ "ibv_destroy_qp",
	  { .groups = 1 },
	  EBUSY,
	  "still held by 1 multicast group (ibv_detach_mcast)" },
	{ "ibv_dereg_mr",
	  { .mws = 1, .imports = 2 },
	  EBUSY,
	  "still held by 1 memory window and 2 parent domains or imports" },
	{ "ibv_dereg_mr",
	  { 0 },
	  EBUSY,
	  "EBUSY: a memory window is bound to the MR: unbind or deallocate it first" },
	{ "ibv_dereg_mr",
	  { .mws = 1 },
	  EIO,
	  "EIO: the device failed or was reset: an asynchronous event and the kernel log have more" },
};

static void destroy__what_holds_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(destroy_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_destroy(destroy_rows[i].call, &destroy_rows[i].users,
				   destroy_rows[i].err, why);
		expect(why, destroy_rows[i].text);
	}
}

static const struct {
	enum ibv_wc_status status;
	enum ibv_wc_opcode posted;
	const char *text;
} status_rows[] = {
	{ IBV_WC_LOC_LEN_ERR, IBV_WC_RECV,
	  "the message is longer than the SGEs of the receive that it came to: the peer sends more than this end expects, or receives of several sizes were posted in another order" },
	{ IBV_WC_LOC_LEN_ERR, IBV_WC_SEND,
	  "the message is longer than the port's max_msg_sz or, from a UD QP, than its MTU" },
	{ IBV_WC_LOC_PROT_ERR, IBV_WC_RDMA_READ,
	  "an SGE is not in an MR of the QP's PD: usually a wrong lkey, a range beyond the MR, an MR that was deregistered before the completion, or a Read's sink without IBV_ACCESS_LOCAL_WRITE" },
	{ IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV,
	  "the QP went to ERR before a message came to this receive: a completion of the QP with another status has the cause; where there is none, the peer disconnected, or this end did" },
	{ IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE,
	  "the responder's memory refused it: usually a wrong or old rkey, a range beyond the MR, an MR that was deregistered or is of another PD or device than the QP, or one without the IBV_ACCESS_REMOTE_ flag; or the rkey or address came in the wrong byte order" },
	{ IBV_WC_RETRY_EXC_ERR, IBV_WC_SEND,
	  "the peer did not acknowledge in retry_cnt + 1 tries of timeout each: usually its program has ended or destroyed the QP, its QP is not in RTR, dest_qp_num, PSN or GID are wrong, the network loses everything (cable, firewall, VLAN, MTU, PFC), or timeout is too short for its congestion" },
	{ IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SEND,
	  "the peer had no receive posted for this message, rnr_retry times: post receives before the peer sends, and again behind each completion; rnr_retry 7 waits without end" },
	/* One text for both. */
	{ IBV_WC_LOC_ACCESS_ERR, IBV_WC_RECV,
	  "the peer's operation was refused by this end's memory: usually a receive or sink without IBV_ACCESS_LOCAL_WRITE" },
	{ (enum ibv_wc_status)99, IBV_WC_SEND, "status 99, which verbs.h does not have" },
};

static void status__sends_and_receives(void **state)
{
	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(status_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_status(status_rows[i].status, status_rows[i].posted, why);
		expect(why, status_rows[i].text);
	}
}

static void status__every_one_has_a_text_that_fits(void **state)
{
	(void)state;
	for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++) {
		char why[AW_EXPLAIN_MAX];

		for (int posted = IBV_WC_SEND; posted <= IBV_WC_RECV; posted += IBV_WC_RECV) {
			aw_explain_status((enum ibv_wc_status)status, (enum ibv_wc_opcode)posted,
					  why);
			assert_true(strlen(why) + 1 < AW_EXPLAIN_MAX);
			assert_null(strstr(why, "verbs.h"));
		}
	}
}

static const struct {
	enum rdma_cm_event_type event;
	int status;
	const char *text;
} cm_event_rows[] = {
	{ RDMA_CM_EVENT_ADDR_ERROR, -ENODEV,
	  "status -19 (ENODEV): the route to the destination leaves by an interface without an RDMA device (ip route get; rdma link); a container needs that interface in its network namespace" },
	{ RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT,
	  "status -110 (ETIMEDOUT): nobody answered for the destination's address (ARP, neighbor discovery): wrong network or address, or the host is down" },
	{ RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT,
	  "status -110 (ETIMEDOUT): the subnet manager gave no path record in time: does one run (sminfo), and is the port ACTIVE?" },
	{ RDMA_CM_EVENT_REJECTED, 8,
	  "status 8: nobody listens on this port there (invalid service ID)" },
	{ RDMA_CM_EVENT_REJECTED, 28,
	  "status 28: the program there called rdma_reject or destroyed the id, its backlog is full, or it listens on this port at another address of that host" },
	{ RDMA_CM_EVENT_REJECTED, -ECONNREFUSED,
	  "status -111 (ECONNREFUSED): nobody listens on this port there, or the program there called rdma_reject (over iWARP the two are told apart by private data alone)" },
	{ RDMA_CM_EVENT_REJECTED, 33, "status 33: the peer rejected the connection" },
	{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
	  "status -110 (ETIMEDOUT): the peer did not answer: the host is down, a firewall drops the request (iWARP: the TCP port; RoCE: UDP 4791), or its program does not take it" },
	{ RDMA_CM_EVENT_UNREACHABLE, 1,
	  "status 1: nobody listens on this port there (SIDR: service ID not supported)" },
	{ RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM,
	  "status -12 (ENOMEM): the peer takes fewer inbound Reads than this end wants: lower initiator_depth here or raise responder_resources there" },
	{ RDMA_CM_EVENT_CONNECT_ERROR, -EXDEV,
	  "status -18: the connection was not set up: Invalid cross-device link" },
	{ RDMA_CM_EVENT_DISCONNECTED, 0,
	  "status 0: the connection has ended: rdma_disconnect at one end, or the peer's program ended" },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL, 0,
	  "status 0: the device was removed: the program has to destroy the id, its QP and all objects of the device" },
};

static void cm_event__each_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cm_event_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_cm_event(cm_event_rows[i].event, cm_event_rows[i].status, why);
		expect(why, cm_event_rows[i].text);
	}
}

static const struct {
	const char *call;
	struct rdma_conn_param param;
	int err;
	const char *text;
} connect_rows[] = {
	{ "rdma_connect",
	  { .responder_resources = 17 },
	  EINVAL,
	  "responder_resources 17, but the device's max_qp_rd_atom is 16" },
	{ "rdma_accept",
	  { .initiator_depth = 9 },
	  EINVAL,
	  "initiator_depth 9, but the device's max_qp_init_rd_atom is 8" },
	{ "rdma_accept",
	  { .private_data_len = 9 },
	  EINVAL,
	  "private_data_len 9, but private_data is NULL" },
	{ "rdma_connect",
	  { .private_data = "", .private_data_len = 57 },
	  EINVAL,
	  "EINVAL: most likely private_data_len 57: over InfiniBand and RoCE it is at most 56; or the id's route is not resolved" },
	{ "rdma_connect",
	  { .private_data = "", .private_data_len = 56 },
	  EINVAL,
	  "EINVAL: most likely the id's route is not resolved (wait for RDMA_CM_EVENT_ROUTE_RESOLVED), conn_param is NULL without a QP, the private data is too long, or the QP could not be moved" },
	{ "rdma_accept",
	  { .private_data = "", .private_data_len = 57 },
	  ECONNRESET,
	  "ECONNRESET: the peer has given up: it closed the connection before it was accepted" },
};

static void connect__parameters(void **state)
{
	static const struct ibv_device_attr device = { .max_qp_rd_atom = 16,
						       .max_qp_init_rd_atom = 8 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(connect_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_connect(connect_rows[i].call, &connect_rows[i].param, &device,
				   connect_rows[i].err, why);
		expect(why, connect_rows[i].text);
	}
}

static void reason__is_cut_where_it_is_too_long(void **state)
{
	char why[AW_EXPLAIN_MAX];

	(void)state;
	aw_reason_set(why, "%0*d", AW_EXPLAIN_MAX + 10, 1);
	assert_int_equal(strlen(why), AW_EXPLAIN_MAX - 1);
	aw_reason_add(why, "more");
	assert_int_equal(strlen(why), AW_EXPLAIN_MAX - 1);
}

#define SECOND 1000000000

static void line_due__once_a_second(void **state)
{
	struct aw_explain_lines lines = { 0 };
	int64_t now = 5 * (int64_t)SECOND;
	unsigned held = 99;

	(void)state;
	assert_true(aw_explain_line_due(&lines, "a", now, &held));
	assert_int_equal(held, 0);
	assert_true(aw_explain_line_due(&lines, "b", now, &held));
	assert_false(aw_explain_line_due(&lines, "a", now + 1, &held));
	assert_false(aw_explain_line_due(&lines, "a", now + SECOND - 1, &held));
	assert_true(aw_explain_line_due(&lines, "a", now + SECOND, &held));
	assert_int_equal(held, 2);
	assert_true(aw_explain_line_due(&lines, "a", now + 2 * (int64_t)SECOND, &held));
	assert_int_equal(held, 0);
}

/* More lines than there are places: none is lost, and the newest are still known. */
static void line_due__more_lines_than_places(void **state)
{
	struct aw_explain_lines lines = { 0 };
	int64_t now = SECOND;
	unsigned held;
	char line[32];

	(void)state;
	for (int i = 0; i <= AW_EXPLAIN_LINES; i++) {
		snprintf(line, sizeof(line), "line %d", i);
		assert_true(aw_explain_line_due(&lines, line, now + i, &held));
	}
	assert_false(aw_explain_line_due(&lines, line, now + AW_EXPLAIN_LINES, &held));
	assert_false(aw_explain_line_due(&lines, "line 1", now + AW_EXPLAIN_LINES, &held));
	assert_true(aw_explain_line_due(&lines, "line 0", now + AW_EXPLAIN_LINES, &held));
}

static void log__one_line_and_errno_is_kept(void **state)
{
	static const char expected[] = "anywarp check: ibv_post_send: because\n";
	char got[128] = "";
	int ends[2], err = dup(STDERR_FILENO);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	errno = EXDEV;
	aw_explain_log("ibv_post_send", "because");
	aw_explain_log("ibv_post_send", "because");
	assert_int_equal(errno, EXDEV);
	dup2(err, STDERR_FILENO);
	close(err);
	close(ends[1]);
	assert_int_equal(read(ends[0], got, sizeof(got) - 1), sizeof(expected) - 1);
	assert_string_equal(got, expected);
	assert_int_equal(read(ends[0], got, sizeof(got) - 1), 0);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errno__a_call_s_own_text_comes_first),
		cmocka_unit_test(errno__every_row_is_reached),
		cmocka_unit_test(destroy__what_holds_it),
		cmocka_unit_test(status__sends_and_receives),
		cmocka_unit_test(status__every_one_has_a_text_that_fits),
		cmocka_unit_test(cm_event__each_status),
		cmocka_unit_test(connect__parameters),
		cmocka_unit_test(reason__is_cut_where_it_is_too_long),
		cmocka_unit_test(line_due__once_a_second),
		cmocka_unit_test(line_due__more_lines_than_places),
		cmocka_unit_test(log__one_line_and_errno_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
