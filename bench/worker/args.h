// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arguments of a test: TEST key=value ..., on the command line of the client and, in the same words,
// from the client to the server.
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include "worker/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARGS_TEXT_MAX 512
#define ARGS_IDLE_BUSY 10 /* connections of the idle test beside the idle ones */
#define ARGS_AT_ONCE_MAX 64

enum test {
	TEST_LATENCY,
	TEST_BANDWIDTH,
	TEST_CONNECT,
	TEST_HOTSPOT,
	TEST_IDLE,
	TEST_COUNT
};
enum op {
	OP_SEND,
	OP_WRITE,
	OP_WRITE_CQ,
	OP_READ,
	OP_SEND_DONE
};
enum mode {
	MODE_BLOCK,
	MODE_SPIN,
	MODE_EPOLL,
	MODE_EVENT,
	MODE_POLL,
	MODE_EPOLL_EDGE,
	MODE_COUNT
};
enum direction {
	DIRECTION_UNI,
	DIRECTION_BI
};
enum by {
	BY_RDMA_CM,
	BY_MODIFY_QP
};
enum fan {
	FAN_NONE,
	FAN_IN,
	FAN_OUT
};

/* Numbers are as wide as the table of keys reads them; choices are values of the enums above. */
struct args {
	enum test test;
	uint64_t op, mode, direction, fan;
	uint64_t by; /* the way to connect */
	uint64_t combine; /* small messages may share a segment: TCP_NODELAY is not set */
	uint64_t size; /* bytes a message */
	double seconds;
	uint64_t iterations; /* 0: as many as the seconds allow */
	uint64_t window, batch, streams, threads, peers;
	uint64_t count, clients, connections;
	uint64_t at_once; /* connections that are begun together, and then closed together */
};

/* The modes of each test by a transport, the default first. */
struct args_rules {
	uint32_t modes[TEST_COUNT]; /* bits 1 << enum mode; 0: the test takes no mode */
	uint64_t mode_default[TEST_COUNT];
	bool has_window; /* a batch is posted at once and so no larger than the window */
	bool has_combine;
	bool has_by;
	bool is_plain; /* one connection, messages that are sent, one way or there and back; no other test */
};

/*
 * Reads words[0] = TEST and words[1] to words[count - 1] = key=value. False with a text that names
 * cause and remedy in why (ARGS_TEXT_MAX bytes); args is then undefined.
 */
bool args_read(struct args *args, const struct args_rules *rules, int count, char **words,
	       char *why) __attribute__((warn_unused_result));

/* The same as one line, words apart by blanks, into ARGS_TEXT_MAX bytes. */
void args_line(const struct args *args, char *line);
bool args_read_line(struct args *args, const struct args_rules *rules, const char *line, char *why)
	__attribute__((warn_unused_result));

/* "test" and the object "parameters" with every key that the test takes. */
void args_json(const struct args *args, struct json *json);

/* How many connections the test makes between the two ends, all processes and threads together. */
uint64_t args_connections(const struct args *args);

#endif
