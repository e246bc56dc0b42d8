// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a connection becomes FRAMED, and how processes share its slot.
#include "xsock/framed/framed.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "crypto/libcrypto.h"
#include "xsock/base/libc.h"
#include "xsock/framed/answer.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/hello.h"
#include "xsock/framed/slot.h"
#include "xsock/process/deadline.h"
#include "xsock/process/mode.h"
#include "xsock/process/protect.h"
#include "xsock/process/proxy.h"
#include "xsock/process/registration.h"

/* Begins the record by its Request, and at the passive end by its Reply. Returns 0 or an errno. */
static int record_begin(struct aw_record *record, enum aw_role role, int fd,
			const struct aw_record_secrets *secrets)
{
	uint8_t hello[AW_XS_HELLO_LEN];
	int err = 0;

	aw_hello_fill(hello, secrets);
	if (secrets)
		err = -aw_record_secure(record, fd, secrets);
	else
		aw_record_init(record);
	if (err)
		return err;
	if (role == AW_ROLE_ACTIVE)
		return -aw_record_initiate(record, fd, hello, sizeof(hello));
	err = -aw_record_take_request(record, fd);
	if (err)
		return err;
	aw_record_respond(record, hello, sizeof(hello));
	return -aw_record_answer(record, fd);
}

/* Begins the record, unless another process that holds the slot has done so. */
static int record_begin_once(struct aw_slot *slot, const struct aw_sock *sock, int fd,
			     const struct aw_record_secrets *secrets)
{
	struct aw_slot_options options = aw_slot_read_options(fd);
	struct aw_half half;
	int err = options.peek_offset < 0 ? aw_half_enter(&half, slot, &slot->tx_lock, fd) : ENOMEM;

	if (err)
		return err;
	if (!aw_framed_is_begun(slot)) {
		err = record_begin(&slot->record, sock->role, fd, secrets);
		if (err)
			aw_record_forget_keys(&slot->record);
		else {
			aw_slot_take_options(slot, fd, options);
			atomic_store(&slot->mode, (uint8_t)sock->mode);
			atomic_store(&slot->role, (uint8_t)sock->role);
		}
	}
	aw_half_leave(&half);
	return err;
}

static int start_record(struct aw_sock *sock, int fd, const struct aw_record_secrets *secrets)
{
	struct aw_slot *slot = sock->slot ? sock->slot : aw_arena_take(sock->ino);
	union aw_address remote = { 0 }; /* for the log, should the server not answer */
	socklen_t len = sizeof(remote);
	int err;

	if (!slot)
		return ENOMEM;
	if (sock->role == AW_ROLE_ACTIVE)
		(void)aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &len);
	err = record_begin_once(slot, sock, fd, secrets);
	if (err) {
		if (!sock->slot)
			aw_arena_leave(slot);
		return err;
	}
	aw_fdtab_lock();
	sock->slot = slot;
	sock->due_ns = sock->role == AW_ROLE_ACTIVE ? aw_deadline_begin() : 0;
	sock->remote = remote;
	aw_registration_narrow(sock); /* the epoll sets get back the program's own registrations */
	aw_fdtab_set_state(sock, AW_FD_FRAMED);
	aw_fdtab_unlock();
	return 0;
}

int aw_framed_start(struct aw_sock *sock, int fd)
{
	return start_record(sock, fd, NULL);
}

int aw_framed_start_tls(struct aw_sock *sock, int fd, const struct aw_record_secrets *secrets)
{
	return aw_libcrypto_load(NULL) ? start_record(sock, fd, secrets) : EOPNOTSUPP;
}

bool aw_framed_has_begun(struct aw_slot *slot, int fd)
{
	struct aw_half half;

	if (aw_half_enter(&half, slot, &slot->tx_lock, fd) == 0)
		aw_half_leave(&half);
	return aw_framed_is_begun(slot);
}

bool aw_framed_yield(struct aw_slot *slot, int fd)
{
	struct aw_half half;
	bool begun;

	/* A process without the slot's memory has nothing that it could note there. */
	if (aw_half_enter(&half, slot, &slot->tx_lock, fd))
		return !aw_framed_is_lost(slot);
	begun = aw_framed_is_begun(slot);
	if (!begun)
		atomic_store(&slot->broken, true);
	aw_half_leave(&half);
	return !begun;
}

bool aw_framed_is_lost(const struct aw_slot *slot)
{
	return atomic_load(&slot->broken);
}

/* Reserves a slot for a connection that this process and a child may both begin. */
static void reserve_slot(struct aw_sock *sock, int fd, void *unused) AW_REQUIRES(aw_fdtab_mutex)
{
	(void)fd;
	(void)unused;
	if (sock->state != AW_FD_PENDING || sock->role != AW_ROLE_PASSIVE || sock->error ||
	    sock->extended)
		return;
	if (!sock->slot)
		sock->slot = aw_arena_take(sock->ino);
	sock->shared |= sock->slot != NULL;
	if (sock->shared)
		aw_deadline_note(aw_now_ns());
}

void aw_framed_reserve(void)
{
	/* Two processes cannot make one handshake. */
	if (!aw_mode_records() || aw_protect_is_on() || aw_fdtab_is_vfork_child() ||
	    !aw_arena_open())
		return;
	aw_fdtab_lock();
	aw_fdtab_each(reserve_slot, NULL);
	aw_fdtab_unlock();
}

void aw_framed_prepare_relatives(void)
{
	if (aw_mode_records() && !aw_fdtab_is_vfork_child() &&
	    (aw_mode_may_iwarp(true) || aw_mode_may_iwarp(false)))
		(void)aw_arena_open();
	aw_framed_bridge_owing(false);
}

/*
 * A record that a child passes to a program without this library is bridged by the proxy process,
 * and the parent then follows: both need the same proxy process.
 */
void aw_framed_prepare_fork(void)
{
	aw_framed_prepare_relatives();
	if (aw_framed_any() && !aw_fdtab_is_vfork_child())
		(void)aw_proxy_start();
}

typedef void use_fn(struct aw_slot *slot);

/* Returns whether sock has a slot, and fd is its first: each socket is used once. */
static bool is_slots_first(struct aw_sock *sock, int fd) AW_REQUIRES(aw_fdtab_mutex)
{
	return sock->slot && fd == aw_fdtab_next_fd(sock, -1);
}

static void use_slot(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	use_fn **use = arg;

	if (is_slots_first(sock, fd))
		(*use)(sock->slot);
}

static void note_slot(struct aw_sock *sock, int fd, void *arg)
{
	bool *any = arg;

	(void)fd;
	*any |= sock->slot != NULL;
}

bool aw_framed_any(void)
{
	bool any = false;

	if (aw_arena_fd() < 0)
		return false;
	aw_fdtab_lock();
	aw_fdtab_each(note_slot, &any);
	aw_fdtab_unlock();
	return any;
}

static void warn_unless(bool is_claimed)
{
	if (!is_claimed)
		aw_log(AW_LOG_WARN,
		       "this process cannot lock the slot of a record: the slot may stay taken when the process is killed");
}

static void arrive_at(struct aw_slot *slot)
{
	warn_unless(aw_arena_arrive(slot));
}

void aw_framed_at_fork(bool in_child)
{
	use_fn *use = in_child ? arrive_at : aw_arena_expect;

	if (aw_arena_fd() < 0)
		return;
	if (in_child) {
		aw_arena_disclaim();
		aw_slot_forget_waiters();
		aw_slot_forget_flushes();
	}
	aw_fdtab_each(use_slot, &use);
}

static void use_each_slot(use_fn *use)
{
	if (aw_arena_fd() < 0)
		return;
	aw_fdtab_lock();
	aw_fdtab_each(use_slot, &use);
	aw_fdtab_unlock();
}

void aw_framed_share(void)
{
	use_each_slot(aw_arena_expect);
}

void aw_framed_unshare(void)
{
	use_each_slot(aw_arena_unexpect);
}

static bool has_slot(const struct aw_slot_set *set, unsigned number)
{
	return set->bits[number / 8] & 1u << number % 8;
}

static void list_slot(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	struct aw_slot_set *set = arg;
	unsigned number = sock->slot ? aw_arena_number(sock->slot) : 0;

	(void)fd;
	if (!sock->slot || has_slot(set, number))
		return;
	set->bits[number / 8] |= (uint8_t)(1u << number % 8);
	if (set->expected)
		aw_arena_expect(sock->slot);
}

void aw_framed_list(struct aw_slot_set *set, bool is_child)
{
	set->expected = is_child;
	if (aw_arena_fd() < 0)
		return;
	aw_fdtab_lock();
	aw_fdtab_each(list_slot, set);
	aw_fdtab_unlock();
}

static struct aw_slot *find_listed(const struct aw_slot_set *set, unsigned number)
{
	return has_slot(set, number) ? aw_arena_find(number) : NULL;
}

void aw_framed_take_back(const struct aw_slot_set *set)
{
	for (unsigned number = 0; number < AW_ARENA_SLOTS; number++) {
		struct aw_slot *slot = find_listed(set, number);

		if (slot)
			aw_arena_unexpect(slot);
	}
}

bool aw_framed_inherit(const struct aw_slot_set *set, unsigned number, struct aw_sock *sock)
{
	struct aw_slot *slot = find_listed(set, number);
	bool begun;

	if (!slot)
		return false;
	warn_unless(set->expected ? aw_arena_arrive(slot) : aw_arena_claim(slot));
	begun = aw_framed_is_begun(slot); /* another process may begin it now */
	if (!begun)
		aw_deadline_note(aw_now_ns());
	*sock = (struct aw_sock){
		.state = begun ? AW_FD_FRAMED : AW_FD_PENDING,
		.mode = begun ? (enum aw_xs_mode)atomic_load(&slot->mode) : AW_XS_ON,
		.role = begun ? (enum aw_role)atomic_load(&slot->role) : AW_ROLE_PASSIVE,
		.shared = true,
		.due_ns = begun ? 0 : aw_deadline_begin(),
		.ino = aw_arena_ino(slot),
		.proxy = aw_proxy_id(),
		.slot = slot,
	};
	return true;
}

static void release_slot(struct aw_sock *sock, int fd, void *unused) AW_REQUIRES(aw_fdtab_mutex)
{
	(void)unused;
	if (!is_slots_first(sock, fd))
		return;
	aw_answer_close(sock->slot, fd);
	aw_arena_leave(sock->slot);
}

void aw_framed_end(void)
{
	if (aw_arena_fd() < 0 || aw_fdtab_is_vfork_child())
		return;
	aw_framed_notify_all();
	aw_framed_bridge_owing(true);
	if (atomic_exchange(&aw_slots_released, true))
		return;
	/* No thread begins to work on a record now. */
	(void)aw_fdtab_drain_all();
	aw_fdtab_lock();
	aw_fdtab_each(release_slot, NULL);
	aw_fdtab_unlock();
}

/* Runs after the destructor that begins connections which their program has not used (preload/settle.c). */
__attribute__((destructor(200))) static void framed_fini(void)
{
	aw_framed_end();
}
