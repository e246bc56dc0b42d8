// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of the kernel module under a connection manager that, as Linux's, bears each event once and in its
// order alone: programs that connect, accept, reject, disconnect, destroy and reset; peers that answer, lie, leave,
// reset and keep silent; time that runs out; memory that does; TLS and its daemon. All of their threads interleave. In the
// end nothing is left, and each call and connection had its events.
#include "prop/prop.h"

#include "core/startup.h"

#include "kmod/cm/cm.h"
#include "kmod/qp/qp.h"
#include "kmod/stream/stream.h"
#include "kmod/verbs/verbs.h"

#include "fibers.h"
#include "iwcm.h"
#include "tcp.h"
#include "tlshd.h"

#include <linux/module.h>

#define QPS 3
#define ACTIONS_MAX 90
#define ENDS_MAX 10 /* so many ids at a time have an end */
#define RECENT 5u /* connections that peers still look at */

struct slot {
	struct awk_qp *qp; /* or NULL */
	unsigned int calls; /* of a program's, under way */
	bool dying;
};

struct act {
	void (*run)(struct act *act);
	struct cm_id *id;
	struct slot *slot;
	struct kshim_tcp *tcp;
	u64 how;
	size_t len;
	u8 octets[MPA_FRAME_MAX + 64];
};

static struct awk_device dev;
static struct net_device netdev;
static struct ib_pd pd;
static struct awk_cq *cq;
static struct slot slots[QPS];
static u64 luck; /* what programs decide beside the string */

static u64 draw_luck(void)
{
	luck = luck * 6364136223846793005 + 1442695040888963407;
	return luck >> 33;
}

static void cq_make(void)
{
	struct ib_cq_init_attr attr = { .cqe = 64 };

	cq = calloc(1, sizeof(*cq));
	cq->base.device = &dev.base;
	PROP(awk_cq_create(&cq->base, &attr, NULL) == 0);
}

static void slot_fill(struct slot *slot)
{
	struct ib_qp_init_attr attr = {
		.send_cq = &cq->base,
		.recv_cq = &cq->base,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4 },
	};

	slot->qp = calloc(1, sizeof(*slot->qp));
	slot->qp->base.device = &dev.base;
	slot->qp->base.pd = &pd;
	slot->dying = false;
	if (awk_qp_create(&slot->qp->base, &attr, NULL)) {
		free(slot->qp);
		slot->qp = NULL;
	}
}

static int on_event(struct cm_id *id, const struct iw_cm_event *event)
{
	bool ends = id->calls == 0 && !id->ends && draw_luck() % 8 == 0;

	(void)event;
	kshim_yield(false);
	ends = ends && id->calls == 0 && !id->ends;
	id->ends |= ends;
	return ends ? -1 : 0;
}

static void act_main(void *arg)
{
	struct act *act = arg;

	act->run(act);
	if (act->id)
		act->id->calls--;
	if (act->slot)
		act->slot->calls--;
	free(act);
}

/* Some name a QP that there is not. */
static u32 qpn_of(u64 how)
{
	const struct slot *slot = &slots[how % QPS];

	return slot->qp && (how >> 4 & 7) ? slot->qp->base.qp_num : how >> 7 & 7;
}

static struct iw_cm_conn_param param_of(const struct act *act)
{
	return (struct iw_cm_conn_param){
		.private_data = act->octets,
		.private_data_len = act->len,
		.ird = act->how >> 8 & 3,
		.ord = act->how >> 10 & 3,
		.qpn = qpn_of(act->how >> 16),
	};
}

static void run_connect(struct act *act)
{
	struct iw_cm_conn_param param = param_of(act);

	cm_connect(act->id, &param);
}

static void run_accept(struct act *act)
{
	struct iw_cm_conn_param param = param_of(act);

	cm_accept(act->id, &param);
}

static void run_reject(struct act *act)
{
	cm_reject(act->id, act->octets, act->len);
}

static void run_disconnect(struct act *act)
{
	cm_disconnect(act->id, act->how & 1);
}

static void run_listen(struct act *act)
{
	cm_listen(act->id, 4);
}

/* A program is done with its calls before it destroys what they are of. */
static void run_destroy(struct act *act)
{
	struct cm_id *id = act->id;

	act->id = NULL;
	while (id->calls > 1)
		kshim_yield(true);
	cm_destroy(id);
}

static void run_modify(struct act *act)
{
	static const enum ib_qp_state states[] = { IB_QPS_ERR, IB_QPS_SQD, IB_QPS_RESET,
						   IB_QPS_RESET };
	struct ib_qp_attr attr = { .qp_state = states[act->how & 3] };

	awk_qp_modify(&act->slot->qp->base, &attr, IB_QP_STATE, NULL);
}

static void run_destroy_qp(struct act *act)
{
	struct slot *slot = act->slot;

	while (slot->calls > 1)
		kshim_yield(true);
	awk_qp_destroy(&slot->qp->base, NULL);
	free(slot->qp);
	slot->qp = NULL;
}

static void run_arrive(struct act *act)
{
	kshim_tcp_arrive(act->tcp);
}

static void run_establish(struct act *act)
{
	kshim_tcp_established(act->tcp);
}

static void run_refuse(struct act *act)
{
	kshim_tcp_refused(act->tcp, act->how & 1 ? ECONNREFUSED : EHOSTUNREACH);
}

static void run_fin(struct act *act)
{
	kshim_tcp_fin(act->tcp);
}

static void run_reset(struct act *act)
{
	kshim_tcp_reset(act->tcp);
}

static void run_room(struct act *act)
{
	kshim_tcp_room(act->tcp, act->how & 1 ? TCP_OCTETS : act->how & 7);
}

/* In pieces. */
static void run_send(struct act *act)
{
	size_t at = 0, n, piece = 1 + (act->how & 63);

	for (; at < act->len; at += n) {
		n = act->len - at < piece ? act->len - at : piece;
		kshim_tcp_send(act->tcp, act->octets + at, n);
		kshim_yield(false);
		piece = MPA_FRAME_MAX;
	}
}

static void run_handshake(struct act *act)
{
	kshim_tls_done(act->how & 7 ? 0 : -EACCES);
}

static void run_shortage(struct act *act)
{
	kshim_alloc_fails = act->how & 7;
}

/* On an id, a QP or a connection that there is, or not at all. */
static void act_begin(void (*run)(struct act *act), struct act *draft)
{
	struct act *act;

	if (fibers_live() >= FIBERS_OF_TEST)
		return;
	act = malloc(sizeof(*act));
	*act = *draft;
	act->run = run;
	if (act->id)
		act->id->calls++;
	if (act->slot)
		act->slot->calls++;
	fiber_start(act_main, act);
}

/* One in that state, or any. */
static struct cm_id *draw_id(struct bytes *b, enum cm_state state)
{
	struct cm_id *id = cm_ids;
	u8 how = bytes_u8(b);

	for (unsigned int skip = how & 3; id && skip > 0 && id->next; skip--)
		id = id->next;
	while (id && (how & 12) && (id->state != state || id->ends))
		id = id->next;
	return id && !id->ends ? id : NULL;
}

static struct aw_mpa_local draw_local(struct bytes *b)
{
	u8 how = bytes_u8(b);

	return (struct aw_mpa_local){
		.revision = how & 1 ? 2 : 1 + (how >> 1 & 1),
		.crc = how & 4,
		.markers = how & 8,
		.p2p = (how & 16) && (how & 1),
		.rtr = how & 32 ? MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ : MPA_RTR_WRITE,
		.ird = how >> 6,
		.ord = how >> 6,
	};
}

static void draw_request(struct bytes *b, struct act *act)
{
	struct aw_mpa_local local = draw_local(b);

	act->len = aw_mpa_request(&local, "hello", bytes_u8(b) % 6, act->octets);
}

/* What the module asked for is answered, if it was. */
static void draw_reply(struct bytes *b, struct act *act)
{
	struct aw_mpa_local local = draw_local(b);
	struct aw_mpa_result result;
	struct mpa_frame frame;
	size_t used;

	if (mpa_parse(act->tcp->out, act->tcp->out_len, &frame, &used) != MPA_PARSE_OK ||
	    aw_mpa_on_request(&local, &frame, &result) != AW_SETUP_OK)
		return;
	act->len = aw_mpa_reply(&local, &result, bytes_u8(b) % 4 == 0, "world", bytes_u8(b) % 6,
				act->octets);
}

static void draw_octets(struct bytes *b, struct act *act)
{
	u8 kind = bytes_u8(b);
	bool came = act->tcp->far.sin_port == htons(9);

	if (kind > 220)
		act->len = bytes_u8(b);
	else if (came == (kind < 200))
		draw_request(b, act);
	else
		draw_reply(b, act);
	if (kind % 10 == 9)
		act->octets[bytes_u8(b) % 24] ^= bytes_u8(b);
	if (kind % 10 == 8 && act->len > 0)
		act->len = bytes_u16(b) % act->len;
}

static void peer_acts(struct bytes *b, struct act *draft)
{
	static void (*const acts[])(struct act * act) = {
		run_establish, run_establish, run_refuse, run_fin,  run_fin,  run_reset,
		run_room,      run_send,      run_send,	  run_send, run_send, run_send,
		run_send,      run_send,      run_send,	  run_send,
	};
	void (*run)(struct act * act) = acts[draft->how & 15];

	if (kshim_tcp_count == 0)
		return;
	if (kshim_tls_waiting() > 0 && bytes_bool(b)) {
		act_begin(run_handshake, draft);
		return;
	}
	draft->tcp = kshim_tcps[kshim_tcp_count - 1 - bytes_u8(b) % min(kshim_tcp_count, RECENT)];
	if (draft->tcp->stage == TCP_LISTENS)
		run = run_arrive;
	else if (run == run_send && draft->tcp->sk.sk_state == TCP_SYN_SENT)
		run = run_establish;
	if (run == run_send)
		draw_octets(b, draft);
	draft->how >>= 4;
	act_begin(run, draft);
}

static void new_id_acts(struct bytes *b, struct act *draft)
{
	struct sockaddr_in near = { .sin_family = AF_INET, .sin_port = htons(5) };
	struct sockaddr_in far = { .sin_family = AF_INET, .sin_port = htons(6) };

	draft->id = cm_create(&dev.base);
	near.sin_addr.s_addr = htonl(bytes_bool(b) ? INADDR_LOOPBACK : INADDR_ANY);
	far.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&draft->id->id.m_local_addr, &near, sizeof(near));
	memcpy(&draft->id->id.m_remote_addr, &far, sizeof(far));
	draft->len = bytes_u8(b) % 16 == 0 ? 505 + bytes_u8(b) % 10 : bytes_u8(b) % 8;
	act_begin(draft->how & 3 ? run_connect : run_listen, draft);
}

static void id_acts(struct bytes *b, struct act *draft)
{
	static void (*const acts[])(struct act * act) = {
		run_accept,	run_accept,	run_accept,  run_reject,
		run_disconnect, run_disconnect, run_destroy,
	};
	void (*run)(struct act * act) = acts[draft->how % ARRAY_SIZE(acts)];

	draft->id = draw_id(b, run == run_disconnect ? CM_ESTABLISHED : CM_CONN_RECV);
	if (!draft->id || draft->id->state == CM_LISTEN)
		return;
	draft->len = bytes_u8(b) % 8;
	if (fibers_live() < FIBERS_OF_TEST)
		draft->id->ends |= run == run_destroy;
	act_begin(run, draft);
}

static void qp_acts(struct bytes *b, struct act *draft)
{
	struct slot *slot = &slots[bytes_u8(b) % QPS];

	if (!slot->qp && slot->calls == 0) {
		slot_fill(slot);
		return;
	}
	if (!slot->qp || slot->dying)
		return;
	draft->slot = slot;
	if ((draft->how & 31) == 31 && fibers_live() < FIBERS_OF_TEST) {
		slot->dying = true;
		act_begin(run_destroy_qp, draft);
	} else {
		act_begin(run_modify, draft);
	}
}

extern const struct kernel_param_ops *const kshim_param_tls;

/* Connections that began before keep what was so then. */
static void settings_change(const struct act *draft)
{
	static const int begins[] = { 0, 0, 0, 0, 0, -EAGAIN, -EAGAIN, -ESRCH };

	PROP(kshim_param_tls->set(draft->how & 1 ? "Y" : "N", NULL) == 0);
	kshim_tls_begins = begins[draft->how >> 1 & 7];
}

static void act_once(struct bytes *b)
{
	u8 what = bytes_u8(b);
	struct act draft = { .how = bytes_u32(b) };

	if (what < 110)
		peer_acts(b, &draft);
	else if (what < 150)
		new_id_acts(b, &draft);
	else if (what < 200)
		id_acts(b, &draft);
	else if (what < 222)
		qp_acts(b, &draft);
	else if (what < 225)
		act_begin(run_shortage, &draft);
	else if (what < 230)
		settings_change(&draft);
	else if (what < 242)
		fibers_wait(jiffies + (what < 233 ? 200000 : 500));
	fibers_run(bytes_u8(b));
}

static void end_all(void)
{
	kshim_alloc_fails = 0;
	for (struct cm_id *id = cm_ids; id; id = id->next)
		if (!id->ends && fibers_live() < FIBERS_OF_TEST) {
			id->ends = true;
			act_begin(run_destroy, &(struct act){ .id = id });
		}
	for (int i = 0; i < QPS; i++)
		if (slots[i].qp && !slots[i].dying && fibers_live() < FIBERS_OF_TEST) {
			slots[i].dying = true;
			act_begin(run_destroy_qp, &(struct act){ .slot = &slots[i] });
		}
	fibers_settle();
}

static bool all_ended(void)
{
	for (int i = 0; i < QPS; i++)
		if (slots[i].qp)
			return false;
	return !cm_ids;
}

static void exit_module(void *arg)
{
	(void)arg;
	awk_cm_exit_module();
	awk_stream_exit_module();
}

void prop_run(struct bytes *b)
{
	u64 seed = bytes_u64(b);

	kshim_on_bug = prop_failed;
	kshim_alloc_fails = 0;
	settings_change(&(struct act){ .how = seed >> 60 & 1 });
	memset(&dev, 0, sizeof(dev));
	dev.netdev = &netdev;
	pd.device = &dev.base;
	luck = seed ^ 0x5851f42d4c957f2d;
	cm_handler = on_event;
	cm_starves = bytes_u8(b) % 8 == 0;
	PROP(awk_stream_init_module() == 0);
	fibers_begin(seed, 1 + bytes_u8(b) % 8);
	cq_make();
	for (int i = 0; i < QPS; i++)
		slot_fill(&slots[i]);
	for (int i = 0; i < ACTIONS_MAX && b->left > 0; i++)
		act_once(b);
	for (int i = 0; i < ENDS_MAX && !all_ended(); i++)
		end_all();
	fiber_start(exit_module, NULL);
	fibers_settle();
	fibers_end();
	awk_cq_destroy(&cq->base, NULL);
	free(cq);
	cm_end();
	kshim_tcp_end();
	xa_destroy(&dev.qps);
	PROP(kshim_allocated == 0);
}
