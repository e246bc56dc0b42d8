// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: setuid and its kin. A process that becomes another user for good gives up the records
// that it shares with its relatives: the proxy process of its former user has their connections
// from then on.
#include <sys/single_threaded.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/framed/arena.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/process/fdtab.h"

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
 * after the call is the arena's.
 */
static void prepare_change(uid_t real, uid_t effective, uid_t saved)
{
	uid_t users[USERS];

	if (aw_fdtab_is_vfork_child() || !read_users(users))
		return;
	set_user(&users[REAL], real);
	set_user(&users[EFFECTIVE], effective);
	set_user(&users[SAVED], saved);
	if (!aw_arena_is_of(users))
		aw_framed_bridge_all(false);
}

/*
 * Called after libc's call: gives up the arena. A process of several threads keeps it, because
 * another thread may be about to take a slot; so does one that the proxy process has left with
 * framed sockets.
 */
static void give_up_arena(void)
{
	uid_t users[USERS];

	if (aw_fdtab_is_vfork_child() || !read_users(users) || aw_arena_is_of(users))
		return;
	if (aw_framed_any())
		aw_log(AW_LOG_INFO, "the former user's memory of records stays mapped: some "
				    "connections were not handed to the proxy process");
	else if (!__libc_single_threaded)
		aw_log(AW_LOG_INFO, "the former user's memory of records stays mapped: the "
				    "process has several threads");
	else
		aw_arena_abandon();
}

static int finish_change(int result)
{
	if (result == 0)
		give_up_arena();
	return result;
}

AW_WRAPPER int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	prepare_change(real, effective, saved);
	return finish_change(aw_libc()->setresuid(real, effective, saved));
}

/* The rule for the saved id is that of setreuid(2). */
AW_WRAPPER int setreuid(uid_t real, uid_t effective)
{
	uid_t then = effective == STAYS ? geteuid() : effective;
	bool saves = real != STAYS || then != getuid();

	prepare_change(real, effective, saves ? then : STAYS);
	return finish_change(aw_libc()->setreuid(real, effective));
}

AW_WRAPPER int seteuid(uid_t effective)
{
	prepare_change(STAYS, effective, STAYS);
	return finish_change(aw_libc()->seteuid(effective));
}

/* A process with effective id 0 changes all three ids. */
AW_WRAPPER int setuid(uid_t user)
{
	uid_t others = geteuid() == 0 ? user : STAYS;

	prepare_change(others, user, others);
	return finish_change(aw_libc()->setuid(user));
}
