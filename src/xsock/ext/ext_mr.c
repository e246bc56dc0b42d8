// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registered memory, and Writes and Reads of it. A key is 24 bytes in network byte order: address
// (8), length (8), STag (4), "iWK1". The key comes from the peer's program: this end checks that it
// is consistent, and the peer's end checks each access.
#include "xsock/ext/ext.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAGIC 0x69574b31u
#define ONE_SIDED_MAX ((size_t)1 << 30)

struct iwarp_mr {
	struct aw_ext *ext;
	struct ibv_mr *mr;
	uint8_t *addr;
	size_t len;
};

struct parsed_key {
	uint64_t addr, len;
	uint32_t stag;
};

static void put_key(const struct parsed_key *key, struct iwarp_key *wire)
{
	uint64_t addr = htobe64(key->addr), len = htobe64(key->len);
	uint32_t stag = htobe32(key->stag), magic = htobe32(KEY_MAGIC);

	memcpy(wire->bytes, &addr, 8);
	memcpy(wire->bytes + 8, &len, 8);
	memcpy(wire->bytes + 16, &stag, 4);
	memcpy(wire->bytes + 20, &magic, 4);
}

static bool get_key(const struct iwarp_key *wire, struct parsed_key *key)
{
	uint64_t addr, len;
	uint32_t stag, magic;

	memcpy(&addr, wire->bytes, 8);
	memcpy(&len, wire->bytes + 8, 8);
	memcpy(&stag, wire->bytes + 16, 4);
	memcpy(&magic, wire->bytes + 20, 4);
	*key = (struct parsed_key){ be64toh(addr), be64toh(len), be32toh(stag) };
	return be32toh(magic) == KEY_MAGIC && key->len <= UINT64_MAX - key->addr;
}

static struct iwarp_mr *mr_create(struct aw_ext *ext, void *addr, size_t len, int access)
{
	struct iwarp_mr *mr = calloc(1, sizeof(*mr));
	int rights = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_pd *pd;

	if (!mr)
		return NULL;
	*mr = (struct iwarp_mr){ .ext = ext, .addr = addr, .len = len };
	if (access & IWARP_REMOTE_READ)
		rights |= IBV_ACCESS_REMOTE_READ;
	if (access & IWARP_REMOTE_WRITE)
		rights |= IBV_ACCESS_REMOTE_WRITE;
	pd = aw_xs_ep_pd(ext->ep);
	if (ext->peer_knows && pd)
		mr->mr = ibv_reg_mr(pd, addr, len, rights);
	else
		errno = pd ? EOPNOTSUPP : ENOTCONN;
	if (mr->mr)
		return mr;
	free(mr);
	return NULL;
}

struct iwarp_mr *aw_ext_reg_mr(int fd, void *addr, size_t len, int access)
{
	struct iwarp_mr *mr;
	struct aw_ext *ext;

	if (!addr || !len || access & ~(IWARP_REMOTE_READ | IWARP_REMOTE_WRITE)) {
		errno = EINVAL;
		return NULL;
	}
	ext = aw_ext_get(fd);
	if (!ext)
		return NULL;
	if (!aw_ext_use(ext)) {
		aw_ext_put(ext);
		errno = ENOTCONN;
		return NULL;
	}
	mr = mr_create(ext, addr, len, access);
	if (!mr) {
		int error = errno;

		aw_ext_unuse(ext);
		aw_ext_put(ext);
		errno = error;
	}
	return mr;
}

int aw_ext_dereg_mr(struct iwarp_mr *mr)
{
	int error;

	if (!mr)
		return aw_ext_fail(EINVAL);
	error = ibv_dereg_mr(mr->mr);
	if (error)
		return aw_ext_fail(error);
	aw_ext_unuse(mr->ext);
	aw_ext_put(mr->ext);
	free(mr);
	return 0;
}

int aw_ext_mr_key(const struct iwarp_mr *mr, struct iwarp_key *key)
{
	if (!mr || !key)
		return aw_ext_fail(EINVAL);
	put_key(&(struct parsed_key){ (uintptr_t)mr->addr, mr->len, mr->mr->rkey }, key);
	return 0;
}

static bool is_within(uint64_t offset, uint64_t len, uint64_t whole)
{
	return offset <= whole && len <= whole - offset;
}

/* The endpoint calls it under its lock. */
static void complete_op(void *arg, int error)
{
	struct aw_ext_op *op = arg;
	struct aw_ext *ext = op->ext;

	op->moved = error ? 0 : op->bytes;
	aw_ext_complete_post(ext);
	aw_ext_op_complete(op, error);
}

/* Posts the Write, and the note behind it. Returns 0 or an errno. */
static int post_notify(struct aw_ext_op *op, const struct ibv_send_wr *wr, const struct iovec *note)
{
	struct aw_ext *ext = op->ext;
	struct aw_ext_op *send;
	int error;

	pthread_mutex_lock(&ext->lock);
	error = aw_ext_send_error(ext);
	if (!error && aw_ext_may_send(ext)) {
		error = -aw_xs_ep_post(ext->ep, wr, note, complete_op, op);
	} else if (!error) {
		/* The note has its place behind what is in the pair. */
		send = aw_ext_op_create_note(ext, note->iov_base, note->iov_len);
		error = send ? -aw_xs_ep_post(ext->ep, wr, NULL, complete_op, op) : errno;
		if (send && error)
			aw_ext_op_discard(send);
		else if (send)
			aw_ext_queue_send(send);
	}
	pthread_mutex_unlock(&ext->lock);
	return error;
}

/* note: sent behind the Write, unless NULL. */
static int post_op(struct aw_ext *ext, const struct ibv_send_wr *wr, size_t len, uint64_t cookie,
		   const struct iovec *note)
{
	struct aw_ext_op *op;
	int error;

	op = aw_ext_op_create(ext, cookie);
	if (!op)
		return -1;
	op->bytes = len;
	atomic_fetch_add(&ext->posted, 1);
	error = note ? post_notify(op, wr, note)
		     : -aw_xs_ep_post(ext->ep, wr, NULL, complete_op, op);
	if (error) {
		atomic_fetch_sub(&ext->posted, 1);
		aw_ext_op_discard(op);
		return aw_ext_fail(error);
	}
	/* The pump is to see a post that has not completed at once. */
	if (atomic_load(&ext->posted)) {
		pthread_mutex_lock(&ext->lock);
		aw_ext_wake(ext);
		pthread_mutex_unlock(&ext->lock);
	}
	return 0;
}

/* A Write or Read to be posted. */
struct one_sided {
	enum ibv_wr_opcode opcode;
	uint64_t key_offset;
	uint64_t cookie;
	const struct iovec *note; /* sent behind a Write, unless NULL */
};

/* Posts a Write or Read of len bytes of mr from offset on. Returns 0, or -1 with errno. */
static int post_one_sided(struct iwarp_mr *mr, size_t offset, size_t len,
			  const struct iwarp_key *wire, const struct one_sided *op)
{
	struct ibv_send_wr wr = { .opcode = op->opcode, .num_sge = 1 };
	struct parsed_key key;
	struct ibv_sge sge;

	if (!mr || !wire || !len || len > ONE_SIDED_MAX || !get_key(wire, &key))
		return aw_ext_fail(EINVAL);
	if (!is_within(offset, len, mr->len) || !is_within(op->key_offset, len, key.len))
		return aw_ext_fail(ERANGE);
	wr.wr.rdma.remote_addr = key.addr + op->key_offset;
	wr.wr.rdma.rkey = key.stag;
	sge = (struct ibv_sge){
		.addr = (uintptr_t)mr->addr + offset,
		.length = (uint32_t)len,
		.lkey = mr->mr->lkey,
	};
	wr.sg_list = &sge;
	return post_op(mr->ext, &wr, len, op->cookie, op->note);
}

int aw_ext_write(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		 uint64_t key_offset, uint64_t cookie)
{
	return post_one_sided(mr, offset, len, key,
			      &(struct one_sided){ IBV_WR_RDMA_WRITE, key_offset, cookie, NULL });
}

int aw_ext_write_notify(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
			uint64_t key_offset, const struct iwarp_note *note)
{
	struct iovec bytes;

	if (!note || !note->bytes || !note->len || note->len > IWARP_NOTE_MAX)
		return aw_ext_fail(EINVAL);
	bytes = (struct iovec){ (void *)note->bytes, note->len };
	return post_one_sided(mr, offset, len, key,
			      &(struct one_sided){ IBV_WR_RDMA_WRITE, key_offset, note->cookie,
						   &bytes });
}

int aw_ext_read(struct iwarp_mr *mr, size_t offset, size_t len, const struct iwarp_key *key,
		uint64_t key_offset, uint64_t cookie)
{
	return post_one_sided(mr, offset, len, key,
			      &(struct one_sided){ IBV_WR_RDMA_READ, key_offset, cookie, NULL });
}

int aw_ext_send_mr(struct iwarp_mr *mr, size_t offset, size_t len, uint64_t cookie)
{
	struct aw_ext_op *op;

	if (!mr || !len)
		return aw_ext_fail(EINVAL);
	if (!is_within(offset, len, mr->len))
		return aw_ext_fail(ERANGE);
	op = aw_ext_op_create(mr->ext, cookie);
	if (!op)
		return -1;
	op->from = mr->addr + offset;
	op->bytes = len;
	op->lkey = mr->mr->lkey;
	op->zero_copy = true;
	return aw_ext_send(op);
}
