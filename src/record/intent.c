// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A process may be killed between any two instructions. Its memory is lost, the record's and TCP's are not: TCP
// tells how many bytes it has taken in all, and the note which FPDUs these bytes are.
#include "record/intent.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/ioctl.h>

#define TRIES_MAX 1000 /* of two looks at TCP between which no acknowledgement comes */

/* The states of tcp_info in which TCP takes bytes. */
enum {
	STATE_ESTABLISHED = 1,
	STATE_CLOSE_WAIT = 8,
};

void aw_intent_open(struct aw_record_tx *tx)
{
	struct aw_record_intent *intent = &tx->intent;

	intent->msn = tx->msn;
	intent->rest_at = tx->rest_at;
	intent->rest = tx->rest;
	intent->sent = tx->sent;
	atomic_signal_fence(memory_order_seq_cst);
	intent->open = true;
	atomic_signal_fence(memory_order_seq_cst);
}

void aw_intent_seal(struct aw_record_tx *tx)
{
	tx->intent.seals = true;
	aw_intent_open(tx);
}

void aw_intent_close(struct aw_record_tx *tx, ssize_t taken)
{
	tx->sent = tx->intent.sent + (taken > 0 ? (uint32_t)taken : 0);
	atomic_signal_fence(memory_order_seq_cst);
	tx->intent.open = false;
	atomic_signal_fence(memory_order_seq_cst);
	tx->intent.seals = false;
}

static bool tcp_look(int fd, uint8_t *state, uint64_t *acked)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (aw_record_calls.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
	    len < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked))
		return false;
	*state = info.tcpi_state;
	*acked = info.tcpi_bytes_acked;
	return true;
}

/*
 * How many bytes TCP has taken since the connection was made, modulo 2^32. It counts the SYN of the active
 * end. When the stream is over they do not matter: as many as before the call. False: the kernel does not tell.
 */
static bool count_taken(const struct aw_record *record, int fd, uint32_t *taken)
{
	uint8_t state;
	uint64_t before, after;
	int queued;

	for (int i = 0; i < TRIES_MAX; i++) {
		if (!tcp_look(fd, &state, &before) ||
		    aw_record_calls.ioctl(fd, SIOCOUTQ, &queued) != 0 ||
		    !tcp_look(fd, &state, &after))
			return false;
		*taken = record->tx.intent.sent;
		if (state != STATE_ESTABLISHED && state != STATE_CLOSE_WAIT)
			return true;
		if (before != after)
			continue;
		*taken = (uint32_t)before + (uint32_t)queued - record->tx.active;
		return true;
	}
	return false;
}

void aw_intent_begin(struct aw_record *record, int fd)
{
	uint32_t taken;

	record->tx.intent.sent = 0;
	if (count_taken(record, fd, &taken))
		record->tx.sent = taken;
}

/* Sets the tx half to its state after taken bytes of the call. False: the end of an FPDU is lost. */
static bool tx_redo(struct aw_record_tx *tx, uint32_t taken)
{
	const struct aw_record_intent *intent = &tx->intent;

	tx->msn = intent->msn;
	tx->rest_at = intent->rest_at;
	tx->rest = intent->rest;
	tx->sent = intent->sent + taken;
	if (intent->count == 0) {
		if (taken > tx->rest)
			return false;
		tx->rest_at += taken;
		tx->rest -= taken;
		return true;
	}
	for (uint32_t i = 0; i < intent->count && taken >= intent->lens[i]; i++) {
		tx->msn++;
		taken -= intent->lens[i];
	}
	return taken == 0;
}

bool aw_record_recover(struct aw_record *record, int fd)
{
	struct aw_record_tx *tx = &record->tx;
	uint32_t taken;

	tx->room = 0;
	if (!tx->intent.open) {
		tx->intent.seals = false;
		return true;
	}
	if (tx->intent.seals)
		return false;
	if (!count_taken(record, fd, &taken) || !tx_redo(tx, taken - tx->intent.sent))
		return false;
	tx->rest_urgent &= tx->rest > 0;
	tx->reply &= tx->rest > 0;
	atomic_signal_fence(memory_order_seq_cst);
	tx->intent.open = false;
	return true;
}
