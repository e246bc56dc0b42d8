// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The defaults are those of user space (net/base/policy.c). Read at each start-up.
#include "kmod/cm/policy.h"

#include "kmod/base/limits.h"
#include "kmod/tcp/tls.h"
#include "wire/mpa.h"

#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/string.h>

static bool crc = true;
static bool crc_asked; /* by hand */

static int crc_set(const char *text, const struct kernel_param *param)
{
	bool on;
	int err = kstrtobool(text, &on);

	if (err)
		return err;
	WRITE_ONCE(crc_asked, on);
	WRITE_ONCE(crc, on);
	return 0;
}

static const struct kernel_param_ops crc_ops = {
	.set = crc_set,
	.get = param_get_bool,
};

module_param_cb(crc, &crc_ops, &crc, 0644);
MODULE_PARM_DESC(
	crc,
	"ask for CRCs; off only when the peer does not ask either (default: on; with tls: off)");

static bool tls;

static int tls_set(const char *text, const struct kernel_param *param)
{
	bool on;
	int err = kstrtobool(text, &on);

	if (!err && on && !awk_tls_is_here()) {
		pr_err("anywarp: tls=Y is refused: it takes Linux 6.6 or newer with CONFIG_NET_HANDSHAKE and CONFIG_TLS "
		       "(Debian 12: linux-image-6.12-amd64), and a module that was built for that kernel\n");
		err = -EOPNOTSUPP;
	}
	if (!err)
		WRITE_ONCE(tls, on);
	return err;
}

static const struct kernel_param_ops tls_ops = {
	.set = tls_set,
	.get = param_get_bool,
};

module_param_cb(tls, &tls_ops, &tls, 0644);
MODULE_PARM_DESC(
	tls,
	"every connection has TLS by tlshd, with certificates of both ends, or fails (default: off)");

static char tls_name[AWK_TLS_NAME_BYTES];
module_param_string(tls_name, tls_name, sizeof(tls_name), 0644);
MODULE_PARM_DESC(
	tls_name,
	"the name that a server's certificate must have (default: the address that is connected to)");

static bool markers;
module_param(markers, bool, 0644);
MODULE_PARM_DESC(markers, "ask the peer for markers (default: off)");

static bool p2p = true;
module_param(p2p, bool, 0644);
MODULE_PARM_DESC(p2p, "as initiator: ask for the peer-to-peer model of RFC 6581 (default: on)");

/*
 * Off by default: a peer's immediate data would be lost, because siw's completions have no place
 * for it.
 */
static bool extensions;
module_param(extensions, bool, 0644);
MODULE_PARM_DESC(extensions, "offer or agree to atomics and immediate data (default: off)");

static bool large_fpdus = true;
module_param(large_fpdus, bool, 0644);
MODULE_PARM_DESC(
	large_fpdus,
	"take and send FPDUs longer than a TCP segment where the peer does as well (default: on)");

static int revision_set(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, 2);
}

static const struct kernel_param_ops revision_ops = {
	.set = revision_set,
	.get = param_get_uint,
};

static unsigned int revision = 2;
module_param_cb(revision, &revision_ops, &revision, 0644);
MODULE_PARM_DESC(revision, "highest MPA revision to ask with and to answer, 1 or 2 (default: 2)");

bool awk_policy_tls(void)
{
	return READ_ONCE(tls);
}

/* As written by echo, with the end of the line. */
void awk_policy_tls_name(char *name, size_t size)
{
	kernel_param_lock(THIS_MODULE);
	strscpy(name, tls_name, size);
	kernel_param_unlock(THIS_MODULE);
	name[strcspn(name, "\n")] = '\0';
}

struct aw_mpa_local awk_policy_local(u32 ird, u32 ord, bool is_tls)
{
	unsigned int highest = READ_ONCE(revision);

	return (struct aw_mpa_local){
		.revision = highest,
		.markers = READ_ONCE(markers),
		/* RFC 5044 4.4: no CRC where something at least as strong finds what it would. */
		.crc = is_tls ? READ_ONCE(crc_asked) : READ_ONCE(crc),
		.p2p = READ_ONCE(p2p) && highest > 1,
		.rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ,
		.ird = min_t(u32, ird, AWK_RD_MAX),
		.ord = min_t(u32, ord, AWK_RD_MAX),
		.extensions = READ_ONCE(extensions),
		.large_fpdus = READ_ONCE(large_fpdus) ? AW_LARGE_AGREED : AW_LARGE_OFF,
	};
}
