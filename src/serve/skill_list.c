/* skill_list.c - the skills extension (io.modelcontextprotocol/skills): skills/list, skills/get and
 * resources/directory/read. The content of the files is read with resources/read.
 *
 * A skill that cannot be served as files is not listed, and the log says why. A client that
 * requests the address of such a skill gets the reason as the error. */
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/serve.h"
#include "serve/show.h"
#include "serve/skill_entry.h"
#include "serve/uri.h"

/* Reads the cursor. *ret_after is new: the name of the last skill of the page before, or ""
 * for the first page. If the cursor was not made by this server, answers the call with an
 * error and returns -1. */
static int read_cursor(struct mcp_call *c, char **ret_after)
{
	const struct json_node *cursor = mcp_param(c, "cursor");
	char *after = cursor == NULL                 ? strdup("")
	              : json_is(cursor, JSON_STRING) ? uri_cursor_read(cursor->str)
	                                             : NULL;

	if (after == NULL) {
		mcp_fail(c, MCP_E_PARAMS, "not a cursor of this server; begin without a cursor");
		return -1;
	}
	*ret_after = after;
	return 0;
}

static void put_cursor(struct json *j, const char *after)
{
	auto_buf cursor = BUF(2 * MAX_CURSOR + 1);

	uri_cursor_write(&cursor, after);
	if (!cursor.failed) {
		json_kstr(j, "nextCursor", cursor.data);
	}
}

/* Returns the requested address without its scheme. If it is wrong, answers the call with an error
 * and returns NULL. */
static const char *read_uri(struct mcp_call *c, const char *what)
{
	const char *uri = json_string(mcp_param(c, "uri"), NULL);
	size_t n = strlen(URI_SKILL);

	if (uri == NULL || strncmp(uri, URI_SKILL, n) != 0 || strlen(uri) > MAX_URI) {
		mcp_fail(c, MCP_E_PARAMS, "uri must be the address of %s: skill://...", what);
		return NULL;
	}
	return uri + n;
}

/* ---- skills/list -------------------------------------------------------------------- */

struct listing {
	struct serve *s;
	struct json *j;
	struct json left; /* skills that are not listed, with the reason */
	size_t n;
	uint64_t bytes;
};

static void list_one(struct listing *l, const struct skill *v, size_t i, size_t n)
{
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	struct ssb_error err = { 0 };
	const char *why = NULL;
	uint64_t bytes = 0;
	bool found = skill_entry_read(&e, &v[i], v, n, &why) == 0;

	if (found && skill_entry_json(l->s, &e, l->j, &bytes, &err) == 0) {
		l->n++;
	} else {
		json_open(&l->left, '{');
		show_kstr(&l->left, "skill", v[i].name);
		json_kstr(&l->left, "why", found ? err.text : why);
		json_close(&l->left, '}');
	}
	l->bytes += bytes;
}

static void list_page(struct listing *l, const struct skill *v, size_t n, const char *after)
{
	size_t i = 0;

	while (i < n && after[0] != '\0' && strcmp(v[i].name, after) <= 0) {
		i++;
	}
	json_kopen(l->j, "skills", '[');
	/* Computing digests takes time, so the work for one page is limited. */
	for (size_t first = i; i < n && i - first < 4 * (size_t)MAX_SKILL_PAGE &&
	                       l->n < MAX_SKILL_PAGE && l->bytes < MAX_SKILL_BYTES;
	     i++) {
		list_one(l, v, i, n);
	}
	json_close(l->j, ']');
	if (i > 0 && i < n) {
		put_cursor(l->j, v[i - 1].name);
	}
}

void serve_skills_list(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	auto_free char *after = NULL;
	const struct skill *v;
	struct ssb_error err = { 0 };
	auto_buf left = BUF(MAX_TRACE_TEXT);
	size_t n;

	if (read_cursor(c, &after) != 0) {
		return;
	}
	if (skills_list(s->skills, &v, &n, &err) != 0) {
		mcp_fail(c, MCP_E_INTERNAL, "the skills cannot be listed");
		return;
	}
	struct listing l = { .s = s, .j = mcp_result(c) };
	json_init(&l.left, &left, false);
	json_open(&l.left, '[');
	list_page(&l, v, n, after);
	json_close(&l.left, ']');
	if (left.len > strlen("[]") && !left.failed) {
		mcp_log(c, MCP_NOTICE, "skills", left.data);
	}
	mcp_done(c);
}

/* ---- skills/get ---------------------------------------------------------------------- */

void serve_skills_get(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	auto_free char *rest = NULL;
	const char *why = NULL;
	const char *address = read_uri(c, "a SKILL.md");
	struct ssb_error err = { 0 };
	uint64_t bytes;
	auto_buf out = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&out, false);

	if (address == NULL) {
		return;
	}
	if (skill_entry_find(s, address, &e, &rest, &why) != 0 || strcmp(rest, SKILL_FILE) != 0) {
		mcp_fail(c, MCP_E_PARAMS, "no skill is served at this address: %s",
		         rest != NULL ? "the address does not end with SKILL.md" : why);
		return;
	}
	if (skill_entry_json(s, &e, &j, &bytes, &err) != 0) {
		mcp_fail(c, MCP_E_PARAMS, "the skill is not served as files: %s", err.text);
		return;
	}
	struct json *result = mcp_result(c);
	json_key(result, "skill");
	json_raw(result, out.data, out.len);
	mcp_done(c);
}

/* ---- resources/directory/read --------------------------------------------------------- */

static void put_child(struct json *j, const struct skill_entry *e, const char *path, bool is_dir)
{
	auto_buf uri = BUF(4 * MAX_URI);
	const char *slash = strrchr(path, '/');
	const char *type = is_dir ? "inode/directory" : skill_mime(path);

	skill_entry_uri(&uri, e, path);
	json_open(j, '{');
	json_kstr(j, "uri", uri.failed ? "" : uri.data);
	show_kstr(j, "name", slash != NULL ? slash + 1 : path);
	if (type != NULL) {
		json_kstr(j, "mimeType", type);
	}
	json_close(j, '}');
}

static bool is_child(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (len > 0 && (strncmp(path, dir, len) != 0 || path[len] != '/')) {
		return false;
	}
	return strchr(path + len + (len > 0), '/') == NULL;
}

static bool has_directory(const struct skill_files *f, const char *dir)
{
	return ARRAY_HAS(e, f->v, f->n, e->dir && strcmp(e->path, dir) == 0) || dir[0] == '\0';
}

static void put_children(struct json *j, const struct skill_entry *e, const struct skill_files *f,
                         const char *dir, const char *after)
{
	const char *last = NULL;
	bool more = false;
	size_t n = 0;

	json_kopen(j, "resources", '[');
	if (e->made != NULL && dir[0] == '\0' && after[0] == '\0') {
		put_child(j, e, SKILL_FILE, false);
	}
	for (size_t i = 0; i < f->n && !more; i++) {
		const struct skill_file *x = &f->v[i];
		if (x->no_digest != NULL || !is_child(x->path, dir) ||
		    (after[0] != '\0' && strcmp(x->path, after) <= 0)) {
			continue;
		}
		more = n >= MAX_RESOURCE_PAGE;
		if (!more) {
			put_child(j, e, x->path, x->dir);
			last = x->path;
			n++;
		}
	}
	json_close(j, ']');
	if (more) {
		put_cursor(j, last);
	}
}

void serve_directory_read(void *app, struct mcp_call *c)
{
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	AUTO(skill_files_done) struct skill_files f = { 0 };
	struct ssb_error err = { 0 };
	auto_free char *after = NULL;
	auto_free char *dir = NULL;
	const char *why = NULL;
	const char *address = read_uri(c, "a directory");

	if (address == NULL || read_cursor(c, &after) != 0) {
		return;
	}
	if (skill_entry_find(app, address, &e, &dir, &why) != 0) {
		mcp_fail(c, MCP_E_PARAMS, "there is no directory at this address: %s", why);
		return;
	}
	bool listed = served_files_read(&f, e.skill, NULL, &err) == 0;
	if (!listed || !has_directory(&f, dir)) {
		mcp_fail(c, MCP_E_PARAMS, "there is no directory at this address: %s",
		         listed ? "the skill has no directory of this name" : err.text);
		return;
	}
	put_children(mcp_result(c), &e, &f, dir, after);
	mcp_done(c);
}
