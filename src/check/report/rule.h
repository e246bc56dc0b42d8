// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules that a program of RDMA verbs must keep, each with its name, its class, what it follows and how a program that
// breaks it is mended. docs/check.md describes each; tests/check has a program that breaks it and one that keeps it.
#ifndef CHECK_REPORT_RULE_H
#define CHECK_REPORT_RULE_H

enum aw_rule {
	/* 1: memory that a work request under way uses */
	AW_RULE_SOURCE_CHANGED, /* a source was changed between post and completion */
	AW_RULE_SINK_WRITTEN, /* the program wrote to a sink before its completion */
	AW_RULE_OVERLAP, /* a work request under way writes what another one uses */
	/* 2: what is given up while it is used */
	AW_RULE_MEMORY_FREED, /* free, munmap or realloc of memory that a work request under way uses */
	AW_RULE_MR_DEREGISTERED, /* ibv_dereg_mr with a work request under way */
	AW_RULE_QP_DESTROYED, /* a QP in RTS with sends under way */
	AW_RULE_USED_AFTER_DESTROY, /* a call on an object that was destroyed */
	AW_RULE_REGISTERED_FREED, /* registered memory freed or unmapped while peers may reach it */
	/* 3: room */
	AW_RULE_SQ_UNSIGNALED, /* the SQ is full and nothing in it is signaled */
	AW_RULE_SQ_UNPOLLED, /* the SQ is full, for completions were not polled */
	AW_RULE_CQ_SMALL, /* the QPs of a CQ hold more than the CQ can: a risk, told at creation */
	AW_RULE_CQ_OVERRUN, /* more completions are due than the CQ holds */
	/* 4 */
	AW_RULE_POSTED_AGAIN, /* a work request that an earlier post accepted is posted again */
	/* 5 */
	AW_RULE_STATUS_IGNORED, /* posts go on behind a completion with an error */
	/* 6 */
	AW_RULE_WAKEUP_LOST, /* a thread sleeps on an armed CQ that it did not poll since it armed it */
	/* 7 */
	AW_RULE_EVENT_UNACKED, /* an object is destroyed with unacknowledged events: the destroy would hang */
	AW_RULE_LEAK, /* an object was never destroyed */
	/* 8: posts and attributes beyond what was agreed */
	AW_RULE_WRONG_STATE,
	AW_RULE_INLINE_TOO_LARGE,
	AW_RULE_SGE_TOO_MANY,
	AW_RULE_RD_ATOMIC_EXCEEDED, /* ORD or IRD beyond the device's or the peer's */
	AW_RULE_LKEY_UNKNOWN, /* no MR of the QP's PD has the lkey */
	AW_RULE_SGE_OUTSIDE_MR,
	AW_RULE_LOCAL_ACCESS, /* a sink in an MR without IBV_ACCESS_LOCAL_WRITE */
	AW_RULE_PASSIVE_FIRST, /* the passive end sends before it has received: with --like of an iWARP adapter */
	/* 9 */
	AW_RULE_REMOTE_ACCESS, /* a peer's access was refused; told at the end that refuses it */
	/* 10 */
	AW_RULE_THREAD_SHARED, /* two threads in an object of one thread domain */
	AW_RULE_DESTROYED_IN_USE, /* an object is destroyed while another thread is in a call on it */
	AW_RULES,
};

struct aw_rule_text {
	const char *name; /* "source-changed": in reports, suppressions and SARIF */
	unsigned class; /* 1 to 10, as in docs/check.md */
	const char *title; /* one line */
	const char *reference; /* the man page, RFC or InfiniBand section */
	const char *remedy; /* one sentence: what to do about it */
	int is_risk; /* a warning that is reported but does not change the exit status */
};

extern const struct aw_rule_text aw_rule_texts[AW_RULES];

#endif
