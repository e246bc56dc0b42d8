// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of ANYWARP_FAULTS. It is strict: a part that would have no effect is an error, because a user relies on the
// fault that he has written.
#include "base/array.h"
#include "check/faults/names.h"
#include "check/faults/near.h"
#include "check/faults/parts.h"
#include "check/faults/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A place that is no function. read takes the rest of the place from *rest. */
struct fault_place {
	const char *name;
	bool (*read)(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest);
};

struct kind {
	const char *name;
	enum aw_wire_what what;
};

static const struct kind wire_kinds[] = {
	{ "reset", AW_WIRE_RESET }, { "fin", AW_WIRE_FIN },   { "silence", AW_WIRE_SILENCE },
	{ "flip", AW_WIRE_FLIP },   { "slow", AW_WIRE_SLOW },
};
static const struct kind self_kinds[] = { { "stop", AW_WIRE_STOP }, { "kill", AW_WIRE_KILL } };

/* Takes the word behind the place. The argument `what` has the words that there are. */
static bool take_kind(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest,
		      const char *what, struct aw_slice *kind)
{
	*kind = aw_slice_cut(rest, ':');
	if (kind->len)
		return true;
	return aw_fault_fail(parse, place, "'%.*s' needs a word behind it: %s", (int)place.len,
			     place.at, what);
}

/* The places qp and cq have one kind each, which needs no value. */
static bool read_only_kind(struct aw_fault_parse *parse, struct aw_slice place,
			   struct aw_slice *rest, const char *only)
{
	struct aw_slice kind;

	if (!take_kind(parse, place, rest, only, &kind))
		return false;
	if (!aw_slice_equals(kind, only))
		return aw_fault_fail(parse, kind, "'%.*s' has no '%.*s': write %.*s:%s",
				     (int)place.len, place.at, (int)kind.len, kind.at,
				     (int)place.len, place.at, only);
	parse->allowed = AW_KEYS_WHEN;
	return true;
}

static bool read_completion(struct aw_fault_parse *parse, struct aw_slice place,
			    struct aw_slice *rest)
{
	(void)place;
	(void)rest;
	parse->fault->kind = AW_FAULT_COMPLETION;
	parse->fault->status = IBV_WC_WR_FLUSH_ERR;
	parse->allowed = AW_KEYS_WHEN | AW_KEY_BIT(AW_KEY_OP) | AW_KEY_BIT(AW_KEY_STATUS);
	return true;
}

static bool read_qp(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest)
{
	parse->fault->kind = AW_FAULT_QP_ERROR;
	return read_only_kind(parse, place, rest, "error");
}

static bool read_cq(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest)
{
	parse->fault->kind = AW_FAULT_CQ_OVERRUN;
	return read_only_kind(parse, place, rest, "overrun");
}

static bool read_async(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest)
{
	static const char of_others[] =
		"the events of a device and its ports are DEVICE_FATAL, PORT_ACTIVE, PORT_ERR, "
		"LID_CHANGE, PKEY_CHANGE, SM_CHANGE, CLIENT_REREGISTER and GID_CHANGE; "
		"qp:error and cq:overrun make those of a QP and a CQ";
	const struct aw_fault_word *word;
	const char *near;
	struct aw_slice kind;

	if (!take_kind(parse, place, rest, "an event, as in async:PORT_ERR", &kind))
		return false;
	word = aw_fault_word_find(aw_fault_async_events, "IBV_EVENT_", kind);
	near = aw_fault_word_nearest(aw_fault_async_events, "IBV_EVENT_", kind);
	if (!word)
		return aw_fault_fail(parse, kind, "no event '%.*s': %s%s", (int)kind.len, kind.at,
				     near ? near : of_others, near ? " is one" : "");
	parse->fault->kind = AW_FAULT_ASYNC;
	parse->fault->async = (enum ibv_event_type)word->value;
	parse->allowed = AW_KEY_BIT(AW_KEY_AFTER);
	return true;
}

static bool read_cm(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest)
{
	struct aw_fault *fault = parse->fault;
	const struct aw_fault_word *word;
	const char *near;
	struct aw_slice kind;

	if (!take_kind(parse, place, rest, "an event, as in cm:ADDR_ERROR", &kind))
		return false;
	word = aw_fault_word_find(aw_fault_cm_events, "RDMA_CM_EVENT_", kind);
	near = aw_fault_word_nearest(aw_fault_cm_events, "RDMA_CM_EVENT_", kind);
	if (!word)
		return aw_fault_fail(parse, kind, "no event '%.*s' of rdma_cm: %s is one",
				     (int)kind.len, kind.at, near ? near : "ADDR_ERROR");
	fault->event = (enum rdma_cm_event_type)word->value;
	fault->kind = aw_fault_cm_replaces(fault->event) ? AW_FAULT_CM : AW_FAULT_CM_LATE;
	fault->err = aw_fault_cm_status(fault->event);
	parse->allowed = AW_KEYS_WHEN |
			 AW_KEY_BIT(fault->kind == AW_FAULT_CM ? AW_KEY_ERROR : AW_KEY_DELAY);
	if (fault->event == RDMA_CM_EVENT_REJECTED)
		parse->allowed |= AW_KEY_BIT(AW_KEY_REASON);
	return true;
}

static bool find_kind(struct aw_fault_parse *parse, struct aw_slice word, const struct kind *kinds,
		      size_t count)
{
	struct aw_near near = aw_near_to(word);

	for (size_t i = 0; i < count; i++) {
		if (aw_slice_equals(word, kinds[i].name)) {
			parse->fault->what = kinds[i].what;
			return true;
		}
		aw_near_try(&near, kinds[i].name);
	}
	return aw_fault_fail(parse, word, "no '%.*s' here: %s is one", (int)word.len, word.at,
			     near.word ? near.word : kinds[0].name);
}

static bool read_wire(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest)
{
	struct aw_slice kind;

	if (!take_kind(parse, place, rest, "reset, fin, silence, flip or slow", &kind) ||
	    !find_kind(parse, kind, wire_kinds, ARRAY_LEN(wire_kinds)))
		return false;
	parse->fault->kind = AW_FAULT_WIRE;
	parse->allowed = AW_KEYS_WHEN | AW_KEY_BIT(AW_KEY_BYTE) | AW_KEY_BIT(AW_KEY_DIRECTION);
	if (parse->fault->what == AW_WIRE_SLOW)
		parse->allowed |= AW_KEY_BIT(AW_KEY_RATE);
	return true;
}

static bool read_self(struct aw_fault_parse *parse, struct aw_slice place, struct aw_slice *rest)
{
	struct aw_slice kind;

	if (!take_kind(parse, place, rest, "stop or kill", &kind) ||
	    !find_kind(parse, kind, self_kinds, ARRAY_LEN(self_kinds)))
		return false;
	parse->fault->kind = AW_FAULT_SELF;
	parse->allowed = AW_KEYS_WHEN | AW_KEY_BIT(AW_KEY_AT) | AW_KEY_BIT(AW_KEY_BYTE) |
			 AW_KEY_BIT(AW_KEY_DIRECTION);
	return true;
}

static const struct fault_place places[] = {
	{ "completion", read_completion },
	{ "qp", read_qp },
	{ "cq", read_cq },
	{ "async", read_async },
	{ "cm", read_cm },
	{ "wire", read_wire },
	{ "self", read_self },
};

static bool read_function(struct aw_fault_parse *parse, struct aw_slice place)
{
	struct aw_near near;
	const char *name;
	unsigned i = 0;

	while ((name = aw_fault_name(i)) && !aw_fault_name_matches(place, name))
		i++;
	if (name) {
		parse->fault->kind = AW_FAULT_CALL;
		parse->fault->name = place;
		parse->fault->err = aw_fault_name_errno(i);
		parse->fault->is_usual = memchr(place.at, '*', place.len) != NULL;
		parse->allowed = AW_KEYS_WHEN | AW_KEY_BIT(AW_KEY_ERROR) | AW_KEY_BIT(AW_KEY_DELAY);
		if (strncmp(name, "ibv_post_", strlen("ibv_post_")) == 0)
			parse->allowed |= AW_KEY_BIT(AW_KEY_WR);
		return true;
	}
	near = aw_near_to(place);
	for (i = 0; i < ARRAY_LEN(places); i++)
		aw_near_try(&near, places[i].name);
	for (i = 0; aw_fault_name(i); i++)
		aw_near_try(&near, aw_fault_name(i));
	if (near.word)
		return aw_fault_fail(parse, place, "no place '%.*s': %s is one", (int)place.len,
				     place.at, near.word);
	return aw_fault_fail(parse, place,
			     "no place '%.*s': a place is a function, such as ibv_reg_mr, or "
			     "completion, qp:error, cq:overrun, async:EVENT, cm:EVENT, wire:KIND, "
			     "self:stop, self:kill",
			     (int)place.len, place.at);
}

static bool is_given(const struct aw_fault_parse *parse, enum aw_fault_key key)
{
	return parse->given & AW_KEY_BIT(key);
}

/* Keys of which one makes the other useless. */
static bool check_pairs(struct aw_fault_parse *parse)
{
	static const struct {
		enum aw_fault_key key, other;
		const char *why;
	} pairs[] = {
		{ AW_KEY_NTH, AW_KEY_EVERY,
		  "nth= is one occasion and every= many: write one of them" },
		{ AW_KEY_NTH, AW_KEY_FROM,
		  "nth= is one occasion and from= many: write one of them" },
		{ AW_KEY_NTH, AW_KEY_TIMES, "nth= is one occasion already: leave times= out" },
		{ AW_KEY_ERROR, AW_KEY_REASON,
		  "error= and reason= are one number: write one of them" },
		{ AW_KEY_AT, AW_KEY_BYTE, "at= counts calls and byte= bytes: write one of them" },
		{ AW_KEY_AT, AW_KEY_DIRECTION, "send and recv are for byte=: leave it out" },
	};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (is_given(parse, pairs[i].key) && is_given(parse, pairs[i].other))
			return aw_fault_fail(parse, parse->where[pairs[i].other], "%s",
					     pairs[i].why);
	return true;
}

static bool check_completion(struct aw_fault_parse *parse)
{
	struct aw_fault *fault = parse->fault;
	uint32_t possible = aw_fault_status_ops(fault->status);
	char list[AW_FAULTS_WHY_MAX / 2] = "";
	size_t len = 0;

	if (!possible)
		return aw_fault_fail(parse, parse->where[AW_KEY_STATUS],
				     "no QP of type RC, UC, UD or XRC has this status");
	if (!is_given(parse, AW_KEY_OP)) {
		fault->ops = possible;
		return true;
	}
	if (fault->ops & possible) {
		fault->ops &= possible;
		return true;
	}
	for (const struct aw_fault_word *word = aw_fault_statuses; word->name; word++)
		if (aw_fault_status_ops((enum ibv_wc_status)word->value) & fault->ops &&
		    len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? ", " : "", word->name);
	return aw_fault_fail(parse, parse->where[AW_KEY_STATUS],
			     "a completion of this operation never has it, but %s", list);
}

static bool finish(struct aw_fault_parse *parse)
{
	const unsigned many = AW_KEY_BIT(AW_KEY_EVERY) | AW_KEY_BIT(AW_KEY_PROB) |
			      AW_KEY_BIT(AW_KEY_FROM) | AW_KEY_BIT(AW_KEY_TIMES);
	struct aw_fault *fault = parse->fault;
	enum aw_fault_kind kind = fault->kind;
	bool is_slow = kind == AW_FAULT_WIRE && fault->what == AW_WIRE_SLOW;

	if (!check_pairs(parse))
		return false;
	if (kind == AW_FAULT_COMPLETION && !check_completion(parse))
		return false;
	if (is_slow && !fault->rate)
		return aw_fault_fail(parse, fault->text, "needs its rate, as in %s",
				     "wire:slow:rate=10MB/s");
	if (is_slow && fault->direction == AW_WIRE_RECV)
		return aw_fault_fail(
			parse, parse->where[AW_KEY_DIRECTION],
			"only what is sent can be slowed: run the peer with wire:slow");
	if (kind == AW_FAULT_CM_LATE && !fault->delay_ns)
		return aw_fault_fail(parse, fault->text,
				     "this event tells of no failure, but it can be late: add "
				     "delay=, as in delay=500ms");
	if (kind == AW_FAULT_SELF && is_given(parse, AW_KEY_DIRECTION) && !fault->at_byte)
		return aw_fault_fail(parse, parse->where[AW_KEY_DIRECTION],
				     "needs the byte, as in byte=1MB");
	if (is_given(parse, AW_KEY_ERROR) || is_given(parse, AW_KEY_DELAY))
		fault->is_usual = false;
	/* A call that is slow fails only where the user says so. */
	if (kind == AW_FAULT_CALL && fault->delay_ns && !is_given(parse, AW_KEY_ERROR))
		fault->err = 0;
	/* A fault after which nothing can go on occurs once, unless the user says otherwise. */
	if (!(parse->given & many) && (kind == AW_FAULT_QP_ERROR || kind == AW_FAULT_CQ_OVERRUN ||
				       kind == AW_FAULT_ASYNC || kind == AW_FAULT_SELF))
		fault->when.times = 1;
	return true;
}

static struct aw_slice trim(struct aw_slice slice)
{
	while (slice.len && isspace((unsigned char)slice.at[slice.len - 1]))
		slice.len--;
	while (slice.len && isspace((unsigned char)*slice.at)) {
		slice.at++;
		slice.len--;
	}
	return slice;
}

static bool read_fault(struct aw_fault_parse *parse, struct aw_slice text)
{
	struct aw_slice rest = text, place;
	bool is_read, more;
	size_t i = 0;

	parse->fault->text = text;
	if (!text.len)
		return aw_fault_fail(parse, text, "there is no fault here: remove a comma");
	place = aw_slice_cut(&rest, ':');
	while (i < ARRAY_LEN(places) && !aw_slice_equals(place, places[i].name))
		i++;
	is_read = i < ARRAY_LEN(places) ? places[i].read(parse, place, &rest)
					: read_function(parse, place);
	if (!is_read)
		return false;
	more = rest.at > text.at && rest.at[-1] == ':';
	while (more) {
		struct aw_slice part = aw_slice_cut(&rest, ':');

		if (!aw_fault_part_read(parse, part))
			return false;
		more = rest.at > part.at + part.len;
	}
	return finish(parse);
}

bool aw_fault_plan_parse(const char *text, struct aw_fault_plan *plan,
			 struct aw_fault_problem *problem)
{
	struct aw_slice rest = aw_slice_of(text);
	struct aw_fault_parse parse = { .text = rest.at, .problem = problem };

	*plan = (struct aw_fault_plan){ .count = 0 };
	if (rest.len >= sizeof(plan->text))
		return aw_fault_fail(&parse, (struct aw_slice){ rest.at, 0 },
				     "the text has over %d bytes: write fewer faults",
				     AW_FAULTS_TEXT_MAX - 1);
	memcpy(plan->text, rest.at, rest.len);
	rest.at = plan->text;
	if (!trim(rest).len)
		return true;
	for (bool more = true; more;) {
		struct aw_slice part = aw_slice_cut(&rest, ',');

		more = rest.at > part.at + part.len;
		parse = (struct aw_fault_parse){ .text = plan->text,
						 .fault = &plan->faults[plan->count],
						 .problem = problem };
		if (plan->count == AW_FAULTS_MAX)
			return aw_fault_fail(&parse, trim(part),
					     "this is more than %d faults: write fewer",
					     AW_FAULTS_MAX);
		if (!read_fault(&parse, trim(part)))
			return false;
		plan->count++;
	}
	return true;
}

void aw_fault_problem_show(const char *text, const struct aw_fault_problem *problem,
			   char lines[2 * AW_FAULTS_SHOWN_MAX + 4])
{
	size_t len = strlen(text), from = 0, shown, left, carets;

	/* A long text is shown from a little before the part on. */
	if (problem->at + problem->len > AW_FAULTS_SHOWN_MAX)
		from = problem->at > AW_FAULTS_SHOWN_MAX / 4 ? problem->at - AW_FAULTS_SHOWN_MAX / 4
							     : 0;
	shown = len - from < AW_FAULTS_SHOWN_MAX ? len - from : AW_FAULTS_SHOWN_MAX;
	left = problem->at - from;
	carets = problem->len ? problem->len : 1;
	if (left + carets > AW_FAULTS_SHOWN_MAX + 1)
		carets = AW_FAULTS_SHOWN_MAX + 1 - left;
	for (size_t i = 0; i < shown; i++)
		*lines++ = isprint((unsigned char)text[from + i]) ? text[from + i] : ' ';
	*lines++ = '\n';
	memset(lines, ' ', left);
	memset(lines + left, '^', carets);
	lines[left + carets] = '\0';
}
