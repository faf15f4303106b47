/* judge.c - decides whether a path may be granted.
 *
 * A manifest's request for a dangerous place is refused unless the policy file lists the place. The
 * owner's own grant is accepted, with a warning that says what it opens. A place that would leave
 * no sandbox is never granted. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/own.h"
#include "manifest/write.h"
#include "policy/build.h"
#include "policy/protect.h"
#include "policy/unlisted.h"

/* Returns a text such as "it contains ~/.ssh, which holds SSH keys"; new. */
static char *explain_hit(struct build *b, const struct danger_hit *h)
{
	static const char *const HOW[] = {
		[DANGER_IS] = "%s %s",
		[DANGER_CONTAINS] = "it contains %s, which %s",
		[DANGER_LIES_IN] = "it lies in %s, which %s",
	};
	const struct place *p = h->place;
	char path[MAX_PATH_BYTES];
	char name[MAX_PATH_BYTES];
	auto_free char *both = NULL;

	path_pretty(b->owner, p->path, path, sizeof(path));
	if (p->name != NULL && strcmp(p->name, p->path) != 0) {
		path_pretty(b->owner, p->name, name, sizeof(name));
		both = build_printf(b, "%s (where %s leads)", path, name);
	}
	return build_printf(b, HOW[h->how], both != NULL ? both : path, p->why);
}

static enum ssb_option access_option(enum access access)
{
	return access == ACCESS_WRITE ? SSB_OPT_WRITE : SSB_OPT_READ;
}

/* Returns the flag and the line of the policy file that would grant the request; new. The path
 * comes from the manifest, so it is quoted as one word of a shell, and as one text of the list. */
static char *say_grant(struct build *b, const struct path_request *r)
{
	const char *file =
	        b->policy.file != NULL ? b->policy.file : "~/.config/skillsandbox/policy.yaml";
	const char *access = access_name(r->access);
	/* A lone "~" is null in YAML. */
	const char *path = strcmp(r->text, "~") == 0 ? "~/" : r->text;
	auto_free char *word = build_word(b, path);
	auto_buf text = BUF(2UL * MAX_PATH_BYTES + 2);

	manifest_put_text(&text, path);
	return word == NULL || text.failed
	               ? build_printf(b, "the owner can grant it: --%s PATH", access)
	               : build_printf(b,
	                              "the owner can grant it: --%s %s, or the line "
	                              "'grants: {%s: [%s]}' in %s",
	                              access, word, access, text.data, file);
}

/* Returns the remedy for a path with a symlink, which leads to r->real; new. */
static char *say_real(struct build *b, const struct path_request *r)
{
	auto_free char *word = build_word(b, r->real);

	return r->origin == ORIGIN_MANIFEST
	               ? build_printf(
	                         b, "declare the real path, %s, which the owner can grant: --%s %s",
	                         r->real, access_name(r->access), word != NULL ? word : "PATH")
	               : build_printf(
	                         b,
	                         "this path goes through a symlink; name the real path instead: %s",
	                         r->real);
}

/* True if the approval grants this path of the manifest. plan.c then resolves the path again, as a
 * path of the owner. */
static bool is_lifted(struct build *b, const struct path_request *r)
{
	b->lifted = r->origin == ORIGIN_MANIFEST && r->real == NULL &&
	            build_gives(b, access_option(r->access), r->text);
	return b->lifted;
}

static void refuse_hit(struct build *b, const struct path_request *r, const struct danger_hit *h)
{
	bool offered = (h->place->flags & (DANGER_NEVER | DANGER_DENIED)) == 0 && r->real == NULL;

	if (offered && is_lifted(b, r)) {
		return;
	}
	auto_free char *why = explain_hit(b, h);
	auto_free char *remedy = NULL;

	if ((h->place->flags & DANGER_NEVER) != 0) {
		remedy = build_printf(
		        b, "this is never granted; %s",
		        h->place->instead != NULL && h->how != DANGER_CONTAINS ? h->place->instead
		        : h->how == DANGER_CONTAINS ? "name the directories in it that are needed"
		                                    : "use another place");
	} else if (r->real != NULL) {
		remedy = say_real(b, r);
	} else if ((h->place->flags & DANGER_DENIED) != 0 || r->origin == ORIGIN_PRESET) {
		auto_free char *word = build_word(b, r->text);
		remedy = build_printf(b, "the owner can grant it for one run: --%s %s",
		                      access_name(r->access), word != NULL ? word : "PATH");
	} else {
		remedy = say_grant(b, r);
	}
	build_refuse_request(b, r, why, remedy);
	if (offered) {
		build_offer(b, access_option(r->access), r->text);
	}
}

/* Returns the longest entry of the policy file's grants that is the requested path or contains it;
 * new. NULL: there is none. The text of the entry is compared with the real path, so that no
 * symlink widens an entry. Otherwise a skill that may write above an entry's path could put a
 * symlink to ~/.ssh in its place. */
static char *policy_entry(const struct build *b, const struct path_request *r,
                          const struct subject *s)
{
	static const enum policy_list LISTS[] = { POLICY_GRANT_WRITE, POLICY_GRANT_READ };
	size_t n = r->access == ACCESS_WRITE ? 1 : 2;
	auto_free char *whole = path_join(s->path, s->missing != NULL ? s->missing : "");
	auto_free char *best = NULL;

	for (size_t i = 0; whole != NULL && i < n; i++) {
		const struct mtext_list *l = &b->policy.lists[LISTS[i]];
		for (size_t k = 0; k < l->n; k++) {
			auto_free char *path = path_expand(b->owner, l->v[k].s);
			auto_free char *words = path != NULL ? resolve_words(b, path) : NULL;
			if (words == NULL) {
				return NULL;
			}
			if (path_beneath(whole, words) != NULL &&
			    (best == NULL || strlen(words) > strlen(best))) {
				free(best);
				best = steal_ptr(&words);
			}
		}
	}
	return steal_ptr(&best);
}

bool judge_policy_allows(const struct build *b, const struct path_request *r,
                         const struct subject *s)
{
	auto_free char *entry = policy_entry(b, r, s);

	return entry != NULL;
}

/* Finds a protected place (protect.h) in the path, where the host would later execute or read a
 * file. Returns the path from that place on (".git/hooks/a" for "x/.git/hooks/a"). If the path is
 * instead a directory that contains such places ("x/.git"), returns the name of the first one in
 * PROTECTED. NULL: there is no protected place. */
static const char *protected_part(const char *path)
{
	for (const char *s = strchr(path, '/'); s != NULL; s = strchr(s + 1, '/')) {
		const char *tail = s + 1;
		if (*tail != '\0' && protect_has_name(tail)) {
			return tail;
		}
		size_t len = strlen(tail);
		for (size_t i = 0; len > 0 && i < PROTECTED_COUNT; i++) {
			if (strncmp(PROTECTED[i].name, tail, len) == 0 &&
			    PROTECTED[i].name[len] == '/') {
				return PROTECTED[i].name;
			}
		}
	}
	return NULL;
}

static char *explain_protected(struct build *b, const char *part)
{
	return build_printf(b,
	                    "programs of the host later execute '%s', or read it as settings or "
	                    "instructions",
	                    part);
}

static void refuse_protected(struct build *b, const struct path_request *r, const char *part)
{
	if (is_lifted(b, r)) {
		return;
	}
	auto_free char *why = explain_protected(b, part);
	auto_free char *word = build_word(b, r->text);
	auto_free char *remedy = r->real != NULL
	                                 ? say_real(b, r)
	                                 : build_printf(b, "the owner can grant it: --write %s",
	                                                word != NULL ? word : "PATH");
	build_refuse_request(b, r, why, remedy);
	if (r->real == NULL) {
		build_offer(b, SSB_OPT_WRITE, r->text);
	}
}

static bool judge_protected(struct build *b, const struct path_request *r, const struct subject *s)
{
	auto_free char *whole = path_join(s->path, s->missing != NULL ? s->missing : "");
	const char *part =
	        whole != NULL && r->access == ACCESS_WRITE ? protected_part(whole) : NULL;

	b->failed |= whole == NULL;
	if (part != NULL) {
		refuse_protected(b, r, part);
	}
	return part == NULL;
}

/* Returns the hit that is the clearest reason, among the hits with one of the flags (0: all hits).
 * A hit with DANGER_IS is clearer than the others. */
static const struct danger_hit *best_hit(const struct danger_hits *hits, unsigned flags)
{
	const struct danger_hit *best = NULL;

	for (size_t i = 0; i < hits->n; i++) {
		const struct danger_hit *h = &hits->v[i];
		if ((flags == 0 || (h->place->flags & flags) != 0) &&
		    (best == NULL || (h->how == DANGER_IS && best->how != DANGER_IS))) {
			best = h;
		}
	}
	return best;
}

static bool is_loud(const struct danger_hits *hits)
{
	return ARRAY_HAS(e, hits->v, hits->n, (e->place->flags & DANGER_LOUD) != 0);
}

/* Adds a warning. `text` is NULL without memory; the build has then failed. */
static void tell_warning(struct build *b, const struct path_request *r, const char *text, bool loud)
{
	if (text != NULL && loud) {
		build_alarm(b, r->where, text);
	} else if (text != NULL) {
		build_warn(b, r->where, "%s", text);
	}
}

/* True for a request to read "/" by that name. Its grant leaves out the places that the sandbox
 * provides itself (whole.c). */
static bool is_whole(const struct path_request *r, const struct subject *s)
{
	return r->access == ACCESS_READ && s->missing == NULL && strcmp(s->path, "/") == 0;
}

/* Removes the hits with DANGER_NEVER, because a grant of "/" leaves out their places. */
static void forget_left_out(struct danger_hits *hits)
{
	size_t n = 0;

	for (size_t i = 0; i < hits->n; i++) {
		if ((hits->v[i].place->flags & DANGER_NEVER) == 0) {
			hits->v[n++] = hits->v[i];
		}
	}
	hits->n = n;
}

static void tell_whole(struct build *b, const struct path_request *r)
{
	char home[MAX_PATH_BYTES];

	path_pretty(b->owner, b->owner->home, home, sizeof(home));
	auto_free char *text = build_printf(
	        b,
	        "read / opens the whole machine to the skill: every file that you can read, "
	        "except in %s, /proc, /dev, /etc and the temporary directories, of which the skill "
	        "gets its own",
	        home);
	tell_warning(b, r, text, true);
}

static bool judge_manifest(struct build *b, const struct path_request *r, const struct subject *s,
                           struct danger_hits *hits)
{
	const struct danger_hit *worst = best_hit(hits, DANGER_NEVER);
	if (worst == NULL) {
		worst = best_hit(hits, DANGER_DENIED);
	}
	if (worst != NULL) {
		refuse_hit(b, r, worst);
		return false;
	}
	auto_free char *entry = policy_entry(b, r, s);
	if (entry != NULL) {
		/* An entry grants a protected place only if the path of the entry shows that place
		 * (protected_part()). */
		if (protected_part(entry) == NULL && !judge_protected(b, r, s)) {
			return false;
		}
		if (hits->n > 0) {
			auto_free char *text = build_printf(b, "%s %s: granted by the policy file",
			                                    access_name(r->access), r->text);
			tell_warning(b, r, text, is_loud(hits));
		}
		return true;
	}
	if (hits->n > 0) {
		refuse_hit(b, r, best_hit(hits, 0));
		return false;
	}
	return judge_protected(b, r, s);
}

/* True if the request leads to a hidden place, and `words`, the path as the owner wrote it, is
 * itself the name of a hidden place: ~/.vimrc, a symlink to ~/.dotfiles/vimrc. Such a symlink is
 * trusted, because no skill can write there. */
static bool names_hidden(const struct build *b, const char *words, const struct danger_hits *hits)
{
	const char *rest = path_beneath(words, b->owner->home);
	size_t n = rest != NULL ? unlisted_length(rest) : 0;

	return n > 0 && rest[n] == '\0' && (hits->v[0].place->flags & DANGER_HIDDEN) != 0;
}

/* Refuses a path with a symlink that leads to a dangerous or protected place, if the path that the
 * owner wrote does not show that. Returns true if it was refused. */
static bool refuse_led(struct build *b, const struct path_request *r,
                       const struct danger_hits *hits)
{
	if (r->words == NULL) {
		return false;
	}
	if (!danger_spelt(hits, r->words) && !names_hidden(b, r->words, hits)) {
		refuse_hit(b, r, best_hit(hits, 0));
		return true;
	}
	const char *part = r->access == ACCESS_WRITE ? protected_part(r->real) : NULL;
	if (part == NULL || protected_part(r->words) != NULL) {
		return false;
	}
	refuse_protected(b, r, part);
	return true;
}

/* A preset cannot give a dangerous place, because the owner may not know what is in the preset. A
 * place that is dangerous only because its name is hidden does not count. Returns true if the place
 * was refused. */
static bool refuse_preset(struct build *b, const struct path_request *r,
                          const struct danger_hits *hits)
{
	const struct danger_hit *h = best_hit(hits, ~(unsigned)DANGER_HIDDEN);

	if (r->origin != ORIGIN_PRESET || h == NULL || (h->place->flags & DANGER_HIDDEN) != 0) {
		return false;
	}
	refuse_hit(b, r, h);
	return true;
}

/* Judges the owner's request: accepts the dangerous places that its path names, and warns about
 * what the grant opens. */
static bool judge_owner(struct build *b, const struct path_request *r,
                        const struct danger_hits *hits)
{
	auto_buf list = { 0 };
	size_t n = 0;

	if (best_hit(hits, DANGER_NEVER) != NULL) {
		refuse_hit(b, r, best_hit(hits, DANGER_NEVER));
		return false;
	}
	if (refuse_led(b, r, hits) || refuse_preset(b, r, hits)) {
		return false;
	}
	buf_init(&list, 2048);
	for (size_t i = 0; i < hits->n; i++) {
		const struct place *p = hits->v[i].place;
		char pretty[MAX_PATH_BYTES];
		bool covered = hits->v[i].how == DANGER_CONTAINS && (p->flags & DANGER_OWN) != 0;
		if (!p->exists || covered || (p->flags & (DANGER_DENIED | DANGER_HIDDEN)) != 0) {
			continue;
		}
		path_pretty(b->owner, p->path, pretty, sizeof(pretty));
		if (n < 6) {
			buf_addf(&list, "%s%s (%s)", n > 0 ? ", " : "", pretty, p->why);
		}
		n++;
	}
	if (n > 6) {
		buf_addf(&list, " and %zu more", n - 6);
	}
	if (n > 0) {
		auto_free char *text = build_printf(
		        b, "%s %s gives the skill access to: %s", access_name(r->access), r->text,
		        list.data != NULL && !list.failed ? list.data : "dangerous places");
		tell_warning(b, r, text, is_loud(hits));
	}
	return true;
}

static bool refuse_unseen(struct build *b, const struct path_request *r)
{
	auto_free char *why = build_printf(b, "it cannot be examined: %s", strerrordesc_np(errno));

	build_refuse_request(b, r, why,
	                     "check that /proc is mounted and that you may enter the path");
	return false;
}

/* Finds the dangerous places that the subject is, contains or lies in. Returns -1 with errno. */
static int find_hits(struct build *b, const struct path_request *r, const struct subject *s,
                     struct danger_room *room, struct danger_hits *ret)
{
	if (danger_judge(b->danger, s, r->access, ret) < 0 ||
	    (s->missing == NULL &&
	     danger_judge_mounts(b->danger, danger_mounts(b->danger), s, r->access, ret) < 0)) {
		return -1;
	}
	/* The table gives better reasons, so other places are looked up only if the table has no
	 * hit. */
	return ret->n == 0 ? unlisted_judge(b, r, s, room, ret) : 0;
}

/* True for a file that keeps passwords or keys in any directory: .env, .env.local, .netrc. */
static bool keeps_secrets(const char *path)
{
	static const char *const NAMES[] = { ".env",   ".netrc",  ".git-credentials",
		                             ".npmrc", ".pypirc", ".pgpass" };
	const char *name = strrchr(path, '/');

	name = name != NULL ? name + 1 : path;
	return strncmp(name, ".env.", strlen(".env.")) == 0 ||
	       ARRAY_HAS(e, NAMES, ARRAY_LEN(NAMES), strcmp(*e, name) == 0);
}

char *judge_named(struct build *b, const struct path_request *r, const struct subject *s,
                  bool *ret_never)
{
	auto_free char *whole = path_join(s->path, s->missing != NULL ? s->missing : "");
	struct danger_hits hits;
	struct danger_room room;

	if (whole == NULL || build_danger(b, r->access) == NULL) {
		b->failed = true;
		return NULL;
	}
	if (find_hits(b, r, s, &room, &hits) < 0) {
		return build_printf(b, "it cannot be examined: %s", strerrordesc_np(errno));
	}
	if (hits.n > 0) {
		const struct danger_hit *never = best_hit(&hits, DANGER_NEVER | DANGER_OWN);
		*ret_never = never != NULL && ((never->place->flags & DANGER_NEVER) != 0 ||
		                               never->how != DANGER_CONTAINS);
		return explain_hit(b, never != NULL ? never : best_hit(&hits, 0));
	}
	if (keeps_secrets(whole)) {
		return build_printf(b, "files of this name keep passwords or keys");
	}
	const char *part = r->access == ACCESS_WRITE ? protected_part(whole) : NULL;
	return part != NULL ? explain_protected(b, part) : NULL;
}

bool judge_request(struct build *b, const struct path_request *r, const struct subject *s)
{
	struct danger_hits hits;
	struct danger_room room;

	assert(r->text != NULL && r->where != NULL && s->path != NULL);
	if (r->origin == ORIGIN_CACHE) {
		return true; /* a directory of the runtime's own that no other request can name */
	}
	if (build_danger(b, r->access) == NULL) {
		return false;
	}
	if (find_hits(b, r, s, &room, &hits) < 0) {
		return refuse_unseen(b, r);
	}
	if (is_whole(r, s)) {
		forget_left_out(&hits);
		if (r->origin == ORIGIN_MANIFEST ? !judge_manifest(b, r, s, &hits)
		                                 : refuse_led(b, r, &hits)) {
			return false;
		}
		tell_whole(b, r);
		return true;
	}
	return r->origin == ORIGIN_MANIFEST ? judge_manifest(b, r, s, &hits)
	                                    : judge_owner(b, r, &hits);
}
