/* skill_entry.c - finds, describes and reads a skill that is served as resources. */
#include "serve/skill_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/percent.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/tail.h"
#include "base/visible.h"
#include "os/file.h"
#include "policy/path.h"
#include "serve/uri.h"
#include "skill/skill.h"

#define DESCRIPTION_BYTES 1000 /* Agent Skills allow 1024 characters */

/* ---- the address ------------------------------------------------------------------- */

/* Writes NAME as it appears in addresses. */
static void name_path(struct buf *out, const struct skill *skill)
{
	percent_encode(out, skill->name + strspn(skill->name, "/"), true);
}

static bool is_taken(const char *path, const struct skill *skill, const struct skill *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		auto_buf other = BUF(MAX_URI);
		name_path(&other, &all[i]);
		if (strcmp(all[i].dir, skill->dir) != 0 && !other.failed &&
		    strcmp(other.data, path) == 0) {
			return true;
		}
	}
	return false;
}

static int set_path(struct skill_entry *e, const struct skill *all, size_t n, const char **ret_why)
{
	auto_buf path = BUF(MAX_URI);

	name_path(&path, e->skill);
	if (strcmp(path_base(e->skill->name), e->front.name) != 0) {
		buf_addf(&path, "/%s", e->front.name);
	}
	e->path = buf_steal(&path);
	*ret_why = e->path == NULL                       ? "its name is too long"
	           : is_taken(e->path, e->skill, all, n) ? "another skill has the same address"
	                                                 : NULL;
	return *ret_why == NULL ? 0 : -1;
}

void skill_entry_uri(struct buf *out, const struct skill_entry *e, const char *path)
{
	buf_addf(out, URI_SKILL "%s%s", e->path, path[0] != '\0' ? "/" : "");
	percent_encode(out, path, true);
}

/* ---- SKILL.md ---------------------------------------------------------------------- */

/* Writes the manifest's description as one visible line, cut to DESCRIPTION_BYTES. */
static void put_description(struct json *j, const struct manifest *m)
{
	auto_buf text = BUF(4 * MAX_SCALAR_BYTES + 256);
	size_t n = DESCRIPTION_BYTES;
	const char *own = m->description != NULL ? m->description : "";

	buf_addf(&text, "%s", own[0] != '\0' ? "" : "A skill without a description.");
	visible_text(&text, own, false);
	if (text.failed || text.len <= n) {
		json_str(j, text.failed ? "A skill." : text.data);
		return;
	}
	while (n > 0 && ((unsigned char)text.data[n] & 0xc0) == 0x80) {
		n--;
	}
	json_strn(j, text.data, n);
}

/* Makes a SKILL.md from the manifest. Its quoted strings are written as JSON, which is valid
 * YAML. */
static char *make_skill_md(const struct skill *skill, const struct manifest *m)
{
	char name[SKILL_NAME_BYTES + 1];
	auto_buf text = BUF(MAX_YAML_BYTES);
	struct json j;

	frontmatter_name_from(name, path_base(skill->dir));
	buf_addf(&text, "---\nname: \"%s\"\ndescription: ", name);
	json_init(&j, &text, false);
	put_description(&j, m);
	buf_addf(
	        &text,
	        "\n---\n\n# %s\n\nThis skill is a program. Run it with the tool `run_skill` of the "
	        "server that serves\nthis file, by the name ",
	        name);
	json_init(&j, &text, false);
	auto_buf shown = BUF(4 * MAX_PATH_BYTES);
	visible_text(&shown, skill->name, false);
	json_str(&j, shown.failed ? name : shown.data);
	buf_adds(&text, ". It runs in a sandbox: `inspect_skill` shows what it\nmay do, and "
	                "`why_denied` what a run was denied.\n");
	return buf_steal(&text);
}

static int make_front(struct skill_entry *e, const char **ret_why)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };

	if (skill_find(e->skill->dir, NULL, NULL, &found, NULL, &err) != 0) {
		*ret_why = "it has no SKILL.md, and its manifest is not valid";
		return -1;
	}
	e->made = make_skill_md(e->skill, found.manifest);
	if (e->made == NULL) {
		*ret_why = "out of memory";
		return -1;
	}
	return frontmatter_read(&e->front, e->made, strlen(e->made), ret_why);
}

int skill_entry_read(struct skill_entry *ret, const struct skill *skill, const struct skill *all,
                     size_t n_all, const char **ret_why)
{
	auto_fd dir = file_open_nosymlink(skill->dir, O_PATH | O_DIRECTORY);
	struct stat st;
	auto_buf text = BUF(MAX_SKILL_FILE);

	*ret = (struct skill_entry){ .skill = skill };
	if (dir < 0) {
		*ret_why = "its directory cannot be opened";
		return -1;
	}
	if (fstatat(dir, SKILL_FILE, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
		return make_front(ret, ret_why) != 0 ? -1 : set_path(ret, all, n_all, ret_why);
	}
	if (served_file_content(skill, SKILL_FILE, &text) != 0) {
		*ret_why = "its SKILL.md is not a regular file, or too large";
		return -1;
	}
	if (frontmatter_read(&ret->front, text.data, text.len, ret_why) != 0) {
		return -1;
	}
	return set_path(ret, all, n_all, ret_why);
}

void skill_entry_done(struct skill_entry *e)
{
	free(e->path);
	free(e->made);
	frontmatter_done(&e->front);
	*e = (struct skill_entry){ 0 };
}

int skill_entry_content(const struct skill_entry *e, const char *path, struct buf *out)
{
	if (e->made != NULL && strcmp(path, SKILL_FILE) == 0) {
		buf_adds(out, e->made);
		return 0;
	}
	return served_file_content(e->skill, path, out);
}

int skill_manifest_text(const struct skill *skill, struct buf *out)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };

	if (served_file_content(skill, MANIFEST_FILE, out) == 0) {
		return 0;
	}
	buf_reset(out);
	if (skill_find(skill->dir, NULL, NULL, &found, NULL, &err) != 0 || found.text == NULL) {
		return -1;
	}
	buf_adds(out, found.text);
	return 0;
}

/* ---- search by address --------------------------------------------------------------- */

/* Returns what follows `path` in the address, or NULL if the address is not in the skill with
 * this path. */
static const char *rest_in(const char *address, const char *path)
{
	size_t len = strlen(path);

	if (strncmp(address, path, len) != 0) {
		return NULL;
	}
	return address[len] == '/' && address[len + 1] != '\0' ? address + len + 1
	       : address[len] == '\0'                          ? address + len
	                                                       : NULL;
}

static int try_skill(const struct skill *v, size_t i, size_t n, const char *address,
                     struct skill_entry *ret, char **ret_rest, const char **ret_why)
{
	AUTO(skill_entry_done) struct skill_entry e = { 0 };
	auto_buf name = BUF(MAX_URI);
	auto_free char *rest = NULL;

	name_path(&name, &v[i]);
	if (name.failed || name.len == 0 || rest_in(address, name.data) == NULL ||
	    skill_entry_read(&e, &v[i], v, n, ret_why) != 0 || rest_in(address, e.path) == NULL) {
		return -1;
	}
	rest = uri_decode(rest_in(address, e.path), true);
	if (rest == NULL || (rest[0] != '\0' && !served_path_valid(rest))) {
		return -1;
	}
	*ret = e;
	e = (struct skill_entry){ 0 };
	*ret_rest = steal_ptr(&rest);
	return 0;
}

int skill_entry_find(struct serve *s, const char *address, struct skill_entry *ret, char **ret_rest,
                     const char **ret_why)
{
	const struct skill *v;
	struct ssb_error err = { 0 };
	size_t n;

	*ret_why = "no skill is served at this address";
	if (skills_list(s->skills, &v, &n, &err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		const char *why = NULL;
		if (try_skill(v, i, n, address, ret, ret_rest, &why) == 0) {
			return 0;
		}
		*ret_why = why != NULL ? why : *ret_why;
	}
	return -1;
}

/* ---- the entry ------------------------------------------------------------------------ */

static void put_file(struct json *j, const struct skill_entry *e, const char *path, uint64_t size,
                     const uint8_t hash[SHA256_BYTES])
{
	auto_buf uri = BUF(4 * MAX_URI);

	skill_entry_uri(&uri, e, path);
	json_open(j, '{');
	json_kstr(j, "uri", uri.failed ? "" : uri.data);
	digest_put(j, "digest", hash);
	json_kuint(j, "size", size);
	json_close(j, '}');
}

static void put_entry(struct json *j, const struct skill_entry *e, const struct skill_files *f)
{
	auto_buf uri = BUF(4 * MAX_URI);
	uint8_t hash[SHA256_BYTES];

	skill_entry_uri(&uri, e, SKILL_FILE);
	json_open(j, '{');
	json_kstr(j, "uri", uri.failed ? "" : uri.data);
	json_key(j, "frontmatter");
	json_raw(j, e->front.json, strlen(e->front.json));
	json_kopen(j, "resources", '[');
	if (e->made != NULL) {
		sha256(e->made, strlen(e->made), hash);
		put_file(j, e, SKILL_FILE, strlen(e->made), hash);
	}
	for (size_t i = 0; i < f->n; i++) {
		if (served_as_file(&f->v[i])) {
			put_file(j, e, f->v[i].path, f->v[i].size, f->v[i].sha256);
		}
	}
	json_close(j, ']');
	json_close(j, '}');
}

static size_t count_files(const struct skill_files *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		n += served_as_file(&f->v[i]) ? 1 : 0;
	}
	return n;
}

int skill_entry_json(const struct serve *s, const struct skill_entry *e, struct json *j,
                     uint64_t *ret_bytes, struct ssb_error *err)
{
	AUTO(skill_files_done) struct skill_files f = { 0 };
	int failed = served_files_read(&f, e->skill, s->owner.state_dir, err);

	*ret_bytes = f.bytes;
	if (failed == 0 && count_files(&f) + (e->made != NULL) > MAX_SKILL_FILES) {
		failed = ssb_fail(err, SSB_E_LIMIT, 0, "skill",
		                  "it has more files than the limit of %d", MAX_SKILL_FILES);
	}
	if (failed == 0) {
		put_entry(j, e, &f);
	}
	return failed;
}

const char *skill_mime(const char *path)
{
	static const struct {
		const char *end;
		const char *type;
	} types[] = {
		{ ".md", "text/markdown" },      { ".txt", "text/plain" },
		{ ".py", "text/x-python" },      { ".sh", "text/x-shellscript" },
		{ ".js", "text/javascript" },    { ".json", "application/json" },
		{ ".yaml", "application/yaml" }, { ".yml", "application/yaml" },
		{ ".html", "text/html" },        { ".css", "text/css" },
		{ ".csv", "text/csv" },          { ".toml", "application/toml" },
		{ ".xml", "application/xml" },   { ".pdf", "application/pdf" },
		{ ".png", "image/png" },         { ".jpg", "image/jpeg" },
		{ ".svg", "image/svg+xml" },
	};

	for (size_t i = 0; path[0] != '\0' && i < ARRAY_LEN(types); i++) {
		if (tail_is(path + 1, types[i].end)) {
			return types[i].type;
		}
	}
	return NULL;
}
