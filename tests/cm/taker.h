// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A process whose child takes its connection (anywarp_fork_take). The peer is a bare TCP socket, which all
// processes of a test have.
#ifndef TESTS_TAKER_H
#define TESTS_TAKER_H

#include "half.h"

#include <stdbool.h>
#include <sys/types.h>

extern struct half half, other;

/* Connects h as the initiator, with receive i posted. */
void establish(struct half *h, int i);
void post_recv(struct half *h, int i);

/* The ULPDU of the Send with this MSN, in a buffer of RAW_ULPDU_MAX; its length. */
size_t make_send(uint8_t *ulpdu, uint8_t msn, const char *text);

/* The peer's first Send; and that it comes into receive i. */
void send_text(int fd, const char *text);
void expect_text(struct half *h, int i, const char *text);

/* The stream goes on, either way: for one that has carried nothing yet. */
void expect_alive(struct half *h, int i);
void half_alive(void);

/* Nothing came, and no end. */
void expect_silence(int fd);

/* Forks; the child takes ids and ends with fn. */
pid_t fork_taker(struct rdma_cm_id **ids, int count, void (*fn)(void));
void expect_exit(pid_t pid);

/* In the parent, between that and anywarp_fork_release. */
void forget(struct half *h);

/* All of it for half's id. */
void carry(void (*fn)(void));

/* A test is a function that runs in a process of its own: its children are those of a small program. */
void run_in_child(void **state);

#define TEST(fn)                                                  \
	{                                                         \
		.name = "carry__" #fn, .test_func = run_in_child, \
		.initial_state = (void *)(uintptr_t)(fn),         \
	}

#endif
