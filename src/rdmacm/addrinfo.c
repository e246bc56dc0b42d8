// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_getaddrinfo. The results are plain heap memory, field by field: programs make such lists
// themselves and have rdma_freeaddrinfo take them.
#include "net/base/persona.h"
#include "rdmacm/address.h"
#include "rdmacm/fail.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

static const struct rdma_addrinfo no_hints = {
	.ai_qp_type = IBV_QPT_RC,
	.ai_port_space = RDMA_PS_TCP,
};

/* A port space and a type of QP, as hints ask for them: what they leave open is chosen here. */
struct id_kind {
	int ps, qp_type;
};

static bool is_xrc(int qp_type)
{
	return qp_type == IBV_QPT_XRC_SEND || qp_type == IBV_QPT_XRC_RECV;
}

static struct id_kind kind_of(const struct rdma_addrinfo *hints)
{
	int type = hints->ai_qp_type;

	if (hints->ai_port_space == RDMA_PS_UDP || type == IBV_QPT_UD)
		return (struct id_kind){ RDMA_PS_UDP, IBV_QPT_UD };
	if (hints->ai_port_space == RDMA_PS_IB || is_xrc(type))
		return (struct id_kind){ RDMA_PS_IB, is_xrc(type) ? type : IBV_QPT_RC };
	return (struct id_kind){ RDMA_PS_TCP, IBV_QPT_RC };
}

/* False: hints ask for what does not go together, or what this persona has not. */
static bool is_offered(const struct rdma_addrinfo *hints)
{
	const struct id_kind kind = kind_of(hints);

	return (kind.ps == RDMA_PS_TCP || aw_persona_is_roce()) &&
	       (!hints->ai_port_space || hints->ai_port_space == kind.ps) &&
	       (!hints->ai_qp_type || hints->ai_qp_type == kind.qp_type);
}

/* 0 or EAI_MEMORY. */
static int copy_address(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from,
			socklen_t len)
{
	if (!from || !len)
		return 0;
	*to = malloc(len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static int copy_name(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : EAI_MEMORY;
}

/* One result without addresses yet. */
static struct rdma_addrinfo *make(const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *rai = calloc(1, sizeof(*rai));

	if (!rai)
		return NULL;
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = kind_of(hints).qp_type;
	rai->ai_port_space = kind_of(hints).ps;
	return rai;
}

static int from_addrinfo(const struct addrinfo *ai, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *head = NULL, **tail = &head;

	for (; ai; ai = ai->ai_next) {
		struct rdma_addrinfo *rai = aw_address_len(ai->ai_family) ? make(hints) : NULL;

		if (!rai && aw_address_len(ai->ai_family))
			goto no_memory;
		if (!rai)
			continue;
		*tail = rai;
		tail = &rai->ai_next;
		rai->ai_family = ai->ai_family;
		if (hints->ai_flags & RAI_PASSIVE) {
			if (copy_address(&rai->ai_src_addr, &rai->ai_src_len, ai->ai_addr,
					 ai->ai_addrlen) ||
			    copy_name(&rai->ai_src_canonname, ai->ai_canonname))
				goto no_memory;
		} else if (copy_address(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr,
					ai->ai_addrlen) ||
			   copy_name(&rai->ai_dst_canonname, ai->ai_canonname) ||
			   copy_address(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr,
					hints->ai_src_len)) {
			goto no_memory;
		}
	}
	if (!head)
		return EAI_NONAME;
	*res = head;
	return 0;

no_memory:
	rdma_freeaddrinfo(head);
	return EAI_MEMORY;
}

static int from_names(const char *node, const char *service, const struct rdma_addrinfo *hints,
		      struct rdma_addrinfo **res)
{
	struct addrinfo ask = { .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP }, *answer;

	if (kind_of(hints).ps == RDMA_PS_UDP) {
		ask.ai_socktype = SOCK_DGRAM;
		ask.ai_protocol = IPPROTO_UDP;
	}
	/* As rdma-core's, which looks at the family also without RAI_FAMILY. */
	if (hints->ai_family != AF_IB || hints->ai_flags & RAI_FAMILY)
		ask.ai_family = hints->ai_family;
	if (hints->ai_flags & RAI_PASSIVE)
		ask.ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ask.ai_flags |= AI_NUMERICHOST;
	if (node)
		ask.ai_flags |= AI_CANONNAME;
	int err = getaddrinfo(node, service, &ask, &answer);

	if (err)
		return err;
	err = from_addrinfo(answer, hints, res);
	freeaddrinfo(answer);
	return err;
}

static int from_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai = make(hints);

	if (!rai)
		return EAI_MEMORY;
	if (copy_address(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr,
			 hints->ai_src_len) ||
	    copy_address(&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr,
			 hints->ai_dst_len)) {
		rdma_freeaddrinfo(rai);
		return EAI_MEMORY;
	}
	const struct sockaddr *known = rai->ai_dst_addr ? rai->ai_dst_addr : rai->ai_src_addr;

	if (known)
		rai->ai_family = known->sa_family;
	*res = rai;
	return 0;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	if (!res || (!node && !service && !hints))
		return aw_cm_fail(EINVAL);
	if (!hints)
		hints = &no_hints;
	if (!is_offered(hints)) {
		/* Programs print errno, although the returned number is the result. */
		errno = EPROTONOSUPPORT;
		return EAI_SOCKTYPE;
	}
	if (node || service)
		return from_names(node, service, hints, res);
	return from_hints(hints, res);
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_connect);
		free(res->ai_route);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
		res = next;
	}
}
