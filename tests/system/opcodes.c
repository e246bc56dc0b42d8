// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two of these, server and client, send each other every kind of message at the same time and
// verify every octet. Exit status: 0, or 1 when something was wrong, or 3 when a connection ended
// early and both its queues were flushed in order.
//
//     opcodes [-a ADDRESS] -p PORT [-o STEPS] [-S SIZE,...] [-C ROUNDS] [-n CONNECTIONS]
//             [-e ENDING]
//
// -a makes it the client. ENDING says who speaks the last words: client or server, with -reads when
// these are a Read, with -violates when that end violates the protocol instead.
#include "exchange.h"
#include "link.h"

#include <arpa/inet.h>
#include <endian.h>
#include <getopt.h>
#include <pthread.h>
#include <string.h>

#define RESOLVE_MS 5000
#define CONNECTIONS_MAX 64
#define SIZES_MAX 64
#define SIZE_MAX_OCTETS (64UL << 20)
#define PROGRAM_SECONDS_MAX 120
#define EXIT_LOST 3
#define READS 4

static struct {
	const char *address; /* of the server; NULL in the server */
	const char *ending;
	const struct step *steps[EXCHANGE_STEPS_MAX];
	size_t sizes[SIZES_MAX];
	int size_count;
	unsigned long rounds;
	int connections;
	uint16_t port;
} options = { .ending = "client", .size_count = 1, .sizes = { 64 }, .rounds = 1, .connections = 1 };

struct connection {
	pthread_t thread;
	struct end end;
	int number;
	bool is_lost;
};

static struct connection connections[CONNECTIONS_MAX];

static bool is_client(void)
{
	return options.address;
}

static bool is_speaker(void)
{
	return strncmp(options.ending, "server", strlen("server")) ? is_client() : !is_client();
}

static size_t size_max(void)
{
	size_t most = 0;

	for (int i = 0; i < options.size_count; i++)
		most = options.sizes[i] > most ? options.sizes[i] : most;
	return most;
}

static bool run_rounds(struct connection *c, struct exchange *x)
{
	for (unsigned long round = 0; round < options.rounds; round++) {
		for (int i = 0; i < options.size_count; i++)
			if (!exchange_round(x, options.sizes[i]))
				return false;
		printf("connection %d round %lu\n", c->number, round);
	}
	return true;
}

static bool say_last(struct exchange *x)
{
	if (strstr(options.ending, "-violates"))
		return exchange_violate(x, is_speaker());
	if (strstr(options.ending, "-reads"))
		return exchange_last_read(x, options.sizes[0], is_speaker());
	return exchange_last_words(x, options.sizes[0], is_speaker());
}

/* Connected: exchanges, ends and closes. The other end's close is the answer to the speaker's. */
static void use(struct connection *c, struct exchange *x)
{
	c->is_lost = !run_rounds(c, x) || !say_last(x);
	end_expect(&c->end, RDMA_CM_EVENT_DISCONNECTED);
	end_drain(&c->end);
	printf("connection %d ended: %s\n", c->number,
	       c->is_lost ? ibv_wc_status_str(c->end.status) : "as it should");
	end_close(&c->end);
}

/* In the order of the network and back, which is the same: the peer may be another machine. */
static struct advert swap_advert(const struct advert *advert)
{
	return (struct advert){ .out = htobe64(advert->out),
				.target = htobe64(advert->target),
				.cell = htobe64(advert->cell),
				.rkey = htonl(advert->rkey),
				.seed = htonl(advert->seed) };
}

/* Takes the peer's advert out of the next event, which must be of this type. */
static struct rdma_cm_id *take_advert(struct rdma_event_channel *events,
				      enum rdma_cm_event_type type, struct advert *advert)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(rdma_get_cm_event(events, &event) == 0);
	if (event->event != type) {
		fprintf(stderr, "no connection: %s, status %d\n", rdma_event_str(event->event),
			event->status);
		exit(1);
	}
	CHECK(event->param.conn.private_data_len >= sizeof(*advert));
	memcpy(advert, event->param.conn.private_data, sizeof(*advert));
	*advert = swap_advert(advert);
	id = type == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
	CHECK(rdma_ack_cm_event(event) == 0);
	return id;
}

static uint32_t seed_of(const struct connection *c)
{
	return (uint32_t)(c->number * 2 + is_client() + 1) * 0x9E3779B9U;
}

static struct rdma_conn_param param_of(const struct advert *sent)
{
	return (struct rdma_conn_param){ .private_data = sent,
					 .private_data_len = sizeof(*sent),
					 .responder_resources = READS,
					 .initiator_depth = READS };
}

static void *run_client(void *argument)
{
	struct connection *c = argument;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(options.port) };
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_conn_param param;
	struct advert sent;
	struct exchange x;
	struct rdma_cm_id *id;

	CHECK(inet_pton(AF_INET, options.address, &to.sin_addr) == 1);
	CHECK(events && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
	c->end.events = events;
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, RESOLVE_MS) == 0);
	end_expect(&c->end, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, RESOLVE_MS) == 0);
	end_expect(&c->end, RDMA_CM_EVENT_ROUTE_RESOLVED);
	end_open(&c->end, events, id, size_max(), seed_of(c));
	exchange_begin(&x, &c->end, options.steps);
	sent = swap_advert(&c->end.mine);
	param = param_of(&sent);
	CHECK(rdma_connect(id, &param) == 0);
	take_advert(events, RDMA_CM_EVENT_ESTABLISHED, &c->end.peer);
	use(c, &x);
	return NULL;
}

/* The id has a channel of its own, its peer's advert is known. */
static void *run_server(void *argument)
{
	struct connection *c = argument;
	struct advert sent = swap_advert(&c->end.mine);
	struct rdma_conn_param param = param_of(&sent);
	struct exchange x;

	exchange_begin(&x, &c->end, options.steps);
	CHECK(rdma_accept(c->end.id, &param) == 0);
	end_expect(&c->end, RDMA_CM_EVENT_ESTABLISHED);
	use(c, &x);
	return NULL;
}

static void serve(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(options.port) };
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_id *listener;

	CHECK(events && rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&at) == 0);
	CHECK(rdma_listen(listener, CONNECTIONS_MAX) == 0);
	for (int i = 0; i < options.connections; i++) {
		struct rdma_event_channel *own = rdma_create_event_channel();
		struct connection *c = &connections[i];
		struct advert peer;
		struct rdma_cm_id *id = take_advert(events, RDMA_CM_EVENT_CONNECT_REQUEST, &peer);

		CHECK(own && rdma_migrate_id(id, own) == 0);
		end_open(&c->end, own, id, size_max(), seed_of(c));
		c->end.peer = peer;
		CHECK(pthread_create(&c->thread, NULL, run_server, c) == 0);
	}
	CHECK(rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(events);
}

static void parse_sizes(char *list)
{
	options.size_count = 0;
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		CHECK(options.size_count < SIZES_MAX);
		options.sizes[options.size_count] = strtoul(word, NULL, 10);
		CHECK(options.sizes[options.size_count++] <= SIZE_MAX_OCTETS);
	}
	CHECK(options.size_count > 0);
}

static void parse(int argc, char **argv)
{
	const char *steps = "write,read,send,send-se";

	for (int letter; (letter = getopt(argc, argv, "a:p:o:S:C:n:e:")) != -1;) {
		CHECK(letter != '?');
		if (letter == 'a')
			options.address = optarg;
		else if (letter == 'p')
			options.port = (uint16_t)strtoul(optarg, NULL, 10);
		else if (letter == 'o')
			steps = optarg;
		else if (letter == 'S')
			parse_sizes(optarg);
		else if (letter == 'C')
			options.rounds = strtoul(optarg, NULL, 10);
		else if (letter == 'n')
			options.connections = atoi(optarg);
		else
			options.ending = optarg;
	}
	CHECK(exchange_parse(steps, options.steps));
	CHECK(options.connections > 0 && options.connections <= CONNECTIONS_MAX);
}

int main(int argc, char **argv)
{
	bool is_lost = false;

	parse(argc, argv);
	give_up_after(PROGRAM_SECONDS_MAX);
	for (int i = 0; i < options.connections; i++)
		connections[i].number = i;
	if (!is_client())
		serve();
	for (int i = 0; is_client() && i < options.connections; i++)
		CHECK(pthread_create(&connections[i].thread, NULL, run_client, &connections[i]) ==
		      0);
	for (int i = 0; i < options.connections; i++) {
		CHECK(pthread_join(connections[i].thread, NULL) == 0);
		is_lost = is_lost || connections[i].is_lost;
	}
	return is_lost ? EXIT_LOST : 0;
}
