// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes reports, one at a time. All memory is static; libdw alone allocates some, with the report's lock held, which no hook
// wants then (aw_report_is_under_way).
#define _GNU_SOURCE // secure_getenv
#include "check/report/report.h"

#include "base/log.h"
#include "base/thread_safety.h"
#include "check/base/settings.h"
#include "check/report/render.h"
#include "check/report/seen.h"
#include "check/report/suppress.h"
#include "check/report/wanted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMES_MAX 640
#define KEY_FRAMES 3 /* calls by which two reports of a rule are the same */
#define OBJECT_MAX 128
/*
 * A frame is three strings, of which JSON may make each byte six, and a message stands in each form once. Beside the frames there
 * are the texts of the rule, in all below 8 KiB.
 */
#define FRAME_BYTES_MAX (6 * (AW_SYMBOL_NAME_MAX + 2 * AW_SYMBOL_FILE_MAX) + 128)
#define FORM_BYTES_MAX ((1 + AW_REPORT_EARLIER) * AW_TRACE_FRAMES * FRAME_BYTES_MAX + 8192)

/* Written once, before the first report. */
static struct {
	pthread_once_t once;
	uint64_t wanted; /* the rules */
	char directory[PATH_MAX]; /* where the process began */
	char path[PATH_MAX]; /* of the command's file; "": there is none */
	struct aw_suppressions suppressions;
} begun = { .once = PTHREAD_ONCE_INIT };

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;

/* The report that is made. Guarded by the lock. */
static struct {
	char object[OBJECT_MAX], message[AW_REPORT_MESSAGE_MAX];
	struct aw_trace at, earlier[AW_REPORT_EARLIER];
	char bytes[2 * FORM_BYTES_MAX];
	bool file_failed; /* the command's file could not be written to, which was told */
} made;

/* The state of a thread that it puts aside while it makes a report. */
struct aside {
	int saved_errno, cancel;
	sigset_t signals;
};

static __thread bool is_under_way;

static void read_wanted(const struct aw_check_settings *settings)
{
	char names[NAMES_MAX];
	struct aw_slice wrong;

	begun.wanted = AW_WANTED_ALL;
	if (aw_wanted_parse(settings->rules, &begun.wanted, &wrong))
		return;
	aw_wanted_names(names, sizeof(names));
	aw_log(AW_LOG_ERROR, AW_CHECK_ENV " at %zu: no rule '%.*s'; all rules are looked for",
	       aw_check_settings_position(wrong), (int)(wrong.len < 48 ? wrong.len : 48), wrong.at);
	aw_log(AW_LOG_ERROR, "the rules are %s", names);
}

static void read_suppressions(const struct aw_check_settings *settings)
{
	char path[PATH_MAX], why[AW_SUPPRESS_WHY_MAX];

	if (settings->suppress.len == 0)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)settings->suppress.len, settings->suppress.at);
	if (!aw_suppress_read(path, &begun.suppressions, why))
		aw_log(AW_LOG_ERROR, "suppressions: %s; nothing is suppressed", why);
	begun.wanted &= ~begun.suppressions.everywhere;
}

static void begin(void)
{
	const char *path = secure_getenv(AW_REPORTS_ENV);
	int fd;

	if (!getcwd(begun.directory, sizeof(begun.directory)))
		begun.directory[0] = '\0';
	fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	if (path)
		snprintf(begun.path, sizeof(begun.path), "%s", path);
	if (fd >= 0) {
		/* "P <process>" tells the command that a process has the library. */
		dprintf(fd, "P %d\n", (int)getpid());
		close(fd);
	}
	read_wanted(aw_check_settings());
	read_suppressions(aw_check_settings());
}

static void lock_for_fork(void) AW_UNCHECKED
{
	pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void) AW_UNCHECKED
{
	pthread_mutex_unlock(&lock);
}

/* The child does not repeat its parent's reports; how often they occurred again in the parent, the parent tells. */
static void unlock_in_child(void) AW_UNCHECKED
{
	struct aw_seen *seen;

	for (unsigned at = 0; (seen = aw_seen_next(&at));)
		seen->again = 0;
	pthread_mutex_unlock(&lock);
}

/* After symbol_begin, for the order of the locks in fork(2). */
__attribute__((constructor(102))) static void report_begin(void)
{
	pthread_once(&begun.once, begin);
	pthread_atfork(lock_for_fork, unlock_after_fork, unlock_in_child);
}

/* A handler of a signal might call a verb, and write(2) is a cancellation point. */
static void enter(struct aside *aside) AW_ACQUIRE(lock)
{
	sigset_t all;

	aside->saved_errno = errno;
	is_under_way = true;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &aside->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &aside->cancel);
	pthread_mutex_lock(&lock);
}

static void leave(const struct aside *aside) AW_RELEASE(lock)
{
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(aside->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &aside->signals, NULL);
	is_under_way = false;
	errno = aside->saved_errno;
}

static bool write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t written = write(fd, bytes, len);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		bytes += written;
		len -= (size_t)written;
	}
	return true;
}

/* The file is opened each time: programs close and reuse fds that they do not know. */
static void append_to_file(const struct aw_buffer *buffer) AW_REQUIRES(lock)
{
	int fd, err;

	if (!begun.path[0])
		return;
	fd = open(begun.path, O_WRONLY | O_APPEND | O_CLOEXEC);
	err = fd < 0 || !write_all(fd, buffer->at, buffer->len) ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (!err || made.file_failed)
		return;
	made.file_failed = true;
	aw_log(AW_LOG_ERROR,
	       "the summary of anywarp check lacks reports of this process: cannot write to %s: %s",
	       begun.path, strerror(err));
}

static uint64_t mix(uint64_t key, uint64_t value)
{
	key = (key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return key ^ key >> 29;
}

/* The innermost calls tell reports apart: a helper that posts is often called from many places. Without a stack the object does. */
static uint64_t key_of(enum aw_rule rule, const struct aw_stack *at, const char *object)
{
	uint64_t key = mix(1, rule);

	for (unsigned i = 0; i < at->frames && i < KEY_FRAMES; i++)
		key = mix(key, (uintptr_t)at->pc[i]);
	for (; !at->frames && *object; object++)
		key = mix(key, (unsigned char)*object);
	return mix(key, 0);
}

static void name_report(const struct aw_report *report, const struct aw_stack *at,
			struct aw_report_named *named) AW_REQUIRES(lock)
{
	*named = (struct aw_report_named){
		.rule = report->rule,
		.pid = getpid(),
		.tid = (int)syscall(SYS_gettid),
		.object = made.object,
		.message = made.message,
		.at = &made.at,
		.directory = begun.directory,
	};
	snprintf(made.object, sizeof(made.object), "%s", report->object ? report->object : "");
	aw_trace_name(at, &made.at);
	for (unsigned i = 0; i < AW_REPORT_EARLIER && report->earlier[i].stack; i++) {
		aw_trace_name(report->earlier[i].stack, &made.earlier[i]);
		named->earlier[i].what = report->earlier[i].what ? report->earlier[i].what
								 : "earlier";
		named->earlier[i].trace = &made.earlier[i];
	}
}

static void write_report(const struct aw_report_named *named) AW_REQUIRES(lock)
{
	struct aw_buffer buffer = aw_buffer_of(made.bytes, sizeof(made.bytes));

	aw_render_text(&buffer, named);
	write_all(STDERR_FILENO, buffer.at, buffer.len);
	buffer = aw_buffer_of(made.bytes, sizeof(made.bytes));
	aw_buffer_put(&buffer, "K %s\nJ ", aw_rule_texts[named->rule].name);
	aw_render_json(&buffer, named);
	aw_buffer_put(&buffer, "\nS ");
	aw_render_sarif(&buffer, named);
	aw_buffer_put(&buffer, "\n");
	assert(!buffer.is_cut);
	append_to_file(&buffer);
}

/* False where the report is suppressed. */
static bool tell(const struct aw_report *report, const struct aw_stack *at, struct aw_seen *seen)
	AW_REQUIRES(lock)
{
	const struct aw_symbol *origin;
	struct aw_report_named named;

	name_report(report, at, &named);
	origin = aw_trace_origin(named.at);
	if (!origin)
		snprintf(seen->where, sizeof(seen->where), "%s", named.object);
	else if (origin->file[0])
		snprintf(seen->where, sizeof(seen->where), "%.60s %.80s:%u", origin->function,
			 aw_render_path(named.directory, origin->file), origin->line);
	else
		snprintf(seen->where, sizeof(seen->where), "%.60s (%.60s+0x%lx)", origin->function,
			 aw_trace_base(origin->module), (unsigned long)origin->offset);
	seen->is_suppressed = aw_suppress_matches(&begun.suppressions, report->rule, named.at);
	if (!seen->is_suppressed)
		write_report(&named);
	return !seen->is_suppressed;
}

void aw_report(const struct aw_report *report, const char *format, ...)
{
	const struct aw_stack *at = report->at;
	struct aw_stack here;
	struct aside aside;
	struct aw_seen *seen;
	bool is_new, is_told = false;
	va_list args;

	if (is_under_way || !aw_report_wants(report->rule))
		return;
	if (!at) {
		aw_stack_take(&here);
		at = &here;
	}
	enter(&aside);
	seen = aw_seen_find(report->rule,
			    key_of(report->rule, at, report->object ? report->object : ""),
			    &is_new);
	if (is_new) {
		va_start(args, format);
		vsnprintf(made.message, sizeof(made.message), format, args);
		va_end(args);
		is_told = tell(report, at, seen);
	} else {
		seen->again++;
	}
	if (is_told && aw_check_settings()->halt_on && !aw_rule_texts[report->rule].is_risk)
		_exit((int)aw_check_settings()->exit_status);
	leave(&aside);
}

bool aw_report_wants(enum aw_rule rule)
{
	pthread_once(&begun.once, begin);
	return aw_wanted_has(begun.wanted, rule);
}

bool aw_report_is_under_way(void)
{
	return is_under_way;
}

/* The command's file gets "R <rule name> <number>" for each. */
static void tell_again(const struct aw_seen *seen) AW_REQUIRES(lock)
{
	const char *name = aw_rule_texts[seen->rule].name;
	struct aw_buffer buffer = aw_buffer_of(made.bytes, sizeof(made.bytes));

	aw_buffer_put(&buffer, "==%d== anywarp check: %s: %lu more at %s\n", (int)getpid(), name,
		      seen->again, seen->where);
	write_all(STDERR_FILENO, buffer.at, buffer.len);
	buffer = aw_buffer_of(made.bytes, sizeof(made.bytes));
	aw_buffer_put(&buffer, "R %s %lu\n", name, seen->again);
	append_to_file(&buffer);
}

void aw_report_end(void)
{
	const struct aw_seen *seen;
	struct aside aside;

	enter(&aside);
	for (unsigned at = 0; (seen = aw_seen_next(&at));)
		if (seen->again && !seen->is_suppressed)
			tell_again(seen);
	leave(&aside);
}
