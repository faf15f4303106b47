/* propose.c - writes the proposed manifest, line by line. */
#include "learn/propose.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "manifest/write.h"
#include "policy/danger.h"
#include "policy/path.h"

/* A manifest that is being made. It owns its lists. Its texts are borrowed from the base and the
 * needs, or are in `owned`. */
struct proposal {
	struct manifest m;
	const struct needs *needs;
	const char *why[WRITE_ENV + 1][MAX_LIST_ITEMS];
	struct write_aside asides[WRITE_LISTS * (MAX_PROPOSED_NOTE + 1)];
	size_t n_asides;
	size_t left[WRITE_LISTS]; /* per list: comments for which there was no room */
	char **owned;
	size_t n_owned;
	bool nomem;
};

static void proposal_free(struct proposal *d)
{
	if (d == NULL) {
		return;
	}
	for (size_t i = 0; i < d->m.n_egress; i++) {
		free(d->m.egress[i].ports);
	}
	for (size_t i = 0; i < d->n_owned; i++) {
		free(d->owned[i]);
	}
	free(d->owned);
	free(d->m.egress);
	free(d->m.read.v);
	free(d->m.write.v);
	free(d->m.env.v);
	free(d);
}

OWN_FREEP(proposal_freep, struct proposal, proposal_free)

/* Takes `s`, stores it in d->owned, and returns it. NULL: out of memory. */
static char *keep_text(struct proposal *d, char *s)
{
	char **v = s != NULL ? realloc(d->owned, (d->n_owned + 1) * sizeof(*v)) : NULL;

	if (v == NULL) {
		free(s);
		d->nomem = true;
		return NULL;
	}
	d->owned = v;
	v[d->n_owned++] = s;
	return s;
}

/* ---- comments ------------------------------------------------------------------ */

static enum write_list list_of(const struct need *n)
{
	static const enum write_list LISTS[] = {
		[NEED_NETWORK] = WRITE_EGRESS, [NEED_READ] = WRITE_READ,
		[NEED_WRITE] = WRITE_WRITE,    [NEED_ENV] = WRITE_ENV,
		[NEED_PROGRAM] = WRITE_OTHER,  [NEED_SYSCALL] = WRITE_OTHER,
		[NEED_ARGUMENTS] = WRITE_READ,
	};

	return LISTS[n->kind];
}

static char *aside_text(const struct need *n)
{
	char *text = NULL;
	int len;

	if (n->kind == NEED_NETWORK && n->port != 0) {
		len = asprintf(&text, "domain: %s, port %u", n->value, (unsigned)n->port);
	} else if (n->kind == NEED_NETWORK) {
		len = asprintf(&text, "domain: %s", n->value);
	} else if (n->kind == NEED_PROGRAM || n->kind == NEED_SYSCALL) {
		len = asprintf(&text, "%s %s", need_kind_name(n->kind), n->value);
	} else {
		return strdup(n->value);
	}
	return len < 0 ? NULL : text;
}

/* Adds a comment for a need that is not proposed, such as "run 0a1b2c3d: it holds SSH keys". */
static void set_aside(struct proposal *d, const struct need *n, const char *reason)
{
	enum write_list list = list_of(n);
	const char *from = n->why != NULL ? n->why : "";
	size_t told = 0;
	char *why = NULL;

	for (size_t i = 0; i < d->n_asides; i++) {
		told += d->asides[i].list == list;
	}
	if (told >= MAX_PROPOSED_NOTE) {
		d->left[list]++;
		return;
	}
	if (asprintf(&why, "%s%s%s", from, from[0] != '\0' ? ": " : "", reason) < 0) {
		why = NULL;
	}
	const char *text = keep_text(d, aside_text(n));
	const char *because = keep_text(d, why);
	if (text != NULL && because != NULL) {
		d->asides[d->n_asides++] = (struct write_aside){ list, text, because };
	}
}

static void tell_left(struct proposal *d)
{
	for (int list = 0; list < WRITE_LISTS; list++) {
		char *text = NULL;
		if (d->left[list] == 0) {
			continue;
		}
		if (asprintf(&text, "... and %zu more", d->left[list]) < 0) {
			text = NULL;
		}
		const char *kept = keep_text(d, text);
		if (kept != NULL) {
			d->asides[d->n_asides++] =
			        (struct write_aside){ (enum write_list)list, kept, "not shown" };
		}
	}
}

/* ---- the base --------------------------------------------------------------------- */

/* Returns where the line was declared, as FILE:LINE. Returns only "declared before" if the
 * proposal replaces this file. */
static const char *why_declared(struct proposal *d, const struct mtext *at)
{
	char *text = NULL;

	if (strcmp(path_base(d->m.file), MANIFEST_FILE) == 0) {
		return "declared before";
	}
	if (asprintf(&text, "%s:%u", path_base(d->m.file), at->line) < 0) {
		text = NULL;
	}
	return keep_text(d, text);
}

/* Returns why a declared line is kept: where it was seen in use. */
static const char *why_kept(struct proposal *d, const struct mtext *at,
                            const struct egress_rule *rule, enum need_kind kind)
{
	for (size_t i = 0; i < d->needs->n; i++) {
		const struct need *n = &d->needs->v[i];
		bool file = n->kind == kind || (n->kind == NEED_READ && kind == NEED_WRITE);
		bool used = rule != NULL       ? cover_rule(rule, n)
		            : kind == NEED_ENV ? n->kind == kind && strcmp(at->s, n->value) == 0
		                               : file && cover_path(at->s, d->needs->home, n);
		if (used && n->why != NULL) {
			return n->why;
		}
	}
	return why_declared(d, at);
}

static bool copy_list(struct proposal *d, struct mtext_list *to, const struct mtext_list *from,
                      enum write_list list, enum need_kind kind)
{
	*to = (struct mtext_list){ calloc(MAX_LIST_ITEMS, sizeof(to->v[0])), from->n };
	for (size_t i = 0; to->v != NULL && i < from->n; i++) {
		to->v[i] = from->v[i];
		d->why[list][i] = why_kept(d, &from->v[i], NULL, kind);
	}
	to->n = to->v != NULL ? from->n : 0;
	return to->v != NULL;
}

static bool copy_rules(struct proposal *d, const struct manifest *base)
{
	d->m.egress = calloc(MAX_LIST_ITEMS, sizeof(d->m.egress[0]));
	d->m.n_egress = 0;
	for (size_t i = 0; d->m.egress != NULL && i < base->n_egress; i++) {
		struct egress_rule *r = &d->m.egress[d->m.n_egress];
		*r = base->egress[i];
		r->ports = calloc(MAX_LIST_ITEMS, sizeof(r->ports[0]));
		if (r->ports == NULL) {
			return false;
		}
		memcpy(r->ports, base->egress[i].ports, r->n_ports * sizeof(r->ports[0]));
		d->why[WRITE_EGRESS][d->m.n_egress++] = why_kept(d, &r->domain, r, NEED_NETWORK);
	}
	return d->m.egress != NULL;
}

static bool begin_draft(struct proposal *d, const struct manifest *base)
{
	d->m = *base;
	d->m.read = d->m.write = d->m.env = (struct mtext_list){ 0 };
	d->m.egress = NULL;
	d->m.n_egress = 0;
	bool ok = copy_rules(d, base);
	ok = ok && copy_list(d, &d->m.read, &base->read, WRITE_READ, NEED_READ);
	ok = ok && copy_list(d, &d->m.write, &base->write, WRITE_WRITE, NEED_WRITE);
	return ok && copy_list(d, &d->m.env, &base->env, WRITE_ENV, NEED_ENV);
}

static bool is_covered(const struct proposal *d, const struct need *n)
{
	return cover_manifest(&d->m, d->needs->home, n);
}

/* ---- files and variables ------------------------------------------------------------ */

/* Adds an item to a list of the manifest. If the list is full, add_rest() adds a comment about
 * the rest at the end. */
static void add_item(struct proposal *d, struct mtext_list *l, const struct need *n, char *value,
                     const char *why)
{
	if (l->n >= MAX_LIST_ITEMS) {
		return;
	}
	d->why[list_of(n)][l->n] = why;
	l->v[l->n++] = (struct mtext){ .s = value };
}

/* Returns the directory of the file if it should be proposed instead of its files, because many of
 * them are needed. Returns NULL if few are needed, or if the directory is dangerous or directly in
 * "/". */
static char *shared_dir(struct proposal *d, const struct need *n)
{
	enum access access = n->kind == NEED_WRITE ? ACCESS_WRITE : ACCESS_READ;

	if (!n->in_small_dir || needs_siblings(d->needs, n) < PROPOSE_SIBLINGS) {
		return NULL;
	}
	char *dir = keep_text(d, path_parent(n->value));
	return dir != NULL && !path_is_top(dir) && danger_around(dir, access) == NULL ? dir : NULL;
}

static void add_shared(struct proposal *d, struct mtext_list *l, const struct need *n, char *dir)
{
	char *why = NULL;

	if (asprintf(&why, "%s, and %zu more paths in this directory", n->why != NULL ? n->why : "",
	             needs_siblings(d->needs, n) - 1) < 0) {
		why = NULL;
	}
	const char *kept = keep_text(d, why);
	if (kept != NULL) {
		add_item(d, l, n, dir, kept);
	}
}

/* Returns true for a read of a file that does not exist. It needs no grant. */
static bool is_vain(const struct need *n)
{
	return n->kind == NEED_READ && n->missing;
}

/* Adds paths in alphabetical order, so that a directory comes before its files. Directories that
 * are proposed instead of their files are added first, because they may contain paths that come
 * before them. */
static void add_paths(struct proposal *d, enum need_kind kind)
{
	struct mtext_list *l = kind == NEED_WRITE ? &d->m.write : &d->m.read;

	for (int shared = 1; shared >= 0; shared--) {
		for (size_t i = 0; i < d->needs->n && !d->nomem; i++) {
			const struct need *n = &d->needs->v[i];
			if (n->kind != kind || n->danger != NULL || is_vain(n) ||
			    is_covered(d, n)) {
				continue;
			}
			char *dir = shared != 0 ? shared_dir(d, n) : NULL;
			if (dir != NULL) {
				add_shared(d, l, n, dir);
			} else if (shared == 0) {
				add_item(d, l, n, n->value, n->why);
			}
		}
	}
}

/* Drops each line that another line covers. */
static void drop_held(struct proposal *d, struct mtext_list *l, enum write_list list, size_t from)
{
	size_t kept = from;

	for (size_t i = from; i < l->n; i++) {
		struct need n = { .kind = list == WRITE_WRITE ? NEED_WRITE : NEED_READ,
			          .value = l->v[i].s };
		bool held = false;
		for (size_t k = from; k < l->n && !held; k++) {
			held = k != i && strlen(l->v[k].s) < strlen(l->v[i].s) &&
			       cover_path(l->v[k].s, d->needs->home, &n);
		}
		if (!held) {
			d->why[list][kept] = d->why[list][i];
			l->v[kept++] = l->v[i];
		}
	}
	l->n = kept;
}

static void add_arguments(struct proposal *d)
{
	for (size_t i = 0; i < d->needs->n; i++) {
		const struct need *n = &d->needs->v[i];
		if (n->kind == NEED_ARGUMENTS && !is_covered(d, n)) {
			d->m.arguments = named_files_from(n->value);
		}
	}
}

/* Returns the reason for a variable. The text also says if the variable may be unset. */
static const char *why_variable(struct proposal *d, const struct need *n)
{
	char *why = NULL;

	if (!n->optional || n->why == NULL) {
		return n->why;
	}
	return keep_text(d, asprintf(&why, "%s: optional", n->why) < 0 ? NULL : why);
}

static void add_variables(struct proposal *d)
{
	for (size_t i = 0; i < d->needs->n; i++) {
		const struct need *n = &d->needs->v[i];
		if (n->kind == NEED_ENV && n->danger == NULL && !is_covered(d, n)) {
			add_item(d, &d->m.env, n, n->value, why_variable(d, n));
		}
	}
}

/* ---- the network --------------------------------------------------------------------- */

static struct egress_rule *rule_for(struct proposal *d, const struct need *n,
                                    enum protocol protocol)
{
	for (size_t i = 0; i < d->m.n_egress; i++) {
		struct egress_rule *r = &d->m.egress[i];
		if (r->domain.line == 0 && r->protocol == protocol &&
		    strcmp(r->domain.s, n->value) == 0 && r->n_ports < MAX_LIST_ITEMS) {
			return r;
		}
	}
	if (d->m.n_egress >= MAX_LIST_ITEMS) {
		return NULL;
	}
	struct egress_rule *r = &d->m.egress[d->m.n_egress];
	*r = (struct egress_rule){ .domain = { .s = n->value },
		                   .protocol = protocol,
		                   .ports = calloc(MAX_LIST_ITEMS, sizeof(r->ports[0])) };
	if (r->ports == NULL) {
		d->nomem = true;
		return NULL;
	}
	d->why[WRITE_EGRESS][d->m.n_egress++] = n->why;
	return r;
}

static void add_host(struct proposal *d, const struct need *n)
{
	struct egress_rule *r = rule_for(d, n, n->port != 0 ? n->protocol : PROTO_TLS);

	if (r != NULL) {
		r->ports[r->n_ports++] = n->port != 0 ? n->port : 443;
	}
}

/* Adds rules for plain TCP first, because they also allow other protocols. Adds hosts of which only
 * the name is known last. */
static void add_network(struct proposal *d)
{
	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < d->needs->n && !d->nomem; i++) {
			const struct need *n = &d->needs->v[i];
			int of = n->port == 0 ? 2 : n->protocol == PROTO_TCP ? 0 : 1;
			if (n->kind == NEED_NETWORK && n->danger == NULL && of == turn &&
			    !is_covered(d, n)) {
				add_host(d, n);
			}
		}
	}
}

/* ---- the whole ------------------------------------------------------------------------ */

static void add_rest(struct proposal *d)
{
	for (size_t i = 0; i < d->needs->n && !d->nomem; i++) {
		const struct need *n = &d->needs->v[i];
		if (n->kind == NEED_PROGRAM && n->hint) {
			set_aside(d, n, "the manifest needs no line for a program of the system");
		} else if (n->kind == NEED_SYSCALL && n->danger == NULL && n->profile >= 0) {
			d->m.profile = (enum profile)n->profile;
		} else if (n->kind != NEED_PROGRAM && !is_covered(d, n)) {
			set_aside(d, n,
			          n->danger != NULL ? n->danger
			          : is_vain(n)      ? "it does not exist"
			                            : "the manifest's list is full");
		}
	}
	tell_left(d);
}

static void write_draft(const struct proposal *d, const char *head, bool notes, struct buf *out)
{
	struct write_notes n = { .head = head,
		                 .asides = d->asides,
		                 .n_asides = notes ? d->n_asides : 0 };

	for (int i = 0; notes && i <= WRITE_ENV; i++) {
		n.why[i] = d->why[i];
	}
	manifest_write(out, &d->m, &n);
}

int propose_manifest(const struct manifest *base, const struct needs *n, const char *head,
                     struct buf *out)
{
	AUTO(proposal_freep) struct proposal *d = calloc(1, sizeof(*d));
	auto_buf text;

	buf_init(&text, MAX_YAML_BYTES);
	if (d == NULL) {
		return -1;
	}
	assert(base->name != NULL && base->file != NULL);
	d->needs = n;
	if (!begin_draft(d, base)) {
		return -1;
	}
	add_paths(d, NEED_WRITE); /* writes first, because a grant to write also allows reading */
	drop_held(d, &d->m.write, WRITE_WRITE, base->write.n);
	add_paths(d, NEED_READ);
	drop_held(d, &d->m.read, WRITE_READ, base->read.n);
	add_arguments(d);
	add_variables(d);
	add_network(d);
	add_rest(d);
	if (d->nomem) {
		return -1;
	}
	write_draft(d, head, true, &text);
	if (text.failed) { /* reasons are hostile text and can be too long: leave them out */
		buf_reset(&text);
		write_draft(d, head, false, &text);
	}
	if (text.failed) {
		return -1;
	}
	buf_add(out, text.data, text.len);
	return out->failed ? -1 : 0;
}
