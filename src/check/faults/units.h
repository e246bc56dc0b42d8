// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers with a unit and a fraction, as users write them: "250ms", "64KiB", "10MB/s", "0.5%".
#ifndef CHECK_FAULTS_UNITS_H
#define CHECK_FAULTS_UNITS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define AW_FAULT_CERTAIN 1000000000u /* a probability of 1 */

/* Each is false, with *value left alone, where the text is no such number or does not fit. */
bool aw_unit_time(struct aw_slice text, uint64_t *ns); /* a number alone is seconds */
bool aw_unit_bytes(struct aw_slice text, uint64_t *bytes);
bool aw_unit_rate(struct aw_slice text, uint64_t *bytes_per_s);
bool aw_unit_probability(struct aw_slice text, uint64_t *of_certain); /* above 0, at most 1 */

#endif
