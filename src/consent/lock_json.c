/* lock_json.c - writes and reads the text of an approval. */
#include "consent/lock_json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/stamp.h"
#include "base/string_list.h"
#include "policy/options.h"

#define VERSION 1

static const struct {
	enum ssb_option option;
	const char *name;
} OPTIONS[] = {
	{ SSB_OPT_READ, "read" }, { SSB_OPT_WRITE, "write" },     { SSB_OPT_NET, "net" },
	{ SSB_OPT_ENV, "env" },   { SSB_OPT_PROFILE, "profile" },
};

const char *lock_option_name(enum ssb_option option)
{
	for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
		if (OPTIONS[i].option == option) {
			return OPTIONS[i].name;
		}
	}
	return NULL;
}

static bool option_from_name(const char *name, enum ssb_option *ret)
{
	for (size_t i = 0; name != NULL && i < ARRAY_LEN(OPTIONS); i++) {
		if (strcmp(OPTIONS[i].name, name) == 0) {
			*ret = OPTIONS[i].option;
			return true;
		}
	}
	return false;
}

/* ---- writing -------------------------------------------------------------------- */

void lock_json_skill(struct json *j, const struct lock *l)
{
	json_kstr(j, "skill", l->skill);
	json_kstr(j, "name", l->name);
	json_kstr(j, "format", skill_format_name(l->format));
}

void lock_json_terms(struct json *j, const struct lock *l)
{
	struct stamp stamp = STAMP_NONE;
	const struct timespec expires = { .tv_sec = (time_t)l->expires };

	json_kstr(j, "at", l->at);
	json_kstr(j, "by", l->by);
	json_kstr(j, "expires", l->expires > 0 ? stamp_text(&stamp, &expires) : NULL);
	json_key(j, "uses");
	if (l->uses >= 0) {
		json_int(j, l->uses);
	} else {
		json_null(j);
	}
}

void lock_json_given(struct json *j, const struct lock *l)
{
	json_kstrs(j, "asked", l->asked.v, l->asked.n);
	json_kstrs(j, "declined", l->declined.v, l->declined.n);
	json_kopen(j, "grants", '[');
	for (size_t i = 0; i < l->n_grants; i++) {
		json_open(j, '{');
		json_kstr(j, "option", lock_option_name(l->grants[i].option));
		json_kstr(j, "value", l->grants[i].value);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void lock_json_allowed(struct json *j, const struct lock *l)
{
	json_kopen(j, "allowed", '[');
	for (size_t i = 0; i < l->n_allowed; i++) {
		json_open(j, '{');
		json_kstr(j, "option", lock_option_name(l->allowed[i].option));
		json_kstr(j, "value", l->allowed[i].value);
		json_kstr(j, "at", l->allowed[i].at);
		json_kstr(j, "reason", l->allowed[i].reason);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_files(struct json *j, const struct skill_files *p)
{
	char mode[8];

	json_kopen(j, "files", '[');
	for (size_t i = 0; i < p->n; i++) {
		const struct skill_file *f = &p->v[i];
		json_open(j, '{');
		json_kstr(j, "path", f->path);
		if (f->link != NULL) {
			json_kstr(j, "link", f->link);
		} else if (f->dir) {
			json_kbool(j, "dir", true);
		} else {
			snprintf(mode, sizeof(mode), "%04o", f->mode & 07777);
			digest_put(j, "sha256", f->sha256);
			json_kuint(j, "size", f->size);
			json_kstr(j, "mode", mode);
		}
		json_close(j, '}');
	}
	json_close(j, ']');
}

void lock_write(struct buf *out, const struct lock *l)
{
	struct json j = JSON_TO(out, true);

	json_open(&j, '{');
	json_kint(&j, "version", VERSION);
	lock_json_skill(&j, l);
	lock_json_terms(&j, l);
	digest_put(&j, "manifest", l->manifest);
	lock_json_given(&j, l);
	lock_json_allowed(&j, l);
	json_kbool(&j, "snapshot", l->snapshot);
	digest_put(&j, "tree", l->files.tree);
	put_files(&j, &l->files);
	json_close(&j, '}');
	buf_addc(out, '\n');
}

/* ---- reading -------------------------------------------------------------------- */

struct lock_reader {
	struct json_doc doc;
	struct lock lock;
	const char *wrong; /* the first fault; NULL: none */
};

static void reader_done(struct lock_reader *r)
{
	json_doc_done(&r->doc);
	lock_done(&r->lock);
}

/* Returns NULL and sets r->wrong unless `n` is a string without a NUL in it. */
static const char *text_of(struct lock_reader *r, const struct json_node *n, const char *what)
{
	const char *s = json_string(n, NULL);

	if (s == NULL || strlen(s) != n->len || n->len > MAX_LOCK_TEXT) {
		r->wrong = what;
		return NULL;
	}
	return s;
}

static void take_text(struct lock_reader *r, const struct json_node *n, const char *what,
                      char **ret)
{
	const char *s = text_of(r, n, what);

	*ret = s != NULL ? strdup(s) : NULL;
	r->wrong = s != NULL && *ret == NULL ? "out of memory" : r->wrong;
}

static void take_format(struct lock_reader *r, const struct json_node *n, enum skill_format *ret)
{
	const char *s = text_of(r, n, "format");

	if (s != NULL && !skill_format_from(s, ret)) {
		r->wrong = "format";
	}
}

static void take_digest(struct lock_reader *r, const struct json_node *n, const char *what,
                        uint8_t ret[SHA256_BYTES])
{
	const char *s = text_of(r, n, what);

	if (s != NULL && !digest_parse(s, ret)) {
		r->wrong = what;
	}
}

static void take_list(struct lock_reader *r, const struct json_node *list, const char *what,
                      struct string_list *ret)
{
	if (!json_is(list, JSON_ARRAY)) {
		r->wrong = what;
	}
	for (const struct json_node *n = json_first(&r->doc, list); n != NULL && r->wrong == NULL;
	     n = json_next(&r->doc, n)) {
		const char *s = text_of(r, n, what);
		if (s != NULL && string_list_add(ret, s, MAX_REQUESTS) != 0) {
			r->wrong = "it has too many entries";
		}
	}
}

static void take_grant(struct lock_reader *r, const struct json_node *n)
{
	struct lock *l = &r->lock;
	enum ssb_option option = SSB_OPT_READ;
	const char *value = text_of(r, json_member(&r->doc, n, "value"), "a grant");

	if (r->wrong != NULL || n->n != 2 ||
	    !option_from_name(json_string(json_member(&r->doc, n, "option"), NULL), &option)) {
		r->wrong = "a grant";
		return;
	}
	if (given_add(&l->grants, &l->n_grants, option, value) != 0) {
		r->wrong = "it has too many entries";
	}
}

static void take_grants(struct lock_reader *r, const struct json_node *list)
{
	if (!json_is(list, JSON_ARRAY)) {
		r->wrong = "grants";
	}
	for (const struct json_node *n = json_first(&r->doc, list); n != NULL && r->wrong == NULL;
	     n = json_next(&r->doc, n)) {
		take_grant(r, n);
	}
}

/* A plan with an invalid host could not be made. */
static bool is_host(const char *value)
{
	struct egress_rule rule;

	if (value == NULL || options_net(value, &rule) != NULL) {
		return false;
	}
	free(rule.domain.s);
	free(rule.ports);
	return true;
}

static void take_remembered(struct lock_reader *r, const struct json_node *n)
{
	struct lock *l = &r->lock;
	const char *at = text_of(r, json_member(&r->doc, n, "at"), "allowed");
	const char *reason = text_of(r, json_member(&r->doc, n, "reason"), "allowed");
	const char *value = text_of(r, json_member(&r->doc, n, "value"), "allowed");
	struct given g = { .value = (char *)(uintptr_t)value,
		           .at = (char *)(uintptr_t)at,
		           .reason = (char *)(uintptr_t)reason };
	int64_t us;

	if (r->wrong != NULL || n->n != 4 || !stamp_parse(at, &us) ||
	    !option_from_name(json_string(json_member(&r->doc, n, "option"), NULL), &g.option) ||
	    g.option == SSB_OPT_PROFILE || (g.option == SSB_OPT_NET && !is_host(value))) {
		r->wrong = "allowed";
	} else if (lock_allow(l, &g) != 0) {
		r->wrong = "it has too many entries";
	}
}

/* An approval of an earlier version does not have this member. */
static void take_allowed(struct lock_reader *r, const struct json_node *list)
{
	if (list != NULL && !json_is(list, JSON_ARRAY)) {
		r->wrong = "allowed";
	}
	for (const struct json_node *n = json_first(&r->doc, list); n != NULL && r->wrong == NULL;
	     n = json_next(&r->doc, n)) {
		take_remembered(r, n);
	}
}

/* Returns true if the path has the form that lock_files_read() gives. Such a path cannot lead out
 * of the skill. */
static bool is_path_valid(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.')) {
			return false;
		}
		if (path[len] == '\0') {
			return true;
		}
		path += len + 1;
	}
}

static bool parse_mode(const char *s, unsigned *ret)
{
	if (s == NULL || strlen(s) != 4 || strspn(s, "01234567") != 4) {
		return false;
	}
	*ret = (unsigned)strtoul(s, NULL, 8);
	return true;
}

/* Reads all members of a file except its path. */
static void take_content(struct lock_reader *r, const struct json_node *n, struct skill_file *f)
{
	const struct json_node *link = json_member(&r->doc, n, "link");
	int64_t size = json_integer(json_member(&r->doc, n, "size"), -1);

	if (link != NULL) {
		take_text(r, link, "a file", &f->link);
		f->mode = SKILL_LINK_MODE;
		if (f->link != NULL) {
			sha256(f->link, strlen(f->link), f->sha256);
		}
		r->wrong = n->n != 2 ? "a file" : r->wrong;
		return;
	}
	f->dir = json_is(json_member(&r->doc, n, "dir"), JSON_TRUE);
	if (f->dir) {
		f->mode = SKILL_DIR_MODE;
		sha256("", 0, f->sha256);
		r->wrong = n->n != 2 ? "a file" : r->wrong;
		return;
	}
	take_digest(r, json_member(&r->doc, n, "sha256"), "a file", f->sha256);
	if (n->n != 4 || size < 0 || (uint64_t)size > MAX_PINNED_BYTES ||
	    !parse_mode(json_string(json_member(&r->doc, n, "mode"), NULL), &f->mode)) {
		r->wrong = "a file";
		return;
	}
	f->size = (uint64_t)size;
}

static void take_file(struct lock_reader *r, const struct json_node *n)
{
	struct skill_files *p = &r->lock.files;
	struct skill_file *f = &p->v[p->n++];

	take_text(r, json_member(&r->doc, n, "path"), "a file", &f->path);
	if (f->path == NULL || !is_path_valid(f->path) ||
	    (p->n > 1 && strcmp(p->v[p->n - 2].path, f->path) >= 0)) {
		r->wrong = "a file";
		return;
	}
	take_content(r, n, f);
	p->bytes += f->size;
	if (p->bytes > MAX_PINNED_BYTES) {
		r->wrong = "a file";
	}
}

static void take_files(struct lock_reader *r, const struct json_node *list)
{
	struct skill_files *p = &r->lock.files;
	uint8_t tree[SHA256_BYTES];

	if (!json_is(list, JSON_ARRAY) || list->n > MAX_PINNED_FILES) {
		r->wrong = "files";
		return;
	}
	p->v = calloc(list->n + 1, sizeof(*p->v));
	if (p->v == NULL) {
		r->wrong = "out of memory";
		return;
	}
	for (const struct json_node *n = json_first(&r->doc, list); n != NULL && r->wrong == NULL;
	     n = json_next(&r->doc, n)) {
		take_file(r, n);
	}
	if (r->wrong != NULL) {
		/* The last file may lack its path, so the digest cannot be made. */
		return;
	}
	skill_files_digest(p, tree);
	if (memcmp(tree, p->tree, sizeof(tree)) != 0) {
		r->wrong = "its field 'tree' is not the digest of its files";
	}
}

static void take_when(struct lock_reader *r, const struct json_node *at,
                      const struct json_node *expires)
{
	int64_t us = 0;
	const char *s = text_of(r, at, "at");

	if (s != NULL && !stamp_parse(s, &us)) {
		r->wrong = "at";
	}
	if (json_is(expires, JSON_NULL)) {
		return;
	}
	s = text_of(r, expires, "expires");
	if (s != NULL && (!stamp_parse(s, &us) || us < 1000000)) {
		r->wrong = "expires";
	}
	r->lock.expires = us / 1000000;
}

static void take_uses(struct lock_reader *r, const struct json_node *n)
{
	r->lock.uses = json_is(n, JSON_NULL) ? -1 : json_integer(n, -2);
	if (r->lock.uses < -1 || (r->lock.uses == -1 && !json_is(n, JSON_NULL))) {
		r->wrong = "uses";
	}
}

#define MEMBERS 15 /* number of members of an approval, without "allowed" */

static void take_all(struct lock_reader *r)
{
	const struct json_node *top = json_top(&r->doc);
	struct lock *l = &r->lock;
#define MEMBER(name) json_member(&r->doc, top, name)
	const struct json_node *snapshot = MEMBER("snapshot");
	const struct json_node *allowed = MEMBER("allowed");

	if (!json_is(top, JSON_OBJECT) || top->n != MEMBERS + (allowed != NULL) ||
	    json_integer(MEMBER("version"), 0) != VERSION) {
		r->wrong = "it does not have the form of an approval";
		return;
	}
	take_text(r, MEMBER("skill"), "skill", &l->skill);
	take_text(r, MEMBER("name"), "name", &l->name);
	take_format(r, MEMBER("format"), &l->format);
	take_text(r, MEMBER("at"), "at", &l->at);
	take_text(r, MEMBER("by"), "by", &l->by);
	take_when(r, MEMBER("at"), MEMBER("expires"));
	take_uses(r, MEMBER("uses"));
	take_digest(r, MEMBER("manifest"), "manifest", l->manifest);
	take_list(r, MEMBER("asked"), "asked", &l->asked);
	take_list(r, MEMBER("declined"), "declined", &l->declined);
	take_grants(r, MEMBER("grants"));
	take_allowed(r, allowed);
	take_digest(r, MEMBER("tree"), "tree", l->files.tree);
	l->snapshot = json_is(snapshot, JSON_TRUE);
	if (!l->snapshot && !json_is(snapshot, JSON_FALSE)) {
		r->wrong = "snapshot";
	}
	if (l->skill != NULL && l->skill[0] != '/') {
		r->wrong = "skill";
	}
	if (r->wrong == NULL) {
		take_files(r, MEMBER("files"));
	}
#undef MEMBER
}

const char *lock_parse(const char *text, size_t len, struct lock *ret)
{
	AUTO(reader_done) struct lock_reader r = { 0 };
	const char *why = NULL;

	if (json_read(&r.doc, text, len, &why) != 0) {
		return why;
	}
	take_all(&r);
	if (r.wrong == NULL) {
		*ret = r.lock;
		r.lock = (struct lock){ 0 };
	}
	return r.wrong;
}
