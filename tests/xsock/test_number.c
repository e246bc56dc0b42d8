// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A number changes its file while other threads use it: all orders of the steps of process/fdtab_change.c. Three threads share a
// number that is connection A's, with A's record in slot 1: one reads by the number, one closes it or gives it another file, one
// gets the number, when it is free, for connection B, which takes a free slot. A step is what a thread does at one moment: an
// atomic operation, a system call, or what it does under the table's lock. Every rule of the protocol is broken once, too, and the
// fault has to be found.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORLDS_MAX 65536u

enum file {
	NO_FILE,
	CONN_A,
	CONN_B,
	MARKER
};
enum number {
	NONE,
	FRAMED,
	LEAVING,
	STARTING
};
enum way {
	CLOSE,
	LINGER,
	DUP2_MARKER,
	DUP2_OTHER,
	DUP2_FAILS,
	WAYS
};
enum rule {
	ALL_RULES,
	NO_THIRD_STATE, /* the table forgets the number before the kernel does */
	NO_DRAIN,
	NO_SECOND_LOOK, /* a thread counts itself and does not look again */
	NO_TURN, /* the first thread ends whatever change it finds */
	NO_HELP, /* only the first thread ends its change */
	NO_RESTORE, /* a call that has failed counts as one that has not */
};

enum reader {
	R_LOOK,
	R_ENTER,
	R_LOOK_AGAIN,
	R_WORK,
	R_LEAVE,
	R_RAW,
	R_DONE
};
enum closer {
	C_BEGIN,
	C_DRAIN,
	C_CALL,
	C_RETURN,
	C_END,
	C_DONE
};
enum opener {
	O_OPEN,
	O_FORGET,
	O_TAKE,
	O_FRAME,
	O_DONE
};

struct world {
	uint8_t reader, closer, opener;
	uint8_t file; /* the number's, in the kernel's table */
	uint8_t number, slot; /* the number's, in ours */
	uint8_t before, next; /* slots: of a LEAVING number */
	uint8_t turn, my_turn; /* the change under way, and the closing thread's */
	uint8_t users, read_slot; /* read_slot: where the reader is, or is about to be */
	uint8_t owner[4]; /* of a slot: a connection; slot 0 is none */
};

static enum way way;
static enum rule broken;
static const char *fault;

static void expect(bool right, const char *what)
{
	if (!right && !fault)
		fault = what;
}

static bool is_in_slot(const struct world *w, unsigned slot)
{
	return (w->reader == R_WORK || w->reader == R_LEAVE) && w->read_slot == slot;
}

static void free_slot(struct world *w, unsigned slot)
{
	/* B's record in slot 3 has another number. */
	if (slot == 1)
		w->owner[slot] = NO_FILE;
}

/* The number is what the kernel says. */
static void settle(struct world *w, bool changed)
{
	uint8_t before = w->before;

	w->slot = changed ? w->next : before;
	w->number = w->slot ? FRAMED : NONE;
	w->before = w->next = w->turn = 0;
	if (changed)
		free_slot(w, before);
}

static bool has_left(const struct world *w)
{
	return w->file != CONN_A;
}

static bool reader_look(struct world *w)
{
	switch ((enum number)w->number) {
	case NONE:
		w->reader = R_RAW;
		return true;
	case FRAMED:
		w->read_slot = w->slot;
		w->reader = R_ENTER;
		return true;
	case LEAVING:
		if (!has_left(w) || broken == NO_HELP)
			return false;
		settle(w, true);
		return true;
	case STARTING:
		return false;
	}
	return false;
}

/* Each returns false if the thread waits. */
static bool reader_step(struct world *w)
{
	switch ((enum reader)w->reader) {
	case R_LOOK:
		return reader_look(w);
	case R_ENTER:
		w->users++;
		w->reader = broken == NO_SECOND_LOOK ? R_WORK : R_LOOK_AGAIN;
		return true;
	case R_LOOK_AGAIN:
		if (w->number == FRAMED && w->slot == w->read_slot) {
			w->reader = R_WORK;
		} else {
			w->users--;
			w->reader = R_LOOK;
		}
		return true;
	case R_WORK:
		expect(w->owner[w->read_slot] == w->file, "a record works on another file");
		w->reader = R_LEAVE;
		return true;
	case R_LEAVE:
		expect(w->owner[w->read_slot] == w->file, "a record works on another file");
		w->users--;
		w->reader = R_DONE;
		return true;
	case R_RAW: /* as with TCP, a thread that is late may meet B */
		expect(w->file != CONN_A, "a plain read of a record's socket");
		w->reader = R_DONE;
		return true;
	case R_DONE:
		return false;
	}
	return false;
}

static void closer_begin(struct world *w)
{
	w->closer = C_DRAIN;
	if (broken == NO_THIRD_STATE) {
		w->number = NONE;
		w->before = w->slot;
		w->slot = 0;
		return;
	}
	w->number = LEAVING;
	w->before = w->slot;
	w->slot = 0;
	w->next = way == DUP2_OTHER ? 3 : 0;
	w->turn = w->my_turn = 1;
}

static void closer_call(struct world *w)
{
	static const uint8_t files[WAYS] = { NO_FILE, NO_FILE, MARKER, CONN_B, CONN_A };

	w->file = files[way];
	w->closer = C_RETURN;
}

static void closer_end(struct world *w)
{
	if (broken == NO_THIRD_STATE) {
		free_slot(w, w->before);
		w->before = 0;
	} else if (w->turn == w->my_turn || broken == NO_TURN) {
		settle(w, way != DUP2_FAILS || broken == NO_RESTORE);
	}
	w->closer = C_DONE;
}

static bool closer_step(struct world *w)
{
	switch ((enum closer)w->closer) {
	case C_BEGIN:
		closer_begin(w);
		return true;
	case C_DRAIN:
		if (w->users && broken != NO_DRAIN)
			return false;
		w->closer = C_CALL;
		return true;
	case C_CALL:
		closer_call(w);
		return true;
	case C_RETURN: /* SO_LINGER: for as long as the peer likes, and nobody gets the number meanwhile */
		if (way == LINGER && w->reader != R_DONE)
			return false;
		w->closer = C_END;
		return true;
	case C_END:
		closer_end(w);
		return true;
	case C_DONE:
		return false;
	}
	return false;
}

static bool opener_step(struct world *w)
{
	unsigned slot = w->owner[1] == NO_FILE ? 1 : 2;

	switch ((enum opener)w->opener) {
	case O_OPEN: /* the kernel gives out a number that is free */
		if (w->file != NO_FILE)
			return false;
		w->file = CONN_B;
		w->opener = O_FORGET;
		return true;
	case O_FORGET:
		if (w->turn)
			settle(w, true);
		w->number = STARTING;
		w->slot = 0;
		w->opener = O_TAKE;
		return true;
	case O_TAKE:
		expect(!is_in_slot(w, slot), "a slot is taken while a thread is in it");
		w->owner[slot] = CONN_B;
		w->opener = O_FRAME;
		return true;
	case O_FRAME:
		w->slot = w->owner[1] == CONN_B ? 1 : 2;
		w->number = FRAMED;
		w->opener = O_DONE;
		return true;
	case O_DONE:
		return false;
	}
	return false;
}

/* No thread can go on. */
static void check_end(const struct world *w)
{
	expect(w->reader == R_DONE && w->closer == C_DONE && (w->opener == O_DONE || way != CLOSE),
	       "threads wait for ever");
	expect((w->number == FRAMED) == (w->file == CONN_A || w->file == CONN_B),
	       "the tables differ at the end");
	expect(w->number != FRAMED || w->owner[w->slot] == w->file, "a record of another file");
}

static struct world worlds[WORLDS_MAX];
static unsigned world_count;

static void add_world(const struct world *w)
{
	for (unsigned i = 0; i < world_count; i++)
		if (memcmp(&worlds[i], w, sizeof(*w)) == 0)
			return;
	assert_true(world_count < WORLDS_MAX);
	worlds[world_count++] = *w;
}

typedef bool step_fn(struct world *w);

/* Visits every world that any order of steps leads to. Returns the first fault, or NULL. */
static const char *run_all(enum way the_way, enum rule the_broken)
{
	static step_fn *const steps[] = { reader_step, closer_step, opener_step };
	struct world first = { .file = CONN_A, .number = FRAMED, .slot = 1 };

	way = the_way;
	broken = the_broken;
	fault = NULL;
	world_count = 0;
	first.opener = way == LINGER ? O_DONE : O_OPEN;
	first.owner[1] = CONN_A;
	first.owner[3] = CONN_B;
	add_world(&first);
	for (unsigned i = 0; i < world_count && !fault; i++) {
		bool any = false;

		for (int thread = 0; thread < 3; thread++) {
			struct world w = worlds[i];

			if (!steps[thread](&w))
				continue;
			any = true;
			add_world(&w);
		}
		if (!any)
			check_end(&worlds[i]);
	}
	return fault;
}

static void number__every_order_is_right(void **state)
{
	(void)state;
	for (enum way each = CLOSE; each < WAYS; each++) {
		const char *found = run_all(each, ALL_RULES);

		print_message("way %d: %u worlds\n", (int)each, world_count);
		if (found)
			fail_msg("way %d: %s", (int)each, found);
		assert_true(world_count > 20);
	}
}

/* The model is worth what it finds. */
static void number__every_rule_is_needed(void **state)
{
	static const struct {
		enum way way;
		enum rule rule;
	} cases[] = {
		{ CLOSE, NO_THIRD_STATE },  { DUP2_MARKER, NO_THIRD_STATE },
		{ CLOSE, NO_DRAIN },	    { DUP2_OTHER, NO_DRAIN },
		{ CLOSE, NO_SECOND_LOOK },  { DUP2_MARKER, NO_SECOND_LOOK },
		{ CLOSE, NO_TURN },	    { LINGER, NO_HELP },
		{ DUP2_FAILS, NO_RESTORE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *found = run_all(cases[i].way, cases[i].rule);

		print_message("way %d without rule %d: %s\n", (int)cases[i].way, (int)cases[i].rule,
			      found ? found : "nothing");
		assert_non_null(found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number__every_order_is_right),
		cmocka_unit_test(number__every_rule_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
