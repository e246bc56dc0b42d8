// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A context of a cipher is bound to a key by a copy of it, and waits between calls at a place that the key's id chooses. A call takes
// it from there, so that no two threads use one; where it finds none, it makes one, and where it finds another key's, it gives that the
// key. It goes when the process has done with the key.
#include "xsock/framed/cipher.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "crypto/aead.h"

#define PLACES 1024u

static _Atomic(struct aw_aead *) places[PLACES];

static void context_free(struct aw_aead *context)
{
	if (context)
		aw_aead_end(context);
	free(context);
}

static struct aw_aead *context_swap(uint64_t id, struct aw_aead *context)
{
	return atomic_exchange(&places[id % PLACES], context);
}

/* Takes the context that belongs to the key, for one TLS record. NULL: there is no memory. */
static struct aw_aead *context_take(const struct aw_record_key *key, bool seals)
{
	struct aw_aead *context = context_swap(key->id, NULL);

	if (!context)
		context = calloc(1, sizeof(*context));
	if (context && aw_aead_bind(context, key, seals))
		return context;
	context_free(context);
	return NULL;
}

static bool cipher_seal(const struct aw_record_key *key, const uint8_t head[AW_AEAD_HEAD],
			const struct iovec *pieces, int count, uint8_t *text)
{
	struct aw_aead *context = context_take(key, true);
	bool right = context && aw_aead_start(context, head);

	for (int i = 0; right && i < count; i++) {
		right = aw_aead_pass(context, text, pieces[i].iov_base, pieces[i].iov_len);
		text += pieces[i].iov_len;
	}
	right = right && aw_aead_seal(context, text);
	context_free(context_swap(key->id, context));
	return right;
}

static bool cipher_open(const struct aw_record_key *key, const uint8_t head[AW_AEAD_HEAD],
			uint8_t *text, size_t len)
{
	struct aw_aead *context = context_take(key, false);
	bool right = context && aw_aead_start(context, head) &&
		     aw_aead_pass(context, text, text, len) && aw_aead_open(context, text + len);

	context_free(context_swap(key->id, context));
	return right;
}

static void cipher_forget(uint64_t id)
{
	context_free(context_swap(id, NULL));
}

const struct aw_record_cipher aw_cipher = {
	.seal = cipher_seal,
	.open = cipher_open,
	.forget = cipher_forget,
};
