/* preset.c - reads net-sets.yaml and presets. */
#include "policy/preset.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/suggest.h"
#include "manifest/check.h"
#include "manifest/levels.h"
#include "manifest/resources.h"
#include "os/file.h"
#include "policy/browser_yaml.h"
#include "policy/git_yaml.h"
#include "policy/go_yaml.h"
#include "policy/java_yaml.h"
#include "policy/net_sets_yaml.h"
#include "policy/node_yaml.h"
#include "policy/options.h"
#include "policy/owner.h"
#include "policy/path.h"
#include "policy/python_yaml.h"
#include "policy/rust_yaml.h"

const char *const PRESET_NAMES[] = { "browser", "git", "go", "java", "node", "python", "rust" };
const size_t N_PRESET_NAMES = ARRAY_LEN(PRESET_NAMES);
static const char *const PRESET_TEXTS[] = { BROWSER_YAML, GIT_YAML,    GO_YAML,  JAVA_YAML,
	                                    NODE_YAML,    PYTHON_YAML, RUST_YAML };
_Static_assert(ARRAY_LEN(PRESET_NAMES) == ARRAY_LEN(PRESET_TEXTS), "every preset has a text");

#define MAX_PRESET_NAME 31

/* ---- sets of hosts --------------------------------------------------------------------------- */

/* Fills `err` with the names that are known, and the one that was probably meant. */
static int fail_unknown(enum ssb_option what, const char *word, const char *const *names, size_t n,
                        const char *more, struct ssb_error *err)
{
	const char *mark = word[0] == '@' ? "@" : "";
	const char *near = suggest(word + strlen(mark), strlen(word + strlen(mark)), names, n,
	                           sizeof(names[0]));
	auto_buf all = BUF(sizeof(err->text));

	for (size_t i = 0; i < n; i++) {
		buf_addf(&all, "%s%s%s", i > 0 ? ", " : "", mark, names[i]);
	}
	return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what),
	                "'%.40s' is unknown; %s%s%s%sknown are %s%s", word,
	                near != NULL ? "did you mean " : "", near != NULL ? mark : "",
	                near != NULL ? near : "", near != NULL ? "? " : "", all.data, more);
}

static int unknown_set(const char *value, const struct ynode *sets, struct ssb_error *err)
{
	const char *names[MAX_LIST_ITEMS] = { NULL };
	size_t n = 0;

	for (const struct ynode *s = sets->first; s != NULL && n < ARRAY_LEN(names); s = s->next) {
		names[n++] = s->key;
	}
	return fail_unknown(SSB_OPT_NET, value, names, n, "", err);
}

int preset_expand_net(const char *value, struct string_list *to, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(ynode_freep) struct ynode *root = NULL;

	if (value[0] != '@') {
		return string_list_add(to, value, MAX_GRANTS) == 0
		               ? 0
		               : ssb_fail(err, SSB_E_LIMIT, 0, options_flag(SSB_OPT_NET),
		                          "more than %d hosts are granted", MAX_GRANTS);
	}
	root = diags != NULL ? yaml_doc_parse("data/net-sets.yaml", NET_SETS_YAML,
	                                      sizeof(NET_SETS_YAML) - 1, diags)
	                     : NULL;
	if (root == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, options_flag(SSB_OPT_NET), "out of memory");
	}
	const struct ynode *set = ynode_get(root, value + 1);
	for (const struct ynode *h = set != NULL ? set->first : NULL; h != NULL; h = h->next) {
		if (preset_expand_net(h->text, to, err) != 0) {
			return -1;
		}
	}
	return set != NULL ? 0 : unknown_set(value, root, err);
}

const char *preset_check_net(const char *value, char **ret)
{
	AUTO(string_list_done) struct string_list hosts = { 0 };
	struct ssb_error err = { 0 };
	struct egress_rule rule;

	if (value[0] == '@') {
		return preset_expand_net(value, &hosts, &err) == 0
		               ? check_text(value, ret)
		               : "is not a known set of hosts; write a set such as @npm, or hosts";
	}
	const char *wrong = options_net(value, &rule);
	if (wrong == NULL) {
		free(rule.domain.s);
		free(rule.ports);
		return check_text(value, ret);
	}
	return wrong;
}

/* ---- the form of a preset -------------------------------------------------------------------- */

/* Reads a mapping of variables into a list of "NAME=VALUE". */
static void read_variables(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct string_list *l = at;

	if (n->kind != YNODE_MAP) {
		level_read_map(c, n, f, at); /* reports the error */
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		const struct field row = { .key = i->key };
		const char *problem = check_env_name(i->key);
		const char *text = values_node_text(c, i, &row);
		auto_free char *pair = NULL;

		if (problem != NULL) {
			report_add(c->rep, SSB_ERROR, i->key_line, i->key_col, "write NAME: VALUE",
			           "%s: this name %s", f->key, problem);
		} else if (text != NULL &&
		           (asprintf(&pair, "%s=%s", i->key, text) < 0 ||
		            (string_list_add(l, pair, MAX_ENV_VARS) != 0 && errno == ENOMEM))) {
			c->nomem = true;
		} else if (text != NULL && l->n == MAX_ENV_VARS && i->next != NULL) {
			report_add(c->rep, SSB_ERROR, i->line, i->col, "shorten the list",
			           "%s has more than %d variables", f->key, MAX_ENV_VARS);
			return;
		}
	}
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct preset, member)
#define LIMIT(name, unit, after, least, most, usual) \
	{ #name, values_read_number, AT(limits.name), .min = (least), .max = (uint64_t)(most) },
/* clang-format on */

static const struct field LIMIT_FIELDS[] = { RESOURCE_ROWS(LIMIT) };
static const struct level LIMIT_LEVEL = LEVEL("limits", LIMIT_FIELDS);
static const struct field TOP_FIELDS[] = {
	{ "net", values_read_texts, AT(net), .check = preset_check_net, .unique = true },
	{ "read", values_read_texts, AT(read), .check = check_path, .unique = true },
	{ "env", read_variables, AT(env) },
	{ "limits", level_read_map, 0, .level = &LIMIT_LEVEL },
	{ "cache", read_variables, AT(cache) },
};
static const struct level TOP_LEVEL = LEVEL("the top level", TOP_FIELDS);
static const struct level *const ALL_LEVELS[] = { &TOP_LEVEL, &LIMIT_LEVEL };

static const struct level_file PRESET = { ALL_LEVELS, ARRAY_LEN(ALL_LEVELS),
	                                  "write keys such as net:, env: or limits:",
	                                  "a preset must be a mapping" };

/* ---- presets --------------------------------------------------------------------------------- */

const char *preset_name_problem(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n == 0 || name[n] != '\0' || n > MAX_PRESET_NAME
	               ? "a preset's name has 1 to 31 lower-case letters, digits and hyphens"
	               : NULL;
}

/* Appends the text of the owner's file, or of the built-in preset, and sets *ret_file to its name,
 * new. */
static int read_preset(const struct owner *o, const char *name, struct buf *out, char **ret_file,
                       struct ssb_error *err)
{
	const char *const *known =
	        ARRAY_FIND(e, PRESET_NAMES, N_PRESET_NAMES, strcmp(*e, name) == 0);
	auto_free char *more = NULL;
	int missing = 1;

	if (asprintf(ret_file, "%s/presets/%s.yaml", o != NULL ? o->config_dir : "data", name) <
	            0 ||
	    asprintf(&more, ", and your own files: %s", *ret_file) < 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "preset", "out of memory");
	}
	if (o != NULL) {
		missing = owner_file_read(o, "preset", *ret_file, out, err);
	}
	if (missing > 0 && known == NULL) {
		return fail_unknown(SSB_OPT_PRESET, name, PRESET_NAMES, N_PRESET_NAMES, more, err);
	}
	if (missing > 0) {
		buf_adds(out, PRESET_TEXTS[known - PRESET_NAMES]);
	}
	return missing < 0 ? -1 : 0;
}

int preset_load(const struct owner *o, const char *name, struct preset *ret,
                struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(preset_done) struct preset p = { .name = strdup(name) };
	auto_free char *file = NULL;
	auto_buf text = BUF(MAX_YAML_BYTES);

	assert(preset_name_problem(name) == NULL);
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		*resource_in(&p.limits, &RESOURCES[i]) = OPTION_UNSET;
	}
	if (p.name == NULL || asprintf(&p.where, "preset %s", name) < 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "preset", "out of memory");
	}
	if (read_preset(o, name, &text, &file, err) != 0 ||
	    level_parse(&PRESET, file, text.data != NULL ? text.data : "", text.len, &p, diags,
	                err) != 0) {
		return -1;
	}
	*ret = p;
	p = (struct preset){ 0 };
	return 0;
}

void preset_done(struct preset *p)
{
	free(p->name);
	free(p->where);
	mtext_list_done(&p->net);
	mtext_list_done(&p->read);
	string_list_done(&p->env);
	string_list_done(&p->cache);
	*p = (struct preset){ 0 };
}
