#include "audit/fold.h"

#include <stdlib.h>
#include <string.h>

#include "audit/trace_limits.h"
#include "base/sha256.h"

void fold_done(struct fold *f)
{
	free(f->entries);
	*f = (struct fold){ 0 };
}

/* Each part with its length: "ab" and "c" are not "a" and "bc". */
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
	const uint64_t numbers[] = { e->kind, e->status,    (uint64_t)e->error,
		                     e->port, e->violation, e->apart };
	const char *const texts[] = { e->op, e->mode, e->name, e->address, e->protocol, e->reason };
	const struct bytes bytes[] = { e->program, e->path, e->path2 };
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

static struct fold_entry *set_of(struct fold *f, const struct fold_key *key)
{
	return &f->entries[key->v[0] % FOLD_SETS * FOLD_WAYS];
}

struct fold_entry *fold_find(struct fold *f, const struct fold_key *key)
{
	if (f->entries == NULL) {
		return NULL;
	}
	struct fold_entry *set = set_of(f, key);
	for (size_t i = 0; i < FOLD_WAYS; i++) {
		if (set[i].seq != 0 && memcmp(&set[i].key, key, sizeof(*key)) == 0) {
			set[i].used = ++f->clock;
			return &set[i];
		}
	}
	return NULL;
}

bool fold_put(struct fold *f, const struct fold_entry *entry, struct fold_entry *ret_gone)
{
	if (f->entries == NULL) {
		f->entries = calloc(FOLD_ENTRIES, sizeof(*f->entries));
		if (f->entries == NULL) {
			return false;
		}
	}
	struct fold_entry *set = set_of(f, &entry->key);
	struct fold_entry *oldest = &set[0];
	for (size_t i = 1; i < FOLD_WAYS; i++) {
		if (set[i].used < oldest->used) {
			oldest = &set[i];
		}
	}
	struct fold_entry gone = *oldest;
	*oldest = *entry;
	oldest->used = ++f->clock;
	if (gone.seq == 0 || gone.count == 0) {
		return false;
	}
	*ret_gone = gone;
	return true;
}

bool fold_take(struct fold *f, size_t *at, struct fold_entry *ret)
{
	for (; f->entries != NULL && *at < FOLD_ENTRIES; ++*at) {
		struct fold_entry *e = &f->entries[*at];
		if (e->seq != 0 && e->count > 0) {
			*ret = *e;
			e->count = 0;
			return true;
		}
	}
	return false;
}
