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
	if (wanted != (uid_t)-1)
		*user = wanted;
}

/*
 * Called before libc's call, while the proxy process still takes requests of this process: bridges
 * all framed sockets if none of these user ids is the arena's.
 */
static void prepare_change(const uid_t users[USERS])
{
	if (!aw_fdtab_is_vfork_child() && !aw_arena_is_of(users))
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
	if (aw_framed_any() || !__libc_single_threaded)
		aw_log(AW_LOG_INFO, "records stay in memory that is the user's before");
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
	uid_t users[USERS];

	if (read_users(users)) {
		set_user(&users[REAL], real);
		set_user(&users[EFFECTIVE], effective);
		set_user(&users[SAVED], saved);
		prepare_change(users);
	}
	return finish_change(aw_libc()->setresuid(real, effective, saved));
}

/* The rule for the saved id is that of setreuid(2). */
AW_WRAPPER int setreuid(uid_t real, uid_t effective)
{
	uid_t users[USERS], before;

	if (read_users(users)) {
		before = users[REAL];
		set_user(&users[REAL], real);
		set_user(&users[EFFECTIVE], effective);
		if (real != (uid_t)-1 || users[EFFECTIVE] != before)
			users[SAVED] = users[EFFECTIVE];
		prepare_change(users);
	}
	return finish_change(aw_libc()->setreuid(real, effective));
}

AW_WRAPPER int seteuid(uid_t effective)
{
	uid_t users[USERS];

	if (read_users(users)) {
		set_user(&users[EFFECTIVE], effective);
		prepare_change(users);
	}
	return finish_change(aw_libc()->seteuid(effective));
}

/* A process with effective id 0 changes all three ids. */
AW_WRAPPER int setuid(uid_t user)
{
	uid_t users[USERS];

	if (read_users(users)) {
		if (users[EFFECTIVE] == 0)
			users[REAL] = users[SAVED] = user;
		users[EFFECTIVE] = user;
		prepare_change(users);
	}
	return finish_change(aw_libc()->setuid(user));
}
