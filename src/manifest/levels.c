/* levels.c - reads mappings, each key by its row. For an unknown key it suggests a similar one. */
#include "manifest/levels.h"

#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/own.h"

static const struct field *level_find(const struct level *l, const char *key)
{
	return ARRAY_FIND(e, l->fields, l->n, strcmp(e->key, key) == 0);
}

static void unknown_key_remedy(const struct ctx *c, const struct level *l, const char *key,
                               struct buf *out)
{
	const char *near = report_nearest(key, &l->fields[0].key, l->n, sizeof(l->fields[0]));

	if (near != NULL) {
		buf_addf(out, "did you mean %s?", near);
		return;
	}
	for (size_t i = 0; i < c->n_levels; i++) {
		if (level_find(c->levels[i], key) != NULL) {
			buf_addf(out, "it belongs under %s", c->levels[i]->name);
			return;
		}
	}
	buf_adds(out, l->n > 1 ? "the keys here are" : "the key here is");
	for (size_t i = 0; i < l->n; i++) {
		buf_addf(out, "%s %s", i > 0 ? "," : "", l->fields[i].key);
	}
}

static void report_unknown(const struct ctx *c, const struct ynode *n, const struct level *l)
{
	char quoted[QUOTE_SIZE];
	auto_buf remedy = BUF(256);

	unknown_key_remedy(c, l, n->key, &remedy);
	report_add(c->rep, SSB_ERROR, n->key_line, n->key_col,
	           remedy.data != NULL ? remedy.data : "", "unknown key %s",
	           report_quote(quoted, n->key));
}

void level_read(struct ctx *c, const struct ynode *map, const struct level *l, void *base)
{
	for (const struct ynode *n = map->first; n != NULL; n = n->next) {
		const struct field *f = level_find(l, n->key);
		if (f == NULL) {
			report_unknown(c, n, l);
		} else {
			f->read(c, n, f, (char *)base + f->offset);
		}
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct field *f = &l->fields[i];
		if (f->missing != NULL && ynode_get((struct ynode *)map, f->key) == NULL) {
			report_add(c->rep, SSB_ERROR, map->line, map->col, f->missing,
			           "%s is missing in %s", f->key, l->name);
		}
	}
}

void level_read_map(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	if (n->bad) {
		return;
	}
	if (n->kind != YNODE_MAP) {
		values_report_type(c, n, f, "a mapping",
		                   ynode_is_null(n) ? "write {}, or remove the key"
		                                    : "write \"key: value\" lines under it");
		return;
	}
	level_read(c, n, f->level, at);
}

int level_parse(const struct level_file *f, const char *name, const char *text, size_t len,
                void *base, struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *found = ssb_diags_new();
	struct report rep = { name, found };
	struct ctx c = { .rep = &rep, .levels = f->levels, .n_levels = f->n_levels };

	if (found == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, name, "out of memory");
	}
	AUTO(ynode_freep) struct ynode *root = yaml_doc_parse(name, text, len, found);
	if (root != NULL && root->kind == YNODE_MAP) {
		level_read(&c, root, f->levels[0], base);
	} else if (root != NULL && !root->bad && !ynode_is_null(root)) {
		report_add(&rep, SSB_ERROR, root->line, root->col, f->remedy, "%s", f->problem);
	}
	if (c.nomem) {
		return ssb_fail(err, SSB_E_NOMEM, 0, name, "out of memory");
	}
	return report_deliver(found, SSB_E_POLICY, name, diags, err) ? 0 : -1;
}
