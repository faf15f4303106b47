/* The format as tables: one row per key, one table per level. A row says how
 * the value is read, where it goes, and what to write when it is missing. */
#include "manifest/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/check.h"
#include "manifest/names.h"
#include "manifest/values.h"

struct level {
	const char *name; /* where these keys stand, for people */
	const struct field *fields;
	size_t n;
};

static void read_map(struct ctx *c, const struct ynode *n, const struct field *f, void *at);

static void read_profile(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	int i = node_choice(c, n, f, PROFILE_NAMES, N_PROFILES);

	if (i >= 0) {
		*(enum profile *)at = (enum profile)i;
	}
}

static void read_protocol(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	int i = node_choice(c, n, f, PROTOCOL_NAMES, N_PROTOCOLS);

	if (i >= 0) {
		*(enum protocol *)at = (enum protocol)i;
	}
}

/* ---- egress -------------------------------------------------------------- */

static void read_domain(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct egress_rule *rule = at;
	const char *s = node_text(c, n, f);

	if (s == NULL) {
		return;
	}
	const char *problem = check_domain(s, &rule->domain.s, &rule->kind);
	if (problem != NULL) {
		report_problem(c, n, f, problem);
		return;
	}
	rule->domain.line = n->line;
	rule->domain.col = n->col;
}

/* Puts a port at its sorted place; false if it is there already. */
static bool port_insert(struct egress_rule *rule, uint16_t port)
{
	size_t i = 0;

	while (i < rule->n_ports && rule->ports[i] < port) {
		i++;
	}
	if (i < rule->n_ports && rule->ports[i] == port) {
		return false;
	}
	memmove(rule->ports + i + 1, rule->ports + i, (rule->n_ports - i) * sizeof(rule->ports[0]));
	rule->ports[i] = port;
	rule->n_ports++;
	return true;
}

static void read_ports(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct egress_rule *rule = at;

	if (!node_is_list(c, n, f)) {
		return;
	}
	if (n->first == NULL) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, "write [443], or remove the key",
		           "ports is an empty list");
		return;
	}
	if (!list_alloc(c, n, sizeof(rule->ports[0]), &rule->ports)) {
		return;
	}
	for (const struct ynode *item = n->first; item != NULL; item = item->next) {
		uint64_t port = 0;
		if (node_number(c, item, f, &port) && !port_insert(rule, (uint16_t)port)) {
			report_add(c->rep, SSB_WARNING, item->line, item->col, "remove this one",
			           "ports has %" PRIu64 " twice", port);
		}
	}
}

static void read_rule(struct ctx *c, const struct ynode *n, const struct field *f,
                      struct egress_rule *rule)
{
	if (n->kind == YNODE_SCALAR && !n->bad) {
		char quoted[QUOTE_SIZE];
		report_add(c->rep, SSB_ERROR, n->line, n->col, "write \"- domain: ...\"",
		           "egress rule %s must be a mapping", report_quote(quoted, n->text));
		return;
	}
	read_map(c, n, f, rule);
	if (ynode_get((struct ynode *)n, "ports") != NULL) {
		return;
	}
	rule->ports = malloc(sizeof(rule->ports[0]));
	if (rule->ports == NULL) {
		c->nomem = true;
		return;
	}
	rule->ports[0] = 443;
	rule->n_ports = 1;
}

static void read_egress(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct manifest *m = at;

	if (!node_is_list(c, n, f) || !list_alloc(c, n, sizeof(m->egress[0]), &m->egress)) {
		return;
	}
	for (const struct ynode *item = n->first; item != NULL; item = item->next) {
		read_rule(c, item, f, &m->egress[m->n_egress++]);
	}
}

/* ---- the tables ---------------------------------------------------------- */

/* clang-format off */
#define LEVEL(where, table) { (where), (table), ARRAY_LEN(table) }
#define AT(member)      .offset = offsetof(struct manifest, member)
#define RULE_AT(member) .offset = offsetof(struct egress_rule, member)
#define NUMBER(name, least, most) \
	{ #name, read_number, AT(resources.name), .min = (least), .max = (uint64_t)(most) }
#define NET_NUMBER(name, least, most) \
	{ #name, read_number, AT(net.name), .min = (least), .max = (uint64_t)(most) }
/* clang-format on */

static const struct field RULE_FIELDS[] = {
	{ "domain", read_domain, 0, .missing = "write \"domain: api.example.com\"" },
	{ "ports", read_ports, 0, .min = 1, .max = 65535 },
	{ "protocol", read_protocol, RULE_AT(protocol) },
};
static const struct level RULE_LEVEL = LEVEL("an item of permissions.network.egress", RULE_FIELDS);

static const struct field NETWORK_FIELDS[] = {
	{ "egress", read_egress, 0, .level = &RULE_LEVEL },
	NET_NUMBER(max_connections, 1, MAX_CONNECTIONS_CAP),
	NET_NUMBER(max_connections_per_second, 1, MAX_CONNECTION_RATE),
	NET_NUMBER(max_bytes_out, 1, MAX_NET_BYTES_CAP),
	NET_NUMBER(max_bytes_in, 1, MAX_NET_BYTES_CAP),
};
static const struct level NETWORK_LEVEL = LEVEL("permissions.network", NETWORK_FIELDS);

static const struct field FILE_FIELDS[] = {
	{ "read", read_texts, AT(read), .check = check_path, .unique = true },
	{ "write", read_texts, AT(write), .check = check_path, .unique = true },
};
static const struct level FILE_LEVEL = LEVEL("permissions.filesystem", FILE_FIELDS);

static const struct field ENV_FIELDS[] = {
	{ "allow", read_texts, AT(env), .check = check_env, .unique = true },
};
static const struct level ENV_LEVEL = LEVEL("permissions.env_vars", ENV_FIELDS);

static const struct field SYSCALL_FIELDS[] = {
	{ "profile", read_profile, AT(profile) },
};
static const struct level SYSCALL_LEVEL = LEVEL("permissions.syscalls", SYSCALL_FIELDS);

static const struct field PERMISSION_FIELDS[] = {
	{ "network", read_map, .level = &NETWORK_LEVEL },
	{ "filesystem", read_map, .level = &FILE_LEVEL },
	{ "env_vars", read_map, .level = &ENV_LEVEL },
	{ "syscalls", read_map, .level = &SYSCALL_LEVEL },
};
static const struct level PERMISSION_LEVEL = LEVEL("permissions", PERMISSION_FIELDS);

static const struct field SKILL_FIELDS[] = {
	{ "name", read_text, AT(name), "write \"name: weather\"", .check = check_name },
	{ "version", read_text, AT(version), "write \"version: 1.0.0\"", .check = check_version },
	{ "description", read_text, AT(description), .check = check_text },
	{ "author", read_text, AT(author), .check = check_line },
};
static const struct level SKILL_LEVEL = LEVEL("skill", SKILL_FIELDS);

static const struct field RESOURCE_FIELDS[] = {
	NUMBER(memory_mb, MIN_MEMORY_MB, MAX_MEMORY_MB),
	NUMBER(cpu_shares, MIN_CPU_SHARES, MAX_CPU_SHARES),
	NUMBER(max_runtime_seconds, 1, MAX_RUNTIME_SECONDS),
	NUMBER(max_output_bytes, 1, MAX_OUTPUT_BYTES_CAP),
	NUMBER(max_processes, 1, MAX_PROCESSES_CAP),
	NUMBER(max_open_files, MIN_OPEN_FILES, MAX_OPEN_FILES_CAP),
	NUMBER(max_disk_mb, 1, MAX_DISK_MB_CAP),
};
static const struct level RESOURCE_LEVEL = LEVEL("resources", RESOURCE_FIELDS);

static const struct field ENTRY_FIELDS[] = {
	{ "command", read_mtext, AT(command), "write \"command: python3\"",
	  .check = check_command },
	{ "args", read_texts, AT(args), .check = check_text },
	{ "workdir", read_text, AT(workdir), .check = check_workdir },
};
static const struct level ENTRY_LEVEL = LEVEL("entrypoint", ENTRY_FIELDS);

static const struct field TOP_FIELDS[] = {
	{ "skill", read_map, .missing = "write \"skill:\" with name and version under it",
	  .level = &SKILL_LEVEL },
	{ "permissions", read_map,
	  .missing = "write \"permissions: {}\" for a skill that needs none",
	  .level = &PERMISSION_LEVEL },
	{ "resources", read_map, .level = &RESOURCE_LEVEL },
	{ "entrypoint", read_map, .missing = "write \"entrypoint:\" with command under it",
	  .level = &ENTRY_LEVEL },
};
static const struct level TOP_LEVEL = LEVEL("the top level", TOP_FIELDS);

static const struct level *const ALL_LEVELS[] = {
	&TOP_LEVEL,  &SKILL_LEVEL, &PERMISSION_LEVEL, &NETWORK_LEVEL,  &RULE_LEVEL,
	&FILE_LEVEL, &ENV_LEVEL,   &SYSCALL_LEVEL,    &RESOURCE_LEVEL, &ENTRY_LEVEL,
};

/* ---- mappings ------------------------------------------------------------ */

static const struct field *level_find(const struct level *l, const char *key)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->fields[i].key, key) == 0) {
			return &l->fields[i];
		}
	}
	return NULL;
}

static void unknown_key_remedy(const struct level *l, const char *key, struct buf *out)
{
	const char *near = report_nearest(key, &l->fields[0].key, l->n, sizeof(l->fields[0]));

	if (near != NULL) {
		buf_addf(out, "did you mean %s?", near);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(ALL_LEVELS); i++) {
		if (level_find(ALL_LEVELS[i], key) != NULL) {
			buf_addf(out, "it belongs under %s", ALL_LEVELS[i]->name);
			return;
		}
	}
	buf_adds(out, l->n > 1 ? "the keys here are" : "the key here is");
	for (size_t i = 0; i < l->n; i++) {
		buf_addf(out, "%s %s", i > 0 ? "," : "", l->fields[i].key);
	}
}

static void report_unknown(const struct ctx *c, const struct ynode *n, const struct level *l)
{
	char quoted[QUOTE_SIZE];
	auto_buf remedy;

	buf_init(&remedy, 256);
	unknown_key_remedy(l, n->key, &remedy);
	report_add(c->rep, SSB_ERROR, n->key_line, n->key_col,
	           remedy.data != NULL ? remedy.data : "", "unknown key %s",
	           report_quote(quoted, n->key));
}

static void read_level(struct ctx *c, const struct ynode *map, const struct level *l, void *base)
{
	for (const struct ynode *n = map->first; n != NULL; n = n->next) {
		const struct field *f = level_find(l, n->key);
		if (f == NULL) {
			report_unknown(c, n, l);
		} else {
			f->read(c, n, f, (char *)base + f->offset);
		}
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct field *f = &l->fields[i];
		if (f->missing != NULL && ynode_get((struct ynode *)map, f->key) == NULL) {
			report_add(c->rep, SSB_ERROR, map->line, map->col, f->missing,
			           "%s is missing in %s", f->key, l->name);
		}
	}
}

static void read_map(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	if (n->bad) {
		return;
	}
	if (n->kind != YNODE_MAP) {
		report_type(c, n, f, "a mapping",
		            ynode_is_null(n) ? "write {}, or remove the key"
		                             : "write \"key: value\" lines under it");
		return;
	}
	read_level(c, n, f->level, at);
}

bool fields_read(const struct report *rep, const struct ynode *root, struct manifest *m)
{
	struct ctx c = { .rep = rep };

	if (root->kind == YNODE_MAP) {
		read_level(&c, root, &TOP_LEVEL, m);
	} else if (ynode_is_null(root)) {
		report_add(rep, SSB_ERROR, root->line, root->col,
		           "write skill, permissions and entrypoint", "the manifest is empty");
	} else if (!root->bad) {
		report_add(rep, SSB_ERROR, root->line, root->col,
		           "write skill, permissions and entrypoint",
		           "the manifest must be a mapping, not %s",
		           root->kind == YNODE_SEQ ? "a list" : "a single value");
	}
	return !c.nomem;
}
