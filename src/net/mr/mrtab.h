// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory regions and bound windows of this process: STags from the system's random source,
// look-up without a lock, deregistration that waits for a placement that runs. Pins nothing.
//
// STags are unguessable: the slot number goes through a keyed permutation, and eight more bits are
// random. Deregistration also copies bytes that a full socket has not taken yet, so that nothing
// reads the memory afterwards.
#ifndef NET_MRTAB_H
#define NET_MRTAB_H

#include "core/mr.h"

/* the owner of the MRs keeps this bound; there are STags for as many MRs and all windows */
#define AW_MR_MAX (1u << 20)

/*
 * Registers *mr (all but stag filled in) and sets its stag. 0, EFAULT (as aw_mapping_check; never
 * for on-demand memory), EINVAL (addresses or tagged offsets wrap), ENOMEM (no STag left), EIO (no
 * randomness). len may be 0. The caller keeps mr's memory until aw_mr_remove returns.
 */
int aw_mr_add(struct aw_mr *mr);
/*
 * Replaces *mr by *want, under the same STag. 0, or an error as aw_mr_add's; EBUSY when `may`,
 * which is called last, returns false. After an error *mr is unchanged. During the change no
 * look-up finds the MR, and the call waits until no thread holds it.
 */
int aw_mr_change(struct aw_mr *mr, const struct aw_mr *want, bool (*may)(struct aw_mr *mr));
/*
 * The STag is dead at once. Returns when no thread holds mr any more; the caller must not hold it.
 */
void aw_mr_remove(struct aw_mr *mr);

/* As struct aw_ops.mr_get and mr_put. */
struct aw_mr *aw_mr_get(uint32_t stag);
void aw_mr_put(const struct aw_mr *mr);

/*
 * An STag apart from its memory, for net/mr/mw.c. reserve: 0, ENOMEM, EIO (no randomness); the
 * lowest 8 bits are a key that the owner may change while the STag is not published. A published
 * STag may be hidden, and must be withdrawn before it is published again or cancelled; the caller
 * of withdraw_wait must not hold it. As aw_table's functions of these names.
 */
int aw_stag_reserve(uint32_t *stag);
void aw_stag_cancel(uint32_t stag);
void aw_stag_publish(struct aw_mr *mr); /* mr->stag is set */
void aw_stag_hide(uint32_t stag);
void aw_stag_withdraw_wait(uint32_t stag);

/* Writes the same index with another, random key. 0 or EIO. */
int aw_stag_rekey(uint32_t stag, uint32_t *fresh);
bool aw_stag_same_index(uint32_t a, uint32_t b);
/* The index of stag with the key of another, its lowest 8 bits. */
uint32_t aw_stag_with_key(uint32_t stag, uint32_t key);

#endif
