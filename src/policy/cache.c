/* cache.c - grants the directory that a skill keeps between runs (--cache).
 *
 * Each cache is a directory of its own in the state directory. No grant can show the state
 * directory, and no grant for writing can contain it. The name of a cache is a digest of the
 * identity to which it belongs:
 *
 *   a skill         its directory, its manifest, and the bytes of all its files. A skill that
 *                   changed gets a new, empty cache, so old code cannot prepare files for new code.
 *   a bare command  the project, or the current directory if it is granted. Programs that
 *                   work in one project share a cache, and two projects do not.
 *                   Without such a directory: the real path of the program, so no other
 *                   program of the same name shares it. */
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/hex.h"
#include "base/own.h"
#include "base/sha256.h"
#include "policy/build.h"
#include "policy/owner.h"
#include "skill/files.h"

static void hash_text(struct sha256 *s, const char *text)
{
	sha256_update(s, text, strlen(text) + 1);
}

/* Adds the skill's identity. Returns false, after a warning, if its bytes cannot be pinned. */
static bool hash_skill(struct build *b, struct sha256 *s)
{
	const struct files_wish wish = { .use = FILES_APPROVE, .state_fd = -1 };
	const char *tree = b->plan->approved != NULL ? b->plan->approved->tree : NULL;
	struct skill_files files = { 0 };
	struct ssb_error why = { 0 };
	char text[DIGEST_TEXT];
	bool read = tree != NULL || skill_files_read(b->source->fd, &wish, &files, &why) == 0;

	hash_text(s, "skill");
	hash_text(s, b->skill_dir);
	hash_text(s, tree != NULL ? tree : digest_text(files.tree, text));
	sha256_update(s, b->plan->manifest_digest, sizeof(b->plan->manifest_digest));
	skill_files_done(&files);
	if (!read) {
		build_warn(b, options_flag(SSB_OPT_CACHE),
		           "the skill gets no cache, because its files cannot be identified: %s",
		           why.text);
	}
	return read;
}

static void hash_command(struct build *b, struct sha256 *s)
{
	auto_free char *cwd = getcwd(NULL, 0);
	auto_free char *project = b->opt->project != NULL ? path_real(b->opt->project) : NULL;
	bool granted = cwd != NULL && plan_shown_by(b->plan, cwd) != NULL;
	const char *dir = project != NULL ? project : granted ? cwd : NULL;

	const char *word = b->plan->argv.v[0];
	auto_free char *found =
	        strchr(word, '/') == NULL ? owner_find_program(b->owner, word) : strdup(word);
	auto_free char *program = found != NULL ? path_real(found) : NULL;

	hash_text(s, dir != NULL ? "project" : "program");
	hash_text(s, dir != NULL ? dir : program != NULL ? program : word);
}

/* Returns whether another grant shows something at `place` or above it. */
static bool is_taken(struct build *b, const char *place)
{
	for (size_t i = 0; i < b->plan->n_grants; i++) {
		const struct grant *g = &b->plan->grants[i];
		if (path_beneath(place, g->target) == NULL) {
			continue;
		}
		auto_free char *why =
		        build_printf(b, "it would be shown at %s, and %s (%s) shows files there",
		                     place, g->target, g->where);
		if (why != NULL) {
			build_refuse(b, REFUSAL_OTHER, options_flag(SSB_OPT_CACHE), "the cache",
			             why, "leave out the cache or that grant");
		}
		return true;
	}
	return false;
}

void cache_build(struct build *b)
{
	uint8_t digest[SHA256_BYTES];
	char name[2 * SHA256_BYTES + 1];
	struct sha256 s;

	if (b->opt->learn.mode != LEARNING_NOT) {
		b->plan->cache_mb =
		        0; /* what a learning run needs must not depend on earlier runs */
	}
	if (b->plan->cache_mb == 0) {
		return;
	}
	auto_free char *place = path_join(b->plan->home, CACHE_PLACE);
	sha256_init(&s);
	bool known = b->manifest == NULL || hash_skill(b, &s);
	if (b->manifest == NULL) {
		hash_command(b, &s);
	}
	sha256_final(&s, digest);
	hex_encode(digest, sizeof(digest), name);
	auto_free char *path = build_printf(b, "%s/" CACHES_DIR "/%s", b->owner->state_dir, name);
	b->failed |= place == NULL;
	if (!known || path == NULL || place == NULL || is_taken(b, place)) {
		b->plan->cache_mb = 0;
		return;
	}
	b->cache_place = place;
	resolve_request(b,
	                &(struct path_request){ path, ACCESS_WRITE, ORIGIN_CACHE,
	                                        options_flag(SSB_OPT_CACHE), NULL, NULL, false });
	b->cache_place = NULL;
}
