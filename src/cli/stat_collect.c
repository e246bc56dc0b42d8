// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rows of one process: its statistics table as text, with the kernel's word on its sockets.
#include "cli/stat.h"

#include "base/array.h"
#include "cli/process.h"
#include "net/stat/stat_read.h"
#include "wire/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum process_column {
	PROCESS_PID,
	PROCESS_PROGRAM,
	PROCESS_PERSONA,
	PROCESS_DEVICES,
	PROCESS_PDS,
	PROCESS_MRS,
	PROCESS_MR_BYTES,
	PROCESS_CQS,
	PROCESS_QPS,
	PROCESS_LISTENERS,
	PROCESS_CRC_ERRORS,
	PROCESS_TERMINATES_SENT,
	PROCESS_TERMINATES_RECEIVED,
	PROCESS_ROWLESS,
};

static const struct sheet_column process_columns[] = {
	[PROCESS_PID] = { "pid", "pid", true },
	[PROCESS_PROGRAM] = { "program", "program", false },
	[PROCESS_PERSONA] = { "persona", "persona", false },
	[PROCESS_DEVICES] = { "devices", "devices", true },
	[PROCESS_PDS] = { "pds", "pds", true },
	[PROCESS_MRS] = { "mrs", "mrs", true },
	[PROCESS_MR_BYTES] = { "mr_bytes", "mr bytes", true },
	[PROCESS_CQS] = { "cqs", "cqs", true },
	[PROCESS_QPS] = { "qps", "qps", true },
	[PROCESS_LISTENERS] = { "listeners", "listeners", true },
	[PROCESS_CRC_ERRORS] = { "crc_errors", "crc errors", true },
	[PROCESS_TERMINATES_SENT] = { "terminates_sent", "terminates sent", true },
	[PROCESS_TERMINATES_RECEIVED] = { "terminates_received", "terminates received", true },
	[PROCESS_ROWLESS] = { "without_row", "without row", true },
};

enum qp_column {
	QP_PID,
	QP_NUMBER,
	QP_TYPE,
	QP_STATE,
	QP_PATH,
	QP_TLS_RECORDS,
	QP_LOCAL,
	QP_PEER,
	QP_IDENTITY,
	QP_BYTES_OUT,
	QP_BYTES_OUT_RATE,
	QP_BYTES_IN,
	QP_BYTES_IN_RATE,
	QP_MESSAGES_OUT,
	QP_MESSAGES_OUT_RATE,
	QP_MESSAGES_IN,
	QP_MESSAGES_IN_RATE,
	QP_FPDUS_OUT,
	QP_FPDUS_IN,
	QP_SENDS,
	QP_RECVS,
	QP_SEND_CQ,
	QP_RECV_CQ,
	QP_RTT,
	QP_RETRANSMITS,
	QP_CRC_ERRORS,
	QP_TERMINATES_SENT,
	QP_TERMINATES_RECEIVED,
	QP_WAITS,
	QP_ERROR,
};

// The table leaves out those columns without which most questions are answered.
static const struct sheet_column qp_columns[] = {
	[QP_PID] = { "pid", "pid", true },
	[QP_NUMBER] = { "qp", "qp", false },
	[QP_TYPE] = { "type", "type", false },
	[QP_STATE] = { "state", "state", false },
	[QP_PATH] = { "path", "path", false },
	[QP_TLS_RECORDS] = { "tls_records", NULL, false },
	[QP_LOCAL] = { "local", NULL, false },
	[QP_PEER] = { "peer", "peer", false },
	[QP_IDENTITY] = { "peer_identity", "identity", false, false, true },
	[QP_BYTES_OUT] = { "bytes_out", "bytes out", true },
	[QP_BYTES_OUT_RATE] = { "bytes_out_per_s", "bytes out/s", true, true },
	[QP_BYTES_IN] = { "bytes_in", "bytes in", true },
	[QP_BYTES_IN_RATE] = { "bytes_in_per_s", "bytes in/s", true, true },
	[QP_MESSAGES_OUT] = { "messages_out", "messages out", true },
	[QP_MESSAGES_OUT_RATE] = { "messages_out_per_s", "messages out/s", true, true },
	[QP_MESSAGES_IN] = { "messages_in", "messages in", true },
	[QP_MESSAGES_IN_RATE] = { "messages_in_per_s", "messages in/s", true, true },
	[QP_FPDUS_OUT] = { "fpdus_out", "fpdus out", true },
	[QP_FPDUS_IN] = { "fpdus_in", "fpdus in", true },
	[QP_SENDS] = { "send_wrs", "send wrs", true },
	[QP_RECVS] = { "recv_wrs", "recv wrs", true },
	[QP_SEND_CQ] = { "send_cq", NULL, true },
	[QP_RECV_CQ] = { "recv_cq", NULL, true },
	[QP_RTT] = { "rtt_us", "rtt us", true },
	[QP_RETRANSMITS] = { "retransmits", "retransmits", true },
	[QP_CRC_ERRORS] = { "crc_errors", NULL, true },
	[QP_TERMINATES_SENT] = { "terminates_sent", NULL, true },
	[QP_TERMINATES_RECEIVED] = { "terminates_received", NULL, true },
	[QP_WAITS] = { "waits_for", "waits for", false },
	[QP_ERROR] = { "error", "error", false },
};

enum listener_column {
	LISTENER_PID,
	LISTENER_ADDRESS,
	LISTENER_HALF_OPEN,
	LISTENER_REQUESTS,
	LISTENER_FAILED,
};

static const struct sheet_column listener_columns[] = {
	[LISTENER_PID] = { "pid", "pid", true },
	[LISTENER_ADDRESS] = { "address", "address", false },
	[LISTENER_HALF_OPEN] = { "half_open", "half open", true },
	[LISTENER_REQUESTS] = { "requests", "requests", true },
	[LISTENER_FAILED] = { "failed", "failed", true },
};

enum cq_column {
	CQ_PID,
	CQ_NUMBER,
	CQ_CAPACITY,
	CQ_READY,
	CQ_CQES,
	CQ_CHANNEL,
	CQ_OVERFLOWED,
};

static const struct sheet_column cq_columns[] = {
	[CQ_PID] = { "pid", "pid", true },
	[CQ_NUMBER] = { "cq", "cq", true },
	[CQ_CAPACITY] = { "capacity", "capacity", true },
	[CQ_READY] = { "unpolled", "unpolled", true },
	[CQ_CQES] = { "cqes", "cqes", true },
	[CQ_CHANNEL] = { "channel", "channel", false },
	[CQ_OVERFLOWED] = { "overflowed", "overflowed", false },
};

_Static_assert(ARRAY_LEN(qp_columns) <= SHEET_COLUMNS_MAX, "a row holds the fields of every sheet");

void aw_stat_sheets_begin(struct sheet sheets[STAT_SHEETS])
{
	sheets[STAT_PROCESSES] = (struct sheet){
		.name = "processes",
		.title = "processes",
		.columns = process_columns,
		.column_count = ARRAY_LEN(process_columns),
		.name_count = PROCESS_PID + 1,
	};
	sheets[STAT_QPS] = (struct sheet){
		.name = "qps",
		.title = "\nqueue pairs",
		.columns = qp_columns,
		.column_count = ARRAY_LEN(qp_columns),
		.name_count = QP_NUMBER + 1,
	};
	sheets[STAT_LISTENERS] = (struct sheet){
		.name = "listeners",
		.title = "\nlisteners",
		.columns = listener_columns,
		.column_count = ARRAY_LEN(listener_columns),
		.name_count = LISTENER_ADDRESS + 1,
	};
	sheets[STAT_CQS] = (struct sheet){
		.name = "cqs",
		.title = "\ncompletion queues",
		.columns = cq_columns,
		.column_count = ARRAY_LEN(cq_columns),
		.name_count = CQ_NUMBER + 1,
	};
}

// One process, as its rows are visited.
struct visit {
	pid_t pid;
	struct stat_look *look;
	uint64_t devices, pds, mrs, mr_bytes, kinds[AW_STAT_LISTENER + 1];
	bool roce;
};

static const char *qp_state(const struct aw_stat_qp *qp)
{
	uint32_t state = AW_STAT_QP_STATE(qp->now);
	static const char *const rc[] = { "idle", "rts", "closing", "terminate", "error" };
	static const char *const ud[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "error" };

	if (qp->type == AW_STAT_UD)
		return state < ARRAY_LEN(ud) ? ud[state] : "unknown";
	return state < ARRAY_LEN(rc) ? rc[state] : "unknown";
}

static const char *qp_type(const struct aw_stat_qp *qp)
{
	switch ((enum aw_stat_type)qp->type) {
	case AW_STAT_RC:
		return "rc";
	case AW_STAT_UD:
		return "ud";
	case AW_STAT_UC:
		return "uc";
	}
	return "unknown";
}

static const char *qp_path(const struct aw_stat_qp *qp)
{
	switch ((enum aw_stat_path)qp->path) {
	case AW_STAT_PATH_NONE:
		return "";
	case AW_STAT_PATH_TCP:
		return "tcp";
	case AW_STAT_PATH_MEMORY:
		return "memory";
	case AW_STAT_PATH_UDP:
		return "udp";
	case AW_STAT_PATH_TLS:
	case AW_STAT_PATH_TLS_KERNEL:
	case AW_STAT_PATH_TLS_BOTH:
		return "tls";
	case AW_STAT_PATH_TLS_MEMORY:
		return "tls+memory";
	}
	return "unknown";
}

// The maker of the records of TLS.
static const char *qp_records(const struct aw_stat_qp *qp)
{
	switch ((enum aw_stat_path)qp->path) {
	case AW_STAT_PATH_NONE:
	case AW_STAT_PATH_TCP:
	case AW_STAT_PATH_MEMORY:
	case AW_STAT_PATH_UDP:
		return "";
	case AW_STAT_PATH_TLS:
	case AW_STAT_PATH_TLS_MEMORY:
		return "user";
	case AW_STAT_PATH_TLS_KERNEL:
		return "kernel";
	case AW_STAT_PATH_TLS_BOTH:
		return "both";
	}
	return "unknown";
}

// The cause that lasts longest comes first.
static const char *qp_waits(const struct aw_stat_qp *qp)
{
	uint32_t waits = AW_STAT_QP_WAITS(qp->now);

	if (waits & AW_STAT_WAITS_RECEIVE)
		return "receive";
	if (waits & AW_STAT_WAITS_MEMORY)
		return "memory";
	return waits & AW_STAT_WAITS_ROOM ? "peer" : "";
}

// A socket that is closed, or of which the kernel does not tell, has the peer that the process noted.
static void print_ends(struct sheet_row *row, const struct visit *visit,
		       const struct aw_stat_qp *qp)
{
	const struct aw_sockdiag_conn *conn =
		aw_stat_sockets_find(&visit->look->sockets, visit->pid, qp->fd);

	if (conn) {
		aw_sheet_put_address(row, QP_LOCAL, conn->ipv6, conn->local, conn->local_port);
		aw_sheet_put_address(row, QP_PEER, conn->ipv6, conn->peer, conn->peer_port);
	} else if (qp->peer_family != AF_UNSPEC) {
		aw_sheet_put_address(row, QP_PEER, qp->peer_family == AF_INET6, qp->peer,
				     qp->peer_port);
	}
	if (conn && conn->counted) {
		aw_sheet_put(row, QP_RTT, conn->rtt_us);
		aw_sheet_put(row, QP_RETRANSMITS, conn->retransmits);
	}
}

static void print_rates(struct sheet_row *row, const struct visit *visit,
			const struct aw_stat_qp *qp)
{
	static const enum qp_column columns[STAT_RATES] = {
		[STAT_BYTES_OUT] = QP_BYTES_OUT_RATE,
		[STAT_BYTES_IN] = QP_BYTES_IN_RATE,
		[STAT_MESSAGES_OUT] = QP_MESSAGES_OUT_RATE,
		[STAT_MESSAGES_IN] = QP_MESSAGES_IN_RATE,
	};
	uint64_t a_second[STAT_RATES];

	if (!aw_stat_rates_take(visit->look->rates, visit->pid, qp, a_second))
		return;
	for (int i = 0; i < STAT_RATES; i++)
		aw_sheet_put(row, columns[i], a_second[i]);
}

static void add_qp(const struct visit *visit, const struct aw_stat_qp *qp)
{
	struct sheet_row row = { 0 };

	aw_sheet_put(&row, QP_PID, (uint64_t)visit->pid);
	snprintf(row.fields[QP_NUMBER], SHEET_FIELD_MAX, "0x%x", qp->number);
	strcpy(row.fields[QP_TYPE], qp_type(qp));
	strcpy(row.fields[QP_STATE], qp_state(qp));
	strcpy(row.fields[QP_PATH], qp_path(qp));
	strcpy(row.fields[QP_TLS_RECORDS], qp_records(qp));
	print_ends(&row, visit, qp);
	// The field's own NUL stays: a name that is longer, or is just being written, may have none there.
	memcpy(row.fields[QP_IDENTITY], qp->identity, SHEET_FIELD_MAX - 1);
	aw_sheet_put(&row, QP_BYTES_OUT, qp->count.out.bytes);
	aw_sheet_put(&row, QP_BYTES_IN, qp->count.in.bytes);
	aw_sheet_put(&row, QP_MESSAGES_OUT, qp->count.out.messages);
	aw_sheet_put(&row, QP_MESSAGES_IN, qp->count.in.messages);
	print_rates(&row, visit, qp);
	aw_sheet_put(&row, QP_FPDUS_OUT, qp->count.out.fpdus);
	aw_sheet_put(&row, QP_FPDUS_IN, qp->count.in.fpdus);
	aw_sheet_put(&row, QP_SENDS, AW_STAT_QP_SENDS(qp->wrs));
	aw_sheet_put(&row, QP_RECVS, AW_STAT_QP_RECVS(qp->wrs));
	aw_sheet_put(&row, QP_SEND_CQ, qp->send_cq);
	aw_sheet_put(&row, QP_RECV_CQ, qp->recv_cq);
	aw_sheet_put(&row, QP_CRC_ERRORS, qp->crc_errors);
	aw_sheet_put(&row, QP_TERMINATES_SENT, qp->terminates_sent);
	aw_sheet_put(&row, QP_TERMINATES_RECEIVED, qp->terminates_received);
	strcpy(row.fields[QP_WAITS], qp_waits(qp));
	if (qp->peer_error)
		snprintf(row.fields[QP_ERROR], SHEET_FIELD_MAX, "peer: %s",
			 aw_error_text((enum aw_error)qp->peer_error));
	else if (qp->error)
		snprintf(row.fields[QP_ERROR], SHEET_FIELD_MAX, "%s",
			 aw_error_text((enum aw_error)qp->error));
	aw_sheet_add(&visit->look->sheets[STAT_QPS], &row);
}

static void add_listener(const struct visit *visit, const struct aw_stat_listener *listener)
{
	struct sheet_row row = { 0 };

	aw_sheet_put(&row, LISTENER_PID, (uint64_t)visit->pid);
	if (listener->family != AF_UNSPEC)
		aw_sheet_put_address(&row, LISTENER_ADDRESS, listener->family == AF_INET6,
				     listener->address, listener->port);
	aw_sheet_put(&row, LISTENER_HALF_OPEN, listener->half_open);
	aw_sheet_put(&row, LISTENER_REQUESTS, listener->requests);
	aw_sheet_put(&row, LISTENER_FAILED, listener->failed);
	aw_sheet_add(&visit->look->sheets[STAT_LISTENERS], &row);
}

static void add_cq(const struct visit *visit, const struct aw_stat_cq *cq)
{
	struct sheet_row row = { 0 };

	aw_sheet_put(&row, CQ_PID, (uint64_t)visit->pid);
	aw_sheet_put(&row, CQ_NUMBER, cq->number);
	aw_sheet_put(&row, CQ_CAPACITY, cq->capacity);
	aw_sheet_put(&row, CQ_READY, cq->ready);
	aw_sheet_put(&row, CQ_CQES, cq->cqes + cq->direct);
	strcpy(row.fields[CQ_CHANNEL], cq->channel ? "yes" : "no");
	strcpy(row.fields[CQ_OVERFLOWED], cq->overflowed ? "yes" : "no");
	aw_sheet_add(&visit->look->sheets[STAT_CQS], &row);
}

static void visit_row(struct visit *visit, const union aw_stat_row *row)
{
	visit->kinds[row->any.kind]++;
	switch ((enum aw_stat_kind)row->any.kind) {
	case AW_STAT_NONE:
		break;
	case AW_STAT_DEVICE:
		// A process may open the device more than once.
		visit->devices++;
		visit->pds += row->device.pds;
		visit->mrs += row->device.mrs;
		visit->mr_bytes += row->device.mr_bytes;
		visit->roce |= row->device.roce;
		break;
	case AW_STAT_QP:
		add_qp(visit, &row->qp);
		break;
	case AW_STAT_CQ:
		add_cq(visit, &row->cq);
		break;
	case AW_STAT_LISTENER:
		add_listener(visit, &row->listener);
		break;
	}
}

static void add_process(const struct visit *visit, const struct aw_stat_head *head)
{
	struct sheet_row row = { 0 };

	aw_sheet_put(&row, PROCESS_PID, (uint64_t)visit->pid);
	aw_sheet_put_program(&row, PROCESS_PROGRAM, visit->pid);
	if (visit->devices > 0)
		strcpy(row.fields[PROCESS_PERSONA], visit->roce ? "roce" : "iwarp");
	aw_sheet_put(&row, PROCESS_DEVICES, visit->devices);
	aw_sheet_put(&row, PROCESS_PDS, visit->pds);
	aw_sheet_put(&row, PROCESS_MRS, visit->mrs);
	aw_sheet_put(&row, PROCESS_MR_BYTES, visit->mr_bytes);
	aw_sheet_put(&row, PROCESS_CQS, visit->kinds[AW_STAT_CQ]);
	aw_sheet_put(&row, PROCESS_QPS, visit->kinds[AW_STAT_QP]);
	aw_sheet_put(&row, PROCESS_LISTENERS, visit->kinds[AW_STAT_LISTENER]);
	aw_sheet_put(&row, PROCESS_CRC_ERRORS, head->crc_errors);
	aw_sheet_put(&row, PROCESS_TERMINATES_SENT, head->terminates_sent);
	aw_sheet_put(&row, PROCESS_TERMINATES_RECEIVED, head->terminates_received);
	aw_sheet_put(&row, PROCESS_ROWLESS, head->rowless);
	aw_sheet_add(&visit->look->sheets[STAT_PROCESSES], &row);
}

bool aw_stat_collect(pid_t pid, bool asked, struct stat_look *look)
{
	struct aw_stat_copy copy;
	enum aw_stat_result result = aw_stat_read(pid, &copy);

	if (result == AW_STAT_READ) {
		struct visit visit = { .pid = pid, .look = look };

		aw_stat_sockets_load(&look->sockets, pid);
		for (uint32_t i = 0; i < copy.count; i++)
			visit_row(&visit, &copy.rows[i]);
		add_process(&visit, &copy.head);
		free(copy.rows);
		return true;
	}
	/* Without its number a process may end, or be another user's. */
	if (!asked && result != AW_STAT_STRANGE && result != AW_STAT_FAILED)
		return true;
	return aw_process_report(STAT_WHO, result, pid);
}
