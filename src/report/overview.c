/* overview.c - summarises a record. */
#include "report/overview.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/limit_text.h"
#include "trace/classes.h"
#include "trace/layers.h"
#include "trace/reader.h"
#include "base/error.h"
#include "base/fnv.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/visible.h"
#include "policy/path.h"

#define MAX_ITEMS                                                                                  \
	((size_t)MAX_VIEW_DENIED + (CLASS_COUNT + 1) * MAX_VIEW_CLASS +                            \
	 (GROUP_COUNT + 1) * MAX_VIEW_GROUP)
#define TABLE_SIZE  ((size_t)1 << 16)
#define TEXT_BYTES  ((size_t)4096)
#define WHOLE_BYTES ((size_t)1 << 20) /* most bytes of a whole text after escaping */
#define MAX_CLASSES 64

/* The NUL at the end of `a` is hashed, too, and separates the two texts. */
static uint64_t hash_text(enum render_group group, const char *a, const char *b)
{
	return fnv_hash(fnv_hash((uint64_t)group, a, strlen(a) + 1), b, strlen(b));
}

/* Returns a member as a new escaped text, or NULL if there is no memory. */
static char *copy_text(const struct line *l, const char *name)
{
	auto_buf out = BUF(TEXT_BYTES);

	render_text(&out, line_get(l, name), "");
	return out.failed ? strdup("...") : buf_steal(&out);
}

static char *copy_kind(const struct line *l)
{
	auto_buf out = BUF(TEXT_BYTES);

	visible_text(&out, l->kind_name, false);
	return out.failed ? strdup("...") : buf_steal(&out);
}

/* Returns the reason with the value of the limit, or "" if no limit belongs to the line. */
static char *copy_because(const struct line *l, enum denial_kind denial)
{
	const char *words = reason_text(line_get_reason(l));
	auto_buf out = BUF(TEXT_BYTES);

	buf_adds(&out, "");
	if (denial == DENIAL_LIMIT) {
		buf_adds(&out, "a limit of the run was reached");
	} else if (words != NULL && limit_text_known(l)) {
		buf_addf(&out, "%s (the limit is ", words);
		limit_text_value(&out, l);
		buf_addc(&out, ')');
	}
	return buf_steal(&out);
}

static char *copy_remedy(const struct line *l, bool bare, enum remedy_grant *ret_grants)
{
	auto_buf out = BUF(4 * TEXT_BYTES);

	*ret_grants = remedy_text(&out, l, bare);
	return out.failed ? strdup("") : buf_steal(&out);
}

static char *copy_rule(const struct line *l)
{
	auto_buf out = BUF(TEXT_BYTES);
	int64_t at = json_integer(line_get(l, "rule_line"), 0);

	render_text(&out, line_get(l, "rule"), "");
	if (at > 0) {
		buf_addf(&out, " (line %" PRId64 " of the manifest)", at);
	}
	return out.failed ? strdup("...") : buf_steal(&out);
}

/* Writes the key of a line: lines with the same key are one item. For a read or a look-up that
 * found nothing, the key is the directory of the path. Otherwise it is the whole text. */
static void put_key(struct buf *out, const struct line *l, enum render_group group)
{
	const struct json_node *path = line_get(l, "path");

	if ((group == GROUP_READ || group == GROUP_ABSENT) && json_is(path, JSON_STRING)) {
		const char *slash = memrchr(path->str, '/', path->len);
		size_t n = slash != NULL ? (size_t)(slash - path->str) : path->len;
		visible_bytes(out, path->str, n > 0 ? n : path->len, false);
	} else if (group == GROUP_OUTPUT) {
		buf_addf(out, "%s: ", l->kind_name);
		render_what(out, l);
	} else {
		render_what(out, l);
	}
}

static struct overview_item *find_slot(struct overview *v, uint64_t hash, const char *text,
                                       size_t *ret_at)
{
	size_t at = (size_t)hash & (TABLE_SIZE - 1);

	for (; v->table[at] != 0; at = (at + 1) & (TABLE_SIZE - 1)) {
		struct overview_item *i = &v->items[v->table[at] - 1];
		if (i->hash == hash && strcmp(i->text, text) == 0) {
			return i;
		}
	}
	*ret_at = at;
	return NULL;
}

static void item_done(struct overview_item *i)
{
	free(i->text);
	free(i->kind);
	free(i->program);
	free(i->path);
	free(i->host);
	free(i->reason);
	free(i->because);
	free(i->rule);
	free(i->error);
	free(i->remedy);
	free(i->value);
	free(i->first);
}

bool overview_is_settings(const char *home, const char *path)
{
	static const char *const PLACES[] = { "/etc", "/sys", "/dev", "/run" };
	const char *in_home = home[0] != '\0' ? path_beneath(path, home) : NULL;
	bool found = in_home != NULL && in_home[0] == '.';

	for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
		found = found || path_beneath(path, PLACES[i]) != NULL;
	}
	return found;
}

enum denial_kind overview_judge(const struct line *l, const char *home)
{
	enum render_group group = render_group(l);
	enum reason reason = line_get_reason(l);
	const char *path = line_text(l, "path");
	bool hidden = reason == REASON_NOT_GRANTED && path != NULL;
	bool matters = reason == REASON_PROTECTED || reason == REASON_HOST_LOOPBACK ||
	               reason == REASON_GRANTED_ALONE ||
	               (hidden && !overview_is_settings(home, path));

	if (group == GROUP_LIMITS) {
		return limit_text_known(l) ? DENIAL_LIMIT : DENIAL_NOT;
	}
	return group == GROUP_DENIED    ? DENIAL_VIOLATION
	       : group == GROUP_FAILED  ? DENIAL_PLAIN
	       : group != GROUP_REFUSED ? DENIAL_NOT
	       : matters                ? DENIAL_PLAIN
	                                : DENIAL_EVERYDAY;
}

static bool fill_denied(struct overview_item *i, const struct line *l, bool bare)
{
	enum event_status status = line_get_status(l);

	i->kind = copy_kind(l);
	i->program = copy_text(l, "program");
	i->path = copy_text(l, "path");
	i->host = copy_text(l, line_text(l, "name") != NULL ? "name" : "address");
	i->reason = copy_text(l, i->denial == DENIAL_LIMIT ? "limit" : "reason");
	i->because = copy_because(l, i->denial);
	i->why = line_get_reason(l);
	i->rule = copy_rule(l);
	i->error = copy_text(l, "error");
	i->remedy = copy_remedy(l, bare, &i->grants);
	i->value = remedy_value(l, &i->option);
	i->first = copy_text(l, "time");
	i->let_through =
	        i->group == GROUP_DENIED && status != STATUS_NONE && status != STATUS_DENIED;
	return i->kind != NULL && i->program != NULL && i->path != NULL && i->host != NULL &&
	       i->reason != NULL && i->rule != NULL && i->because != NULL && i->error != NULL &&
	       i->remedy != NULL && i->first != NULL;
}

/* Cuts the text to at most TEXT_BYTES, at the end of a character. */
static void cut_text(struct buf *text)
{
	size_t n = TEXT_BYTES - sizeof("...");

	if (text->len <= n) {
		return;
	}
	while (n > 0 && ((unsigned char)text->data[n] & 0xc0) == 0x80) {
		n--;
	}
	text->len = n;
	text->data[n] = '\0';
	buf_adds(text, "...");
}

static enum overview_bin choose_bin(const struct overview *v, const struct line *l,
                                    enum render_group group)
{
	if (group == GROUP_DENIED) {
		return (enum overview_bin)(BIN_CLASS + (int)classes_of_line(l, v->home));
	}
	bool lookup = group == GROUP_NETWORK && line_get_protocol(l) == PROTOCOL_DNS;
	return lookup ? BIN_LOOKUPS : (enum overview_bin)(BIN_GROUP + (int)group);
}

/* Counts one item against the limits of its bin. Returns false if the bin is full. So even
 * very many items of one kind leave the places of the other kinds free. */
static bool take_place(struct overview *v, enum overview_bin bin)
{
	bool denied = bin < BIN_GROUP;

	if (denied && v->n_denied < MAX_VIEW_DENIED) {
		v->n_denied++;
		return true;
	}
	if (v->n_in[bin] >= (denied ? MAX_VIEW_CLASS : MAX_VIEW_GROUP)) {
		return false;
	}
	v->n_in[bin]++;
	return true;
}

/* Returns the item of a line, or adds one. Returns NULL if there is no room for it. */
static struct overview_item *find_or_add_item(struct overview *v, const struct line *l,
                                              enum render_group group)
{
	auto_buf text;
	size_t at = 0;
	/* Connections to the same destination are one item, even if the reasons for their ends
	 * differ. */
	const char *reason = group != GROUP_NETWORK ? line_text(l, "reason") : NULL;

	buf_init(&text, WHOLE_BYTES);
	put_key(&text, l, group);
	buf_add(&text, "", 0);
	if (text.failed || text.data == NULL) {
		return NULL;
	}
	/* The hash covers the whole text, although only a part is kept: texts that differ only
	 * after this part are different items. */
	uint64_t hash = hash_text(group, text.data, reason != NULL ? reason : "");
	cut_text(&text);
	struct overview_item *i = find_slot(v, hash, text.data, &at);
	enum overview_bin bin = choose_bin(v, l, group);
	if (i != NULL || !take_place(v, bin)) {
		return i;
	}
	i = &v->items[v->n_items];
	*i = (struct overview_item){ .group = group,
		                     .bin = bin,
		                     .at = v->n_items,
		                     .hash = hash,
		                     .text = strdup(text.data) };
	i->denial = overview_judge(l, v->home);
	i->routine = render_is_routine(l);
	if (i->text == NULL || (i->denial != DENIAL_NOT && !fill_denied(i, l, v->bare))) {
		item_done(i);
		return NULL;
	}
	v->table[at] = (uint32_t)++v->n_items;
	return i;
}

/* Remembers which item a line began. Later repeats name that line by its number. Numbers only
 * grow, so the list is ordered. */
static void remember_first(struct overview *v, int64_t seq, const struct overview_item *i)
{
	if (v->n_firsts == v->room_firsts) {
		size_t room = v->room_firsts == 0 ? 256 : v->room_firsts * 2;
		void *more = room <= MAX_VIEW_FIRSTS
		                     ? realloc(v->firsts, room * sizeof(v->firsts[0]))
		                     : NULL;
		if (more == NULL) {
			return;
		}
		v->firsts = more;
		v->room_firsts = room;
	}
	v->firsts[v->n_firsts].seq = seq;
	v->firsts[v->n_firsts++].item = (uint32_t)(i - v->items);
}

static struct overview_item *find_first(struct overview *v, int64_t seq)
{
	size_t low = 0;
	size_t high = v->n_firsts;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (v->firsts[mid].seq == seq) {
			return &v->items[v->firsts[mid].item];
		}
		if (v->firsts[mid].seq < seq) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return NULL;
}

static uint64_t read_amount(const struct line *l, const char *name)
{
	int64_t n = json_integer(line_get(l, name), 0);

	return n > 0 ? (uint64_t)n : 0;
}

/* Takes the total of a destination. It has a line of its own, because the record may not contain
 * a line for each connection. */
static void take_total(struct overview *v, const struct line *l)
{
	struct overview_item *i = find_or_add_item(v, l, GROUP_NETWORK);

	if (i == NULL) {
		v->uncounted++;
		v->left_out[GROUP_NETWORK]++;
		return;
	}
	i->total.count += read_amount(l, "connections");
	i->total.bytes_out += read_amount(l, "bytes_out");
	i->total.bytes_in += read_amount(l, "bytes_in");
}

static void apply_totals(struct overview *v)
{
	for (size_t n = 0; n < v->n_items; n++) {
		struct overview_item *i = &v->items[n];
		if (i->total.count > 0) {
			i->count = i->total.count;
			i->bytes_out = i->total.bytes_out;
			i->bytes_in = i->total.bytes_in;
		}
	}
}

/* Orders items by severity, then connections before lookups, everyday refusals last, and otherwise
 * as in the record. */
static int by_importance(const void *a, const void *b)
{
	const struct overview_item *x = a;
	const struct overview_item *y = b;

	if (x->bin != y->bin) {
		return (x->bin > y->bin) - (x->bin < y->bin);
	}
	return x->denial != y->denial ? (x->denial > y->denial) - (x->denial < y->denial)
	                              : (x->at > y->at) - (x->at < y->at);
}

static void take_event(struct overview *v, const struct line *l)
{
	int64_t repeat_of = json_integer(line_get(l, "repeat_of"), -1);
	int64_t count =
	        repeat_of >= 0 ? json_integer(line_get(l, "count"), 0) : (int64_t)line_times(l);
	enum render_group group = render_group(l);
	struct overview_item *i = NULL;

	if (repeat_of >= 0) {
		i = find_first(v, repeat_of);
	} else if (group != GROUP_NONE) {
		i = find_or_add_item(v, l, group);
	} else {
		return;
	}
	if (i == NULL || count < 0) {
		v->uncounted += count > 0 ? (uint64_t)count : 0;
		if (group != GROUP_NONE) {
			v->left_out[group] += count > 0 ? (uint64_t)count : 0;
		}
		v->unexplained += count > 0 && group == GROUP_DENIED ? (uint64_t)count : 0;
		return;
	}
	i->count += (uint64_t)count;
	i->bytes_out += read_amount(l, "bytes_out");
	i->bytes_in += read_amount(l, "bytes_in");
	if (repeat_of < 0) {
		remember_first(v, l->seq, i);
	}
}

static char *copy_member(const struct line *l, const struct json_node *of, const char *name)
{
	auto_buf out = BUF(TEXT_BYTES);

	render_text(&out, json_member(&l->doc, of, name), "");
	return out.failed ? strdup("...") : buf_steal(&out);
}

static void take_classes(struct overview *v, const struct line *l)
{
	const struct json_node *list =
	        json_member(&l->doc, line_get(l, "summary"), "classifications");

	if (!json_is(list, JSON_ARRAY) || v->classes != NULL) {
		return;
	}
	v->classes = calloc(MAX_CLASSES, sizeof(v->classes[0]));
	for (const struct json_node *c = json_first(&l->doc, list);
	     c != NULL && v->classes != NULL && v->n_classes < MAX_CLASSES;
	     c = json_next(&l->doc, c)) {
		v->classes[v->n_classes++] = (struct overview_class){
			.name = copy_member(l, c, "class"),
			.severity = copy_member(l, c, "severity"),
			.tactic = copy_member(l, c, "mitre_tactic"),
			.count = json_integer(json_member(&l->doc, c, "count"), 0),
			.prevented = !json_is(json_member(&l->doc, c, "prevented"), JSON_FALSE),
		};
	}
}

/* Derives the classes if the record has no signed end that names them. */
static void derive_classes(struct overview *v, const struct classes *found)
{
	struct classes all;

	classes_derive(found, &all);
	v->classes = calloc(CLASS_COUNT, sizeof(v->classes[0]));
	for (size_t i = 0; i < CLASS_COUNT && v->classes != NULL; i++) {
		if (all.hits[i].count > 0) {
			v->classes[v->n_classes++] = (struct overview_class){
				.name = strdup(CLASSES[i].name),
				.severity = strdup(classes_severity_name(CLASSES[i].severity)),
				.tactic = strdup(CLASSES[i].tactic),
				.count = (int64_t)all.hits[i].count,
				.prevented = all.hits[i].not_prevented == 0,
			};
		}
	}
}

static void take_layers(struct overview *v, const struct line *l)
{
	auto_buf out;

	v->unobserved = false;
	buf_init(&out, TEXT_BYTES);
	JSON_EACH (n, &l->doc, line_get(l, "layers")) {
		const char *state = json_string(json_member(&l->doc, n, "state"), NULL);
		if (layers_state_from(state) != LAYER_ON && n->key != NULL) {
			v->unobserved |= plan_layer_from_name(n->key) == LAYER_AUDIT;
			buf_adds(&out, out.len > 0 ? ", " : "");
			visible_text(&out, n->key, false);
		}
	}
	free(v->lost_layers);
	v->lost_layers = buf_steal(&out);
}

static void take_dropped(struct overview *v, const struct line *l)
{
	const struct json_node *counters = line_get(l, "counters");
	auto_buf out = BUF(TEXT_BYTES);

	v->dropped = json_integer(json_member(&l->doc, counters, "dropped"), 0);
	for (const struct json_node *n =
	             json_first(&l->doc, json_member(&l->doc, counters, "dropped_by"));
	     n != NULL; n = json_next(&l->doc, n)) {
		buf_addf(&out, "%s%" PRId64 " ", out.len > 0 ? ", " : "", json_integer(n, 0));
		visible_text(&out, n->key != NULL ? n->key : "?", false);
	}
	free(v->dropped_by);
	v->dropped_by = out.len > 0 ? buf_steal(&out) : NULL;
}

static void take_line(struct overview *v, const struct line *l)
{
	if (l->kind == EV_RUN) {
		v->bare = json_is(line_get(l, "manifest"), JSON_NULL);
	} else if (l->kind == EV_LAYERS) {
		take_layers(v, l);
	} else if (l->kind == EV_END) {
		if (v->facts.state == RUN_ENDED) {
			take_classes(v, l);
		}
		take_dropped(v, l);
	} else if (l->kind == EV_NETWORK_EGRESS_TOTAL) {
		take_total(v, l);
	} else {
		take_event(v, l);
	}
	v->lines++;
}

static int read_lines(struct overview *v, int fd, struct ssb_error *err)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	struct classes found;
	char home[PATH_MAX] = "";
	const char *text = NULL;
	size_t len = 0;
	enum reader_line got;

	classes_init(&found, home);
	v->home = home;
	reader_init(&in, fd, 0);
	while ((got = reader_next(&in, &text, &len)) == READER_LINE) {
		if (v->lines == 0 && reader_is_header(text, len)) {
			continue;
		}
		if (line_parse(&l, text, len, &v->broken) != 0) {
			break;
		}
		if (v->lines == 0 && line_home(&l) != NULL) {
			snprintf(home, sizeof(home), "%s", line_home(&l));
		}
		take_line(v, &l);
		classes_add_line(&found, &l);
	}
	if (v->facts.state != RUN_ENDED) {
		derive_classes(v, &found);
	}
	v->home = NULL;
	apply_totals(v);
	qsort(v->items, v->n_items, sizeof(v->items[0]), by_importance);
	if (got == READER_FAIL) {
		return ssb_fail(err, SSB_E_SYS, errno, "", "cannot read the record");
	}
	if (got != READER_LINE) {
		v->broken = got == READER_LONG ? "a line is too long" : NULL;
	}
	return 0;
}

int overview_read(struct overview *v, int fd, const char *id, struct ssb_error *err)
{
	assert(fd >= 0);
	*v = (struct overview){ .items = calloc(MAX_ITEMS, sizeof(v->items[0])),
		                .table = calloc(TABLE_SIZE, sizeof(v->table[0])) };
	if (v->items == NULL || v->table == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	v->has_facts = run_facts_read(&v->facts, fd, id) == 0;
	return read_lines(v, fd, err);
}

void overview_done(struct overview *v)
{
	for (size_t i = 0; i < v->n_items; i++) {
		item_done(&v->items[i]);
	}
	for (size_t i = 0; i < v->n_classes; i++) {
		free(v->classes[i].name);
		free(v->classes[i].severity);
		free(v->classes[i].tactic);
	}
	free(v->items);
	free(v->table);
	free(v->firsts);
	free(v->classes);
	free(v->lost_layers);
	free(v->dropped_by);
	*v = (struct overview){ 0 };
}

size_t overview_count_told(const struct overview *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_items; i++) {
		n += overview_is_told(&v->items[i]);
	}
	return n;
}
