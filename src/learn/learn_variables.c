/* learn_variables.c - variables in a learning run, and which of them are optional.
 *
 * No record shows which variables a skill reads. So the rounds try it: first without any value,
 * then with made-up values. If the skill fails with these, further rounds leave out one variable at
 * a time. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/learn_priv.h"

bool learn_variable_known(const struct learner *t, const char *name)
{
	return ARRAY_HAS(v, t->variables, t->n_variables, strcmp(v->name, name) == 0);
}

/* Returns true if the owner gives the variable with --env NAME or --env NAME=VALUE. */
static bool is_of_owner(const struct learner *t, const char *name)
{
	char *const *all = t->s->options->env.v;
	size_t len = strlen(name);

	return ARRAY_HAS(e, all, t->n_owner_env,
	                 strncmp(*e, name, len) == 0 && ((*e)[len] == '=' || (*e)[len] == '\0'));
}

int learn_variable_add(struct learner *t, const char *name, bool empty, struct ssb_error *err)
{
	auto_buf pair = BUF(MAX_SCALAR_BYTES);

	if (learn_variable_known(t, name) || is_of_owner(t, name) || check_env_name(name) != NULL ||
	    t->n_variables == MAX_ENV_VARS) {
		return 0; /* if there are too many variables, this one gets no value */
	}
	struct learn_variable *all =
	        realloc(t->variables, (t->n_variables + 1) * sizeof(t->variables[0]));
	struct learn_variable new = { .name = strdup(name) };
	t->variables = all != NULL ? all : t->variables;
	buf_addf(&pair, "%s=", name);
	bool made = !empty && decoy_variable(&t->decoys, name, &pair);
	new.pair = made && !pair.failed ? strdup(pair.data) : NULL;
	if (all == NULL || new.name == NULL || (made && new.pair == NULL)) {
		free(new.name);
		free(new.pair);
		return learn_no_memory(err);
	}
	t->variables[t->n_variables++] = new;
	return 0;
}

static bool is_given(const struct learn_variable *v)
{
	return v->pair != NULL && !v->left_out;
}

size_t learn_variables_given(const struct learner *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_variables; i++) {
		n += is_given(&t->variables[i]);
	}
	return n;
}

/* Removes what an earlier round added to the owner's own list. */
static void drop_values(struct learner *t)
{
	struct string_list *env = &t->s->options->env;

	while (env->n > t->n_owner_env) {
		free(env->v[--env->n]);
		env->v[env->n] = NULL;
	}
}

int learn_variables_set(struct learner *t, struct ssb_error *err)
{
	drop_values(t);
	for (size_t i = 0; i < t->n_variables && !t->bare; i++) {
		const struct learn_variable *v = &t->variables[i];
		if (is_given(v) && ssb_options_set(t->s->options, SSB_OPT_ENV, v->pair, err) != 0) {
			return -1;
		}
	}
	return 0;
}

void learn_variables_mark(const struct learner *t, struct needs *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct need *n = &s->v[i];
		n->optional |= n->kind == NEED_ENV &&
		               ARRAY_HAS(v, t->variables, t->n_variables,
		                         v->left_out && strcmp(v->name, n->value) == 0);
	}
}

void learn_variables_done(struct learner *t)
{
	drop_values(t);
	for (size_t i = 0; i < t->n_variables; i++) {
		free(t->variables[i].name);
		free(t->variables[i].pair);
	}
	free(t->variables);
}
