// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The half of a connection that is carried, and the bare peer who must not notice.
#include "taker.h"

#include "anywarp/cm.h"
#include "raw.h"
#include "start_up.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct half half, other;

/* Connected, and one receive is posted. */
static char octets[2][16];
static struct ibv_mr *mrs[2];

void post_recv(struct half *h, int i)
{
	mrs[i] = rdma_reg_msgs(h->id, octets[i], sizeof(octets[i]));
	assert_non_null(mrs[i]);
	assert_int_equal(rdma_post_recv(h->id, NULL, octets[i], sizeof(octets[i]), mrs[i]), 0);
}

void establish(struct half *h, int i)
{
	half_open_client(h);
	send_reply(h->fd, C, 0, 1);
	cm_expect_ack(h->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	post_recv(h, i);
}

/* The ULPDU of the Send with this MSN (RFC 5041 4.2, RFC 5040 4.1). */
size_t make_send(uint8_t *ulpdu, uint8_t msn, const char *text)
{
	const uint8_t header[18] = { 0x41, 0x43, [13] = msn };

	memcpy(ulpdu, header, sizeof(header));
	memcpy(ulpdu + sizeof(header), text, strlen(text) + 1);
	return sizeof(header) + strlen(text) + 1;
}

void send_text(int fd, const char *text)
{
	uint8_t ulpdu[RAW_ULPDU_MAX];

	raw_send_fpdu(fd, ulpdu, make_send(ulpdu, 1, text));
}

void expect_text(struct half *h, int i, const char *text)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_recv_comp(h->id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(octets[i], text);
}

/* The stream goes on, either way. */
void expect_alive(struct half *h, int i)
{
	uint8_t ulpdu[RAW_ULPDU_MAX];

	send_text(h->fd, "alive");
	expect_text(h, i, "alive");
	assert_int_equal(rdma_post_send(h->id, NULL, "yes", 4, NULL, IBV_SEND_INLINE), 0);
	assert_int_equal(raw_recv_fpdu(h->fd, ulpdu), 18 + 4);
	assert_memory_equal(ulpdu + 18, "yes", 4);
}

void expect_silence(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, 0), 0);
}

/* Forks; the child takes ids and ends with fn. */
pid_t fork_taker(struct rdma_cm_id **ids, int count, void (*fn)(void))
{
	assert_int_equal(anywarp_fork_hold(), 0);
	pid_t pid = fork();

	if (pid == 0) {
		assert_int_equal(anywarp_fork_take(ids, count), 0);
		fn();
		_exit(0);
	}
	return pid;
}

void expect_exit(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

void forget(struct half *h)
{
	assert_int_equal(anywarp_cm_forget(h->id), 0);
	h->id = NULL;
}

/* The whole way for half's id. */
void carry(void (*fn)(void))
{
	pid_t pid = fork_taker(&half.id, 1, fn);

	forget(&half);
	assert_int_equal(anywarp_fork_release(), 0);
	expect_exit(pid);
	cm_expect_none(half.channel);
}

void half_alive(void)
{
	expect_alive(&half, 0);
}

/* Each in a process of its own: its children are those of a small program. */
void run_in_child(void **state)
{
	void (*fn)(void) = (void (*)(void))(uintptr_t)*state;

	assert_int_equal(cm_in_child(fn), 0);
}
