// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of 'anywarp capture'. Errors go to standard error.
#ifndef CLI_CAPTURE_H
#define CLI_CAPTURE_H

#include "net/stat/capture_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define CAPTURE_WHO "anywarp capture"

// The ring of one process. That process may be no friend: what it writes is copied once, then judged.
struct capture_ring {
	pid_t pid;
	int fd; // of the table
	int number; // of that fd in the process
	uint32_t run;
	uint64_t tail;
	struct aw_capture_request *request;
	struct aw_capture_ring *shared;
};

enum capture_next {
	CAPTURE_RECORD,
	CAPTURE_NOTHING, // now
	CAPTURE_NONSENSE,
};

// Finds the table of the process and maps its ring, which is this capturer's until the end. False: an error was printed,
// also where another capture of the process runs.
__attribute__((warn_unused_result)) bool aw_capture_attach(pid_t pid, struct capture_ring *ring);

// Asks the process for records.
void aw_capture_begin(struct capture_ring *ring);

// Copies the next record to buf, which has AW_CAPTURE_RING_LEN bytes.
enum capture_next aw_capture_next(struct capture_ring *ring, struct aw_capture_record *buf);

// Shows the process that the capturer lives.
void aw_capture_beat(struct capture_ring *ring);

// True while the process wants to write records: it has its table open, and has not ended the run.
bool aw_capture_is_open(const struct capture_ring *ring);
bool aw_capture_is_wanted(const struct capture_ring *ring);

// Records that the process has dropped.
uint64_t aw_capture_dropped(const struct capture_ring *ring);

// Asks for no more records; those that are in the ring can still be read.
void aw_capture_stop(struct capture_ring *ring);

// Gives the memory of the ring back, and unmaps it.
void aw_capture_end(struct capture_ring *ring);

struct capture_counts {
	uint64_t fpdus, streams;
};

// Writes the FPDUs of a record as packets, one for each FPDU that fits.
void aw_capture_write(FILE *file, const struct aw_capture_record *record,
		      struct capture_counts *counts);

#endif
