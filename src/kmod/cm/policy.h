// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The administrator's settings of MPA start-up: the module's parameters.
#ifndef KMOD_CM_POLICY_H
#define KMOD_CM_POLICY_H

#include "core/startup.h"

#include <linux/types.h>

/* The settings of this end; ird and ord as asked, at most the device's. is_tls: as awk_policy_tls was for this connection. */
struct aw_mpa_local awk_policy_local(u32 ird, u32 ord, bool is_tls);

/* True: a connection that begins now has TLS, or fails. */
bool awk_policy_tls(void);
/* Copies the name that a server's certificate is to have, or an empty string. */
void awk_policy_tls_name(char *name, size_t size);

#endif
