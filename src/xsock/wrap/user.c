// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: setuid and the like. A process that becomes another user for good keeps nothing of the records that it shares with its
// relatives: the proxy process of the user before carries its connections from then on.
#include <sys/single_threaded.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/base/log.h"
#include "xsock/framed/arena.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/process/fdtab.h"

/* User ids of a process, as setresuid(2) has them. */
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

/* Before the call, while the proxy process still takes requests of this process. */
static void prepare(const uid_t users[USERS])
{
	if (!aw_fdtab_is_borrowed() && !aw_arena_is_of(users))
		aw_framed_bridge_all(false);
}

/*
 * Another thread may be about to take a slot: a process of several keeps the mapping, and so does one whose
 * connections the proxy process did not take.
 */
static void settle(void)
{
	uid_t users[USERS];

	if (aw_fdtab_is_borrowed() || !read_users(users) || aw_arena_is_of(users))
		return;
	if (aw_framed_any() || !__libc_single_threaded)
		aw_xs_log(AW_XS_LOG_INFO, "records stay in memory that is the user's before");
	else
		aw_arena_abandon();
}

static int finish(int result)
{
	if (result == 0)
		settle();
	return result;
}

AW_WRAPPER int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	uid_t users[USERS];

	if (read_users(users)) {
		set_user(&users[REAL], real);
		set_user(&users[EFFECTIVE], effective);
		set_user(&users[SAVED], saved);
		prepare(users);
	}
	return finish(aw_libc()->setresuid(real, effective, saved));
}

/* setreuid(2) tells what becomes of the saved id. */
AW_WRAPPER int setreuid(uid_t real, uid_t effective)
{
	uid_t users[USERS], before;

	if (read_users(users)) {
		before = users[REAL];
		set_user(&users[REAL], real);
		set_user(&users[EFFECTIVE], effective);
		if (real != (uid_t)-1 || users[EFFECTIVE] != before)
			users[SAVED] = users[EFFECTIVE];
		prepare(users);
	}
	return finish(aw_libc()->setreuid(real, effective));
}

AW_WRAPPER int seteuid(uid_t effective)
{
	uid_t users[USERS];

	if (read_users(users)) {
		set_user(&users[EFFECTIVE], effective);
		prepare(users);
	}
	return finish(aw_libc()->seteuid(effective));
}

/* Of root all three ids change. */
AW_WRAPPER int setuid(uid_t user)
{
	uid_t users[USERS];

	if (read_users(users)) {
		if (users[EFFECTIVE] == 0)
			users[REAL] = users[SAVED] = user;
		users[EFFECTIVE] = user;
		prepare(users);
	}
	return finish(aw_libc()->setuid(user));
}
