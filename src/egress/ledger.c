/* ledger.c - turns the broker's reports into events, totals and counted facts. */
#include "egress/ledger.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/fnv.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"
#include "os/clock.h"

#define BUCKETS 256

enum ledger_state { STATE_NONE, STATE_OPEN, STATE_CLOSED };

/* An open connection, or a fact with its count. */
struct entry {
	LIST_ENTRY(entry) list;
	struct egress_event event;
	uint64_t since_us;
	uint64_t count;
	char first[TRACE_TIMESTAMP];
	char last[TRACE_TIMESTAMP];
};

LIST_HEAD(entries, entry);

/* A destination, and the totals of its connections. */
struct total {
	LIST_ENTRY(total) list;
	struct egress_event where; /* make_destination() */
	uint64_t connections;
	uint64_t lost; /* connections whose end was not reported */
	uint64_t bytes_out, bytes_in;
};

LIST_HEAD(totals, total);

struct ledger {
	const struct ssb_plan *plan;
	struct entries open[BUCKETS];
	uint64_t n_open;
	struct entries facts[BUCKETS];
	size_t n_facts[EGRESS_KINDS];
	struct totals totals[BUCKETS];
	size_t n_totals;
	struct total others; /* all destinations beyond LEDGER_TOTALS; `where` is not used */
	uint64_t beyond[EGRESS_KINDS][2]; /* facts beyond LEDGER_FACTS; [1]: violations */
	uint64_t opened, blocked, lost;
	uint64_t bytes_out, bytes_in; /* bytes of the connections that have ended */
	uint64_t moved_out, moved_in; /* bytes of all connections, as last reported by the broker;
	                                 0: not metered */
};

static const struct {
	enum event_kind kind;
	bool violation;
	bool counted; /* a fact that may repeat: its repeats are only counted */
} AS[EGRESS_KINDS] = {
	[EGRESS_RESOLVED] = { EV_DNS_RESOLUTION, false, true },
	[EGRESS_UNKNOWN] = { EV_NETWORK_EGRESS_BLOCKED, true, true },
	[EGRESS_MALFORMED] = { EV_DNS_RESOLUTION, true, true },
	[EGRESS_OPENED] = { EV_NETWORK_EGRESS_ALLOWED, false, false },
	[EGRESS_CARRIED] = { EV_NETWORK_EGRESS_ALLOWED, false, false },
	[EGRESS_DENIED] = { EV_NETWORK_EGRESS_BLOCKED, true, true },
	[EGRESS_LIMITED] = { EV_RESOURCE_LIMIT_HIT, false, true },
	[EGRESS_MOVED] = { EV_NETWORK_EGRESS_ALLOWED, false, false }, /* never written */
};

/* ---- one event ------------------------------------------------------------ */

struct event_data {
	const struct egress_event *e;
	const struct ssb_plan *plan;
	const struct entry *entry; /* the count of a fact, at the end of the run */
	enum ledger_state state;
	bool lost; /* the broker died, so the number of bytes is not known */
};

static void put_address(struct json *j, const char *key, const struct address *a)
{
	static const struct address none;
	char text[48];

	if (memcmp(a, &none, sizeof(none)) != 0) {
		address_format(a, text);
		json_kstr(j, key, text);
	}
}

static void put_text(struct json *j, const char *key, const char *text)
{
	if (text[0] != '\0') {
		json_kstr(j, key, text);
	}
}

static void put_connection(struct json *j, const struct event_data *d)
{
	const struct egress_event *e = d->e;

	put_text(j, "shown", e->shown);
	put_text(j, "range", e->kind_of);
	put_address(j, "address_asked", &e->asked);
	put_address(j, e->kind_of[0] != '\0' ? "address_refused" : "address_dialled", &e->dialled);
	if (e->via_proxy != 0) {
		json_kstr(j, "via", "proxy");
	}
	if (d->state != STATE_OPEN && !d->lost) {
		json_kuint(j, "bytes_out", e->bytes_out);
		json_kuint(j, "bytes_in", e->bytes_in);
	}
	json_kuint(j, "duration_us", e->micros);
}

static void put_rule(struct json *j, const struct ssb_plan *plan, int rule)
{
	if (rule >= 0 && (size_t)rule < plan->n_egress) {
		json_kstr(j, "rule", plan->egress[rule].domain.s);
		json_kuint(j, "rule_line", plan->egress[rule].domain.line);
	}
}

/* Names the limit of the plan that was reached, if it is one. */
static void put_limit(struct json *j, const struct egress_event *e, const struct net_limits *net)
{
	const char *limit = NULL;
	uint64_t value = 0;

	if (e->reason == REASON_TOO_MANY_CONNECTIONS) {
		limit = "max_connections";
		value = net->max_connections;
	} else if (e->reason == REASON_BYTE_LIMIT) {
		limit = e->inward != 0 ? "max_bytes_in" : "max_bytes_out";
		value = e->inward != 0 ? net->max_bytes_in : net->max_bytes_out;
	} else if (e->reason == REASON_RATE_LIMIT && e->protocol == PROTOCOL_TCP) {
		limit = "max_connections_per_second";
		value = net->max_connections_per_second;
	}
	if (limit != NULL) {
		json_kstr(j, "limit", limit);
		json_kuint(j, "value", value);
	}
}

static void put_data(struct json *j, void *arg)
{
	const struct event_data *d = arg;
	const struct egress_event *e = d->e;

	if (d->state != STATE_NONE) {
		json_kstr(j, "state", d->state == STATE_OPEN ? "open" : "closed");
		json_kuint(j, "connection", e->connection);
	} else if (e->kind == EGRESS_MALFORMED) {
		json_kstr(j, "state", "blocked");
	}
	put_rule(j, d->plan, e->rule);
	if (e->kind == EGRESS_RESOLVED || e->kind == EGRESS_UNKNOWN) {
		json_kuint(j, "qtype", e->qtype);
		put_address(j, "address_asked", &e->asked);
	} else if (e->kind != EGRESS_LIMITED && e->kind != EGRESS_MALFORMED) {
		put_connection(j, d);
	}
	put_limit(j, e, &d->plan->net);
	if (d->entry != NULL) {
		json_kuint(j, "count", d->entry->count);
		json_kstr(j, "first", d->entry->first);
		json_kstr(j, "last", d->entry->last);
	}
}

static bool is_violation(const struct egress_event *e)
{
	return AS[e->kind].violation && !reason_is_misfortune(e->reason);
}

static bool is_question(const struct egress_event *e)
{
	return e->kind == EGRESS_RESOLVED || e->kind == EGRESS_UNKNOWN ||
	       e->kind == EGRESS_MALFORMED;
}

/* An event and the texts to which it points. */
struct event_draft {
	struct event out;
	char text[640], remedy[300], address[ADDRESS_TEXT];
};

/* Writes the flag that would grant the requested name, in a form that a rule accepts. Returns NULL
 * if no rule can contain this name. */
static const char *draft_remedy(const char *name, char *out, size_t size)
{
	auto_free char *host = NULL;
	enum host_kind kind;

	if (domain_check(name, &host, &kind) != NULL || kind != HOST_EXACT) {
		return NULL;
	}
	(void)snprintf(out, size, "--net %s", host);
	return out;
}

static const char *show_protocol(const struct egress_event *e)
{
	const char *name = event_protocol_name(e->protocol);

	return name != NULL ? name : "";
}

static void draft_event(const struct event_data *d, struct event_draft *to)
{
	static const char *const STATES[] = { "", " open", " closed" };
	const struct egress_event *e = d->e;
	const char *code = e->reason != REASON_NONE ? reason_code(e->reason) : "";
	int n = e->kind == EGRESS_LIMITED
	                ? snprintf(to->text, sizeof(to->text), "%s %s", show_protocol(e), code)
	                : snprintf(to->text, sizeof(to->text), "%s %s:%u%s %s", show_protocol(e),
	                           e->name, e->port, STATES[d->state], code);

	if (d->entry != NULL && n > 0 && (size_t)n < sizeof(to->text)) {
		snprintf(to->text + n, sizeof(to->text) - (size_t)n, ", %llu times",
		         (unsigned long long)d->entry->count);
	}
	to->out = (struct event){
		.kind = AS[e->kind].kind,
		.violation = is_violation(e),
		.times = d->entry != NULL ? d->entry->count - 1 : 1,
		.tallied = d->entry != NULL,
		.message = { to->text, strlen(to->text) },
		.op = is_question(e) ? OP_RESOLVE : OP_CONNECT,
		.protocol = e->protocol,
		.reason = e->reason,
		.more = put_data,
		.more_arg = (void *)(uintptr_t)d,
	};
	if (e->kind != EGRESS_LIMITED) {
		to->out.name = e->name;
		to->out.port = e->port;
	}
	if (e->kind == EGRESS_UNKNOWN) {
		to->out.remedy = draft_remedy(e->name, to->remedy, sizeof(to->remedy));
	}
	if (e->kind_of[0] != '\0') {
		address_format(&e->dialled, to->address);
		to->out.address = to->address;
	}
}

static void write_event(const struct event_data *d, struct trace *trace)
{
	struct event_draft draft;

	draft_event(d, &draft);
	trace_add(trace, &draft.out);
}

/* Reports a repeat to the tally (trace_again()) at once. The record itself gets the number of
 * repeats only at the end of the run. */
static void tell_again(const struct ledger *l, const struct egress_event *e, uint64_t times,
                       struct trace *trace)
{
	struct event_data d = { .e = e, .plan = l->plan };
	struct event_draft draft;

	if (times > 0 && trace_counts(trace)) {
		draft_event(&d, &draft);
		draft.out.times = times;
		trace_again(trace, &draft.out);
	}
}

/* ---- destinations --------------------------------------------------------- */

static size_t find_bucket(const struct egress_event *id)
{
	return fnv_hash(0, id, sizeof(*id)) % BUCKETS;
}

static struct egress_event make_destination(const struct egress_event *e)
{
	struct egress_event id;

	memset(&id, 0, sizeof(id)); /* memcmp() compares every byte */
	id.rule = e->rule;
	id.port = e->port;
	id.dialled = e->dialled;
	id.via_proxy = e->via_proxy;
	id.protocol = e->protocol;
	(void)snprintf(id.name, sizeof(id.name), "%s", e->name);
	return id;
}

/* Returns the total of a destination, never NULL. If there is no entry left for it, returns the
 * total for all others. */
static struct total *find_total(struct ledger *l, const struct egress_event *e)
{
	struct egress_event id = make_destination(e);
	struct totals *bucket = &l->totals[find_bucket(&id)];
	struct total *t = LIST_FIRST(bucket);

	while (t != NULL && memcmp(&t->where, &id, sizeof(id)) != 0) {
		t = LIST_NEXT(t, list);
	}
	if (t != NULL) {
		return t;
	}
	t = l->n_totals < LEDGER_TOTALS ? calloc(1, sizeof(*t)) : NULL;
	if (t == NULL) {
		return &l->others;
	}
	t->where = id;
	LIST_INSERT_HEAD(bucket, t, list);
	l->n_totals++;
	return t;
}

struct total_data {
	const struct ssb_plan *plan;
	const struct total *total;
};

static void put_total(struct json *j, void *arg)
{
	const struct total_data *d = arg;
	const struct total *t = d->total;

	put_rule(j, d->plan, t->where.rule);
	put_address(j, "address_dialled", &t->where.dialled);
	if (t->where.via_proxy != 0) {
		json_kstr(j, "via", "proxy");
	}
	json_kuint(j, "connections", t->connections);
	json_kuint(j, "bytes_out", t->bytes_out);
	json_kuint(j, "bytes_in", t->bytes_in);
	if (t->lost > 0) {
		json_kuint(j, "lost", t->lost); /* bytes_* are lower bounds */
	}
}

static void write_total(const struct ledger *l, const struct total *t, struct trace *trace)
{
	struct total_data d = { .plan = l->plan, .total = t };
	bool listed = t != &l->others;
	char text[400] = "other destinations, in total";

	if (listed) {
		snprintf(text, sizeof(text), "%s %s:%u, in total", show_protocol(&t->where),
		         t->where.name, t->where.port);
	}
	trace_add(trace, &(struct event){ .kind = EV_NETWORK_EGRESS_TOTAL,
	                                  .message = { text, strlen(text) },
	                                  .name = listed ? t->where.name : NULL,
	                                  .port = t->where.port,
	                                  .protocol = t->where.protocol,
	                                  .reason = listed ? REASON_NONE : REASON_NOT_LISTED,
	                                  .more = put_total,
	                                  .more_arg = &d });
}

static void close_totals(struct ledger *l, struct trace *trace)
{
	struct total *t;

	for (size_t i = 0; i < BUCKETS; i++) {
		while ((t = LIST_FIRST(&l->totals[i])) != NULL) {
			write_total(l, t, trace);
			LIST_REMOVE(t, list);
			free(t);
		}
	}
	if (l->others.connections > 0 || l->others.bytes_out > 0 || l->others.bytes_in > 0) {
		write_total(l, &l->others, trace);
	}
}

/* ---- connections ---------------------------------------------------------- */

static struct entry *find_open(struct ledger *l, uint64_t connection)
{
	struct entry *o = LIST_FIRST(&l->open[connection % BUCKETS]);

	while (o != NULL && o->event.connection != connection) {
		o = LIST_NEXT(o, list);
	}
	return o;
}

static void forget_open(struct ledger *l, struct entry *o)
{
	LIST_REMOVE(o, list);
	free(o);
	l->n_open--;
}

static void take_opened(struct ledger *l, const struct egress_event *e, struct trace *trace)
{
	struct event_data d = { .e = e, .plan = l->plan, .state = STATE_OPEN };

	l->opened++;
	find_total(l, e)->connections++;
	write_event(&d, trace);
	/* A broker that obeys max_connections never has more open connections than
	 * MAX_CONNECTIONS_CAP. */
	if (l->n_open >= MAX_CONNECTIONS_CAP || find_open(l, e->connection) != NULL) {
		return;
	}
	struct entry *o = calloc(1, sizeof(*o));
	if (o != NULL) {
		o->event = *e;
		o->since_us = clock_us();
		LIST_INSERT_HEAD(&l->open[e->connection % BUCKETS], o, list);
		l->n_open++;
	}
}

static void take_closed(struct ledger *l, const struct egress_event *e, struct trace *trace)
{
	struct event_data d = { .e = e, .plan = l->plan, .state = STATE_CLOSED };
	struct entry *o = find_open(l, e->connection);
	struct total *t = find_total(l, o != NULL ? &o->event : e);

	t->bytes_out += e->bytes_out;
	t->bytes_in += e->bytes_in;
	l->bytes_out += e->bytes_out;
	l->bytes_in += e->bytes_in;
	write_event(&d, trace);
	if (o != NULL) {
		forget_open(l, o);
	}
}

static void close_lost(struct ledger *l, struct trace *trace)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct entry *o;
		while ((o = LIST_FIRST(&l->open[i])) != NULL) {
			struct event_data d = {
				.e = &o->event, .plan = l->plan, .state = STATE_CLOSED, .lost = true
			};
			o->event.kind = EGRESS_CARRIED;
			o->event.micros += clock_us() - o->since_us;
			o->event.reason = REASON_BROKER_LOST;
			write_event(&d, trace);
			find_total(l, &o->event)->lost++;
			forget_open(l, o);
			l->lost++;
		}
	}
}

/* ---- facts ---------------------------------------------------------------- */

/* Returns the members in which two equal facts agree: everything except time and amounts. Strings
 * are copied only up to their end, because the bytes after it do not count. */
static struct egress_event make_identity(const struct egress_event *e)
{
	struct egress_event id;

	memset(&id, 0, sizeof(id)); /* memcmp() compares every byte */
	id.kind = e->kind;
	id.rule = e->rule;
	id.port = e->port;
	id.qtype = e->qtype;
	id.asked = e->asked;
	id.dialled = e->dialled;
	id.via_proxy = e->via_proxy;
	id.protocol = e->protocol;
	id.reason = e->reason;
	(void)snprintf(id.name, sizeof(id.name), "%s", e->name);
	(void)snprintf(id.shown, sizeof(id.shown), "%s", e->shown);
	(void)snprintf(id.kind_of, sizeof(id.kind_of), "%s", e->kind_of);
	return id;
}

/* Counts a fact that was seen before. Returns false if the fact is new. */
static bool count_again(struct entries *bucket, const struct egress_event *id, uint64_t times)
{
	struct entry *f = LIST_FIRST(bucket);

	while (f != NULL && memcmp(&f->event, id, sizeof(*id)) != 0) {
		f = LIST_NEXT(f, list);
	}
	if (f != NULL) {
		f->count += times;
		trace_timestamp(f->last);
	}
	return f != NULL;
}

static void take_fact(struct ledger *l, const struct egress_event *e, struct trace *trace)
{
	struct egress_event id = make_identity(e);
	struct entries *bucket = &l->facts[find_bucket(&id)];
	uint64_t times = e->count > 0 ? e->count : 1;

	if (count_again(bucket, &id, times)) {
		tell_again(l, e, times, trace);
		return;
	}
	struct entry *f = l->n_facts[e->kind] < LEDGER_FACTS ? calloc(1, sizeof(*f)) : NULL;
	if (f == NULL) {
		l->beyond[e->kind][is_violation(e)] += times;
		tell_again(l, e, times, trace);
		return;
	}
	struct event_data d = { .e = e, .plan = l->plan };
	l->n_facts[e->kind]++;
	f->event = id;
	f->count = times;
	trace_timestamp(f->first);
	memcpy(f->last, f->first, sizeof(f->last));
	LIST_INSERT_HEAD(bucket, f, list);
	write_event(&d, trace);
	tell_again(l, e, times - 1, trace);
}

static void close_facts(struct ledger *l, struct trace *trace)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct entry *f;
		while ((f = LIST_FIRST(&l->facts[i])) != NULL) {
			struct event_data d = { .e = &f->event, .plan = l->plan, .entry = f };
			if (f->count > 1) {
				write_event(&d, trace);
			}
			LIST_REMOVE(f, list);
			free(f);
		}
	}
	memset(l->n_facts, 0, sizeof(l->n_facts));
}

static void close_beyond(struct ledger *l, struct trace *trace)
{
	for (size_t i = 0; i < ARRAY_LEN(l->beyond) * 2; i++) {
		uint64_t *n = &l->beyond[i / 2][i % 2];
		if (*n > 0) {
			trace_not_listed(trace, AS[i / 2].kind, i % 2 == 1, *n, true);
			*n = 0;
		}
	}
}

/* ---- the whole ------------------------------------------------------------ */

struct ledger *ledger_new(const struct ssb_plan *plan)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (l != NULL) {
		l->plan = plan;
		l->others.where.rule = -1; /* this total belongs to several rules */
	}
	return l;
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void ledger_bytes(const struct ledger *l, uint64_t *ret_out, uint64_t *ret_in)
{
	*ret_out = larger_of(l->bytes_out, l->moved_out);
	*ret_in = larger_of(l->bytes_in, l->moved_in);
}

void ledger_take(struct ledger *l, const struct egress_event *e, struct trace *trace)
{
	assert(l != NULL && trace != NULL);
	if ((unsigned)e->kind >= EGRESS_KINDS) {
		return; /* the broker misbehaves */
	}
	if (e->kind == EGRESS_MOVED) {
		l->moved_out = larger_of(l->moved_out, e->bytes_out);
		l->moved_in = larger_of(l->moved_in, e->bytes_in);
		return;
	}
	if (AS[e->kind].kind == EV_NETWORK_EGRESS_BLOCKED || e->kind == EGRESS_MALFORMED) {
		l->blocked += e->count > 0 ? e->count : 1;
	}
	if (e->kind == EGRESS_OPENED) {
		take_opened(l, e, trace);
	} else if (!AS[e->kind].counted || e->connection != 0) {
		take_closed(l, e, trace);
	} else {
		take_fact(l, e, trace);
	}
}

static void put_totals(struct json *j, void *arg)
{
	const struct ledger *l = arg;
	uint64_t out, in;

	/* Includes the known bytes of lost connections. */
	ledger_bytes(l, &out, &in);
	json_kuint(j, "connections", l->opened);
	json_kuint(j, "blocked", l->blocked);
	json_kuint(j, "bytes_out", out);
	json_kuint(j, "bytes_in", in);
	if (l->lost > 0) {
		json_kuint(j, "lost", l->lost); /* bytes_* are lower bounds */
	}
}

void ledger_close(struct ledger *l, struct trace *trace)
{
	close_lost(l, trace);
	close_facts(l, trace);
	close_beyond(l, trace);
	close_totals(l, trace);
	/* These numbers include the events for which the trace had no room. */
	trace_record(trace, EV_NETWORK_POLICY_REMOVED, false, "egress ended", put_totals, l);
}

void ledger_free(struct ledger *l)
{
	struct entry *e;
	struct total *t;

	for (size_t i = 0; l != NULL && i < BUCKETS; i++) {
		while ((e = LIST_FIRST(&l->open[i])) != NULL ||
		       (e = LIST_FIRST(&l->facts[i])) != NULL) {
			LIST_REMOVE(e, list);
			free(e);
		}
		while ((t = LIST_FIRST(&l->totals[i])) != NULL) {
			LIST_REMOVE(t, list);
			free(t);
		}
	}
	free(l);
}
