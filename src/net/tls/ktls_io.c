// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A session's bytes through a socket whose records the kernel makes.
#include "net/tls/ktls.h"

#include "net/base/bounds.h"
#include "net/tls/tls_impl.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* The type of a record, as a control message. */
union type_space {
	struct cmsghdr align;
	char octets[CMSG_SPACE(1)];
};

static bool is_passing(int error)
{
	return error == EAGAIN || error == EINTR || error == ENOBUFS || error == EFAULT;
}

/* Counts what the socket took; keeps the errno of one that has failed. */
static ssize_t count_sent(struct aw_tls *tls, ssize_t n)
{
	if (n > 0) {
		tls->ktls.content += (uint64_t)n;
		tls->ktls.since += (uint64_t)n;
		tls->ktls.has_left = false;
	} else if (n < 0 && !is_passing(errno)) {
		tls->io_errno = errno;
	}
	return n;
}

/* A record of another type than data. The socket takes one that is so short as a whole. False: errno says why it does not. */
static bool put(struct aw_tls *tls, enum aw_tls_content type, const uint8_t *content, size_t len)
{
	union type_space space = { .align = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)content, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = space.octets,
			      .msg_controllen = sizeof(space.octets) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = AW_SOL_TLS;
	head->cmsg_type = AW_KERNEL_TLS_SET_TYPE;
	head->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(head) = (uint8_t)type;
	return count_sent(tls, aw_sendmsg_now(tls->fd, &msg)) >= 0;
}

/* RFC 8446 5.5. Each record has a byte at least, so the kernel need not be asked before as many bytes as records are left. */
static bool keys_are_spent(struct aw_tls *tls)
{
	uint32_t most = atomic_load_explicit(&aw_bounds.tls_records_max, memory_order_relaxed);
	struct aw_ktls *ktls = &tls->ktls;
	uint64_t next;

	if (!ktls->changes_keys || !aw_suite_is_bounded(ktls->suite) ||
	    ktls->asked + ktls->since < most)
		return false;
	if (aw_kernel_tls_next(tls->fd, ktls->suite, &next)) {
		ktls->asked = next;
		ktls->since = 0;
	}
	return ktls->asked + ktls->since >= most;
}

bool aw_ktls_update(struct aw_tls *tls)
{
	uint8_t message[AW_TLS_UPDATE_LEN];

	if (!tls->records.owes_update && !keys_are_spent(tls))
		return true;
	if (!tls->ktls.changes_keys) {
		tls->records.alert = AW_TLS_INTERNAL_ERROR;
		tls->records.fault =
			"the peer asks for new keys, which this kernel's tls cannot have: set "
			"ANYWARP_TLS_RECORDS=user here, or run Linux 6.14";
	} else {
		aw_tls_put_update(message);
		if (!put(tls, AW_TLS_HANDSHAKE, message, sizeof(message)))
			return false;
		if (aw_ktls_renew(tls))
			return true;
		tls->records.alert = AW_TLS_INTERNAL_ERROR;
		tls->records.fault = "the kernel does not take new keys: is memory out?";
	}
	aw_tls_fail(tls);
	errno = tls->err;
	return false;
}

ssize_t aw_ktls_send(struct aw_tls *tls, const struct iovec *iov, size_t count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count };

	if (tls->err || tls->finished) {
		errno = tls->err ? tls->err : EPIPE;
		return -1;
	}
	if (!aw_ktls_update(tls))
		return -1;
	return count_sent(tls, count == 1 ? aw_send_now(tls->fd, iov->iov_base, iov->iov_len)
					  : aw_sendmsg_now(tls->fd, &msg));
}

/* The socket may hold the error by which the kernel refused a record: the next call would tell of that alone. */
void aw_ktls_put_alert(struct aw_tls *tls, uint8_t alert)
{
	uint8_t content[AW_TLS_ALERT_LEN];
	int error, io_errno = tls->io_errno;

	aw_tls_put_alert(content, alert);
	(void)getsockopt(tls->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) });
	(void)put(tls, AW_TLS_ALERT, content, sizeof(content));
	tls->io_errno = io_errno;
}

bool aw_ktls_flush(struct aw_tls *tls)
{
	uint8_t content[AW_TLS_ALERT_LEN];

	aw_tls_put_alert(content, AW_TLS_CLOSE_NOTIFY);
	if (tls->ktls.owes_close && !put(tls, AW_TLS_ALERT, content, sizeof(content)))
		return false;
	tls->ktls.owes_close = false;
	tls->ktls.has_left = !tls->finished || aw_ktls_has_left(tls);
	return tls->ktls.has_left;
}

/*
 * Records for which TCP had no room wait in the socket's TLS, and a worker of the kernel's gives them to TCP later: a FIN must
 * not be quicker.
 */
bool aw_ktls_has_left(const struct aw_tls *tls)
{
	const struct aw_ktls *ktls = &tls->ktls;
	uint64_t given, next;

	if (ktls->owes_close)
		return false;
	if (!ktls->counts || !aw_kernel_tls_next(tls->fd, ktls->suite, &next) ||
	    !aw_kernel_tls_given(tls->fd, &given))
		return true;
	return given - ktls->base >=
	       ktls->content + AW_TLS_SEALED_EXTRA * (ktls->earlier + next - ktls->first);
}

/* The alert that RFC 8446 has for a record that the kernel does not open. False: the error is another. */
static bool judge_error(struct aw_tls_records *records, int error)
{
	switch (error) {
	case EBADMSG:
		records->alert = AW_TLS_BAD_RECORD_MAC;
		records->fault = "decryption failed or bad record mac";
		return true;
	case EMSGSIZE:
		records->alert = AW_TLS_RECORD_OVERFLOW;
		records->fault = "record too long";
		return true;
	case EINVAL:
		records->alert = AW_TLS_UNEXPECTED_MESSAGE;
		records->fault = "unexpected record in the clear";
		return true;
	default:
		return false;
	}
}

ssize_t aw_ktls_recv(struct aw_tls *tls, void *to, size_t room, uint8_t *type)
{
	union type_space space = { .align = { 0 } };
	struct iovec iov = { .iov_base = to, .iov_len = room };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = space.octets,
			      .msg_controllen = sizeof(space.octets) };
	struct cmsghdr *head;
	ssize_t n;

	errno = EAGAIN;
	if (tls->reads_left == 0)
		return -1;
	n = aw_recvmsg_now(tls->fd, &msg);
	head = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	*type = AW_TLS_DATA;
	if (head && head->cmsg_level == AW_SOL_TLS && head->cmsg_type == AW_KERNEL_TLS_GET_TYPE)
		*type = *CMSG_DATA(head);
	tls->heard += n >= 0;
	/* Behind a record that is no data there may be more, which is read at once. */
	tls->reads_left = n == (ssize_t)room || *type != AW_TLS_DATA ? tls->reads_left - 1 : 0;
	if (n == 0 && *type == AW_TLS_DATA)
		tls->fin_seen = true;
	else if (n < 0 && errno == EINTR)
		errno = EAGAIN;
	else if (n < 0 && errno != EAGAIN && !judge_error(&tls->records, errno))
		tls->io_errno = errno;
	return n;
}
