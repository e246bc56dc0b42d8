// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_open_xrcd and ibv_close_xrcd: ibv_open_xrcd(3), with the kernel's errors. The kernel shares a file's domain
// among processes. Here it is this process's own, and the second process to open it says so.
#include "verbs/xrcd.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "ring/lock.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

aw_mutex vb_xrc_lock = PTHREAD_MUTEX_INITIALIZER;

static TAILQ_HEAD(, vb_domain) domains AW_GUARDED_BY(vb_xrc_lock) = TAILQ_HEAD_INITIALIZER(domains);
static struct vb_limit xrcds = { .max = VB_XRCD_MAX };

static int open_check(const struct ibv_xrcd_init_attr *attr);
static int domain_get(const struct ibv_xrcd_init_attr *attr, struct vb_domain **got);
static void domain_put(struct vb_domain *domain);

/* The parent's domains are dead in the child, which must not mark them as held any longer than the parent does. */
static void fork_child(void) AW_REQUIRES(vb_xrc_lock)
{
	struct vb_domain *domain;

	TAILQ_FOREACH(domain, &domains, entry)
	{
		if (domain->mark_fd >= 0)
			aw_close_now(domain->mark_fd);
		domain->mark_fd = -1;
		domain->has_file = false;
	}
}

static const struct aw_fork_handlers fork_handlers = { .lock = &vb_xrc_lock, .child = fork_child };

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_XRC_DOMAINS, &fork_handlers);
}

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_xrcd *xrcd = NULL;
	int err = open_check(attr);

	if (err)
		goto failed;
	err = ENOMEM;
	if (!vb_limit_take(&xrcds))
		goto failed;
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		goto give;
	err = domain_get(attr, &xrcd->domain);
	if (err)
		goto free_xrcd;
	xrcd->ibv.context = context;
	vb_context_get(context);
	return &xrcd->ibv;

free_xrcd:
	free(xrcd);
give:
	vb_limit_give(&xrcds);
failed:
	errno = err;
	return NULL;
}

/* EBUSY while an SRQ or a target QP uses it. */
int vb_close_xrcd(struct ibv_xrcd *ibv_xrcd)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_xrcd *xrcd = vb_xrcd_of(ibv_xrcd);
	struct ibv_context *context = ibv_xrcd->context;

	/* Acquire pairs with the release of its last user. */
	if (atomic_load_explicit(&xrcd->users, memory_order_acquire))
		return vb_fail(EBUSY);
	domain_put(xrcd->domain);
	free(xrcd);
	vb_limit_give(&xrcds);
	vb_context_put(context);
	return 0;
}

static int open_check(const struct ibv_xrcd_init_attr *attr)
{
	const uint32_t required = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

	if (attr->comp_mask & ~required)
		return EOPNOTSUPP;
	if ((attr->comp_mask & required) != required)
		return EINVAL;
	return 0; /* of oflags the kernel, too, reads O_CREAT and O_EXCL alone */
}

static struct vb_domain *domain_find(const struct stat *file) AW_REQUIRES(vb_xrc_lock)
{
	struct vb_domain *domain;

	TAILQ_FOREACH(domain, &domains, entry)
	if (domain->has_file && domain->dev == file->st_dev && domain->ino == file->st_ino)
		return domain;
	return NULL;
}

/*
 * Binds a socket to a name made of the inode: the kernel gives a name to one socket at a time, and takes it back when the
 * process ends. -1: another process has it, or no socket can be made.
 */
static int mark_bind(const struct stat *file)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int len;

	if (fd < 0)
		return -1;
	len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "anywarp-xrcd-%jx-%jx",
		       (uintmax_t)file->st_dev, (uintmax_t)file->st_ino);
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0)
		return fd;
	if (errno == EADDRINUSE)
		aw_log(AW_LOG_ERROR,
		       "xrc domain of inode %ju: another process has the same file's domain open, and domains are not "
		       "shared between processes here: a message for an srq of that process, which comes in at a qp "
		       "of this one, is refused; let each process create its own xrc recv qps",
		       (uintmax_t)file->st_ino);
	aw_close_now(fd);
	return -1;
}

static int domain_create(const struct stat *file, struct vb_domain **created)
	AW_REQUIRES(vb_xrc_lock)
{
	struct vb_domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return ENOMEM;
	int err = aw_xrcd_init(&domain->aw);

	if (err) {
		free(domain);
		return err;
	}
	domain->mark_fd = -1;
	domain->xrcds = 1;
	TAILQ_INIT(&domain->targets);
	if (file) {
		domain->has_file = true;
		domain->dev = file->st_dev;
		domain->ino = file->st_ino;
		domain->mark_fd = mark_bind(file);
	}
	TAILQ_INSERT_TAIL(&domains, domain, entry);
	*created = domain;
	return 0;
}

static int domain_get_of_file(const struct stat *file, int oflags, struct vb_domain **got)
	AW_REQUIRES(vb_xrc_lock)
{
	struct vb_domain *domain = domain_find(file);

	if (!domain)
		return oflags & O_CREAT ? domain_create(file, got) : EAGAIN;
	if (oflags & O_EXCL)
		return EINVAL;
	domain->xrcds++;
	*got = domain;
	return 0;
}

static int domain_get(const struct ibv_xrcd_init_attr *attr, struct vb_domain **got)
{
	struct stat file;
	int err;

	if (attr->fd != -1 && fstat(attr->fd, &file) != 0)
		return errno;
	aw_lock(&vb_xrc_lock);
	err = attr->fd == -1 ? domain_create(NULL, got)
			     : domain_get_of_file(&file, attr->oflags, got);
	aw_unlock(&vb_xrc_lock);
	return err;
}

static void domain_put(struct vb_domain *domain)
{
	bool last;

	aw_lock(&vb_xrc_lock);
	last = --domain->xrcds == 0;
	if (last)
		TAILQ_REMOVE(&domains, domain, entry);
	aw_unlock(&vb_xrc_lock);
	if (!last)
		return;
	if (domain->mark_fd >= 0)
		aw_close_now(domain->mark_fd);
	aw_xrcd_fini(&domain->aw);
	free(domain);
}
