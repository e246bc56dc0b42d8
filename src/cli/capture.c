// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp capture: writes the iWARP streams of a process that uses anywarp's verbs library as a pcapng file. The process
// puts its FPDUs into a ring that this command reads, and drops what finds no room there.
#include "cli/capture.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/pcapng.h"
#include "cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_BUFFER (1u << 20)
#define PAUSE_NS 2000000L // between two looks at an empty ring

struct capture_options {
	bool helped; // the help was asked for, and printed
	pid_t pid; // 0: none was named
	const char *path; // "-": standard output
};

struct output {
	const char *path;
	FILE *file;
	struct aw_capture_record *record; // with room for the longest
	struct capture_counts counts;
	uint64_t beat_ns; // of the last beat
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static bool parse(char **argv, struct capture_options *options)
{
	for (char **arg = argv + 1; *arg; arg++) {
		if (aw_launch_value(&arg, "--write", &options->path) ||
		    aw_launch_value(&arg, "-w", &options->path)) {
			if (!options->path || !*options->path) {
				fprintf(stderr, CAPTURE_WHO ": --write needs a FILE\n");
				return false;
			}
		} else if (**arg != '-') {
			if (!aw_process_number(CAPTURE_WHO, *arg, &options->pid))
				return false;
		} else {
			options->helped = aw_cli_unknown_asks_help(&aw_cli_capture, *arg);
			return false;
		}
	}
	if (options->pid && options->path)
		return true;
	fprintf(stderr, CAPTURE_WHO ": needs the PID of a process and -w FILE\n");
	return false;
}

static bool report_write(const char *path)
{
	fprintf(stderr, CAPTURE_WHO ": cannot write '%s': %s\n", path, strerror(errno));
	return false;
}

// Writes the records that are in the ring. False: an error was printed.
static bool copy_ready(struct capture_ring *ring, struct output *output)
{
	enum capture_next next = CAPTURE_RECORD;

	while (next == CAPTURE_RECORD) {
		uint64_t time_ns = aw_now_ns();

		if (time_ns - output->beat_ns >= AW_CAPTURE_BEAT_MS * UINT64_C(1000000)) {
			output->beat_ns = time_ns;
			aw_capture_beat(ring);
		}
		next = aw_capture_next(ring, output->record);
		if (next == CAPTURE_RECORD)
			aw_capture_write(output->file, output->record, &output->counts);
		if (interrupted || ferror(output->file))
			break;
	}
	if (next == CAPTURE_NONSENSE)
		fprintf(stderr,
			CAPTURE_WHO ": process %d has written an invalid record into the ring\n",
			(int)ring->pid);
	return next != CAPTURE_NONSENSE &&
	       ((!ferror(output->file) && fflush(output->file) == 0) || report_write(output->path));
}

// Copies until the user or the process ends the capture.
static bool copy(struct capture_ring *ring, struct output *output)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	bool right = true, wanted = true;
	uint32_t error;

	while (right && wanted && !interrupted && aw_capture_is_open(ring)) {
		right = copy_ready(ring, output);
		wanted = !right || aw_capture_is_wanted(ring);
		if (right && wanted && !interrupted)
			nanosleep(&pause, NULL);
	}
	if (wanted)
		return right;

	error = __atomic_load_n(&ring->request->error, __ATOMIC_RELAXED);
	if (error)
		fprintf(stderr, CAPTURE_WHO ": process %d has no memory for the capture: %s\n",
			(int)ring->pid, strerror((int)error));
	else
		fprintf(stderr,
			CAPTURE_WHO ": process %d has ended the capture, because this command "
				    "gave no sign of life for 10 s: was it stopped, or does "
				    "its reader take nothing?\n",
			(int)ring->pid);
	return false;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static bool capture_into(struct capture_ring *ring, struct output *output)
{
	uint64_t end, dropped;
	char name[32];
	bool right;

	aw_capture_begin(ring);
	fprintf(stderr, CAPTURE_WHO ": capturing process %d until interrupted\n", (int)ring->pid);
	snprintf(name, sizeof(name), "anywarp process %d", (int)ring->pid);
	aw_pcapng_begin(output->file, name);
	right = copy(ring, output);
	aw_capture_stop(ring);

	// A process that goes on writing after the end, against the rules, is read for no longer than one ring.
	end = ring->tail + AW_CAPTURE_RING_LEN;
	while (right && ring->tail < end &&
	       aw_capture_next(ring, output->record) == CAPTURE_RECORD) {
		aw_capture_write(output->file, output->record, &output->counts);
		right = !ferror(output->file) || report_write(output->path);
	}

	dropped = aw_capture_dropped(ring);
	aw_pcapng_end(output->file, aw_clock_ns(CLOCK_REALTIME), output->counts.fpdus, dropped);
	if (right && fflush(output->file) != 0)
		right = report_write(output->path);
	fprintf(stderr,
		CAPTURE_WHO ": %" PRIu64 " FPDU%s of %" PRIu64 " stream%s; %" PRIu64
			    " record%s dropped\n",
		output->counts.fpdus, plural(output->counts.fpdus), output->counts.streams,
		plural(output->counts.streams), dropped, plural(dropped));
	return right;
}

static bool capture_to(struct capture_ring *ring, const char *path)
{
	// The file holds what the process sends: it is the user's alone.
	int fd = strcmp(path, "-") ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
				   : dup(STDOUT_FILENO);
	struct output output = { .path = path, .file = fd >= 0 ? fdopen(fd, "w") : NULL };
	bool right = false;

	if (!output.file)
		return report_write(path);
	setvbuf(output.file, NULL, _IOFBF, FILE_BUFFER);
	output.record = malloc(AW_CAPTURE_RING_LEN);
	// A second signal has its default effect.
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	action = (struct sigaction){ .sa_handler = SIG_IGN };
	sigaction(SIGPIPE, &action, NULL);
	if (output.record)
		right = capture_into(ring, &output);
	else
		fprintf(stderr, CAPTURE_WHO ": out of memory\n");
	free(output.record);
	if (fclose(output.file) != 0 && right)
		right = report_write(path);
	return right;
}

static int capture_command(int argc, char **argv)
{
	struct capture_options options = { 0 };
	struct capture_ring ring;
	bool right;

	(void)argc;
	if (!parse(argv, &options))
		return options.helped ? CLI_OK : CLI_USAGE;
	if (!aw_process_can_look(CAPTURE_WHO))
		return CLI_FAILED;
	if (!aw_capture_attach(options.pid, &ring))
		return CLI_FAILED;
	right = capture_to(&ring, options.path);
	aw_capture_end(&ring);
	return right ? CLI_OK : CLI_FAILED;
}

const struct cli_command aw_cli_capture = {
	.name = "capture",
	.run = capture_command,
	.summary = "write the iWARP streams of a running program for tshark",
	.help = "usage: anywarp capture --write FILE PID\n"
		"\n"
		"Writes the FPDUs that the process sends and receives by anywarp's verbs library to\n"
		"FILE, as pcapng, until the command is interrupted or the process ends. Wireshark and\n"
		"tshark read them. No root is needed: the process itself copies its FPDUs, for its own\n"
		"user and for root. It does not wait for a slow FILE: what finds no room is dropped\n"
		"and counted.\n"
		"\n"
		"  --write FILE  the file; - for standard output; also -w FILE\n"
		"\n"
		"The exit status is 0 when the capture has ended; 1 when PID is no process with a\n"
		"device of anywarp, or one that this user may not look at, when another capture of\n"
		"it runs, and when FILE cannot be written; 2 for wrong usage. anywarp-capture(1)\n"
		"tells what is in the file.\n"
		"\n"
		"  anywarp capture -w - $(pidof -s ib_write_bw) | tshark -r - -Y iwarp_rdma\n",
};
