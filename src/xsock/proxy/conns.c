// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Begins connections, finds them, and remembers how the last ones ended. No locks: one thread.
#include "xsock/proxy/conns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "xsock/base/rules.h"
#include "xsock/framed/bridged.h"
#include "xsock/proxy/line_client.h"
#include "xsock/proxy/line_tls.h"

#define ENDS_MAX 4096
#define PLACES 4096 /* of an index; the kernel counts inodes up */

LIST_HEAD(conn_list, aw_proxy_conn);

static struct conn_list conns, by_ino[PLACES], by_tcp[PLACES];

/* A ring of the errors that the last connections ended with. */
static struct ended {
	uint64_t ino;
	int error;
} ended[ENDS_MAX];
static unsigned ended_next;

/*
 * Called before the program can see the connection's end, so that a request ERROR after it finds
 * the error.
 */
static void note_end(uint64_t ino, int error)
{
	if (!error)
		return;
	/* EPROTO: the peer has not begun as it has to. A connection that has begun has no other error; the log has the cause. */
	if (error != ETIMEDOUT && error != EPROTO)
		error = ECONNRESET;
	ended[ended_next % ENDS_MAX] = (struct ended){ ino, error };
	ended_next++;
}

/*
 * Logs why a connection ended. The program sees a reset, but not what this process has too little
 * of.
 */
static void log_end(int error)
{
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		aw_log(AW_LOG_ERROR,
		       "a connection is lost: %s: raise the hard limits of open files and memory",
		       strerror(error));
	else if (error)
		aw_log(AW_LOG_INFO, "a connection has ended: %s", strerror(error));
}

static void conn_ended(struct aw_bridge *bridge, int error, void *arg)
{
	struct aw_proxy_conn *conn = arg;

	(void)bridge;
	note_end(conn->ino, error);
	log_end(error);
	LIST_REMOVE(conn, all);
	LIST_REMOVE(conn, same_ino);
	if (conn->tcp_ino)
		LIST_REMOVE(conn, same_tcp);
	free(conn);
}

struct aw_line *aw_conns_make_line(bool initiates, bool nodelay, int *tcp)
{
	struct aw_xs_options options = {
		.nodelay = nodelay,
		.startup_timeout_ms = AW_CONNS_STARTUP_MS,
	};
	struct aw_line *line;
	struct aw_xs_ep *ep;
	int err = -aw_xs_ep_create(&options, &ep);

	if (err) {
		errno = err;
		return NULL;
	}
	err = -(initiates ? aw_xs_ep_initiate(ep, *tcp) : aw_xs_ep_respond(ep, *tcp));
	if (err) {
		aw_xs_ep_close(ep, true);
		errno = err;
		return NULL;
	}
	*tcp = -1;
	line = aw_line_of_ep(ep);
	if (!line) {
		aw_xs_ep_close(ep, true);
		errno = ENOMEM;
	}
	return line;
}

static struct aw_proxy_conn *conn_create(const struct aw_request *request)
{
	struct aw_proxy_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->ino = request->ino;
	conn->pid = request->pid;
	conn->fd = request->fd;
	conn->mode = request->mode;
	conn->remote = request->remote;
	return conn;
}

static void conn_add(struct aw_proxy_conn *conn)
{
	LIST_INSERT_HEAD(&conns, conn, all);
	LIST_INSERT_HEAD(&by_ino[conn->ino % PLACES], conn, same_ino);
	if (conn->tcp_ino)
		LIST_INSERT_HEAD(&by_tcp[conn->tcp_ino % PLACES], conn, same_tcp);
}

/* Fills begun, except its line, and reads the options of conn from tcp. Returns 0 or an errno. */
static int conn_prepare(struct aw_proxy_conn *conn, int tcp, int far, struct aw_bridge_start *begun)
{
	socklen_t len = sizeof(begun->linger);

	*begun = (struct aw_bridge_start){
		.far = far, .tcp = tcp, .on_end = conn_ended, .arg = conn
	};
	aw_kept_read(&conn->kept, tcp);
	getsockopt(tcp, SOL_SOCKET, SO_LINGER, &begun->linger, &len);
	return fstat(tcp, &begun->tcp_file) == 0 ? 0 : errno;
}

void aw_conns_start(const struct aw_request *request, int tcp, int far)
{
	struct aw_proxy_conn *conn = conn_create(request);
	struct aw_bridge_start begun;
	int err = conn ? conn_prepare(conn, tcp, far, &begun) : ENOMEM;

	if (!err) {
		if (aw_xs_mode_is_tls_plain((enum aw_xs_mode)request->mode))
			begun.line = aw_line_of_tls(request, tcp);
		else if (request->role == 1)
			begun.line = aw_conns_make_line(true, request->nodelay, &tcp);
		else
			begun.line = aw_line_of_client(request, tcp, far);
		err = begun.line ? 0 : errno;
	}
	if (!err) {
		tcp = -1;
		err = aw_bridge_create(&begun, &conn->bridge);
		if (err)
			begun.line->ops->close(begun.line, true);
	}
	if (!err) {
		conn_add(conn);
		return;
	}

	aw_log(AW_LOG_ERROR, "a connection cannot be carried: %s",
	       err == EOPNOTSUPP ? "the librdmacm.so.1 beside the proxy process is not anywarp's"
				 : strerror(err));
	log_end(err);
	note_end(request->ino, err);
	free(conn);
	close(far);
	if (tcp >= 0)
		close(tcp);
}

int aw_conns_start_record(const struct aw_request *request,
			  const struct aw_line_record_start *record)
{
	struct aw_proxy_conn *conn = conn_create(request);
	struct aw_bridge_start begun;
	int err;

	if (!conn)
		return ENOMEM;
	err = conn_prepare(conn, record->tcp, record->far, &begun);
	(void)aw_bridged_get_linger(record->share.slot, &begun.linger);
	begun.line = err ? NULL : aw_line_of_record(record);
	if (!begun.line)
		err = err ? err : errno;
	else
		err = aw_bridge_create(&begun, &conn->bridge);
	if (err) {
		aw_line_record_free(begun.line);
		free(conn);
		return err;
	}
	conn->tcp_ino = begun.tcp_file.st_ino;
	conn_add(conn);
	return 0;
}

int aw_conns_near(uint64_t tcp_ino)
{
	struct aw_proxy_conn *conn = LIST_FIRST(&by_tcp[tcp_ino % PLACES]);

	while (conn && conn->tcp_ino != tcp_ino)
		conn = LIST_NEXT(conn, same_tcp);
	return conn ? aw_line_record_near(aw_bridge_line(conn->bridge)) : -1;
}

struct aw_proxy_conn *aw_conns_find(uint64_t ino)
{
	struct aw_proxy_conn *conn = LIST_FIRST(&by_ino[ino % PLACES]);

	while (conn && conn->ino != ino)
		conn = LIST_NEXT(conn, same_ino);
	return conn;
}

int aw_conns_error(uint64_t ino)
{
	for (unsigned i = 0; i < ENDS_MAX; i++) {
		int error = ended[i].error;

		if (ended[i].ino != ino || !error)
			continue;
		ended[i].error = 0;
		return error;
	}
	return 0;
}

void aw_conns_review(void)
{
	int64_t now_ns = aw_now_ns();
	struct aw_proxy_conn *next;

	for (struct aw_proxy_conn *conn = LIST_FIRST(&conns); conn; conn = next) {
		next = LIST_NEXT(conn, all);
		aw_bridge_review(conn->bridge, now_ns);
	}
}

const struct aw_proxy_conn *aw_conns_first(void)
{
	return LIST_FIRST(&conns);
}
