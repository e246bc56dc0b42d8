// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of a process with itself over loopback, by rdma_cm's public interface alone. Every
// failure prints where and ends the program: for tests only.
#ifndef SYSTEM_LINK_H
#define SYSTEM_LINK_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(claim)                                                                            \
	do {                                                                                    \
		if (!(claim)) {                                                                 \
			fprintf(stderr, "%s:%d: not true: %s (errno %m)\n", __FILE__, __LINE__, \
				#claim);                                                        \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

/* A listener on a port of its own, and the channel where all its ids' events arrive. */
struct meeting {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct sockaddr_in address;
};

struct link {
	struct rdma_cm_id *active;
	struct rdma_cm_id *passive;
};

/* At the loopback address, or at another one of this host. */
void meeting_open(struct meeting *meeting);
void meeting_open_at(struct meeting *meeting, struct in_addr address);
void meeting_close(struct meeting *meeting);

/* An id whose address is resolved, so that its verbs are set; destroy it with rdma_destroy_id. */
struct rdma_cm_id *meeting_resolve(struct meeting *meeting);

/* Connects a link. pd and the CQs of attr may be NULL: rdma_create_qp makes them then. */
void link_open(struct meeting *meeting, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
	       struct link *link);

/* Disconnects, waits until both ends heard of it, destroys QPs and ids. */
void link_close(struct meeting *meeting, struct link *link);

/* Ends the program with a message when it still runs after so many seconds. */
void give_up_after(unsigned int seconds);

#endif
