// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The names of verbs' values, and a reason as it is put together.
#ifndef CHECK_EXPLAIN_WORDS_H
#define CHECK_EXPLAIN_WORDS_H

#include "check/base/newer.h"
#include "check/explain/explain.h"

#define AW_ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* Names as in verbs.h. A value that verbs.h does not have gives "an unknown ...". */
const char *aw_state_name(enum ibv_qp_state state); /* "RTS" */
const char *aw_qp_type_name(enum ibv_qp_type type); /* "RC" */
const char *aw_opcode_name(enum ibv_wr_opcode opcode); /* "IBV_WR_SEND" */
const char *aw_errno_name(int err); /* "EINVAL"; NULL for a number that is none */

/* The single bits of IBV_QP_* and IBV_ACCESS_*; NULL for a bit without a name. */
const char *aw_qp_attr_name(unsigned bit);
const char *aw_access_name(unsigned bit);

/* Each cuts what is too long for why. */
void aw_reason_set(char why[AW_EXPLAIN_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void aw_reason_add(char why[AW_EXPLAIN_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds the names of the bits that are set, as "A, B and C". */
void aw_reason_add_bits(char why[AW_EXPLAIN_MAX], unsigned bits, const char *(*name)(unsigned bit));
/* "EINVAL: " and the causes. */
void aw_reason_guess(char why[AW_EXPLAIN_MAX], int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Explains what in an address vector cannot be right; false where nothing is. The argument `what`: "ah_attr." or "". */
bool aw_reason_path(const char *what, const struct ibv_ah_attr *path,
		    const struct ibv_port_attr *port, char why[AW_EXPLAIN_MAX]);

/* A failure of a call by its errno alone. call: the name, with a '*' at its end for all calls that begin so. */
struct aw_errno_text {
	const char *call;
	int err;
	const char *text;
};
extern const struct aw_errno_text aw_verbs_errnos[], aw_cm_errnos[]; /* a NULL call ends each */

#endif
