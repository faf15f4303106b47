/* says.c - reads what SKILL.md, manifest.yaml and skill.py say. */
#include "skill/says.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/check.h"
#include "manifest/manifest.h"
#include "manifest/report.h"
#include "manifest/yaml_text.h"
#include "skill/block.h"
#include "skill/loose.h"

#define MAX_DESCRIPTION 1024 /* bytes; a longer one is cut */

struct says_reading {
	struct says *says;
	struct report rep;
	bool nomem;
};

/* A place in the text where wishes of one kind are written. */
struct wish_place {
	const char *path;
	enum wishes kind;
};

/* clang-format off */
#define DIALECT(at) \
	{ at "requires.env", WISH_ENV }, \
	{ at "primaryEnv", WISH_ENV }, \
	{ at "envVars", WISH_ENV }, \
	{ at "requires.bins", WISH_BINS }, \
	{ at "requires.anyBins", WISH_ANY_BINS }, \
	{ at "os", WISH_OS }
/* clang-format on */

static const struct wish_place MARKDOWN[] = {
	DIALECT("metadata.openclaw."),
	DIALECT("metadata.clawdbot."),
	DIALECT("metadata.clawdis."),
	DIALECT("metadata.moltbot."),
	/* Some authors write these keys at a wrong place. */
	DIALECT("metadata."),
	DIALECT(""),
};

static const struct wish_place SKILLWARE[] = {
	{ "env_vars", WISH_ENV },
	{ "requirements", WISH_PACKAGES },
};

void says_done(struct says *s)
{
	for (size_t i = 0; i < WISH_KINDS; i++) {
		for (size_t k = 0; k < s->wishes[i].n; k++) {
			free(s->wishes[i].v[k].name);
		}
		free(s->wishes[i].v);
	}
	free(s->name);
	free(s->version);
	free(s->description);
	*s = (struct says){ 0 };
}

/* ---- wishes ------------------------------------------------------------------- */

/* Returns NULL if the name is valid for this kind of wish; otherwise what is wrong with it. */
static const char *name_problem(enum wishes kind, const char *name)
{
	if (kind == WISH_ENV) {
		return check_env_name(name);
	}
	if (strlen(name) > MAX_NAME_BYTES) {
		return "is too long";
	}
	return kind == WISH_BINS || kind == WISH_ANY_BINS
	               ? (strpbrk(name, "/ \t\n") != NULL ? "is not a program's name" : NULL)
	               : NULL;
}

static void wish_add(struct says_reading *r, const struct wish_place *p, const char *text,
                     size_t len, const struct ynode *at)
{
	struct wish_list *l = &r->says->wishes[p->kind];
	auto_free char *name = strndup(text, len);
	char quoted[QUOTE_SIZE];

	if (name == NULL) {
		r->nomem = true;
		return;
	}
	const char *problem = name_problem(p->kind, name);
	if (problem != NULL || l->n == MAX_WISHES) {
		report_add(&r->rep, SSB_WARNING, at->line, at->col, "",
		           "%s: %s %.*s; it is left out", p->path, report_quote(quoted, name),
		           problem != NULL ? (int)strcspn(problem, ";") : 99,
		           problem != NULL ? problem : "is beyond the limit");
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i].name, name) == 0) {
			return;
		}
	}
	if (!ARRAY_MORE(l->v, l->n)) {
		r->nomem = true;
		return;
	}
	l->v[l->n++] = (struct wish){ steal_ptr(&name), p->path, at->line, at->col };
}

/* Splits "A, B C" into words. */
static void words_add(struct says_reading *r, const struct wish_place *p, const struct ynode *n)
{
	static const char BETWEEN[] = ", \t\r\n";
	const char *s = n->text;

	while (!n->bad && !ynode_is_null(n) && *(s += strspn(s, BETWEEN)) != '\0') {
		size_t len = strcspn(s, BETWEEN);
		wish_add(r, p, s, len, n);
		s += len;
	}
}

/* Accepts a name, a list of names, {name: ..} in a list, and a map with names as keys. */
static void wishes_add(struct says_reading *r, const struct wish_place *p, struct ynode *n)
{
	if (n->kind == YNODE_SCALAR) {
		words_add(r, p, n);
		return;
	}
	for (struct ynode *c = n->first; c != NULL; c = c->next) {
		const struct ynode *name = c->kind == YNODE_MAP ? ynode_get(c, "name") : c;
		if (n->kind == YNODE_MAP) {
			wish_add(r, p, c->key, strlen(c->key), c);
		} else if (name != NULL && name->kind == YNODE_SCALAR) {
			words_add(r, p, name);
		}
	}
}

/* ---- texts ---------------------------------------------------------------------- */

/* Returns a new copy of the text at `path`, or NULL if there is none. If a manifest would not
 * accept the text, warns and returns NULL. */
static char *text_at(struct says_reading *r, struct ynode *root, const char *path,
                     const char *(*check)(const char *s, char **ret))
{
	const struct ynode *n = loose_at(root, path);
	char *text = NULL;

	if (n == NULL || n->kind != YNODE_SCALAR || ynode_is_null(n)) {
		return NULL;
	}
	const char *problem =
	        yaml_can_hold(n->text) ? check(n->text, &text) : "has invisible characters";
	if (problem != NULL) {
		report_add(&r->rep, SSB_WARNING, n->line, n->col, "", "%s %.*s; left out", path,
		           (int)strcspn(problem, ";"), problem);
		return NULL;
	}
	return text;
}

static void cut_text(char *text, size_t most)
{
	if (text == NULL || strlen(text) <= most) {
		return;
	}
	while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) {
		most--;
	}
	text[most] = '\0';
}

static void texts_read(struct says_reading *r, struct ynode *root)
{
	r->says->name = text_at(r, root, "name", check_name);
	r->says->version = text_at(r, root, "version", check_version);
	if (r->says->version == NULL) {
		r->says->version = text_at(r, root, "metadata.version", check_version);
	}
	r->says->description = text_at(r, root, "description", check_text);
	cut_text(r->says->description, MAX_DESCRIPTION);
}

/* ---- the two formats --------------------------------------------------------------- */

static void places_read(struct says_reading *r, struct ynode *root, const struct wish_place *v,
                        size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ynode *at = loose_at(root, v[i].path);
		if (at != NULL) {
			wishes_add(r, &v[i], at);
		}
	}
}

/* Reports keys that look like permissions but have no effect here. */
static void notes_read(struct says_reading *r, struct ynode *root)
{
	const struct ynode *tools = ynode_get(root, "allowed-tools");
	const struct ynode *meta = loose_at(root, "metadata");

	if (tools != NULL) {
		report_add(&r->rep, SSB_NOTE, tools->key_line, tools->key_col, "",
		           "allowed-tools is for the agent; it allows nothing here");
	}
	if (meta != NULL && meta->kind == YNODE_SCALAR && !ynode_is_null(meta)) {
		report_add(&r->rep, SSB_WARNING, meta->line, meta->col, "",
		           "metadata is not a list of names and values, so it asks for nothing");
	}
}

static int no_front(struct says_reading *r, const char *why)
{
	report_add(&r->rep, SSB_WARNING, 0, 0, "", "%s, so the skill asks for nothing", why);
	return 0;
}

int says_markdown(struct says *ret, const char *file, const char *text, size_t len,
                  struct ssb_diags *diags)
{
	assert(ret != NULL && (text != NULL || len == 0));

	struct says_reading r = { .says = ret, .rep = { file, diags } };
	AUTO(ynode_freep) struct ynode *root = NULL;
	unsigned line = 0;
	auto_buf block = BUF(MAX_YAML_BYTES);

	*ret = (struct says){ 0 };
	int found = block_find(&block, text, len, &line);
	if (found <= 0) {
		return no_front(&r, found < 0 ? "the frontmatter does not end, or is too large"
		                              : "the file has no frontmatter");
	}
	root = loose_read(file, block.data != NULL ? block.data : "", block.len, line + 1, diags);
	if (root == NULL) {
		return -1;
	}
	texts_read(&r, root);
	places_read(&r, root, MARKDOWN, ARRAY_LEN(MARKDOWN));
	notes_read(&r, root);
	return r.nomem ? -1 : 0;
}

int says_skillware(struct says *ret, const char *file, const char *text, size_t len,
                   struct ssb_diags *diags)
{
	assert(ret != NULL && (text != NULL || len == 0));

	struct says_reading r = { .says = ret, .rep = { file, diags } };
	AUTO(ynode_freep) struct ynode *root = loose_read(file, text, len, 1, diags);

	*ret = (struct says){ 0 };
	if (root == NULL) {
		return -1;
	}
	/* In "category/skill", only the part after the slash is the name of the skill. */
	struct ynode *name = ynode_get(root, "name");
	const char *slash =
	        name != NULL && name->kind == YNODE_SCALAR ? strrchr(name->text, '/') : NULL;
	if (slash != NULL) {
		memmove(name->text, slash + 1, strlen(slash + 1) + 1);
	}
	texts_read(&r, root);
	places_read(&r, root, SKILLWARE, ARRAY_LEN(SKILLWARE));
	return r.nomem ? -1 : 0;
}
