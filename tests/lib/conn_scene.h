// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One conn, its events, a QP for its socket and the raw TCP peer it talks to. Every scene ends with
// the fds it began with.
#ifndef TESTS_LIB_CONN_SCENE_H
#define TESTS_LIB_CONN_SCENE_H

#include "heard.h"
#include "net/progress/watch.h"

#include <sys/socket.h>

struct scene {
	int fds;
	int listener;
	struct sockaddr_storage addr;
	int peer; /* the raw end */
	struct aw_conn *conn;
	struct heard heard;
	struct fake_qp qp;
	struct aw_watch busy; /* holds the progress thread */
};

/* What ends ask for or allow: all of RFC 6581, and nothing of it. */
extern const struct aw_mpa_local scene_enhanced, scene_plain;

int scene_setup(void **state);
int scene_teardown(void **state);

/* The conn becomes a responder, whose peer is the raw end. */
void scene_respond(struct scene *s, const struct aw_mpa_local *local);

/* Waits until the progress thread watches the conn's socket for these epoll events. */
void scene_await_events(struct scene *s, uint32_t events);

/* The progress thread stands still in between; not twice for one scene. */
void scene_hold_engine(struct scene *s);
void scene_free_engine(struct scene *s);

/* A frame with IRD and ORD 4 and a Write as RTR, where flags say that it is enhanced. */
size_t scene_frame(uint8_t *buf, enum mpa_kind kind, uint8_t flags, uint8_t revision);
/* Waits for FAILED with this err as the scene's first event. */
struct aw_conn_info scene_failed(struct scene *s, int err);

#endif
