/* fields.c - the format of the manifest as tables (see levels.h): one table per level, one row per
 * key. */
#include "manifest/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "manifest/check.h"
#include "manifest/levels.h"
#include "manifest/name_tables.h"
#include "manifest/resources.h"
#include "manifest/values.h"

static void read_profile(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	int i = values_node_choice(c, n, f, PROFILE_NAMES, N_PROFILES);

	if (i >= 0) {
		*(enum profile *)at = (enum profile)i;
	}
}

static void read_protocol(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	int i = values_node_choice(c, n, f, PROTOCOL_NAMES, N_PROTOCOLS);

	if (i >= 0) {
		*(enum protocol *)at = (enum protocol)i;
	}
}

static void read_arguments(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct manifest *m = at;
	int i = values_node_choice(c, n, f, NAMED_FILES_NAMES, N_NAMED_FILES);

	if (i >= 0) {
		m->arguments = (enum named_files)(NAMED_READ + i);
		m->arguments_at = (struct mtext){ .line = n->line, .col = n->col };
	}
}

/* ---- egress -------------------------------------------------------------- */

static void read_domain(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct egress_rule *rule = at;
	const char *s = values_node_text(c, n, f);

	if (s == NULL) {
		return;
	}
	const char *problem = domain_check(s, &rule->domain.s, &rule->kind);
	if (problem != NULL) {
		values_report_problem(c, n, f, problem);
		return;
	}
	rule->domain.line = n->line;
	rule->domain.col = n->col;
}

/* Inserts a port in sorted order. Returns false if it is there already. */
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

	if (!values_node_is_list(c, n, f)) {
		return;
	}
	if (n->first == NULL) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, "write [443], or remove the key",
		           "ports is an empty list");
		return;
	}
	if (!values_list_alloc(c, n, sizeof(rule->ports[0]), &rule->ports)) {
		return;
	}
	for (const struct ynode *item = n->first; item != NULL; item = item->next) {
		uint64_t port = 0;
		if (values_node_number(c, item, f, &port) && !port_insert(rule, (uint16_t)port)) {
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
	level_read_map(c, n, f, rule);
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

	if (!values_node_is_list(c, n, f) ||
	    !values_list_alloc(c, n, sizeof(m->egress[0]), &m->egress)) {
		return;
	}
	for (const struct ynode *item = n->first; item != NULL; item = item->next) {
		struct egress_rule *rule = &m->egress[m->n_egress++];
		read_rule(c, item, f, rule);
		if (rule->domain.s != NULL && rule->n_ports > 0 &&
		    host_kind_is_sandbox(rule->domain.s)) {
			report_add(c->rep, SSB_ALARM, rule->domain.line, rule->domain.col, "",
			           RULE_OF_SANDBOX, rule->domain.s, (unsigned)rule->ports[0]);
		}
	}
}

/* ---- the tables ---------------------------------------------------------- */

/* clang-format off */
#define AT(member)      .offset = offsetof(struct manifest, member)
#define RULE_AT(member) .offset = offsetof(struct egress_rule, member)
#define RESOURCE(name, unit, after, least, most, usual) \
	{ #name, values_read_number, AT(resources.name), .min = (least), .max = (uint64_t)(most) },
#define NET_LIMIT(name, unit, after, least, most, usual) \
	{ #name, values_read_number, AT(net.name), .min = (least), .max = (uint64_t)(most) },
/* clang-format on */

static const struct field RULE_FIELDS[] = {
	{ "domain", read_domain, 0, .missing = "write \"domain: api.example.com\"" },
	{ "ports", read_ports, 0, .min = 1, .max = 65535 },
	{ "protocol", read_protocol, RULE_AT(protocol) },
};
static const struct level RULE_LEVEL = LEVEL("an item of permissions.network.egress", RULE_FIELDS);

static const struct field NETWORK_FIELDS[] = { { "egress", read_egress, 0, .level = &RULE_LEVEL },
	                                       NET_LIMIT_ROWS(NET_LIMIT) };
static const struct level NETWORK_LEVEL = LEVEL("permissions.network", NETWORK_FIELDS);

static const struct field FILE_FIELDS[] = {
	{ "read", values_read_texts, AT(read), .check = check_path, .unique = true },
	{ "write", values_read_texts, AT(write), .check = check_path, .unique = true },
	{ "arguments", read_arguments, .offset = 0 },
};
static const struct level FILE_LEVEL = LEVEL("permissions.filesystem", FILE_FIELDS);

static const struct field ENV_FIELDS[] = {
	{ "allow", values_read_texts, AT(env), .check = check_env, .unique = true },
};
static const struct level ENV_LEVEL = LEVEL("permissions.env_vars", ENV_FIELDS);

static const struct field SYSCALL_FIELDS[] = {
	{ "profile", read_profile, AT(profile) },
};
static const struct level SYSCALL_LEVEL = LEVEL("permissions.syscalls", SYSCALL_FIELDS);

static const struct field PERMISSION_FIELDS[] = {
	{ "network", level_read_map, .level = &NETWORK_LEVEL },
	{ "filesystem", level_read_map, .level = &FILE_LEVEL },
	{ "env_vars", level_read_map, .level = &ENV_LEVEL },
	{ "syscalls", level_read_map, .level = &SYSCALL_LEVEL },
};
static const struct level PERMISSION_LEVEL = LEVEL("permissions", PERMISSION_FIELDS);

static const struct field SKILL_FIELDS[] = {
	{ "name", values_read_text, AT(name), "write \"name: weather\"", .check = check_name },
	{ "version", values_read_text, AT(version), "write \"version: 1.0.0\"",
	  .check = check_version },
	{ "description", values_read_text, AT(description), .check = check_text },
	{ "author", values_read_text, AT(author), .check = check_line },
	{ "directory", values_read_mtext, AT(directory), .check = check_workdir },
};
static const struct level SKILL_LEVEL = LEVEL("skill", SKILL_FIELDS);

static const struct field RESOURCE_FIELDS[] = { RESOURCE_ROWS(RESOURCE) };
static const struct level RESOURCE_LEVEL = LEVEL("resources", RESOURCE_FIELDS);

static const struct field ENTRY_FIELDS[] = {
	{ "command", values_read_mtext, AT(command), "write \"command: python3\"",
	  .check = check_command },
	{ "args", values_read_texts, AT(args), .check = check_text },
	{ "workdir", values_read_text, AT(workdir), .check = check_workdir },
};
static const struct level ENTRY_LEVEL = LEVEL("entrypoint", ENTRY_FIELDS);

static const struct field TOP_FIELDS[] = {
	{ "skill", level_read_map, .missing = "write \"skill:\" with name and version under it",
	  .level = &SKILL_LEVEL },
	{ "permissions", level_read_map,
	  .missing = "write \"permissions: {}\" for a skill that needs no permissions",
	  .level = &PERMISSION_LEVEL },
	{ "resources", level_read_map, .level = &RESOURCE_LEVEL },
	{ "entrypoint", level_read_map, .level = &ENTRY_LEVEL }, /* see report_no_entry() */
};
static const struct level TOP_LEVEL = LEVEL("the top level", TOP_FIELDS);

static const struct level *const ALL_LEVELS[] = {
	&TOP_LEVEL,  &SKILL_LEVEL, &PERMISSION_LEVEL, &NETWORK_LEVEL,  &RULE_LEVEL,
	&FILE_LEVEL, &ENV_LEVEL,   &SYSCALL_LEVEL,    &RESOURCE_LEVEL, &ENTRY_LEVEL,
};

static void report_no_entry(const struct report *rep, const struct ynode *root)
{
	report_add(rep, SSB_ERROR, root->line, root->col,
	           "write \"entrypoint:\" with command under it",
	           "entrypoint is missing in the top level; only a skill with a SKILL.md can be "
	           "without it");
}

bool fields_read(const struct report *rep, const struct ynode *root, enum manifest_entry entry,
                 struct manifest *m)
{
	struct ctx c = { .rep = rep, .levels = ALL_LEVELS, .n_levels = ARRAY_LEN(ALL_LEVELS) };

	if (root->kind == YNODE_MAP) {
		level_read(&c, root, &TOP_LEVEL, m);
		bool optional = entry == ENTRY_OPTIONAL ||
		                (entry == ENTRY_BY_DIRECTORY && m->directory.s != NULL);
		if (!optional && ynode_get((struct ynode *)root, "entrypoint") == NULL) {
			report_no_entry(rep, root);
		}
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
