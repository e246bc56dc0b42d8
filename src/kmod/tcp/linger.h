// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sockets whose user is done with them, kept until TCP has delivered their last bytes.
#ifndef KMOD_TCP_LINGER_H
#define KMOD_TCP_LINGER_H

#include <linux/net.h>

/* Takes over a socket without callbacks. Process context. */
void awk_linger(struct socket *sock);
/* As awk_linger, for a connection that no program accepted: their number is bounded. */
void awk_linger_unaccepted(struct socket *sock);
/* Closes all lingering sockets, as the module goes. */
void awk_linger_flush(void);

#endif
