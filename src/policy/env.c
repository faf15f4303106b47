/* env.c - the environment of the run. It starts empty. Then these are added: the declared variables
 * that exist, those that the owner gives, certificate bundles (ca.c), and HOME, TMPDIR, PATH and
 * LANG. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/asks.h"
#include "policy/build.h"
#include "policy/owner.h"
#include "policy/secrets.h"
#include "skill/programs.h"

enum env_kind {
	ENV_REFUSED, /* controls the loader or the runtime */
	ENV_USELESS, /* names something that is not in the sandbox */
};

#define BY_US                                                                                      \
	"the sandbox itself connects to hosts through your proxy; the skill cannot reach the "     \
	"proxy"

/* A final '_' makes a name a prefix. Credentials are in secrets.c. */
static const struct env_rule {
	const char *name;
	enum env_kind kind;
	const char *why;
} RULES[] = {
	{ "LD_", ENV_REFUSED, "it makes the loader run other code" },
	{ "GLIBC_TUNABLES", ENV_REFUSED, "it changes how the C library works" },
	{ "GCONV_PATH", ENV_REFUSED, "it makes the C library run other code" },
	{ "SKILLSANDBOX_", ENV_REFUSED, "it is for the runtime itself, not for skills" },
	{ "SSH_AUTH_SOCK", ENV_USELESS, "the socket that it names is not in the sandbox" },
	{ "SSH_AGENT_PID", ENV_USELESS, "the process that it names is not in the sandbox" },
	{ "GPG_AGENT_INFO", ENV_USELESS, "the socket that it names is not in the sandbox" },
	{ "DBUS_SESSION_BUS_ADDRESS", ENV_USELESS,
	  "the socket that it names is not in the sandbox" },
	{ "XDG_RUNTIME_DIR", ENV_USELESS, "the directory that it names is not in the sandbox" },
	{ "WAYLAND_DISPLAY", ENV_USELESS, "the socket that it names is not in the sandbox" },
	{ "DISPLAY", ENV_USELESS, "the socket that it names is not in the sandbox" },
	{ "XAUTHORITY", ENV_USELESS, "the file that it names is not in the sandbox" },
	{ "DOCKER_HOST", ENV_USELESS, "the socket that it names is not in the sandbox" },
	{ "http_proxy", ENV_USELESS, BY_US },
	{ "https_proxy", ENV_USELESS, BY_US },
	{ "all_proxy", ENV_USELESS, BY_US },
	{ "no_proxy", ENV_USELESS, BY_US },
	{ "HTTP_PROXY", ENV_USELESS, BY_US },
	{ "HTTPS_PROXY", ENV_USELESS, BY_US },
	{ "ALL_PROXY", ENV_USELESS, BY_US },
	{ "NO_PROXY", ENV_USELESS, BY_US },
};

static const struct env_rule *find_rule(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(RULES); i++) {
		const char *rule = RULES[i].name;
		size_t len = strlen(rule);
		if (rule[len - 1] == '_' ? strncmp(rule, name, len) == 0
		                         : strcmp(rule, name) == 0) {
			return &RULES[i];
		}
	}
	return NULL;
}

const char *asks_env(const char *name)
{
	const struct env_rule *rule = find_rule(name);

	if (rule != NULL) {
		return rule->why;
	}
	switch (secret_of(name, NULL)) {
	case SECRET_CREDENTIAL:
		return "it is a credential of the owner";
	case SECRET_OWNERS:
		return "it looks like a secret of the owner";
	case SECRET_SOUNDS: /* allowed: perhaps it is the skill's key for its own service */
	case SECRET_NOT:
		break;
	}
	return NULL;
}

static bool same_name(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return strcspn(b, "=") == len && strncmp(a, b, len) == 0;
}

/* Returns the owner's decision about a name, from the command line or an approval; or NULL. */
static const char *owner_word(const struct build *b, const char *name)
{
	if (string_list_has(&b->given_env, name)) {
		return name;
	}
	for (size_t i = b->opt->env.n; i > 0; i--) {
		if (same_name(b->opt->env.v[i - 1], name)) {
			return b->opt->env.v[i - 1];
		}
	}
	return NULL;
}

bool env_is_decided(const struct build *b, const char *name)
{
	const char *word = owner_word(b, name);

	return word != NULL ? strchr(word, '=') != NULL
	                    : mtext_list_has(&b->policy.lists[POLICY_DENY_ENV], name);
}

static const char *env_get(const struct ssb_plan *p, const char *name)
{
	for (size_t i = 0; i < p->env.n; i++) {
		if (same_name(p->env.v[i], name)) {
			return strchr(p->env.v[i], '=') + 1;
		}
	}
	return NULL;
}

/* Sets or replaces a variable. */
static void env_set(struct build *b, const char *name, const char *value)
{
	struct string_list *env = &b->plan->env;
	auto_free char *pair = build_printf(b, "%s=%s", name, value);

	for (size_t i = 0; pair != NULL && i < env->n; i++) {
		if (same_name(env->v[i], name)) {
			free(env->v[i]);
			env->v[i] = steal_ptr(&pair);
			return;
		}
	}
	if (pair != NULL) {
		build_add(b, env, pair, (2UL + 2 * MAX_PRESETS) * MAX_ENV_VARS + 16);
	}
}

static void refuse_env(struct build *b, const char *where, const char *name, const char *why)
{
	auto_free char *what = build_printf(b, "%s%s", plan_requested_words(REQUESTED_ENV), name);
	auto_free char *remedy = build_printf(b,
	                                      "the owner can pass it: --env %s, or the line "
	                                      "'grants: {env: [%s]}' in the policy file",
	                                      name, name);
	if (what != NULL && remedy != NULL) {
		build_refuse(b, REFUSAL_OTHER, where, what, why, remedy);
	}
}

/* Passes the variable as with --env if the caller has it and the owner approved it. Returns true if
 * it was passed. */
static bool give_env(struct build *b, const char *name)
{
	const char *value = owner_getenv(b->owner, name);

	if (value == NULL || !build_gives(b, SSB_OPT_ENV, name)) {
		return false;
	}
	build_add(b, &b->given_env, name, MAX_ENV_VARS);
	env_set(b, name, value);
	return true;
}

/* Handles a variable that only the owner can give. If the approval gives it, passes it and returns
 * true. Otherwise records it as withheld and returns false. `secret` says why it is a secret, or is
 * NULL. `owned`: the owner added the variable to what the skill asks for. */
static bool withhold_env(struct build *b, const char *where, const char *name, const char *secret,
                         bool owned)
{
	const struct env_rule *rule = find_rule(name);
	const char *more = secret != NULL ? secret : rule != NULL ? rule->why : NULL;
	bool denied = mtext_list_has(&b->policy.lists[POLICY_DENY_ENV], name);
	auto_free char *what = build_printf(b, "%s%s", plan_requested_words(REQUESTED_ENV), name);
	auto_free char *why =
	        denied       ? build_printf(b, "the policy file denies it")
	        : owned      ? build_printf(b, "it is %s", more != NULL ? more : "not granted")
	        : b->unbound ? build_printf(b, "%s", UNBOUND)
	                     : build_printf(b, "%s asks for it, and it is not granted%s%s%s",
	                                    path_base(b->manifest->file), more != NULL ? " (" : "",
	                                    more != NULL ? more : "", more != NULL ? ")" : "");
	/* An approval cannot give a variable that controls the loader: through such a variable,
	 * code could run that was not approved. */
	bool by_flag = denied || (rule != NULL && rule->kind == ENV_REFUSED);
	if (!by_flag && give_env(b, name)) {
		return true;
	}
	auto_free char *remedy = b->unbound && !by_flag
	                                 ? build_printf(b, "%s", UNBOUND_REMEDY)
	                                 : build_printf(b, "pass it with --env %s%s", name,
	                                                by_flag ? "; an approval cannot pass it"
	                                                        : ", or approve the skill: "
	                                                          "skillsandbox approve DIR");

	if (what != NULL && why != NULL && remedy != NULL) {
		build_withhold(
		        b, &(struct refusal){ .what = what,
		                              .where = (char *)(uintptr_t)where,
		                              .why = why,
		                              .remedy = remedy,
		                              .option = SSB_OPT_ENV,
		                              .value = by_flag ? NULL : (char *)(uintptr_t)name });
	}
	return false;
}

/* True for a variable that only says where the caller is and which language the caller reads, with
 * a value of harmless characters. */
static bool is_harmless(const char *name, const char *value)
{
	static const char *const NAMES[] = {
		"LANG",        "LC_ALL",       "LC_CTYPE",       "LC_COLLATE",        "LC_MESSAGES",
		"LC_MONETARY", "LC_NUMERIC",   "LC_TIME",        "LC_PAPER",          "LC_NAME",
		"LC_ADDRESS",  "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION", "TZ",
		"TERM"
	};
	bool named = ARRAY_HAS(e, NAMES, ARRAY_LEN(NAMES), strcmp(name, *e) == 0);
	return named && strlen(value) <= 64 &&
	       value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                           "0123456789_.@/:+-")] == '\0';
}

/* Returns the value that a declared variable gets from the caller's environment, or NULL. In a
 * learning run only harmless variables have one; the other variables get stand-ins from the
 * options, even if the policy file grants them. */
static const char *value_of(const struct build *b, const char *name)
{
	const char *value = owner_getenv(b->owner, name);

	return b->opt->learn.mode == LEARNING_NOT || (value != NULL && is_harmless(name, value))
	               ? value
	               : NULL;
}

/* True if the skill's name, or the name of a declared host, contains the word. */
static bool speaks_of(const struct manifest *m, const char *word)
{
	bool found = m->name != NULL && strcasestr(m->name, word) != NULL;

	for (size_t i = 0; i < m->n_egress && !found; i++) {
		found = m->egress[i].domain.s != NULL &&
		        strcasestr(m->egress[i].domain.s, word) != NULL;
	}
	return found;
}

/* True if the name says that the key is for the skill's own service: OPENWEATHER_API_KEY, for a
 * skill that declares api.openweathermap.org. Also true if the name says nothing about the service:
 * API_KEY. */
static bool is_its_own(const struct manifest *m, const char *name)
{
	auto_free char *words = strdup(name);
	char *left = words;
	bool own = words != NULL;

	for (const char *word = NULL; (word = strsep(&left, "_")) != NULL;) {
		if (strlen(word) < 3 || secret_is_general(word)) {
			continue;
		}
		if (speaks_of(m, word)) {
			return true;
		}
		own = false;
	}
	return own;
}

/* Returns "a credential: GitHub", new; NULL: it is not a secret of the owner, or no memory. */
static char *owners_secret(struct build *b, const char *name)
{
	const char *opens = NULL;
	enum secret kind = secret_of(name, &opens);

	switch (kind) {
	case SECRET_CREDENTIAL:
		return build_printf(b, "a credential: %s", opens);
	case SECRET_OWNERS:
		return build_printf(b, "a secret of yours, judging by its name");
	case SECRET_SOUNDS:
		return is_its_own(b->manifest, name)
		               ? NULL
		               : build_printf(b, "a key whose name matches neither the skill nor "
		                                 "its hosts");
	case SECRET_NOT:
		break;
	}
	return NULL;
}

/* `owned` is as in withhold_env(). */
static void add_wanted(struct build *b, const struct mtext *t, const char *where, bool owned)
{
	const struct env_rule *rule = find_rule(t->s);
	auto_free char *secret = owners_secret(b, t->s);
	const char *value = value_of(b, t->s);
	bool derived = !owned && (skill_format_derived(b->plan->format) || b->unbound);

	auto_free char *what = build_printf(b, "%s%s", plan_requested_words(REQUESTED_ENV), t->s);
	if (what != NULL) {
		build_add(b, &b->plan->requested, what, MAX_REQUESTS);
	}
	if (owner_word(b, t->s) != NULL ||
	    (what != NULL && build_taken_out(b, REFUSAL_OTHER, where, what))) {
		return;
	}
	bool denied = mtext_list_has(&b->policy.lists[POLICY_DENY_ENV], t->s);
	if (!derived && denied) {
		refuse_env(b, where, t->s, "the policy file denies it");
		return;
	}
	bool granted = !denied && mtext_list_has(&b->policy.lists[POLICY_GRANT_ENV], t->s);
	if (!derived && rule != NULL && (owned || rule->kind == ENV_REFUSED) && !granted) {
		/* An approval cannot give this variable: through it, code could run that was not
		 * approved. */
		refuse_env(b, where, t->s, rule->why);
		return;
	}
	if (rule != NULL && rule->kind == ENV_USELESS && !granted) {
		build_warn(b, where, "environment %s is not passed: %s", t->s, rule->why);
		return;
	}
	/* A derived manifest, or a sidecar that names no directory, cannot grant a variable, and a
	 * skill's own manifest cannot grant a secret of the owner. Such a variable is withheld even
	 * if it is unset now, because an approval also applies to later runs. */
	bool held = (derived || secret != NULL) && !granted;
	if (held && withhold_env(b, where, t->s, secret, owned)) {
		return;
	}
	if (value == NULL) {
		build_add(b, &b->plan->env_missing, t->s, MAX_ENV_VARS);
		return;
	}
	if (held) {
		return;
	}
	if (secret != NULL) {
		build_warn(b, where, "environment %s is %s, and the manifest asks for it", t->s,
		           secret);
	}
	env_set(b, t->s, value);
}

static void add_declared(struct build *b, const struct mtext *t)
{
	char where[192];

	build_where(b, t, where, sizeof(where));
	add_wanted(b, t, where, false);
}

/* Adds the variables of the remembered grants. */
static void add_remembered(struct build *b)
{
	const struct plan_consent *c = &b->request->consent;

	for (size_t i = 0; b->manifest != NULL && i < c->n_asked; i++) {
		if (c->asked[i].option == SSB_OPT_ENV) {
			add_wanted(b, &(struct mtext){ .s = c->asked[i].value }, WHERE_REMEMBERED,
			           true);
		}
	}
}

static int add_owner(struct build *b, const char *word, struct ssb_error *err)
{
	const char *eq = strchr(word, '=');

	if (eq == NULL) {
		const char *value = owner_getenv(b->owner, word);
		if (value == NULL) {
			return ssb_fail(
			        err, SSB_E_USAGE, 0, "--env",
			        "%.100s is not set in your environment; write --env %.100s=VALUE",
			        word, word);
		}
		env_set(b, word, value);
		return 0;
	}
	auto_free char *name = strndup(word, (size_t)(eq - word));
	if (name == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "--env", "out of memory");
	}
	env_set(b, name, eq + 1);
	return 0;
}

/* Sets a variable of a preset, unless the owner decided about it. Replaces the word for the cache
 * in its value. */
static void add_preset_pair(struct build *b, const char *pair)
{
	auto_free char *name = strndup(pair, strcspn(pair, "="));
	const char *value = strchr(pair, '=') + 1;
	const char *word = strstr(value, CACHE_WORD);
	auto_free char *text =
	        word == NULL ? build_printf(b, "%s", value)
	                     : build_printf(b, "%.*s%s/" CACHE_PLACE "%s", (int)(word - value),
	                                    value, b->plan->home, word + strlen(CACHE_WORD));

	b->failed |= name == NULL;
	if (name != NULL && text != NULL && owner_word(b, name) == NULL) {
		env_set(b, name, text);
		b->failed |= string_list_add_once(&b->plan->env_preset, name, SIZE_MAX) != 0;
	}
}

static void add_preset_pairs(struct build *b, const struct string_list *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		add_preset_pair(b, pairs->v[i]);
	}
}

/* Sets the variables of the presets. If there is a cache, also sets the variables that lead tools
 * to it: those of every built-in preset, because any of these tools may run. */
static int add_presets(struct build *b, struct ssb_error *err)
{
	bool cache = b->plan->cache_mb > 0;

	for (size_t i = 0; i < N_PRESET_NAMES && cache; i++) {
		AUTO(preset_done) struct preset p = { 0 };
		if (preset_load(NULL, PRESET_NAMES[i], &p, NULL, err) != 0) {
			return -1;
		}
		add_preset_pairs(b, &p.cache);
	}
	for (size_t i = 0; i < b->n_presets; i++) {
		add_preset_pairs(b, &b->presets[i].env);
		if (cache) {
			add_preset_pairs(b, &b->presets[i].cache);
		}
	}
	if (cache) {
		add_preset_pair(b, "XDG_CACHE_HOME=" CACHE_WORD);
	}
	return 0;
}

static void add_bundles(struct build *b)
{
	for (size_t i = 0; i < b->ca_env.n; i++) {
		const char *pair = b->ca_env.v[i];
		const char *value = strchr(pair, '=');
		auto_free char *name = value != NULL ? strndup(pair, (size_t)(value - pair)) : NULL;
		if (name == NULL) {
			b->failed = true;
			return;
		}
		env_set(b, name, value + 1);
	}
}

/* Sets PATH. b->tool_bin, which contains the program that runs, goes first, so that the program is
 * found. */
static void set_path(struct build *b)
{
	const char *word = owner_word(b, "PATH");
	const char *path = env_get(b->plan, "PATH");

	if (path == NULL || *path == '\0') {
		path = SYSTEM_PATH;
	}
	if (b->tool_bin == NULL || (word != NULL && strchr(word, '=') != NULL)) {
		auto_free char *copy = build_printf(b, "%s", path);
		if (copy != NULL) {
			env_set(b, "PATH", copy);
		}
		return;
	}
	auto_free char *longer = build_printf(b, "%s:%s", b->tool_bin, path);
	if (longer != NULL) {
		env_set(b, "PATH", longer);
	}
}

/* Returns a variable of the caller if its value is an ordinary name, as of a language or a kind of
 * terminal, or NULL. */
static const char *get_plain(const struct build *b, const char *variable)
{
	const char *value = owner_getenv(b->owner, variable);
	bool plain = value != NULL && value[0] != '\0' && strlen(value) <= 64 &&
	             value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                                 "0123456789_.@+-")] == '\0';

	return plain ? value : NULL;
}

static void set_defaults(struct build *b)
{
	/* The names of terminals: a program with a terminal must know how to draw on it. */
	static const char *const PASSED[] = { "TERM", "COLORTERM" };
	const char *lang = get_plain(b, "LANG");

	if (owner_word(b, "HOME") == NULL) {
		env_set(b, "HOME", b->plan->home);
	}
	if (owner_word(b, "TMPDIR") == NULL) {
		env_set(b, "TMPDIR", "/tmp");
	}
	if (owner_word(b, "LANG") == NULL) {
		env_set(b, "LANG", lang != NULL ? lang : "C.UTF-8");
	}
	for (size_t i = 0; i < ARRAY_LEN(PASSED); i++) {
		const char *value = get_plain(b, PASSED[i]);
		if (value != NULL && env_get(b->plan, PASSED[i]) == NULL) {
			env_set(b, PASSED[i], value);
		}
	}
	set_path(b);
}

/* Removes from p->env_missing the variables that are set after all: by our default or by the
 * owner. */
static void drop_granted(struct ssb_plan *p)
{
	struct string_list *l = &p->env_missing;
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (env_get(p, l->v[i]) != NULL) {
			free(l->v[i]);
		} else {
			l->v[kept++] = l->v[i];
		}
	}
	if (l->n > 0) {
		l->n = kept;
		l->v[kept] = NULL;
	}
}

static size_t count_withheld(const struct build *b)
{
	size_t n = 0;

	for (size_t i = 0; b->owner->environ != NULL && b->owner->environ[i] != NULL; i++) {
		size_t k = 0;
		while (k < b->plan->env.n && strcmp(b->plan->env.v[k], b->owner->environ[i]) != 0) {
			k++;
		}
		n += k == b->plan->env.n;
	}
	return n;
}

int env_build(struct build *b, struct ssb_error *err)
{
	size_t bytes = 0;

	add_remembered(b);
	for (size_t i = 0; b->manifest != NULL && i < b->manifest->env.n; i++) {
		add_declared(b, &b->manifest->env.v[i]);
	}
	if (add_presets(b, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < b->opt->env.n; i++) {
		if (add_owner(b, b->opt->env.v[i], err) < 0) {
			return -1;
		}
	}
	add_bundles(b);
	set_defaults(b);
	drop_granted(b->plan);
	for (size_t i = 0; i < b->plan->env.n; i++) {
		bytes += strlen(b->plan->env.v[i]) + 1;
	}
	if (bytes > MAX_ENV_BYTES) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "environment",
		                "the values have %zu bytes together; the limit is %d", bytes,
		                MAX_ENV_BYTES);
	}
	b->plan->env_withheld = count_withheld(b);
	return 0;
}
