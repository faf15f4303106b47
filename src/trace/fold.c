/* fold.c - the table of attempts that were seen before. */
#include "trace/fold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/trace_limits.h"
#include "base/sha256.h"

/* Entries are stored in the order in which they are added, because the first access to a page costs
 * as much as writing a line. So the few hundred entries of most runs need only few pages. */
struct fold_table {
	uint16_t sets[FOLD_SETS][FOLD_WAYS]; /* index of an entry + 1; 0: free */
	uint16_t n;
	struct fold_entry entries[FOLD_ENTRIES];
};
_Static_assert(FOLD_ENTRIES < UINT16_MAX, "an entry's number fits");

void fold_done(struct fold *f)
{
	free(f->table);
	*f = (struct fold){ 0 };
}

/* Hashes each part together with its length, so that "ab" and "c" differ from "a" and "bc". */
static void add_bytes(struct sha256 *s, const char *p, size_t n)
{
	uint64_t len = p == NULL ? UINT64_MAX : n;

	sha256_update(s, &len, sizeof(len));
	if (p != NULL) {
		sha256_update(s, p, n);
	}
}

static void add_text(struct sha256 *s, const char *text)
{
	add_bytes(s, text, text != NULL ? strlen(text) : 0);
}

struct fold_key fold_key(const struct event *e)
{
	const uint64_t numbers[] = { e->kind, e->status, (uint64_t)e->error, e->port,   e->protocol,
		                     e->op,   e->mode,   e->violation,       e->reason, e->apart };
	const char *const texts[] = { e->call, e->name, e->address };
	const struct bytes bytes[] = { e->program, e->path, e->path2, e->leads_to, e->attribute };
	uint8_t hash[SHA256_BYTES];
	struct fold_key key;
	struct sha256 s;

	sha256_init(&s);
	sha256_update(&s, numbers, sizeof(numbers));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		add_text(&s, texts[i]);
	}
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		add_bytes(&s, bytes[i].p, bytes[i].n);
	}
	for (size_t i = 0; i < e->n_args; i++) {
		add_bytes(&s, e->args[i].p, e->args[i].n);
	}
	sha256_final(&s, hash);
	memcpy(&key, hash, sizeof(key));
	return key;
}

static uint16_t *find_set(struct fold *f, const struct fold_key *key)
{
	return f->table->sets[key->v[0] % FOLD_SETS];
}

struct fold_entry *fold_find(struct fold *f, const struct fold_key *key)
{
	if (f->table == NULL) {
		return NULL;
	}
	const uint16_t *set = find_set(f, key);
	for (size_t i = 0; i < FOLD_WAYS && set[i] != 0; i++) {
		struct fold_entry *e = &f->table->entries[set[i] - 1];
		if (memcmp(&e->key, key, sizeof(*key)) == 0) {
			e->used = ++f->clock;
			return e;
		}
	}
	return NULL;
}

/* Returns a free entry of the set. If the set is full, returns the entry that was not used for the
 * longest time. */
static struct fold_entry *find_place(struct fold *f, const struct fold_key *key)
{
	struct fold_table *t = f->table;
	uint16_t *set = find_set(f, key);
	struct fold_entry *oldest = NULL;

	for (size_t i = 0; i < FOLD_WAYS; i++) {
		if (set[i] == 0) {
			set[i] = ++t->n;
			return &t->entries[set[i] - 1];
		}
		struct fold_entry *e = &t->entries[set[i] - 1];
		if (oldest == NULL || e->used < oldest->used) {
			oldest = e;
		}
	}
	return oldest;
}

bool fold_put(struct fold *f, const struct fold_entry *entry, struct fold_entry *ret_gone)
{
	assert((unsigned)entry->kind < EV_COUNT && (unsigned)entry->room < ROOM_COUNT);
	if (f->table == NULL) {
		f->table = calloc(1, sizeof(*f->table));
		if (f->table == NULL) {
			return false;
		}
	}
	struct fold_entry *place = find_place(f, &entry->key);
	struct fold_entry gone = *place;
	*place = *entry;
	place->used = ++f->clock;
	if (gone.count == 0) {
		return false;
	}
	*ret_gone = gone;
	return true;
}

bool fold_take(struct fold *f, size_t *at, struct fold_entry *ret)
{
	for (; f->table != NULL && *at < f->table->n; ++*at) {
		struct fold_entry *e = &f->table->entries[*at];
		if (e->count > 0) {
			*ret = *e;
			e->count = 0;
			return true;
		}
	}
	return false;
}
