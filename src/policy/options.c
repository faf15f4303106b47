/* options.c - the owner's flags, which are checked one by one as they arrive.
 *
 * Syntax and range are checked here, so that a wrong flag is reported at once. Checks that need the
 * file system (does a path exist, what is it) are made when the plan is built. */
#include "policy/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/name_tables.h"
#include "manifest/resources.h"
#include "policy/preset.h"

/* The member of struct resources that each flag sets. The unit of that member in RESOURCES decides
 * how the value is parsed. */
static const struct {
	enum ssb_option what;
	size_t at; /* in struct resources */
} NUMBERS[] = {
	{ SSB_OPT_MEMORY, offsetof(struct resources, memory_mb) },
	{ SSB_OPT_TIMEOUT, offsetof(struct resources, max_runtime_seconds) },
	{ SSB_OPT_CPU_SHARES, offsetof(struct resources, cpu_shares) },
	{ SSB_OPT_MAX_OUTPUT, offsetof(struct resources, max_output_bytes) },
	{ SSB_OPT_MAX_PROCESSES, offsetof(struct resources, max_processes) },
	{ SSB_OPT_MAX_FILES, offsetof(struct resources, max_open_files) },
	{ SSB_OPT_MAX_DISK, offsetof(struct resources, max_disk_mb) },
};

static const char *const EXAMPLES[] = {
	[UNIT_MIB] = "512M or 1G; a bare number is MiB",
	[UNIT_BYTES] = "1M; a bare number is bytes",
	[UNIT_SECONDS] = "30s, 5m or 1h; a bare number is seconds",
	[UNIT_COUNT] = "512",
};

static const char *const FLAGS[] = {
	[SSB_OPT_READ] = "--read",
	[SSB_OPT_WRITE] = "--write",
	[SSB_OPT_NET] = "--net",
	[SSB_OPT_ENV] = "--env",
	[SSB_OPT_MEMORY] = "--memory",
	[SSB_OPT_TIMEOUT] = "--timeout",
	[SSB_OPT_CPU_SHARES] = "--cpu-shares",
	[SSB_OPT_MAX_OUTPUT] = "--max-output",
	[SSB_OPT_MAX_PROCESSES] = "--max-processes",
	[SSB_OPT_MAX_FILES] = "--max-files",
	[SSB_OPT_MAX_DISK] = "--max-disk",
	[SSB_OPT_PROFILE] = "--profile",
	[SSB_OPT_TOOLCHAIN] = "--toolchain",
	[SSB_OPT_BEST_EFFORT] = "--best-effort",
	[SSB_OPT_UNIX_SOCKETS] = "--unix-sockets",
	[SSB_OPT_POLICY_FILE] = "--policy",
	[SSB_OPT_TRACE_OUTPUT] = "--trace-output",
	[SSB_OPT_TTY] = "--tty",
	[SSB_OPT_ALLOW_PRIVATE] = "--allow-private",
	[SSB_OPT_AUDIT] = "--audit",
	[SSB_OPT_WITHHOLD] = "--without",
	[SSB_OPT_ROOTFS] = "--rootfs",
	[SSB_OPT_PROJECT] = "--project",
	[SSB_OPT_PROJECT_READ] = "--project-read",
	[SSB_OPT_PRESET] = "--preset",
	[SSB_OPT_CACHE] = "--cache",
};

const char *options_flag(enum ssb_option what)
{
	return (size_t)what < ARRAY_LEN(FLAGS) ? FLAGS[what] : "option";
}

struct ssb_options *ssb_options_new(void)
{
	struct ssb_options *o = calloc(1, sizeof(*o));

	if (o == NULL) {
		return NULL;
	}
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		*resource_in(&o->res, &RESOURCES[i]) = OPTION_UNSET;
	}
	o->profile = -1;
	o->unix_sockets = -1;
	o->audit = -1;
	return o;
}

/* The lists and texts that struct ssb_options owns. */
static const size_t LISTS[] = {
	offsetof(struct ssb_options, read),     offsetof(struct ssb_options, write),
	offsetof(struct ssb_options, net),      offsetof(struct ssb_options, env),
	offsetof(struct ssb_options, withhold), offsetof(struct ssb_options, allow_private),
	offsetof(struct ssb_options, preset),
};
static const size_t TEXTS[] = {
	offsetof(struct ssb_options, policy_file), offsetof(struct ssb_options, trace_output),
	offsetof(struct ssb_options, rootfs),      offsetof(struct ssb_options, workdir),
	offsetof(struct ssb_options, project),
};

static struct string_list *list_at(const struct ssb_options *o, size_t at)
{
	return (struct string_list *)((uintptr_t)o + at);
}

static char **text_at(const struct ssb_options *o, size_t at)
{
	return (char **)((uintptr_t)o + at);
}

void ssb_options_free(struct ssb_options *o)
{
	for (size_t i = 0; o != NULL && i < ARRAY_LEN(LISTS); i++) {
		string_list_done(list_at(o, LISTS[i]));
	}
	for (size_t i = 0; o != NULL && i < ARRAY_LEN(TEXTS); i++) {
		free(*text_at(o, TEXTS[i]));
	}
	free(o);
}

static const struct resource *resource_for(enum ssb_option what)
{
	for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
		for (size_t k = 0; NUMBERS[i].what == what && k < RESOURCE_COUNT; k++) {
			if (RESOURCES[k].at == NUMBERS[i].at) {
				return &RESOURCES[k];
			}
		}
	}
	return NULL;
}

static int set_number(struct ssb_options *o, enum ssb_option what, const char *value,
                      struct ssb_error *err)
{
	const struct resource *r = resource_for(what);
	uint64_t v;

	assert(r != NULL);
	if (!resource_number(value, r->unit, &v)) {
		return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what),
		                "'%.60s' is not understood; write for example %s", value,
		                EXAMPLES[r->unit]);
	}
	if (v < r->least || v > r->most) {
		auto_buf range = BUF(128);
		resource_amount(&range, r->unit, r->least);
		buf_adds(&range, " to ");
		resource_amount(&range, r->unit, r->most);
		return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what),
		                "'%.60s' is out of range; it must be %s", value, range.data);
	}
	*resource_in(&o->res, r) = v;
	return 0;
}

const char *options_net(const char *value, struct egress_rule *ret)
{
	auto_free char *host = strdup(value);
	uint64_t port = 443;

	if (host == NULL) {
		return "out of memory";
	}
	char *colon = NULL;
	if (host[0] == '[') {
		char *end = strchr(host, ']');
		if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
			return "an address in brackets is written [ADDRESS] or [ADDRESS]:PORT";
		}
		colon = end[1] == ':' ? end + 1 : NULL;
		*end = '\0';
		memmove(host, host + 1, (size_t)(end - host));
	} else if (strchr(host, ':') == strrchr(host, ':') && strstr(host, "://") == NULL) {
		/* A text with more than one colon is an IPv6 address without a port. A URL is not
		 * split, so that the message is not about its port. */
		colon = strchr(host, ':');
	}
	if (colon != NULL) {
		*colon = '\0';
		if (!resource_number(colon + 1, UNIT_COUNT, &port) || port < 1 || port > 65535) {
			return "the port must be a number from 1 to 65535";
		}
	}
	struct egress_rule rule = { .protocol = PROTO_TCP, .n_ports = 1 };
	const char *wrong = domain_check(host, &rule.domain.s, &rule.kind);
	if (wrong != NULL) {
		return wrong;
	}
	rule.ports = malloc(sizeof(*rule.ports));
	if (rule.ports == NULL) {
		free(rule.domain.s);
		return "out of memory";
	}
	rule.ports[0] = (uint16_t)port;
	*ret = rule;
	return NULL;
}

const char *options_cidr(const char *value, char **ret)
{
	char text[CIDR_TEXT];
	struct cidr c;

	if (!cidr_parse(value, &c)) {
		return "is not an address range; write one such as 10.0.0.0/8 or fd00::/8, without "
		       "bits after its prefix";
	}
	cidr_format(&c, text);
	char *copy = strdup(text);
	if (copy == NULL) {
		return "out of memory";
	}
	*ret = copy;
	return NULL;
}

/* Returns NULL, or what is wrong with an item of a repeatable flag. `*ret` is new if the item is
 * stored in a normalised form. */
static const char *check_item(enum ssb_option what, const char *value, char **ret)
{
	if (what == SSB_OPT_ALLOW_PRIVATE) {
		return options_cidr(value, ret);
	}
	if (what == SSB_OPT_WITHHOLD) {
		return *value == '\0'                       ? "it is empty"
		       : strlen(value) > 2 * MAX_PATH_BYTES ? "it is too long"
		                                            : NULL;
	}
	if (what == SSB_OPT_READ || what == SSB_OPT_WRITE) {
		return *value == '\0'                    ? "the path is empty"
		       : strlen(value) >= MAX_PATH_BYTES ? "the path is too long"
		                                         : NULL;
	}
	if (what == SSB_OPT_PRESET) {
		return preset_name_problem(value);
	}
	if (what == SSB_OPT_NET) {
		return preset_check_net(value, ret);
	}
	auto_free char *name = strndup(value, strcspn(value, "="));
	if (strlen(value) >= MAX_ENV_BYTES) {
		return "the value is too long";
	}
	return name == NULL ? "out of memory" : check_env_name(name);
}

static int set_item(struct ssb_options *o, enum ssb_option what, const char *value,
                    struct ssb_error *err)
{
	struct string_list *l = what == SSB_OPT_READ            ? &o->read
	                        : what == SSB_OPT_WRITE         ? &o->write
	                        : what == SSB_OPT_NET           ? &o->net
	                        : what == SSB_OPT_ALLOW_PRIVATE ? &o->allow_private
	                        : what == SSB_OPT_WITHHOLD      ? &o->withhold
	                        : what == SSB_OPT_PRESET        ? &o->preset
	                                                        : &o->env;
	size_t max = what == SSB_OPT_WITHHOLD ? MAX_REQUESTS
	             : what == SSB_OPT_PRESET ? MAX_PRESETS
	                                      : MAX_GRANTS;
	auto_free char *form = NULL;
	if (what == SSB_OPT_NET && *value == '@') {
		AUTO(string_list_done) struct string_list hosts = { 0 };
		if (preset_expand_net(value, &hosts, err) != 0) {
			return -1; /* this message names the known sets */
		}
	}
	const char *wrong = check_item(what, value, &form);

	if (wrong != NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what), "'%.100s': %s", value,
		                wrong);
	}
	if (l->n >= max) {
		return ssb_fail(err, SSB_E_LIMIT, 0, options_flag(what),
		                "it is given more than %zu times", max);
	}
	if (string_list_add(l, form != NULL ? form : value, max) < 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, options_flag(what), "out of memory");
	}
	return 0;
}

/* Returns the index of `value` in a NULL-terminated list of words, or -1. */
static int find_word(const char *const words[], const char *value)
{
	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], value) == 0) {
			return i;
		}
	}
	return -1;
}

/* Like find_word(), but if no word matches, fills `err`. */
static int one_of(enum ssb_option what, const char *const words[], const char *value,
                  struct ssb_error *err)
{
	char all[120] = "";
	int found = find_word(words, value);

	if (found >= 0) {
		return found;
	}
	for (int i = 0; words[i] != NULL; i++) {
		size_t len = strlen(all);
		snprintf(all + len, sizeof(all) - len, "%s%s", i > 0 ? ", " : "", words[i]);
	}
	return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what),
	                "'%.60s' is unknown; write one of: %s", value, all);
}

static const char *const LAYERS[] = { "userns", "net",      "mounts",  "env",   "limits",
	                              "caps",   "landlock", "seccomp", "audit", NULL };
static const char *const TOOLCHAINS[] = { "off", "auto", "default", NULL };
static const char *const YES_NO[] = { "no", "yes", NULL };
static const char *const TTYS[] = { "auto", "yes", "no", NULL };

/* In the order of enum audit_level. */
static const char *const AUDITS[] = { "full", "violations", "off", NULL };

const char *audit_level_name(enum audit_level level)
{
	return AUDITS[level];
}

int audit_level_from_name(const char *s)
{
	return find_word(AUDITS, s);
}

enum seccomp_profile plan_filter(const struct ssb_plan *p)
{
	static const enum seccomp_profile FILTERS[] = {
		[PROFILE_DEFAULT] = SECCOMP_PROFILE_DEFAULT,
		[PROFILE_STRICT] = SECCOMP_PROFILE_STRICT,
		[PROFILE_PERMISSIVE] = SECCOMP_PROFILE_PERMISSIVE,
	};

	return FILTERS[p->profile];
}

const char *plan_layer_name(enum layer_id id)
{
	return (size_t)id < LAYER_COUNT ? LAYERS[id] : "?";
}

int plan_layer_from_name(const char *s)
{
	return find_word(LAYERS, s);
}

static int set_word(struct ssb_options *o, enum ssb_option what, const char *value,
                    struct ssb_error *err)
{
	const char *const *words = what == SSB_OPT_PROFILE        ? PROFILE_NAMES
	                           : what == SSB_OPT_BEST_EFFORT  ? LAYERS
	                           : what == SSB_OPT_TOOLCHAIN    ? TOOLCHAINS
	                           : what == SSB_OPT_UNIX_SOCKETS ? YES_NO
	                           : what == SSB_OPT_AUDIT        ? AUDITS
	                                                          : TTYS;
	int i = one_of(what, words, value, err);

	if (i < 0) {
		return -1;
	}
	if (what == SSB_OPT_PROFILE) {
		o->profile = i;
	} else if (what == SSB_OPT_BEST_EFFORT) {
		o->best_effort |= 1U << i;
	} else if (what == SSB_OPT_TOOLCHAIN) {
		o->toolchain_auto = i != 0;
		o->toolchain_given = i != 2;
	} else if (what == SSB_OPT_UNIX_SOCKETS) {
		o->unix_sockets = i;
	} else if (what == SSB_OPT_AUDIT) {
		o->audit = i;
	} else {
		o->tty = (enum tty_mode)i;
	}
	return 0;
}

static int set_file(struct ssb_options *o, enum ssb_option what, const char *value,
                    struct ssb_error *err)
{
	bool project = what == SSB_OPT_PROJECT || what == SSB_OPT_PROJECT_READ;
	char **slot = what == SSB_OPT_POLICY_FILE ? &o->policy_file
	              : what == SSB_OPT_ROOTFS    ? &o->rootfs
	              : project                   ? &o->project
	                                          : &o->trace_output;

	if (what != SSB_OPT_POLICY_FILE && *value == '\0') {
		return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what), "the file name is empty");
	}
	if (strlen(value) >= MAX_PATH_BYTES) {
		return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what),
		                "the file name is too long");
	}
	char *copy = strdup(value);
	if (copy == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, options_flag(what), "out of memory");
	}
	free(*slot);
	*slot = copy;
	if (project) {
		o->project_access = what == SSB_OPT_PROJECT ? ACCESS_WRITE : ACCESS_READ;
	}
	return 0;
}

const char *options_cache(const char *value, uint64_t *ret)
{
	uint64_t mb = 0;

	if (!resource_number(value, UNIT_MIB, &mb) || mb < 1 || mb > MAX_CACHE_MB) {
		return "is not the size of a cache; write for example 512M or 4G, at most 1024G";
	}
	*ret = mb;
	return NULL;
}

static int set_cache(struct ssb_options *o, const char *value, struct ssb_error *err)
{
	const char *wrong = options_cache(value, &o->cache_mb);

	return wrong == NULL ? 0
	                     : ssb_fail(err, SSB_E_USAGE, 0, options_flag(SSB_OPT_CACHE),
	                                "'%.60s' %s", value, wrong);
}

int ssb_options_set(struct ssb_options *o, enum ssb_option what, const char *value,
                    struct ssb_error *err)
{
	if (value == NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, options_flag(what), "needs a value");
	}
	switch (what) {
	case SSB_OPT_READ:
	case SSB_OPT_WRITE:
	case SSB_OPT_NET:
	case SSB_OPT_ENV:
	case SSB_OPT_ALLOW_PRIVATE:
	case SSB_OPT_WITHHOLD:
	case SSB_OPT_PRESET:
		return set_item(o, what, value, err);
	case SSB_OPT_PROFILE:
	case SSB_OPT_TOOLCHAIN:
	case SSB_OPT_BEST_EFFORT:
	case SSB_OPT_UNIX_SOCKETS:
	case SSB_OPT_AUDIT:
	case SSB_OPT_TTY:
		return set_word(o, what, value, err);
	case SSB_OPT_POLICY_FILE:
	case SSB_OPT_TRACE_OUTPUT:
	case SSB_OPT_ROOTFS:
	case SSB_OPT_PROJECT:
	case SSB_OPT_PROJECT_READ:
		return set_file(o, what, value, err);
	case SSB_OPT_MEMORY:
	case SSB_OPT_TIMEOUT:
	case SSB_OPT_CPU_SHARES:
	case SSB_OPT_MAX_OUTPUT:
	case SSB_OPT_MAX_PROCESSES:
	case SSB_OPT_MAX_FILES:
	case SSB_OPT_MAX_DISK:
		return set_number(o, what, value, err);
	case SSB_OPT_CACHE:
		return set_cache(o, value, err);
	}
	return ssb_fail(err, SSB_E_USAGE, 0, "option", "unknown option %d", (int)what);
}
