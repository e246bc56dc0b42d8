// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two streams of extended sockets over a wire that loses nothing and keeps work, every choice drawn from a
// byte string. Beside each direction stands a model: how many octets were put, which one is urgent. A Write
// may reach but what was advertised and not filled; a message needs a receive; what arrives is compared.
#ifndef LIB_XS_PAIR_H
#define LIB_XS_PAIR_H

#include "lib/bytes.h"
#include "xsock/stream/stream.h"

/* Called with what does not hold; does not return. */
typedef void xs_pair_failed(const char *claim, const char *file, int line);

/* One run. Aborts by failed. */
void xs_pair_run(struct bytes *b, xs_pair_failed *failed);

#endif
