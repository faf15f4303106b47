/* cover.c - decides whether a manifest covers the needs of a skill. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "egress/table.h"
#include "learn/propose.h"
#include "policy/path.h"
#include "policy/view.h"

/* Returns true if the rule's protocol allows that of the need. Plain TCP allows every protocol
 * over TCP. */
static bool carries_protocol(enum protocol rule, enum protocol need)
{
	return rule == need || (rule == PROTO_TCP && need != PROTO_UDP);
}

bool cover_rule(const struct egress_rule *r, const struct need *n)
{
	bool lookup = n->port == 0; /* the need is only a lookup of the host */

	return n->kind == NEED_NETWORK &&
	       (lookup ||
	        (egress_rule_has_port(r, n->port) && carries_protocol(r->protocol, n->protocol))) &&
	       egress_name_matches(r, n->value);
}

/* Returns the part of `path` after the home ("~"), or NULL if the path is not in the home. */
static const char *in_home(const char *path, const char *home)
{
	if (path[0] == '~') {
		return path + 1;
	}
	size_t len = home != NULL && strcmp(home, "/") != 0 ? strlen(home) : 0;
	return len > 0 && strncmp(path, home, len) == 0 && (path[len] == '/' || path[len] == '\0')
	               ? path + len
	               : NULL;
}

bool cover_path(const char *declared, const char *home, const struct need *n)
{
	const char *a = in_home(declared, home);
	const char *b = in_home(n->value, home);

	if (a != NULL && b != NULL) {
		size_t len = strlen(a);
		return strncmp(a, b, len) == 0 && (b[len] == '/' || b[len] == '\0');
	}
	return a == NULL && b == NULL && path_beneath(n->value, declared) != NULL;
}

static bool list_covers(const struct mtext_list *l, const char *home, const struct need *n)
{
	return ARRAY_HAS(e, l->v, l->n, cover_path(e->s, home, n));
}

bool cover_manifest(const struct manifest *m, const char *home, const struct need *n)
{
	switch (n->kind) {
	case NEED_NETWORK:
		return ARRAY_HAS(rule, m->egress, m->n_egress, cover_rule(rule, n));
	case NEED_READ:
		return view_is_system(n->value) || list_covers(&m->read, home, n) ||
		       list_covers(&m->write, home, n);
	case NEED_WRITE:
		return list_covers(&m->write, home, n);
	case NEED_ARGUMENTS:
		return m->arguments >= named_files_from(n->value);
	case NEED_ENV:
		return mtext_list_has(&m->env, n->value);
	case NEED_PROGRAM:
		/* A manifest does not declare programs. */
		return true;
	case NEED_SYSCALL:
		return n->profile == PROFILE_DEFAULT ? m->profile != PROFILE_STRICT
		                                     : (int)m->profile == n->profile;
	}
	return false;
}

int propose_uncovered(const struct manifest *m, const struct needs *n, size_t **ret, size_t *ret_n)
{
	size_t *v = calloc(n->n + 1, sizeof(*v));
	size_t found = 0;

	if (v == NULL) {
		return -1;
	}
	for (size_t i = 0; i < n->n; i++) {
		if (!cover_manifest(m, n->home, &n->v[i])) {
			v[found++] = i;
		}
	}
	*ret = v;
	*ret_n = found;
	return 0;
}
