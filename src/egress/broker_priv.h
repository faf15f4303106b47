/* broker_priv.h - what the parts of the broker share. */
#ifndef EGRESS_BROKER_PRIV_H
#define EGRESS_BROKER_PRIV_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/limits.h"
#include "egress/broker.h"
#include "base/bucket.h"
#include "egress/dial.h"
#include "egress/egress_event.h"
#include "egress/splice.h"
#include "os/clock.h"
#include "os/clone.h"
#include "wire/http1.h"
#include "wire/tls_hello.h"

#define SILENT_MS      500    /* learning: then it is the server's turn to speak */
#define FIRST_BYTES_MS 10000  /* for a ClientHello or a request */
#define IDLE_MS        600000 /* a connection on which nothing moves */
#define HEAD_BYTES     TLS_HELLO_MAX
#define N_SPARES       4

enum source_kind {
	SOURCE_LISTENER,
	SOURCE_DNS_CLIENT,
	SOURCE_CLIENT,
	SOURCE_SERVER,
	SOURCE_UDP_SERVER,
	SOURCE_DIAL,
	SOURCE_EVENTS
};

/* What an epoll event belongs to. */
struct source {
	enum source_kind kind;
	int fd;
	bool watched;
	bool room_wanted; /* an event is due when the peer takes more */
	enum listener_kind listener;
	void *owner;    /* struct conn, struct dns_client or struct udp_flow */
	bool paused;    /* a listener on which nothing is accepted for now */
	bool looked_at; /* a listener whose address was asked for: */
	bool fixed;     /* it has one of its own, and so have all its connections */
	struct address at;
	uint16_t port;
};

enum conn_state { CONN_FIRST, CONN_WAIT, CONN_DIAL, CONN_RELAY, CONN_OVER };

struct conn {
	struct conn *next, *prev;
	struct source client, server;
	enum conn_state state;
	uint64_t id;
	uint64_t since_us;
	uint64_t moved_ms; /* when something last happened */
	struct slot *slot;
	int rule;
	uint16_t port;
	enum first_bytes first;
	bool unsure;  /* learning: its first bytes are to show what it speaks, */
	bool lingers; /* or they were in order, and more is to be heard; */
	bool heard;   /* and now it was silent for a while */
	struct address asked;
	struct address dialled;
	uint8_t via_proxy;
	char shown[254];
	char *head; /* the skill's bytes that are not passed on yet */
	size_t head_len;
	size_t head_room; /* grows up to HEAD_BYTES, as long as all together may */
	size_t passed;    /* of them: judged, on their way */
	bool client_eof;
	bool spared; /* the next one like it was thought of */
	bool again;  /* there is more to move, or an end to pass on; others come first */
	uint64_t again_round;
	TAILQ_ENTRY(conn) again_link;
	struct http1 http;
	struct http1_status status;
	struct flow up; /* client to server */
	struct flow down;
	uint64_t bytes_out, bytes_in;
};

TAILQ_HEAD(again_list, conn);

struct dns_client; /* a TCP connection to the resolver */

struct udp_flow;
TAILQ_HEAD(udp_list, udp_flow);

#define UDP_BUCKETS 1024

struct udp_flows {
	struct udp_flow *bucket[UDP_BUCKETS]; /* by listener and client */
	struct udp_list live;                 /* asked for or carried; the longest still first */
	struct udp_list muted;                /* denied, and not heard again for a while */
	struct udp_list over;                 /* to be freed when the round is done */
	size_t n_live, n_muted;
};

/* A server that was connected to, and sockets for the next times. */
struct spare {
	struct slot *slot; /* NULL: unused */
	int rule;
	uint16_t port;
	int fd[MAX_SPARES];
	size_t n;
	uint64_t id;       /* of the request for them; 0: not asked */
	uint64_t rest_ms;  /* until then none is asked for */
	unsigned in_vain;  /* so many were fired, one after another, and not answered at once */
	uint64_t used_ms;  /* when the server was last connected to */
	uint64_t until_us; /* how long its address is good */
	struct address address;
};

/* What a flood brings: it is counted, and told once a second. */
enum tally {
	TALLY_TCP, /* connections that had to wait, flows and questions that were dropped */
	TALLY_UDP,
	TALLY_DNS,
	TALLY_FILES,       /* no fd was free */
	TALLY_MALFORMED,   /* questions that are none, */
	TALLY_UNSUPPORTED, /* or of a kind that nobody answers here */
	TALLY_COUNT
};

struct broker {
	struct broker_config *c;
	int epoll;
	struct source *listeners; /* of c->listeners */
	struct bucket starts;     /* of connections and UDP flows */
	struct bucket questions;
	uint64_t tally[TALLY_COUNT]; /* since they were last told */
	bool told[TALLY_COUNT];      /* once at least */
	uint64_t resume_us;          /* when paused listeners are heard again; 0: none is */
	bool starved;                /* some wait for a file descriptor, */
	bool freed;                  /* and some were freed */
	struct conn *conns;
	struct conn *over; /* to be freed when the round is done */
	char *head;        /* for the first bytes of the next one; NULL: none is kept */
	size_t head_room;  /* of it */
	size_t held;       /* bytes of all heads, and of datagrams that wait for the dialler */
	struct udp_flows udp;
	struct spare spares[N_SPARES];
	uint64_t n_conns;             /* UDP flows among them */
	uint64_t n_in[CONN_OVER + 1]; /* connections, by state; the last: since the start */
	uint64_t next_id;
	uint64_t bytes_out, bytes_in; /* of all connections together */
	uint64_t lost_out, lost_in;   /* of them: counted, and not carried (datagrams) */
	uint64_t known;               /* of both directions: what the supervisor knows */
	uint64_t tell_ms;             /* when it may hear of more */
	unsigned n_dns_clients;
	struct again_list again; /* connections that go on in the next round */
	uint64_t round;
	uint64_t finish_ms; /* until then what the skill has said is carried; 0: it runs */
	bool stopping;
};

void broker_report(struct broker *b, const struct egress_event *e);
int broker_watch(struct broker *b, struct source *s);
/* Before a socket of the dialler's is closed: where that has not let go of it yet, it lives
 * on, and so would its events. */
void broker_unwatch(struct broker *b, struct source *s);
/* An end of a connection takes no more: its next event may be that it does. */
void broker_want_room(struct broker *b, struct source *s);
/* Which address and port the skill dialled to reach this socket. */
bool conn_address_dialled(int fd, struct address *ret_address, uint16_t *ret_port);

/* broker_accept.c */
/* The connection that a listener has, CLOEXEC and non-blocking, and counted
 * against the rate; -1: none for now. */
int broker_accept_next(struct broker *b, struct source *listener);
void conn_accept(struct broker *b, struct source *listener);
void broker_accept_resume(struct broker *b); /* where it is time */
int broker_accept_wait_ms(const struct broker *b, int most);
void tally_add(struct broker *b, enum tally what);
void tally_tick(struct broker *b);

/* broker_dns.c */
void broker_dns_datagrams(struct broker *b, int fd);
void broker_dns_accept(struct broker *b, struct source *listener);
void broker_dns_turn(struct broker *b, struct source *s);

/* broker_first.c */
/* Reads into the head; false when there is nothing new, no room, or the connection is gone. */
bool conn_fill_head(struct broker *b, struct conn *c);
void conn_drop_head(struct broker *b, struct conn *c);
/* There is no room, though one connection might have more: all together have too much. */
bool conn_is_short(const struct conn *c);
/* NULL: this request is for the declared name and port. */
const char *conn_http_wrong(struct conn *c);
void conn_first(struct broker *b, struct conn *c); /* reads and judges its first bytes */
/* Learning: it says nothing more. Frees it, or dials. */
void conn_silent(struct broker *b, struct conn *c);

/* broker_conn.c */
void conn_dialled(struct broker *b, const struct dial_reply *r, int fd); /* takes `fd` */
void conn_event(struct broker *b, struct source *s, uint32_t events);
void conn_dial(struct broker *b, struct conn *c); /* its name was shown, or need not be */
void conn_drop(struct broker *b, struct conn *c); /* by a reset, without a word; frees it */
void conn_deny(struct broker *b, struct conn *c, const char *reason,
               const char *kind_of);                                   /* frees it */
void conn_close(struct broker *b, struct conn *c, const char *reason); /* frees it */
/* As on a direct connection: what broke one side breaks the other. Frees it. */
void conn_broken(struct broker *b, struct conn *c);
void conn_tick(struct broker *b, uint64_t now_ms);
/* The skill is gone: true when all that it has said is carried, as far as it has ended its
 * connections; with `quiet`, when nothing is heard of any, the others are closed. */
bool conn_finished(struct broker *b, bool quiet);
void conn_close_all(struct broker *b);
void conn_sweep(struct broker *b); /* frees what is over, goes on where there is more */
/* There is something left to do that others come before; or there is not. */
void conn_again(struct broker *b, struct conn *c);
void conn_not_again(struct broker *b, struct conn *c);

/* broker_relay.c */
void conn_relay(struct broker *b, struct conn *c); /* as much as goes now; may free it */

/* broker_spare.c */
/* The connection is made: if there are many of its kind, asks for spares. */
void spare_ask(struct broker *b, struct conn *c);
/* Takes the fds. */
void spare_arrived(struct broker *b, const struct dial_reply *r, struct msg_fds *fds);
/* Returns a socket that is connected where `c` wants to go, new, or -1. */
int spare_fire(struct broker *b, struct conn *c);
void spare_tick(struct broker *b);

/* broker_udp.c */
void broker_udp_init(struct broker *b);
void broker_udp_datagrams(struct broker *b, int listener);
void broker_udp_turn(struct broker *b, struct udp_flow *f);
/* Takes `fd`. */
void broker_udp_dialled(struct broker *b, const struct dial_reply *r, int fd);
void broker_udp_tick(struct broker *b, uint64_t now_ms);
bool broker_udp_finished(const struct broker *b); /* no datagram waits for the dialler */
void broker_udp_close_all(struct broker *b);
void broker_udp_sweep(struct broker *b);

#endif
