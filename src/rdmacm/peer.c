// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer of an id's connection, as TLS has proven it: include/anywarp/cm.h.
#include "anywarp/cm.h"
#include "net/tls/identity.h"
#include "rdmacm/fail.h"
#include "rdmacm/id.h"
#include "ring/lock.h"

#include <errno.h>
#include <string.h>

/* No connection was asked for yet, or the peer has not answered. */
static bool is_connected(const struct aw_cm_id *cm) AW_REQUIRES(cm->lock)
{
	switch (cm->state) {
	case AW_CM_IDLE:
	case AW_CM_BOUND:
	case AW_CM_ADDR_RESOLVED:
	case AW_CM_ROUTE_RESOLVED:
	case AW_CM_LISTENING:
	case AW_CM_CONNECTING:
	case AW_CM_ENDED:
		return false;
	case AW_CM_REQUESTED:
	case AW_CM_ACCEPTING:
	case AW_CM_REPLIED:
	case AW_CM_CONNECTED:
	case AW_CM_DISCONNECTED:
	case AW_CM_FAILED:
		return true;
	}
	return false;
}

/* The identity, with a reference; NULL: no TLS. The connection of another process's id is that one's. */
static int take_identity(struct rdma_cm_id *id, struct aw_tls_identity **identity)
{
	struct aw_cm_id *cm = id ? aw_cm_id_of(id) : NULL;
	int err;

	if (!cm || aw_cm_id_inherited(cm))
		return EINVAL;
	aw_lock(&cm->lock);
	err = is_connected(cm) ? 0 : ENOTCONN;
	*identity = err ? NULL : aw_tls_identity_get(cm->identity);
	aw_unlock(&cm->lock);
	return err;
}

int anywarp_cm_is_secure(struct rdma_cm_id *id)
{
	struct aw_tls_identity *identity;
	int err = take_identity(id, &identity);
	bool secure = !err && identity;

	if (err)
		return aw_cm_fail(err);
	aw_tls_identity_put(identity);
	return secure;
}

/* As getxattr(2): without room, the length alone. */
static ssize_t copy_out(const void *from, size_t from_len, void *to, size_t len)
{
	if (len == 0)
		return (ssize_t)from_len;
	if (!to || len < from_len)
		return aw_cm_fail(to ? ERANGE : EINVAL);
	memcpy(to, from, from_len);
	return (ssize_t)from_len;
}

ssize_t anywarp_cm_peer_certificate(struct rdma_cm_id *id, void *der, size_t len)
{
	struct aw_tls_identity *identity;
	int err = take_identity(id, &identity);
	ssize_t copied;

	if (err || !identity)
		return aw_cm_fail(err ? err : ENODATA);
	copied = copy_out(identity->der, identity->der_len, der, len);
	aw_tls_identity_put(identity);
	return copied;
}

ssize_t anywarp_cm_peer_name(struct rdma_cm_id *id, char *name, size_t len)
{
	struct aw_tls_identity *identity;
	int err = take_identity(id, &identity);
	ssize_t copied;

	if (err || !identity)
		return aw_cm_fail(err ? err : ENODATA);
	copied = copy_out(identity->name, strlen(identity->name) + 1, name, len);
	aw_tls_identity_put(identity);
	return copied;
}
