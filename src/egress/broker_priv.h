/* broker_priv.h - what the files of the broker share. */
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

#define SILENT_MS      500    /* learning: after this silence the server is expected to speak */
#define FIRST_BYTES_MS 10000  /* limit for a ClientHello or a request */
#define IDLE_MS        600000 /* limit for a connection on which nothing moves */
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

/* What an epoll event is about. */
struct source {
	enum source_kind kind;
	int fd;
	bool watched;
	bool room_wanted; /* EPOLLOUT is wanted */
	enum listener_kind listener;
	void *owner;    /* struct conn, struct dns_client or struct udp_flow */
	bool paused;    /* a listener on which nothing is accepted for now */
	bool looked_at; /* a listener: getsockname() was called */
	bool fixed;     /* a listener: `at` and `port` are those of all its connections */
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
	bool lingers; /* learning: the first bytes passed, and more are collected */
	bool heard;   /* learning: the client was silent for SILENT_MS */
	struct address asked;
	struct address dialled;
	uint8_t via_proxy;
	char shown[254];
	char *head; /* the skill's bytes that were not sent on yet */
	size_t head_len;
	size_t head_room; /* grows up to HEAD_BYTES, within MAX_HELD_BYTES for all connections */
	size_t passed;    /* how many bytes of the head were judged and may be sent */
	bool client_eof;
	bool spared; /* spare_ask() was called for it */
	bool again;  /* is in broker.again: continues in a later round */
	uint64_t again_round;
	TAILQ_ENTRY(conn) again_link;
	struct http1 http;
	struct http1_status status;
	struct flow up;   /* client to server */
	struct flow down; /* server to client */
	uint64_t bytes_out, bytes_in;
};

TAILQ_HEAD(again_list, conn);

struct dns_client; /* a TCP connection to the resolver */

struct udp_flow;
TAILQ_HEAD(udp_list, udp_flow);

#define UDP_BUCKETS 1024

struct udp_flows {
	struct udp_flow *bucket[UDP_BUCKETS]; /* by listener and client */
	struct udp_list live;                 /* dialling or relaying; the longest idle first */
	struct udp_list muted;                /* denied; their datagrams are dropped for MUTED_MS */
	struct udp_list over;                 /* to be freed when the round is done */
	size_t n_live, n_muted;
};

/* A server that was connected to, and sockets for the next connections. */
struct spare {
	struct slot *slot; /* NULL: unused */
	int rule;
	uint16_t port;
	int fd[MAX_SPARES];
	size_t n;
	uint64_t id;       /* serial of the pending request for sockets; 0: none */
	uint64_t rest_ms;  /* clock_ms() before which no sockets are requested */
	unsigned in_vain;  /* how many in a row were fired and not answered at once */
	uint64_t used_ms;  /* clock_ms() of the last connection to the server */
	uint64_t until_us; /* clock_us() until which the sockets may be used */
	struct address address;
};

/* What a flood can cause. It is counted, and reported once a second. */
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
	struct source *listeners;    /* one for each of c->listeners */
	struct bucket starts;        /* rate of new connections and UDP flows */
	struct bucket questions;     /* rate of DNS questions */
	uint64_t tally[TALLY_COUNT]; /* since the last report */
	bool told[TALLY_COUNT];      /* reported at least once */
	uint64_t resume_us; /* clock_us() at which paused listeners resume; 0: none is paused */
	bool starved;       /* a listener waits for a free file descriptor */
	bool freed;         /* a file descriptor was closed since */
	struct conn *conns;
	struct conn *over; /* to be freed when the round is done */
	char *head;        /* a buffer kept for the next connection's first bytes, or NULL */
	size_t head_room;  /* size of `head` */
	size_t held;       /* bytes of all heads and of datagrams that wait for the dialler */
	struct udp_flows udp;
	struct spare spares[N_SPARES];
	uint64_t n_conns;             /* includes UDP flows */
	uint64_t n_in[CONN_OVER + 1]; /* TCP connections in each state; CONN_OVER: all that ended */
	uint64_t next_id;
	uint64_t bytes_out, bytes_in; /* of all connections */
	uint64_t lost_out, lost_in;   /* datagrams that were counted but not carried */
	uint64_t known;               /* bytes of both directions that the supervisor was told of */
	uint64_t tell_ms;             /* clock_ms() from which it may be told again */
	unsigned n_dns_clients;
	struct again_list again; /* connections that continue in the next round */
	uint64_t round;
	uint64_t finish_ms; /* clock_ms() until which the rest is carried; 0: the skill runs */
	bool stopping;
};

void broker_report(struct broker *b, const struct egress_event *e);
int broker_watch(struct broker *b, struct source *s);
/* Must be called before a socket of the dialler's is closed. While the dialler still has its
 * copy, the socket lives on, and so would its events. */
void broker_unwatch(struct broker *b, struct source *s);
/* Call it when a send blocked: the next event of `s` may then be that it takes more. */
void broker_want_room(struct broker *b, struct source *s);
/* The address and port that the skill dialled to reach this socket. */
bool conn_address_dialled(int fd, struct address *ret_address, uint16_t *ret_port);

/* broker_accept.c */
/* Returns the listener's next connection (new, CLOEXEC, non-blocking), counted against the rate;
 * -1 if there is none for now. */
int broker_accept_next(struct broker *b, struct source *listener);
void conn_accept(struct broker *b, struct source *listener);
void broker_accept_resume(struct broker *b); /* resumes paused listeners when it is time */
int broker_accept_wait_ms(const struct broker *b, int most);
void broker_tally_add(struct broker *b, enum broker_tally what);
void broker_tally_tick(struct broker *b);

/* broker_dns.c */
void broker_dns_datagrams(struct broker *b, int fd);
void broker_dns_accept(struct broker *b, struct source *listener);
void broker_dns_turn(struct broker *b, struct source *s);

/* broker_first.c */
/* Reads into the head. Returns false if nothing new came, there is no room, or the connection is
 * gone. */
bool conn_fill_head(struct broker *b, struct conn *c);
void conn_drop_head(struct broker *b, struct conn *c);
/* The head is full but below HEAD_BYTES: all connections together hold too much. */
bool conn_is_short(const struct conn *c);
/* Returns NULL if the current request is for the declared name and port, else the reason code. */
const char *conn_http_wrong(struct conn *c);
void conn_first(struct broker *b, struct conn *c); /* reads and judges its first bytes */
/* In a learning run: the client says nothing more. Dials or frees `c`. */
void conn_silent(struct broker *b, struct conn *c);

/* broker_conn.c */
void conn_dialled(struct broker *b, const struct dial_reply *r, int fd); /* takes `fd` */
void conn_event(struct broker *b, struct source *s, uint32_t events);
void conn_dial(struct broker *b, struct conn *c); /* the name was checked, or need not be */
void conn_drop(struct broker *b, struct conn *c); /* resets without a report; frees `c` */
void conn_deny(struct broker *b, struct conn *c, const char *reason,
               const char *kind_of);                                   /* frees it */
void conn_close(struct broker *b, struct conn *c, const char *reason); /* frees it */
/* Passes a broken side on to the other, as on a direct connection. Frees `c`. */
void conn_broken(struct broker *b, struct conn *c);
void conn_tick(struct broker *b, uint64_t now_ms);
/* Call it when the skill has ended. Returns true when all that the skill has sent is carried, as
 * far as it has ended its connections. With `quiet`, which means that no event came, closes the
 * other connections. */
bool conn_finished(struct broker *b, bool quiet);
void conn_close_all(struct broker *b);
void conn_sweep(struct broker *b); /* frees what is over; continues where there is more */
/* Puts a connection on the list for the next round, or removes it from there. */
void conn_again(struct broker *b, struct conn *c);
void conn_not_again(struct broker *b, struct conn *c);

/* broker_relay.c */
void conn_relay(struct broker *b, struct conn *c); /* moves what can be moved now; may free `c` */

/* broker_spare.c */
/* Call it when a connection is made: asks for spares if there are many of its kind. */
void spare_ask(struct broker *b, struct conn *c);
/* Takes the fds. */
void spare_arrived(struct broker *b, const struct dial_reply *r, struct msg_fds *fds);
/* Returns a new socket that is connected to where `c` wants to go, or -1. */
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
