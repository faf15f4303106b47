/* learn_hints.c - decoys at the paths that a skill's files mention. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "learn/learn_priv.h"
#include "policy/path.h"

static char NOT_USED[] = "not used in this run";

bool learn_is_granted(const struct learner *t, const char *path)
{
	const struct string_list *l = &t->s->options->read;
	bool granted = false;

	for (size_t i = 0; i < l->n && !granted; i++) {
		auto_free char *word = path_expand(t->s->owner, l->v[i]);
		auto_free char *real = word != NULL ? path_real(word) : NULL;
		granted = real != NULL && path_beneath(path, real) != NULL;
	}
	return granted;
}

/* Returns true for a path that a skill may make for its results: it is missing, and is not among
 * the hidden settings of the home. */
static bool is_for_results(const struct need *n, const char *path)
{
	return access(path, F_OK) != 0 && strncmp(n->value, "~/", 2) == 0 && n->value[2] != '.' &&
	       n->danger == NULL;
}

static int lay_path(struct learner *t, const struct need *n, struct ssb_error *err)
{
	auto_free char *path = path_expand(t->s->owner, n->value);
	bool fresh = false;

	if (path == NULL) {
		return learn_no_memory(err);
	}
	/* What the skill tries in a round needs decoys, too. */
	if (path[0] != '/' || learn_is_granted(t, path) || t->decoys.n >= MAX_HINT_DECOYS) {
		return 0;
	}
	if (!is_for_results(n, path)) {
		return decoys_add(&t->decoys, t->s->owner, path, ACCESS_READ, &fresh, err);
	}
	/* The sandbox has a private home. Without a decoy, results in it would be lost unseen. */
	auto_free char *parent = path_parent(path);
	bool is_file = strchr(path_base(path), '.') != NULL;
	const char *place = is_file ? parent : n->makes_dirs ? path : NULL;
	return place == NULL || strcmp(place, t->s->owner->home) == 0
	               ? 0
	               : decoys_add_place(&t->decoys, t->s->owner, place, err);
}

/* Adds the need as a comment. If a round uses it, that need replaces the comment. */
static int note_hint(struct learner *t, const struct need *n, struct ssb_error *err)
{
	struct need copy = *n;
	auto_free char *why = NULL;

	if (asprintf(&why, "mentioned in %s", n->why != NULL ? n->why : "a file") < 0) {
		why = NULL;
		return learn_no_memory(err);
	}
	copy.why = why;
	copy.danger = n->danger != NULL ? n->danger : NOT_USED;
	return needs_add(&t->l->needs, &copy) != 0 ? learn_no_memory(err) : 0;
}

int learn_lay_hints(struct learner *t, const struct needs *hints, struct ssb_error *err)
{
	for (size_t i = 0; i < hints->n; i++) {
		const struct need *n = &hints->v[i];
		bool is_path = n->kind == NEED_READ || n->kind == NEED_WRITE;
		bool is_host = n->kind == NEED_NETWORK && n->danger == NULL;
		if ((is_path && lay_path(t, n, err) != 0) ||
		    ((is_path || is_host) && note_hint(t, n, err) != 0)) {
			return -1;
		}
	}
	return 0;
}
