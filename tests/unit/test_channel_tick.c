// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The threads of a channel are away, and the progress thread looks at their QPs in its tick.
#include "../lib/full_set.h"
#include "../lib/until.h"
#include "../lib/uqp_pair.h"
#include "net/base/io_now.h"
#include "net/cq/channel_set.h"
#include "net/progress/engine.h"
#include "net/qp/serving.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct aw_channel ch;

static int setup(void **state)
{
	int err = pair_setup(state);
	struct pair *p = *state;

	assert_int_equal(aw_channel_init_for_qps(&ch), 0);
	end_set_channel(&p->b, &ch);
	return err;
}

static int teardown(void **state)
{
	int err = pair_teardown_stopped(state);

	aw_channel_fini(&ch);
	return err;
}

enum {
	QUIET,
	WAITED,
	WATCHED,
	QPS
};

/* Once both QPs with news are served the progress thread stays where it is until the test lets it go. */
static struct {
	_Atomic uint32_t handles[QPS]; /* + 1 */
	_Atomic uint32_t served[QPS];
	_Atomic bool holds, is_held;
} looks;

void __real_aw_uqp_with(uint32_t handle, void (*act)(struct aw_uqp *qp));
void __wrap_aw_uqp_with(uint32_t handle, void (*act)(struct aw_uqp *qp));

void __wrap_aw_uqp_with(uint32_t handle, void (*act)(struct aw_uqp *qp))
{
	__real_aw_uqp_with(handle, act);
	for (int i = 0; i < QPS; i++)
		looks.served[i] += handle + 1 == looks.handles[i];
	while (looks.holds && looks.served[WAITED] && looks.served[WATCHED]) {
		looks.is_held = true;
		sched_yield();
	}
}

static void write_to(struct pair *p, uint8_t octet)
{
	p->a.buf[0] = octet;
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	end_wait_cqe(&p->a);
}

static void leave_to(struct pair *p, enum aw_server server)
{
	struct aw_uqp *qp = p->b.qp;

	aw_lock(&qp->lock);
	qp->serving.eventful.count = AW_EVENTFUL_MIN;
	aw_uqp_leave_to(qp, server, &ch);
	aw_unlock(&qp->lock);
	assert_true(uqp_is_away(qp, &ch));
}

/* The tick looks at the quiet one first, and has served the others before it looks at any again. */
static void channel_tick__serves_those_with_news(void **state)
{
	static const enum aw_server servers[QPS] = { AW_SERVER_WAITER, AW_SERVER_WAITER,
						     AW_SERVER_WATCHER };
	struct pair *p = *state, others[2];
	struct pair *const pairs[QPS] = { p, &others[0], &others[1] };

	for (int i = 0; i < 2; i++) {
		end_make(&others[i].a, &p->pd, NULL);
		end_make_on(&others[i].b, &p->pd, &p->b.cq);
		pair_attach(&others[i]);
	}
	for (int i = 0; i < QPS; i++) {
		write_to(pairs[i], 'o');
		until(octet_at(pairs[i]->b.buf) == 'o');
	}
	pair_stop_progress();
	assert_int_equal(fcntl(ch.fd, F_SETFL, O_NONBLOCK), 0);
	assert_true(aw_channel_open_set(&ch));
	for (int i = 0; i < QPS; i++) {
		leave_to(pairs[i], servers[i]);
		looks.handles[i] = pairs[i]->b.qp->handle + 1;
	}
	aw_lock(&p->b.qp->lock);
	assert_int_equal(aw_serving_in_tick(p->b.qp).moves, QPS);
	aw_unlock(&p->b.qp->lock);
	looks.holds = true;
	write_to(pairs[WAITED], 'n');
	write_to(pairs[WATCHED], 'n');
	for (int i = WAITED; i < QPS; i++)
		until(aw_poll_now(pairs[i]->b.qp->fd, POLLIN) == POLLIN);
	pair_start_progress();
	until(looks.is_held);
	uint32_t quiet_served = looks.served[QUIET];
	bool away = uqp_is_away(pairs[QUIET]->b.qp, &ch);

	looks.holds = false;
	uint8_t waited = octet_at(pairs[WAITED]->b.buf), watched = octet_at(pairs[WATCHED]->b.buf);

	for (int i = 0; i < 2; i++) {
		end_destroy(&others[i].a);
		end_destroy(&others[i].b);
	}
	assert_int_equal(waited, 'n');
	assert_int_equal(watched, 'n');
	assert_int_equal(quiet_served, 0);
	assert_true(away);
}

/* The kernel had no memory for its socket in any set. */
static void channel_tick__serves_one_that_is_in_no_set(void **state)
{
	struct pair *p = *state;
	struct aw_uqp *qp = p->b.qp;

	write_to(p, 'o');
	until(octet_at(p->b.buf) == 'o');
	pair_stop_progress();
	assert_true(aw_channel_open_set(&ch));
	leave_to(p, AW_SERVER_WAITER);
	full_epfd = aw_engine_epfd();
	aw_lock(&qp->lock);
	assert_int_equal(aw_channel_watch(ch.epfd, qp->fd, qp->handle, 0), 0);
	qp->serving.unreachable = true;
	aw_unlock(&qp->lock);
	write_to(p, 'n');
	pair_start_progress();
	until(octet_at(p->b.buf) == 'n');
	assert_true(uqp_is_away(qp, &ch));
	full_epfd = -1;
}

/* No news come for a QP whose CQ has lost a completion, as of another QP. */
static void channel_tick__ends_one_whose_cq_has_overflowed(void **state)
{
	struct pair *p = *state;

	write_to(p, 'o');
	until(octet_at(p->b.buf) == 'o');
	pair_stop_progress();
	assert_true(aw_channel_open_set(&ch));
	leave_to(p, AW_SERVER_WAITER);
	p->b.cq.overflowed = true;
	pair_start_progress();
	until(p->b.events & AW_UQP_FATAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(channel_tick__serves_one_that_is_in_no_set, setup,
						teardown),
		cmocka_unit_test_setup_teardown(channel_tick__ends_one_whose_cq_has_overflowed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(channel_tick__serves_those_with_news, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
