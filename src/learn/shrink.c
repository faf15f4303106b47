/* shrink.c - finds unused declarations, and writes the patch. */
#include "learn/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "learn/propose.h"

static bool add_item(struct shrink *s, enum need_kind kind, const struct mtext *at, uint16_t port)
{
	if (!ARRAY_MORE(s->v, s->n)) {
		return false;
	}
	s->v[s->n++] = (struct unused){ kind, at->s, at->line, port };
	return true;
}

/* Returns true if a run used the rule on this port. If `port` is 0, any port counts, and so does
 * a lookup without a connection. */
static bool is_rule_used(const struct egress_rule *r, const struct needs *seen, uint16_t port)
{
	return ARRAY_HAS(n, seen->v, seen->n,
	                 !n->hint && cover_rule(r, n) && (port == 0 || n->port == port));
}

/* Returns true if the path was used. For a path that may be written, reading it is also a use. */
static bool is_path_used(const struct mtext *at, const struct needs *seen)
{
	return ARRAY_HAS(n, seen->v, seen->n,
	                 !n->hint && (n->kind == NEED_READ || n->kind == NEED_WRITE) &&
	                         cover_path(at->s, seen->home, n));
}

static bool is_variable_used(const struct mtext *at, const struct needs *seen)
{
	return ARRAY_HAS(n, seen->v, seen->n,
	                 n->kind == NEED_ENV && !n->hint && !n->absent &&
	                         strcmp(at->s, n->value) == 0);
}

static bool shrink_list(struct shrink *s, enum need_kind kind, const struct mtext_list *from,
                        struct mtext_list *to, const struct needs *seen)
{
	*to = (struct mtext_list){ calloc(from->n + 1, sizeof(to->v[0])), 0 };
	for (size_t i = 0; to->v != NULL && i < from->n; i++) {
		const struct mtext *at = &from->v[i];
		if (kind == NEED_ENV ? is_variable_used(at, seen) : is_path_used(at, seen)) {
			to->v[to->n++] = *at;
		} else if (!add_item(s, kind, at, 0)) {
			return false;
		}
	}
	return to->v != NULL;
}

/* Removes the ports of a rule that were not used. If none of its ports was seen in use, keeps
 * all of them. */
static bool shrink_ports(struct shrink *s, const struct egress_rule *from, struct egress_rule *to,
                         const struct needs *seen)
{
	size_t used = 0;

	for (size_t i = 0; i < from->n_ports; i++) {
		used += is_rule_used(from, seen, from->ports[i]);
	}
	to->ports = calloc(from->n_ports + 1, sizeof(to->ports[0]));
	to->n_ports = 0;
	for (size_t i = 0; to->ports != NULL && i < from->n_ports; i++) {
		if (used == 0 || is_rule_used(from, seen, from->ports[i])) {
			to->ports[to->n_ports++] = from->ports[i];
		} else if (!add_item(s, NEED_NETWORK, &from->domain, from->ports[i])) {
			return false;
		}
	}
	return to->ports != NULL;
}

static bool shrink_rules(struct shrink *s, const struct manifest *m, const struct needs *seen)
{
	s->rest.egress = calloc(m->n_egress + 1, sizeof(m->egress[0]));
	s->rest.n_egress = 0;
	for (size_t i = 0; s->rest.egress != NULL && i < m->n_egress; i++) {
		const struct egress_rule *r = &m->egress[i];
		if (!is_rule_used(r, seen, 0)) {
			if (!add_item(s, NEED_NETWORK, &r->domain, 0)) {
				return false;
			}
			continue;
		}
		struct egress_rule *to = &s->rest.egress[s->rest.n_egress++];
		*to = *r;
		if (!shrink_ports(s, r, to, seen)) {
			return false;
		}
	}
	return s->rest.egress != NULL;
}

/* Keeps only the access with which a run used the files that its arguments named. */
static bool shrink_arguments(struct shrink *s, const struct manifest *m, const struct needs *seen)
{
	struct mtext at = { .s = (char *)(uintptr_t)named_files_name(m->arguments),
		            .line = m->arguments_at.line };

	s->rest.arguments = NAMED_NOTHING;
	for (size_t i = 0; i < seen->n; i++) {
		const struct need *n = &seen->v[i];
		enum named_files used =
		        n->kind == NEED_ARGUMENTS ? named_files_from(n->value) : NAMED_NOTHING;
		used = used < m->arguments ? used : m->arguments;
		s->rest.arguments = used > s->rest.arguments ? used : s->rest.arguments;
	}
	return s->rest.arguments == m->arguments || add_item(s, NEED_ARGUMENTS, &at, 0);
}

int shrink_find(const struct manifest *m, const struct needs *seen, struct shrink *ret)
{
	struct shrink s = { .rest = *m };
	const struct mtext_list none = { 0 };

	s.rest.egress = NULL;
	s.rest.read = s.rest.write = s.rest.env = none;
	if (!shrink_rules(&s, m, seen) ||
	    !shrink_list(&s, NEED_READ, &m->read, &s.rest.read, seen) ||
	    !shrink_list(&s, NEED_WRITE, &m->write, &s.rest.write, seen) ||
	    !shrink_arguments(&s, m, seen) ||
	    !shrink_list(&s, NEED_ENV, &m->env, &s.rest.env, seen)) {
		shrink_done(&s);
		return -1;
	}
	*ret = s;
	return 0;
}

void shrink_done(struct shrink *s)
{
	for (size_t i = 0; s->rest.egress != NULL && i < s->rest.n_egress; i++) {
		free(s->rest.egress[i].ports);
	}
	free(s->rest.egress);
	free(s->rest.read.v);
	free(s->rest.write.v);
	free(s->rest.env.v);
	free(s->v);
	*s = (struct shrink){ 0 };
}
