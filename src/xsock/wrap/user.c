// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: setuid and its kin. A process that becomes another user for good gives up the records
// that it shares with its relatives, however many threads it has: the proxy process of its former user
// has their connections from then on. No process has a mapping of another user's records.
//
// A process becomes another user for good when none of its three user ids is that of the arena's
// maker. Before the call it exports its records, and the connections that its relatives may begin,
// ends those that it could not export, waits until no thread is in a record, and puts empty memory
// in the arena's place; it may open an arena of its own. Meanwhile no other thread begins a
// record. A process whose three ids differ opens none. The proxy process maps an arena only of its
// own user; of another user's process it takes a copy of the slot, which that process must hold
// alone, and judges each number in it (record/sound.c).
#include <sys/syscall.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/arena.h"
#include "xsock/framed/bridge.h"
#include "xsock/preload/settle.h"
#include "xsock/process/fdtab.h"
#include "xsock/wrap/wrap.h"

#define STAYS ((uid_t)-1)

/* User ids of a process, in the order of setresuid(2). */
enum {
	REAL,
	EFFECTIVE,
	SAVED,
	USERS,
};

static bool read_users(uid_t users[USERS])
{
	return getresuid(&users[REAL], &users[EFFECTIVE], &users[SAVED]) == 0;
}

static void set_user(uid_t *user, uid_t wanted)
{
	if (wanted != STAYS)
		*user = wanted;
}

/*
 * Called before libc's call, while the proxy process still takes requests of this process, with the
 * ids that the call sets, STAYS for one that stays: bridges all framed sockets if none of the user ids
 * after the call is the arena's. Returns whether that is so; then no other thread begins a record until end_change.
 */
static bool begin_change(uid_t real, uid_t effective, uid_t saved)
{
	uid_t users[USERS];

	if (aw_fdtab_is_vfork_child() || !read_users(users))
		return false;
	set_user(&users[REAL], real);
	set_user(&users[EFFECTIVE], effective);
	set_user(&users[SAVED], saved);
	if (aw_arena_is_of(users))
		return false;
	aw_settle_before_user();
	aw_fdtab_bar_starts();
	aw_framed_bridge_all(false);
	return true;
}

/* The kernel may have set other ids than were to be expected. */
static long end_change(bool leaves, long result)
{
	uid_t users[USERS];
	bool has_left = result == 0 && !aw_fdtab_is_vfork_child() && read_users(users) &&
			!aw_arena_is_of(users);

	if (has_left && !leaves)
		aw_fdtab_bar_starts();
	if (has_left)
		aw_framed_give_up();
	if (has_left || leaves)
		aw_fdtab_allow_starts();
	return result;
}

AW_WRAPPER int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	bool leaves = begin_change(real, effective, saved);

	return (int)end_change(leaves, aw_libc()->setresuid(real, effective, saved));
}

/* The rule for the saved id is that of setreuid(2). */
static bool begin_setreuid(uid_t real, uid_t effective)
{
	uid_t then = effective == STAYS ? geteuid() : effective;
	bool saves = real != STAYS || then != getuid();

	return begin_change(real, effective, saves ? then : STAYS);
}

AW_WRAPPER int setreuid(uid_t real, uid_t effective)
{
	bool leaves = begin_setreuid(real, effective);

	return (int)end_change(leaves, aw_libc()->setreuid(real, effective));
}

AW_WRAPPER int seteuid(uid_t effective)
{
	bool leaves = begin_change(STAYS, effective, STAYS);

	return (int)end_change(leaves, aw_libc()->seteuid(effective));
}

/* A process with effective id 0 changes all three ids. */
static bool begin_setuid(uid_t user)
{
	uid_t others = geteuid() == 0 ? user : STAYS;

	return begin_change(others, user, others);
}

AW_WRAPPER int setuid(uid_t user)
{
	bool leaves = begin_setuid(user);

	return (int)end_change(leaves, aw_libc()->setuid(user));
}

#ifdef SYS_setuid32 /* the calls without the number take ids of 16 bits */
#define USER_CALL(name) SYS_##name##32
#else
#define USER_CALL(name) SYS_##name
#endif

long aw_user_syscall(long number, const long *a, bool *known)
{
	bool leaves;

	if (number == USER_CALL(setuid))
		leaves = begin_setuid((uid_t)a[0]);
	else if (number == USER_CALL(setreuid))
		leaves = begin_setreuid((uid_t)a[0], (uid_t)a[1]);
	else if (number == USER_CALL(setresuid))
		leaves = begin_change((uid_t)a[0], (uid_t)a[1], (uid_t)a[2]);
	else
		return *known = false;
	*known = true;
	return end_change(leaves, aw_libc()->syscall(number, a[0], a[1], a[2]));
}
