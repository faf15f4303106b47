/* broker_priv.h - declarations that the source files of the broker share. */
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

#define SILENT_MS      500    /* learning: a client silent for so long waits for the server */
#define FIRST_BYTES_MS 10000  /* limit for a ClientHello or a request */
#define IDLE_MS        600000 /* limit for a connection on which no bytes move */
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

/* The source of an epoll event. */
struct source {
	enum source_kind kind;
	int fd;
	bool watched;
	bool room_wanted; /* also watch for EPOLLOUT */
	enum listener_kind listener;
	void *owner;    /* struct conn, struct dns_client or struct udp_flow */
	bool paused;    /* a listener that accepts no connections for now */
	bool looked_at; /* a listener: `fixed`, `at` and `port` are set */
	bool fixed;     /* a listener: `at` and `port` hold for all its connections */
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
	uint64_t moved_ms; /* clock_ms() of the last progress */
	struct slot *slot;
	int rule;
	uint16_t port;
	enum first_bytes first;
	bool unsure;  /* learning: the protocol is not known yet */
	bool lingers; /* learning: the first bytes were allowed, and more are collected */
	bool heard;   /* learning: the client was silent for SILENT_MS */
	struct address asked;
	struct address dialled;
	uint8_t via_proxy;
	char shown[254];
	char *head; /* bytes of the skill that were not sent on yet */
	size_t head_len;
	size_t head_room; /* grows up to HEAD_BYTES, within MAX_HELD_BYTES for all connections */
	size_t passed;    /* how many bytes of the head are allowed and may be sent */
	bool client_eof;
	bool spared; /* spare_ask() was called for it */
	bool again;  /* is in broker.again, and continues in a later round */
	uint64_t again_round;
	TAILQ_ENTRY(conn) again_link;
	struct http1 http;
	struct http1_status status;
	struct flow up;   /* bytes from client to server */
	struct flow down; /* bytes from server to client */
	uint64_t bytes_out, bytes_in;
};

TAILQ_HEAD(again_list, conn);

struct dns_client; /* a TCP connection to the resolver */

struct udp_flow;
TAILQ_HEAD(udp_list, udp_flow);

#define UDP_BUCKETS 1024

struct udp_flows {
	struct udp_flow *bucket[UDP_BUCKETS]; /* hash table of the flows, by listener and client */
	struct udp_list live;                 /* dialling or relaying; the longest idle first */
	struct udp_list muted; /* denied flows; their datagrams are dropped for MUTED_MS */
	struct udp_list over;  /* freed at the end of the round */
	size_t n_live, n_muted;
};

/* A server to which the skill has connected, and sockets for its next connections. */
struct spare {
	struct slot *slot; /* NULL: unused */
	int rule;
	uint16_t port;
	int fd[MAX_SPARES];
	size_t n;
	uint64_t id;       /* serial of the pending request for sockets; 0: no request is pending */
	uint64_t rest_ms;  /* clock_ms() before which no more sockets are requested */
	unsigned in_vain;  /* how many spares in a row did not connect at once */
	uint64_t used_ms;  /* clock_ms() of the last connection to the server */
	uint64_t until_us; /* clock_us() until which the sockets may be used */
	struct address address;
};

/* Facts that a flood of attempts can cause. They are counted, and reported once a second. */
enum broker_tally {
	TALLY_TCP,         /* connections that had to wait */
	TALLY_UDP,         /* flows that were dropped */
	TALLY_DNS,         /* questions that were dropped */
	TALLY_FILES,       /* accept() found no free file descriptor */
	TALLY_MALFORMED,   /* malformed questions */
	TALLY_UNSUPPORTED, /* questions of a kind that is not answered */
	TALLY_COUNT
};

struct broker {
	struct broker_config *c;
	int epoll;
	struct source *listeners;    /* one source for each of c->listeners */
	struct bucket starts;        /* rate of new connections and UDP flows */
	struct bucket questions;     /* rate of DNS questions */
	uint64_t tally[TALLY_COUNT]; /* since the last report */
	bool told[TALLY_COUNT];      /* reported at least once */
	uint64_t resume_us; /* clock_us() at which paused listeners resume; 0: none is paused */
	bool starved;       /* a listener waits for a free fd */
	bool freed;         /* an fd was closed since `starved` was set */
	struct conn *conns;
	struct conn *over; /* freed at the end of the round */
	char *head;        /* a buffer kept for the next connection's first bytes, or NULL */
	size_t head_room;  /* size of `head` */
	size_t held;       /* bytes of all heads, and of all datagrams that wait for the dialler */
	struct udp_flows udp;
	struct spare spares[N_SPARES];
	uint64_t n_conns;             /* includes UDP flows */
	uint64_t n_in[CONN_OVER + 1]; /* TCP connections in each state; CONN_OVER: all that ended */
	uint64_t next_id;
	uint64_t bytes_out, bytes_in; /* bytes carried on all connections */
	uint64_t lost_out, lost_in;   /* datagrams that were counted but not carried */
	uint64_t known;   /* bytes of both directions that were reported to the supervisor */
	uint64_t tell_ms; /* clock_ms() before which bytes are not reported again */
	unsigned n_dns_clients;
	struct again_list again; /* connections that continue in the next round */
	uint64_t round;
	uint64_t finish_ms; /* clock_ms() until which the remaining bytes are sent; 0: the skill is
	                       running */
	bool stopping;
};

void broker_report(struct broker *b, const struct egress_event *e);
int broker_watch(struct broker *b, struct source *s);
/* Must be called before a socket that came from the dialler is closed. Otherwise events for the
 * socket would still arrive while the dialler has its copy, which keeps the socket open. */
void broker_unwatch(struct broker *b, struct source *s);
/* Must be called when a send to `s` has blocked. From then on, events of `s` also say that it can
 * take more. */
void broker_want_room(struct broker *b, struct source *s);
/* Gets the address and port that the skill dialled to reach this socket. Returns false if that
 * fails. */
bool conn_address_dialled(int fd, struct address *ret_address, uint16_t *ret_port);

/* broker_accept.c */
/* Accepts the listener's next connection and counts it against the rate. Returns a new fd (CLOEXEC,
 * non-blocking), or -1 if there is none for now. */
int broker_accept_next(struct broker *b, struct source *listener);
void conn_accept(struct broker *b, struct source *listener);
void broker_accept_resume(struct broker *b); /* resumes paused listeners when resume_us has come */
int broker_accept_wait_ms(const struct broker *b, int most);
void broker_tally_add(struct broker *b, enum broker_tally what);
void broker_tally_tick(struct broker *b);

/* broker_dns.c */
void broker_dns_datagrams(struct broker *b, int fd);
void broker_dns_accept(struct broker *b, struct source *listener);
void broker_dns_turn(struct broker *b, struct source *s);

/* broker_first.c */
/* Reads into the head. Returns false if nothing new arrived, there is no room, or the connection
 * was ended. */
bool conn_fill_head(struct broker *b, struct conn *c);
void conn_drop_head(struct broker *b, struct conn *c);
/* Returns whether the head is full although it has fewer than HEAD_BYTES, because the heads of all
 * connections together are too large. */
bool conn_is_short(const struct conn *c);
/* Returns the reason for `why`; REASON_UNKNOWN if `why` is not in enum http1_deny. */
enum reason broker_http_reason(enum http1_deny why);
/* Returns REASON_NONE if the current request is for the declared name and port. */
enum reason conn_http_wrong(struct conn *c);
void conn_first(struct broker *b, struct conn *c); /* reads and judges the first bytes of `c` */
/* For a learning run: the client sends nothing more for now. Dials or frees `c`. */
void conn_silent(struct broker *b, struct conn *c);

/* broker_conn.c */
void conn_dialled(struct broker *b, const struct dial_reply *r, int fd); /* takes `fd` */
void conn_event(struct broker *b, struct source *s, uint32_t events);
void conn_dial(
        struct broker *b,
        struct conn *c); /* must be called only after every check of the name that the rule needs */
void conn_drop(struct broker *b,
               struct conn *c); /* resets the connection without a report; frees `c` */
void conn_deny(struct broker *b, struct conn *c, enum reason reason,
               const char *kind_of);                                   /* frees it */
void conn_close(struct broker *b, struct conn *c, enum reason reason); /* frees it */
/* Resets the connection because one side is broken, as on a direct connection. Frees `c`. */
void conn_broken(struct broker *b, struct conn *c);
void conn_tick(struct broker *b, uint64_t now_ms);
/* Must be called when the skill has ended. Returns true when all bytes are carried that the skill
 * has sent on connections that it has ended. `quiet` means that no event has arrived; the other
 * connections are then closed. */
bool conn_finished(struct broker *b, bool quiet);
void conn_close_all(struct broker *b);
void conn_sweep(
        struct broker *b); /* frees ended connections, and continues those in broker.again */
/* conn_again() puts a connection on the list for the next round; conn_not_again() removes it from
 * this list. */
void conn_again(struct broker *b, struct conn *c);
void conn_not_again(struct broker *b, struct conn *c);

/* broker_relay.c */
void conn_relay(struct broker *b,
                struct conn *c); /* moves all bytes that can be moved now; may free `c` */

/* broker_spare.c */
/* Must be called when a connection is made. Requests spares if the skill connects to the same
 * server often. */
void spare_ask(struct broker *b, struct conn *c);
/* Stores the spares that the dialler sent. Takes the fds. */
void spare_arrived(struct broker *b, const struct dial_reply *r, struct msg_fds *fds);
/* Returns a new socket that is connected to the server that `c` wants, or -1 if there is none. */
int spare_fire(struct broker *b, struct conn *c);
void spare_tick(struct broker *b);

/* broker_udp.c */
void broker_udp_init(struct broker *b);
void broker_udp_datagrams(struct broker *b, int listener);
void broker_udp_turn(struct broker *b, struct udp_flow *f);
/* Handles the dialler's reply for a flow. Takes `fd`. */
void broker_udp_dialled(struct broker *b, const struct dial_reply *r, int fd);
void broker_udp_tick(struct broker *b, uint64_t now_ms);
bool broker_udp_finished(
        const struct broker *b); /* returns whether no datagram waits for the dialler */
void broker_udp_close_all(struct broker *b);
void broker_udp_sweep(struct broker *b);

#endif
