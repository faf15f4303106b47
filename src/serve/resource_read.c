/* resource_read.c - resources/read. All content is data from skills and records, so every text is
 * made visible. If that would change a skill's file, the file is sent as base64, because its bytes
 * must match its digest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/digest.h"
#include "base/base64.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/records.h"
#include "serve/show.h"
#include "serve/skill_entry.h"
#include "serve/uri.h"

#define NEXT_KEY "skillsandbox/next" /* key in _meta */
#define PAGE_URI (sizeof(URI_RUNS) + RUN_ID_SIZE + sizeof("/output?from=") + 20)

struct resource_reading {
	struct serve *s;
	struct mcp_call *c;
	const char *uri; /* the address as the client wrote it */
	const char *name;
	uint64_t from; /* where the page begins */
};

/* Refuses the request. The error is the same for every reason, so that a client cannot learn
 * which files or runs exist. */
static void fail_unknown(const struct resource_reading *r)
{
	auto_buf data = BUF(6 * MAX_URI + 64);
	struct json j = JSON_TO(&data, false);

	json_open(&j, '{');
	json_kstr(&j, "uri", strlen(r->uri) <= MAX_URI ? r->uri : NULL);
	json_close(&j, '}');
	mcp_fail_data(r->c, MCP_E_RESOURCE, data.data, "there is no such resource");
}

static struct json *begin_contents(const struct resource_reading *r)
{
	struct json *j = mcp_result(r->c);

	json_kopen(j, "contents", '[');
	return j;
}

static void end_contents(const struct resource_reading *r, struct json *j)
{
	json_close(j, ']');
	mcp_done(r->c);
}

/* Writes one page. `next` is the address of the next page; NULL: there is none. */
static void put_page(const struct resource_reading *r, struct json *j, const char *fragment,
                     const char *type, const struct buf *text, const char *next)
{
	auto_buf uri = BUF(2 * MAX_URI);

	buf_addf(&uri, "%s%s", r->uri, fragment);
	json_open(j, '{');
	json_kstr(j, "uri", uri.data);
	json_kstr(j, "mimeType", type);
	show_ktext(j, "text", text->data != NULL ? text->data : "", text->len);
	if (next != NULL) {
		json_kopen(j, "_meta", '{');
		json_kstr(j, NEXT_KEY, next);
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void put_text(const struct resource_reading *r, struct json *j, const char *fragment,
                     const char *type, const struct buf *text)
{
	put_page(r, j, fragment, type, text, NULL);
}

static void page_uri(const struct resource_reading *r, const char *what, uint64_t from,
                     char ret[PAGE_URI])
{
	snprintf(ret, PAGE_URI, URI_RUNS "%s/%s?from=%" PRIu64, r->name, what, from);
}

/* ---- runs ----------------------------------------------------------------------------- */

static void read_run(const struct resource_reading *r, const struct served_record *rec)
{
	auto_buf out = BUF(MAX_RESOURCE_TEXT);
	struct json j = JSON_TO(&out, false);

	json_open(&j, '{');
	records_put_run(rec, &j);
	records_put_verified(r->s, rec, &j);
	json_kuint(&j, "bytes", rec->size);
	json_close(&j, '}');
	struct json *result = begin_contents(r);
	put_text(r, result, "", "application/json", &out);
	end_contents(r, result);
}

static void add_line(void *arg, const char *json, size_t len)
{
	buf_add(arg, json, len);
	buf_addc(arg, '\n');
}

static void read_trace(const struct resource_reading *r, const struct served_record *rec)
{
	const struct records_ask ask = { .from = r->from,
		                         .limit = SIZE_MAX,
		                         .room = MAX_RESOURCE_TEXT };
	struct records_page page = { 0 };
	struct ssb_error err = { 0 };
	auto_buf out = BUF(4UL * MAX_RESOURCE_TEXT);

	if (records_lines(r->s, rec, &ask, add_line, &out, &page, &err) != 0) {
		fail_unknown(r);
		return;
	}
	char next[PAGE_URI] = "";
	if (page.more || page.broken != NULL) {
		struct json j = JSON_TO(&out, false);
		json_open(&j, '{');
		json_kuint(&j, page.more ? "next_from" : "broken_at", page.next);
		if (page.more) {
			page_uri(r, "trace", page.next, next);
			json_kstr(&j, "next", next);
		}
		json_kstr(&j, "why", page.more ? "there is more" : page.broken);
		json_close(&j, '}');
		buf_addc(&out, '\n');
	}
	struct json *result = begin_contents(r);
	put_page(r, result, "", "application/jsonl", &out, next[0] != '\0' ? next : NULL);
	end_contents(r, result);
}

/* Writes a text of the server as a content of its own, separate from the text of the skill. */
static void put_note(struct json *j, const char *uri, const struct buf *text)
{
	json_open(j, '{');
	json_kstr(j, "uri", uri);
	json_kstr(j, "mimeType", "text/plain");
	json_kstr(j, "text", text->data);
	json_close(j, '}');
}

/* Says which streams continue at the address of the next page. */
static void put_more(struct json *j, const struct output_page *page, const char *next)
{
	bool both = page->more[0] && page->more[1];
	auto_buf text = BUF(2 * MAX_URI);

	buf_addf(&text, "%s: read %s\n",
	         both            ? "stdout and stderr continue"
	         : page->more[0] ? "stdout continues"
	                         : "stderr continues",
	         next);
	put_note(j, next, &text);
}

static void put_broken(const struct resource_reading *r, struct json *j, const char *why)
{
	auto_buf text = BUF(2 * MAX_URI);
	auto_buf uri = BUF(2 * MAX_URI);

	buf_addf(&text, "the record is damaged and was read up to here: %s\n", why);
	buf_addf(&uri, "%s#damaged", r->uri);
	put_note(j, uri.data, &text);
}

static void output_page_done(struct output_page *p)
{
	buf_done(&p->out[0]);
	buf_done(&p->out[1]);
}

static void read_output(const struct resource_reading *r, const struct served_record *rec)
{
	AUTO(output_page_done) struct output_page page = { 0 };
	char next[PAGE_URI];

	buf_init(&page.out[0], MAX_RESOURCE_TEXT);
	buf_init(&page.out[1], MAX_RESOURCE_TEXT);
	if (records_output(rec, r->from, &page) != 0) {
		fail_unknown(r);
		return;
	}
	page_uri(r, "output", page.next, next);
	struct json *result = begin_contents(r);
	for (size_t i = 0; i < ARRAY_LEN(OUTPUT_KINDS); i++) {
		auto_buf fragment = BUF(64);
		buf_addf(&fragment, "#%s", OUTPUT_KINDS[i]);
		put_page(r, result, fragment.data, "text/plain", &page.out[i],
		         page.more[i] ? next : NULL);
	}
	if (page.next != 0) {
		put_more(result, &page, next);
	}
	if (page.broken != NULL) {
		put_broken(r, result, page.broken);
	}
	end_contents(r, result);
}

static void read_record(const struct resource_reading *r, enum uri_kind kind)
{
	AUTO(records_close) struct served_record rec = SERVED_RECORD_NONE;
	struct ssb_error err = { 0 };

	if (records_open_id(r->s, r->name, &rec, &err) != 0) {
		fail_unknown(r);
	} else if (kind == URI_RUN) {
		read_run(r, &rec);
	} else if (kind == URI_TRACE) {
		read_trace(r, &rec);
	} else {
		read_output(r, &rec);
	}
}

/* ---- skills ---------------------------------------------------------------------------- */

/* Finds a skill only by its name in skills_list(). */
static const struct skill *find_skill(const struct resource_reading *r,
                                      const struct skill **ret_all, size_t *ret_n)
{
	struct ssb_error err = { 0 };

	if (skills_list(r->s->skills, ret_all, ret_n, &err) != 0) {
		return NULL;
	}
	return ARRAY_FIND(e, *ret_all, *ret_n, strcmp(e->name, r->name) == 0);
}

static void read_manifest(const struct resource_reading *r)
{
	const struct skill *all;
	size_t n;
	const struct skill *skill = find_skill(r, &all, &n);
	auto_buf text = BUF(MAX_YAML_BYTES);

	if (skill == NULL || skill_manifest_text(skill, &text) != 0) {
		fail_unknown(r);
		return;
	}
	struct json *j = begin_contents(r);
	put_text(r, j, "", "application/yaml", &text);
	end_contents(r, j);
}

static void put_files(struct json *j, const struct skill_files *f)
{
	json_kopen(j, "files", '[');
	for (size_t i = 0; i < f->n; i++) {
		if (served_as_file(&f->v[i])) {
			json_open(j, '{');
			show_kstr(j, "path", f->v[i].path);
			digest_put(j, "digest", f->v[i].sha256);
			json_kuint(j, "size", f->v[i].size);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
	json_kopen(j, "left_out", '[');
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].no_digest != NULL) {
			json_open(j, '{');
			show_kstr(j, "path", f->v[i].path);
			json_kstr(j, "why", f->v[i].no_digest);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
	json_kuint(j, "left_out_count", f->n_left_out);
}

static void read_files(const struct resource_reading *r)
{
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	AUTO(skill_files_done) struct skill_files f = { 0 };
	struct ssb_error err = { 0 };
	const struct skill *all;
	const char *why = NULL;
	size_t n;
	const struct skill *skill = find_skill(r, &all, &n);
	auto_buf out = BUF(MAX_MCP_RESULT / 4);
	struct json j = JSON_TO(&out, false);

	if (skill == NULL) {
		fail_unknown(r);
		return;
	}
	bool served = served_files_read(&f, skill, r->s->owner.state_dir, &err) == 0;
	served = skill_entry_read(&e, skill, all, n, &why) == 0 && served;
	json_open(&j, '{');
	show_kstr(&j, "skill", skill->name);
	json_kbool(&j, "served", served);
	if (!served) {
		json_kstr(&j, "why", why != NULL ? why : err.text);
	}
	put_files(&j, &f);
	json_close(&j, '}');
	struct json *result = begin_contents(r);
	put_text(r, result, "", "application/json", &out);
	end_contents(r, result);
}

static void read_skill_file(const struct resource_reading *r)
{
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	auto_free char *path = NULL;
	auto_free char *blob = NULL;
	const char *why = NULL;
	auto_buf content = BUF(MAX_SKILL_FILE);

	if (skill_entry_find(r->s, r->name, &e, &path, &why) != 0 ||
	    skill_entry_content(&e, path, &content) != 0) {
		fail_unknown(r);
		return;
	}
	bool text = show_plain(content.data, content.len, true);
	const char *type = skill_mime(path);
	if (!text && (blob = base64_encode(content.data, content.len)) == NULL) {
		mcp_fail(r->c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	struct json *j = begin_contents(r);
	json_open(j, '{');
	json_kstr(j, "uri", r->uri);
	json_kstr(j, "mimeType",
	          type != NULL ? type
	          : text       ? "text/plain"
	                       : "application/octet-stream");
	if (text) {
		json_key(j, "text");
		json_strn(j, content.data, content.len);
	} else {
		json_kstr(j, "blob", blob);
	}
	json_close(j, '}');
	end_contents(r, j);
}

void serve_resources_read(void *app, struct mcp_call *c)
{
	AUTO(uri_done) struct uri u = { 0 };
	struct resource_reading r = { .s = app,
		                      .c = c,
		                      .uri = json_string(mcp_param(c, "uri"), NULL) };

	if (r.uri == NULL) {
		mcp_fail(c, MCP_E_PARAMS, "uri is missing");
		return;
	}
	uri_read(&u, r.uri);
	r.name = u.name;
	r.from = u.from;
	switch (u.kind) {
	case URI_RUN:
	case URI_TRACE:
	case URI_OUTPUT:
		read_record(&r, u.kind);
		break;
	case URI_MANIFEST:
		read_manifest(&r);
		break;
	case URI_FILES:
		read_files(&r);
		break;
	case URI_SKILL_FILE:
		read_skill_file(&r);
		break;
	default:
		fail_unknown(&r);
	}
}
