/* test_manifest.c - the manifest: every field, and a good and a bad case for every rule. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"
#include "diags_world.h"

#define auto_manifest AUTO(manifest_freep) struct manifest *

static struct manifest *parse_good(const char *text)
{
	auto_diags d = ssb_diags_new();
	struct ssb_error err = { 0 };
	struct manifest *m = NULL;

	if (manifest_parse("m.yaml", text, strlen(text), &m, d, &err) < 0) {
		fail_msg("refused: %s: %s\n%s", err.where, err.text, text);
	}
	return m;
}

#define SKILL "skill: {name: weather, version: 1.0}\n"
#define ENTRY "entrypoint: {command: python3}\n"
#define SMALL SKILL "permissions: {}\n" ENTRY

static void every_field(void **state)
{
	auto_manifest m = parse_good("skill:\n"
	                             "  name: weather\n"
	                             "  version: 1.0.0\n"
	                             "  description: Tells the weather\n"
	                             "  author: A. Person\n"
	                             "permissions:\n"
	                             "  network:\n"
	                             "    egress:\n"
	                             "      - domain: API.openweathermap.org\n"
	                             "        ports: [8443, 443]\n"
	                             "        protocol: tls\n"
	                             "      - {domain: '*.example.com'}\n"
	                             "      - {domain: 192.0.2.0/24, protocol: udp}\n"
	                             "  filesystem:\n"
	                             "    read: [/tmp/weather-cache/, ~/x//y/./z]\n"
	                             "    write: [/tmp/weather-cache]\n"
	                             "  env_vars:\n"
	                             "    allow: [OPENWEATHER_API_KEY, LANG, _x1]\n"
	                             "  syscalls:\n"
	                             "    profile: strict\n"
	                             "resources:\n"
	                             "  memory_mb: 128\n"
	                             "  cpu_shares: 256\n"
	                             "  max_runtime_seconds: 30\n"
	                             "  max_output_bytes: 1000\n"
	                             "  max_processes: 16\n"
	                             "  max_open_files: 64\n"
	                             "  max_disk_mb: 8\n"
	                             "entrypoint:\n"
	                             "  command: python3\n"
	                             "  args: [main.py, 1.0, \"\", \"a\\nb\"]\n"
	                             "  workdir: /skill//sub/\n");

	assert_string_equal(m->file, "m.yaml");
	assert_string_equal(m->name, "weather");
	assert_string_equal(m->version, "1.0.0");
	assert_string_equal(m->description, "Tells the weather");
	assert_string_equal(m->author, "A. Person");
	assert_int_equal(m->n_egress, 3);
	assert_string_equal(m->egress[0].domain.s, "api.openweathermap.org");
	assert_int_equal(m->egress[0].domain.line, 9);
	assert_int_equal(m->egress[0].domain.col, 17);
	assert_int_equal(m->egress[0].kind, HOST_EXACT);
	assert_int_equal(m->egress[0].protocol, PROTO_TLS);
	assert_int_equal(m->egress[0].n_ports, 2);
	assert_int_equal(m->egress[0].ports[0], 443);
	assert_int_equal(m->egress[0].ports[1], 8443);
	assert_int_equal(m->egress[1].kind, HOST_WILDCARD);
	assert_int_equal(m->egress[1].n_ports, 1);
	assert_int_equal(m->egress[1].ports[0], 443);
	assert_int_equal(m->egress[1].protocol, PROTO_TCP);
	assert_int_equal(m->egress[2].kind, HOST_CIDR);
	assert_int_equal(m->egress[2].protocol, PROTO_UDP);
	assert_int_equal(m->read.n, 2);
	assert_string_equal(m->read.v[0].s, "/tmp/weather-cache");
	assert_string_equal(m->read.v[1].s, "~/x/y/z");
	assert_int_equal(m->read.v[1].line, 15);
	assert_int_equal(m->read.v[1].col, 33);
	assert_string_equal(m->write.v[0].s, "/tmp/weather-cache");
	assert_int_equal(m->env.n, 3);
	assert_string_equal(m->env.v[2].s, "_x1");
	assert_int_equal(m->profile, PROFILE_STRICT);
	const struct resources want = { 128, 256, 30, 1000, 16, 64, 8 };
	assert_memory_equal(&m->resources, &want, sizeof(want));
	assert_string_equal(m->command.s, "python3");
	assert_int_equal(m->command.line, 30);
	assert_int_equal(m->args.n, 4);
	assert_string_equal(m->args.v[1].s, "1.0");
	assert_string_equal(m->args.v[2].s, "");
	assert_string_equal(m->args.v[3].s, "a\nb");
	assert_string_equal(m->workdir, "/skill/sub");
}

static void defaults(void **state)
{
	auto_manifest m = parse_good(SMALL);

	assert_string_equal(m->version, "1.0");
	assert_string_equal(m->description, "");
	assert_string_equal(m->author, "");
	assert_int_equal(m->n_egress, 0);
	assert_int_equal(m->read.n + m->write.n + m->env.n + m->args.n, 0);
	assert_int_equal(m->profile, PROFILE_DEFAULT);
	const struct net_limits net = { 64, 100, 1073741824, 1073741824 };
	assert_memory_equal(&m->net, &net, sizeof(net));
	const struct resources want = { 256, 512, 60, 1048576, 256, 1024, 64 };
	assert_memory_equal(&m->resources, &want, sizeof(want));
	assert_string_equal(m->workdir, "/skill");
}

static void network_limits(void **state)
{
	auto_manifest least = parse_good(SKILL ENTRY "permissions: {network: {max_connections: 1,"
	                                             " max_connections_per_second: 1,"
	                                             " max_bytes_out: 2, max_bytes_in: 3}}\n");
	auto_manifest most = parse_good(
	        SKILL ENTRY "permissions: {network: {max_connections: 4096,"
	                    " max_connections_per_second: 100000,"
	                    " max_bytes_out: 1125899906842624, max_bytes_in: 1125899906842624}}\n");
	const struct net_limits low = { 1, 1, 2, 3 };
	const struct net_limits high = { 4096, 100000, 1ULL << 50, 1ULL << 50 };

	assert_memory_equal(&least->net, &low, sizeof(low));
	assert_memory_equal(&most->net, &high, sizeof(high));
}

/* Whole manifests that are accepted. */
static const char *const GOOD[] = {
	SMALL "resources: {}\n",
	SKILL "permissions: {network: {}, filesystem: {}, env_vars: {}, syscalls: {}}\n" ENTRY,
	SKILL "permissions: {network: {egress: []}, filesystem: {read: [], write: []}}\n" ENTRY,
	SKILL "permissions: {env_vars: {allow: []}, syscalls: {profile: permissive}}\n" ENTRY,
	SKILL "permissions: {filesystem: {read: [~/, /, '~', /a b]}}\n" ENTRY,
	SKILL "permissions: {filesystem: {arguments: 'write'}}\n" ENTRY,
	"skill: {name: 42, version: \"true\", description: '', author: ''}\n"
	"permissions: {}\n" ENTRY,
	"skill: {name: W\xc3\xa4tter \xe5\xa4\xa9\xe6\xb0\x97, version: '1', description: "
	"\"a\\nb\"}\n"
	"permissions: {}\n" ENTRY,
	SMALL "resources: {memory_mb: 4, cpu_shares: 2, max_runtime_seconds: 1,"
	      " max_output_bytes: 1, max_processes: 1, max_open_files: 16, max_disk_mb: 1}\n",
	SMALL "resources: {memory_mb: 1048576, cpu_shares: 262144, max_runtime_seconds: 2592000,"
	      " max_output_bytes: 1099511627776, max_processes: 65536,"
	      " max_open_files: 1048576, max_disk_mb: 1048576}\n",
	SKILL "permissions: {network: {egress: [{domain: a.example, ports: [1, 65535]}]}}\n" ENTRY,
};

static void good_manifests(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		auto_manifest m = parse_good(GOOD[i]);
		assert_non_null(m);
	}
}

#define PERM(x)       SKILL ENTRY "permissions: {" x "}\n" /* permissions are in line 3 */
#define EGRESS(x)     PERM("network: {egress: [" x "]}")
#define RES(x)        SMALL "resources: {" x "}\n"
#define ONLY_SKILL(x) "permissions: {}\n" ENTRY "skill: {" x "}\n"
#define ONLY_ENTRY(x) "permissions: {}\n" SKILL "entrypoint: {" x "}\n"

/* Manifests that are refused: an error in this line, with this text and this remedy. */
static const struct {
	const char *text;
	unsigned line;
	const char *word;
	const char *remedy;
} BAD[] = {
	/* the manifest as a whole */
	{ "", 1, "the manifest is empty", "skill" },
	{ "# nothing\n", 1, "the manifest is empty", "" },
	{ "---\n", 2, "the manifest is empty", "" },
	{ "[]\n", 1, "must be a mapping, not a list", "" },
	{ "hello\n", 1, "must be a mapping, not a single value", "" },
	{ "{}\n", 1, "skill is missing", "name and version" },
	{ "{}\n", 1, "permissions is missing", "permissions: {}" },
	{ "{}\n", 1, "entrypoint is missing", "command" },
	{ SKILL "permissions: {}\n", 1, "only a skill with a SKILL.md", "command" },
	{ "skil: 1\n" SMALL, 1, "unknown key \"skil\"", "did you mean skill?" },
	{ SMALL "Resources: {}\n", 4, "unknown key \"Resources\"", "did you mean resources?" },
	{ SMALL "memory_mb: 1\n", 4, "unknown key", "it belongs under resources" },
	{ SMALL "zzzzzz: 1\n", 4, "unknown key", "the keys here are skill, permissions" },
	{ SMALL "skill: 1\n", 4, "duplicate key \"skill\"", "keep one" },
	{ "skill:\npermissions: {}\n" ENTRY, 1, "skill must be a mapping, not empty", "" },
	{ "skill: x\npermissions: {}\n" ENTRY, 1, "skill must be a mapping", "" },
	{ SKILL ENTRY "permissions:\n", 3, "permissions must be a mapping, not empty", "{}" },
	{ SKILL ENTRY "permissions: []\n", 3, "permissions must be a mapping, not a list", "" },
	{ SMALL "resources:\n", 4, "resources must be a mapping, not empty", "write {}" },
	/* skill */
	{ ONLY_SKILL("version: 1"), 3, "name is missing in skill", "name: weather" },
	{ ONLY_SKILL("name: x"), 3, "version is missing in skill", "version: 1.0.0" },
	{ ONLY_SKILL("name: '', version: 1"), 3, "name \"\" is empty", "weather" },
	{ ONLY_SKILL("name: , version: 1"), 3, "name must be a text, not empty", "" },
	{ ONLY_SKILL("name: ~, version: 1"), 3, "name must be a text, not empty", "" },
	{ ONLY_SKILL("name: [x], version: 1"), 3, "name must be a text, not a list", "" },
	{ ONLY_SKILL("name: {x: 1}, version: 1"), 3, "must be a text, not a mapping", "" },
	{ ONLY_SKILL("name: true, version: 1"), 3, "not a truth value", "quotes: \"true\"" },
	{ ONLY_SKILL("name: a/b, version: 1"), 3, "has a \"/\" in it", "" },
	{ ONLY_SKILL("name: \"a\\nb\", version: 1"), 3, "line break", "" },
	{ ONLY_SKILL("name: \"a\\eb\", version: 1"), 3, "control character U+001B", "" },
	{ ONLY_SKILL("name: ' a', version: 1"), 3, "begins or ends with a space", "" },
	{ ONLY_SKILL("name: .., version: 1"), 3, "is not a name", "" },
	{ ONLY_SKILL("name: x, version: ''"), 3, "version \"\" is empty", "" },
	{ ONLY_SKILL("name: x, version: \"1\\n\""), 3, "version \"1\\x0a\" has a line", "" },
	{ ONLY_SKILL("name: x, version: no"), 3, "version must be a text", "\"no\"" },
	{ ONLY_SKILL("name: x, version: 1, author: \"a\\nb\""), 3, "author", "one line" },
	{ ONLY_SKILL("name: x, version: 1, author: "), 3, "author must be a text", "\"\"" },
	{ ONLY_SKILL("name: x, version: 1, description: []"), 3, "description must be", "" },
	{ ONLY_SKILL("name: x, version: 1, licence: x"), 3, "unknown key \"licence\"", "" },
	/* permissions */
	{ PERM("files: {}"), 3, "unknown key \"files\"", "" },
	{ PERM("file-system: {}"), 3, "unknown key", "did you mean filesystem?" },
	{ PERM("network: []"), 3, "network must be a mapping", "" },
	{ PERM("network: {egres: []}"), 3, "unknown key", "did you mean egress?" },
	{ PERM("network: {ingress: []}"), 3, "unknown key", "" },
	{ PERM("network: {egress: }"), 3, "egress must be a list, not empty", "write []" },
	{ PERM("network: {egress: {}}"), 3, "egress must be a list, not a mapping", "" },
	{ PERM("network: {max_connections: 0}"), 3, "out of range", "1 to 4096" },
	{ PERM("network: {max_connections: 4097}"), 3, "out of range", "1 to 4096" },
	{ PERM("network: {max_connections_per_second: 0}"), 3, "out of range", "1 to 100000" },
	{ PERM("network: {max_connections_per_second: 100001}"), 3, "out of range", "1 to 100000" },
	{ PERM("network: {max_bytes_out: 0}"), 3, "out of range", "1 to 1125899906842624" },
	{ PERM("network: {max_bytes_out: 1125899906842625}"), 3, "out of range", "" },
	{ PERM("network: {max_bytes_in: 0}"), 3, "out of range", "" },
	{ PERM("network: {max_bytes_in: 1125899906842625}"), 3, "out of range", "" },
	{ PERM("network: {max_bytes_in: 1G}"), 3, "not a plain decimal", "" },
	{ PERM("network: {max_connections: '5'}"), 3, "not the text", "remove the quotes" },
	{ PERM("network: {max_connection: 5}"), 3, "unknown key", "mean max_connections?" },
	{ PERM("network: {max_connections: [5]}"), 3, "must be a number, not a list", "" },
	{ RES("max_connections: 5"), 4, "unknown key", "it belongs under permissions.network" },
	{ EGRESS("a.example"), 3, "egress rule \"a.example\" must be a mapping", "- domain:" },
	{ EGRESS("[a]"), 3, "egress must be a mapping, not a list", "" },
	{ EGRESS("{}"), 3, "domain is missing", "domain: api.example.com" },
	{ EGRESS("{domain: }"), 3, "domain must be a text, not empty", "" },
	{ EGRESS("{domain: ''}"), 3, "domain \"\" is empty", "" },
	{ EGRESS("{domain: '*'}"), 3, "allows every host", "" },
	{ EGRESS("{domain: '*.com'}"), 3, "public suffix", "*.example.com" },
	{ EGRESS("{domain: 'https://a.example'}"), 3, "has a scheme", "only the host" },
	{ EGRESS("{domain: 'a.example:443'}"), 3, "has a port", "ports" },
	{ EGRESS("{domain: 2130706433}"), 3, "number in place of a host", "" },
	{ EGRESS("{host: a.example}"), 3, "unknown key \"host\"", "domain, ports, protocol" },
	{ EGRESS("{domain: a.example, port: 443}"), 3, "unknown key", "did you mean ports?" },
	{ EGRESS("{domain: a.example, ports: 443}"), 3, "ports must be a list", "" },
	{ EGRESS("{domain: a.example, ports: }"), 3, "ports must be a list", "write []" },
	{ EGRESS("{domain: a.example, ports: []}"), 3, "empty list", "write [443]" },
	{ EGRESS("{domain: a.example, ports: [0]}"), 3, "out of range", "1 to 65535" },
	{ EGRESS("{domain: a.example, ports: [65536]}"), 3, "out of range", "1 to 65535" },
	{ EGRESS("{domain: a.example, ports: ['443']}"), 3, "not the text", "remove the quotes" },
	{ EGRESS("{domain: a.example, ports: [http]}"), 3, "not a plain decimal", "" },
	{ EGRESS("{domain: a.example, ports: [[1]]}"), 3, "ports must be a number", "" },
	{ EGRESS("{domain: a.example, protocol: icmp}"), 3, "unknown protocol", "tcp, udp, tls" },
	{ EGRESS("{domain: a.example, protocol: TCP}"), 3, "unknown protocol", "mean tcp?" },
	{ EGRESS("{domain: a.example, protocol: https}"), 3, "unknown protocol", "mean http?" },
	{ PERM("filesystem: {raed: []}"), 3, "unknown key", "did you mean read?" },
	{ PERM("filesystem: {read: /tmp}"), 3, "read must be a list", "" },
	{ PERM("filesystem: {read: ~}"), 3, "read must be a list, not empty", "write []" },
	{ PERM("filesystem: {read: [~]}"), 3, "read must be a text", "quotes: \"~\"" },
	{ PERM("filesystem: {read: [/a, null]}"), 3, "read must be a text", "remove the item" },
	{ PERM("filesystem: {read: ['']}"), 3, "read \"\" is empty", "" },
	{ PERM("filesystem: {read: [tmp]}"), 3, "is not absolute", "begin it with / or ~/" },
	{ PERM("filesystem: {read: [./x]}"), 3, "is not absolute", "" },
	{ PERM("filesystem: {read: [/a/../b]}"), 3, "has \"..\" in it", "" },
	{ PERM("filesystem: {write: [/..]}"), 3, "write \"/..\" has \"..\"", "" },
	{ PERM("filesystem: {read: ['~root/x']}"), 3, "another user's home", "" },
	{ PERM("filesystem: {read: [$HOME/x]}"), 3, "variables are not expanded in paths", "~/" },
	{ PERM("filesystem: {read: [\"/a\\tb\"]}"), 3, "control character", "" },
	{ PERM("filesystem: {read: [{a: b}]}"), 3, "read must be a text", "" },
	{ PERM("filesystem: {exec: []}"), 3, "unknown key", "read, write" },
	{ PERM("filesystem: {arguments: all}"), 3, "unknown arguments", "one of read, write" },
	{ PERM("filesystem: {arguments: raed}"), 3, "unknown arguments", "did you mean read?" },
	{ PERM("filesystem: {arguments: [read]}"), 3, "arguments must be a text", "" },
	{ PERM("filesystem: {arguments: true}"), 3, "arguments", "" },
	{ PERM("env_vars: {allow: ['AWS_*']}"), 3, "has a wildcard", "each variable" },
	{ PERM("env_vars: {allow: ['*']}"), 3, "has a wildcard", "" },
	{ PERM("env_vars: {allow: [A=b]}"), 3, "has a value", "" },
	{ PERM("env_vars: {allow: [1A]}"), 3, "not a variable's name", "" },
	{ PERM("env_vars: {allow: [A-B]}"), 3, "not a variable's name", "" },
	{ PERM("env_vars: {allow: ['']}"), 3, "is empty", "" },
	{ PERM("env_vars: {allow: [$A]}"), 3, "begins with \"$\"", "" },
	{ PERM("env_vars: {allow: [\xc3\xa4]}"), 3, "not a variable's name", "" },
	{ PERM("env_vars: {alow: []}"), 3, "unknown key", "did you mean allow?" },
	{ PERM("env_vars: [A]"), 3, "env_vars must be a mapping", "" },
	{ PERM("syscalls: {profile: paranoid}"), 3, "unknown profile", "strict, permissive" },
	{ PERM("syscalls: {profile: Strict}"), 3, "unknown profile", "did you mean strict?" },
	{ PERM("syscalls: {profile: }"), 3, "profile must be a text", "" },
	{ PERM("syscalls: {allow: []}"), 3, "unknown key", "permissions.env_vars" },
	/* resources */
	{ RES("memory_mb: 0"), 4, "out of range", "4 to 1048576" },
	{ RES("memory_mb: 3"), 4, "out of range", "" },
	{ RES("memory_mb: 1048577"), 4, "out of range", "" },
	{ RES("memory_mb: 99999999999999999999999999"), 4, "out of range", "" },
	{ RES("memory_mb: -1"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: +64"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: 064"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: 0x40"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: 0o100"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: 1_000"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: 64.0"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: 1e3"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: 64M"), 4, "not a plain decimal", "" },
	{ RES("memory_mb: '64'"), 4, "not the text \"64\"", "remove the quotes" },
	{ RES("memory_mb: "), 4, "memory_mb must be a number, not empty", "" },
	{ RES("memory_mb: [64]"), 4, "memory_mb must be a number, not a list", "" },
	{ RES("memory_mb: true"), 4, "not a plain decimal", "" },
	{ RES("memory: 64"), 4, "unknown key \"memory\"", "memory_mb" },
	{ RES("cpu_shares: 1"), 4, "out of range", "" },
	{ RES("cpu_shares: 262145"), 4, "out of range", "" },
	{ RES("max_runtime_seconds: 0"), 4, "out of range", "" },
	{ RES("max_runtime_seconds: 2592001"), 4, "out of range", "" },
	{ RES("max_output_bytes: 0"), 4, "out of range", "" },
	{ RES("max_output_bytes: 1099511627777"), 4, "out of range", "" },
	{ RES("max_processes: 0"), 4, "out of range", "" },
	{ RES("max_processes: 65537"), 4, "out of range", "" },
	{ RES("max_open_files: 15"), 4, "out of range", "" },
	{ RES("max_open_files: 1048577"), 4, "out of range", "" },
	{ RES("max_disk_mb: 0"), 4, "out of range", "" },
	{ RES("max_disk_mb: 1048577"), 4, "out of range", "" },
	/* entrypoint */
	{ ONLY_ENTRY(""), 3, "command is missing in entrypoint", "command: python3" },
	{ ONLY_ENTRY("command: ''"), 3, "command \"\" is empty", "" },
	{ ONLY_ENTRY("command: "), 3, "command must be a text, not empty", "" },
	{ ONLY_ENTRY("command: [a, b]"), 3, "command must be a text, not a list", "" },
	{ ONLY_ENTRY("command: \"a\\nb\""), 3, "line break", "" },
	{ ONLY_ENTRY("command: a, args: b"), 3, "args must be a list", "" },
	{ ONLY_ENTRY("command: a, args: null"), 3, "args must be a list", "write []" },
	{ ONLY_ENTRY("command: a, args: [~]"), 3, "args must be a text", "" },
	{ ONLY_ENTRY("command: a, args: [on]"), 3, "truth value", "quotes: \"on\"" },
	{ ONLY_ENTRY("command: a, workdir: x"), 3, "workdir \"x\" is not absolute", "/skill" },
	{ ONLY_ENTRY("command: a, workdir: ~/x"), 3, "is not absolute", "" },
	{ ONLY_ENTRY("command: a, workdir: /skill/.."), 3, "has \"..\"", "" },
	{ ONLY_ENTRY("command: a, workdir: ''"), 3, "workdir \"\" is empty", "" },
	{ ONLY_ENTRY("command: a, cwd: /"), 3, "unknown key \"cwd\"", "workdir" },
	/* a YAML error is reported once */
	{ RES("memory_mb: *x"), 4, "aliases", "" },
	{ "&a " SMALL, 1, "anchors", "" },
};

static bool has_error(const struct ssb_diags *d, unsigned line, const char *word,
                      const char *remedy)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "m.yaml:%u:", line);
	for (size_t i = 0; i < ssb_diags_count(d); i++) {
		const struct ssb_diag *e = ssb_diags_get(d, i);
		if (e->severity == SSB_ERROR && strncmp(e->where, prefix, strlen(prefix)) == 0 &&
		    strstr(e->text, word) != NULL && strstr(e->remedy, remedy) != NULL) {
			return true;
		}
	}
	return false;
}

static void bad_manifests(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		auto_diags d = ssb_diags_new();
		struct ssb_error err = { 0 };
		struct manifest *m = NULL;
		const char *text = BAD[i].text;

		if (manifest_parse("m.yaml", text, strlen(text), &m, d, &err) == 0) {
			fail_msg("accepted: %s", text);
		}
		assert_null(m);
		assert_int_equal(err.code, SSB_E_MANIFEST);
		if (!has_error(d, BAD[i].line, BAD[i].word, BAD[i].remedy)) {
			fail_msg("no \"%s\" (%s) at line %u in: %s\nof: %s", BAD[i].word,
			         BAD[i].remedy, BAD[i].line, diags_dump(d), text);
		}
	}
}

static void all_errors_are_reported_and_the_first_is_the_error(void **state)
{
	static const char text[] = "skill: {name: a/b}\n"
	                           "permissions: {filesystem: {read: [x, /a/.., /ok]}}\n"
	                           "resources: {memory_mb: 1, memory: 5}\n"
	                           "entrypoint: {}\n";
	auto_diags d = ssb_diags_new();
	struct ssb_error err = { 0 };
	struct manifest *m = NULL;

	assert_int_equal(manifest_parse("m.yaml", text, strlen(text), &m, d, &err), -1);
	assert_int_equal(ssb_diags_count(d), 7);
	assert_string_equal(err.where, ssb_diags_get(d, 0)->where);
	assert_string_equal(err.where, "m.yaml:1:15");
	assert_int_equal(
	        strncmp(err.text, ssb_diags_get(d, 0)->text, strlen(ssb_diags_get(d, 0)->text)), 0);
	/* without a list for findings, the result is the same */
	struct ssb_error again = { 0 };
	assert_int_equal(manifest_parse("m.yaml", text, strlen(text), &m, NULL, &again), -1);
	assert_memory_equal(&err, &again, sizeof(err));
	/* a list that already has errors of another file does not make this manifest invalid */
	assert_int_equal(manifest_parse("m.yaml", SMALL, strlen(SMALL), &m, d, NULL), 0);
	manifest_free(m);
}

/* For a skill with a SKILL.md, the entrypoint may be missing, but not half written. */
static void an_entrypoint_can_be_optional(void **state)
{
	static const char *const bad[] = { SKILL "permissions: {}\nentrypoint: {}\n",
		                           SKILL "permissions: {}\nentrypoint:\n",
		                           SKILL "permissions: {}\nentrypoint: {args: [a]}\n",
		                           "permissions: {}\n" };
	static const char good[] = SKILL "permissions: {}\n";
	struct ssb_error err = { 0 };
	auto_manifest m = NULL;
	struct manifest *none = NULL;

	assert_int_equal(manifest_parse_as(ENTRY_OPTIONAL, "m", good, strlen(good), &m, NULL, &err),
	                 0);
	assert_null(m->command.s);
	assert_int_equal(m->args.n, 0);
	assert_string_equal(m->workdir, "/skill");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(manifest_parse_as(ENTRY_OPTIONAL, "m", bad[i], strlen(bad[i]),
		                                   &none, NULL, &err),
		                 -1);
		assert_null(none);
	}
}

static void repeats_are_merged_with_a_warning(void **state)
{
	static const char text[] =
	        PERM("network: {egress: [{domain: a.example, ports: [80, 443, 80]}]},"
	             "filesystem: {read: [/a, /b, /a/, //a], write: [/a]},"
	             "env_vars: {allow: [A, A]}") "resources: {}\n";
	auto_diags d = ssb_diags_new();
	struct ssb_error err = { 0 };
	struct manifest *m = NULL;

	assert_int_equal(manifest_parse("m.yaml", text, strlen(text), &m, d, &err), 0);
	assert_int_equal(ssb_diags_count(d), 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(ssb_diags_get(d, i)->severity, SSB_WARNING);
	}
	assert_int_equal(m->egress[0].n_ports, 2);
	assert_int_equal(m->read.n, 2);
	assert_int_equal(m->write.n, 1);
	assert_int_equal(m->env.n, 1);
	manifest_free(m);
}

/* Returns a new text: `head`, then `count` times `unit` (%u in it becomes a running number), then
 * `tail`. */
static char *repeat(const char *head, const char *unit, unsigned count, const char *tail)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_adds(&b, head);
	for (unsigned i = 1; i <= count; i++) {
		const char *number = strstr(unit, "%u");
		if (number == NULL) {
			buf_adds(&b, unit);
			continue;
		}
		buf_add(&b, unit, (size_t)(number - unit));
		buf_addf(&b, "%u%s", i, number + 2);
	}
	buf_adds(&b, tail);
	char *s = buf_steal(&b);
	assert_non_null(s);
	return s;
}

static const struct {
	const char *head, *unit, *tail;
	unsigned cap;
	const char *word;
} CAPS[] = {
	{ SKILL "permissions: {}\nentrypoint:\n  command: a\n  args:\n", "  - a%u\n", "",
	  MAX_LIST_ITEMS, "more than 256 items" },
	{ SKILL ENTRY "permissions: {filesystem: {read: [", "/%u, ", "]}}\n", MAX_LIST_ITEMS,
	  "more than 256 items" },
	{ SKILL ENTRY "permissions: {env_vars: {allow: [", "A%u, ", "]}}\n", MAX_LIST_ITEMS,
	  "more than 256 items" },
	{ SKILL ENTRY "permissions:\n network:\n  egress:\n", "  - domain: h%u.example\n", "",
	  MAX_LIST_ITEMS, "more than 256 items" },
	{ SKILL ENTRY "permissions: {network: {egress: [{domain: a.example, ports: [", "%u, ",
	  "]}]}}\n", MAX_LIST_ITEMS, "more than 256 items" },
	{ "permissions: {}\n" ENTRY "skill: {version: 1, name: '", "x", "'}\n", MAX_NAME_BYTES,
	  "longer than 128" },
	{ "permissions: {}\n" ENTRY "skill: {name: x, version: '", "1", "'}\n", MAX_NAME_BYTES,
	  "longer than 128" },
	{ SKILL "permissions: {}\nentrypoint: {command: a, args: ['", "x", "']}\n",
	  MAX_SCALAR_BYTES, "a text has 4097 bytes" },
	{ SKILL ENTRY "permissions: {filesystem: {read: [/", "x", "]}}\n", MAX_PATH_BYTES - 2,
	  "longer than a path" },
	{ SKILL ENTRY "permissions: {filesystem: {write: [", "/x", "]}}\n", MAX_PATH_DEPTH,
	  "more than 128 directories" },
	{ SMALL "#", "x", "", MAX_YAML_BYTES - sizeof(SMALL), "larger than 262144 bytes" },
};

static void caps_hold_exactly(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(CAPS); i++) {
		for (unsigned past = 0; past < 2; past++) {
			auto_free char *text = repeat(CAPS[i].head, CAPS[i].unit,
			                              CAPS[i].cap + past, CAPS[i].tail);
			struct ssb_error err = { 0 };
			auto_manifest m = NULL;
			int rc = manifest_parse("m.yaml", text, strlen(text), &m, NULL, &err);
			if (past == 0 && rc != 0) {
				fail_msg("%s: refused at the cap: %s", CAPS[i].word, err.text);
			}
			if (past == 1 && (rc == 0 || strstr(err.text, CAPS[i].word) == NULL)) {
				fail_msg("%s: past the cap: %s", CAPS[i].word, err.text);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field),
		cmocka_unit_test(defaults),
		cmocka_unit_test(network_limits),
		cmocka_unit_test(good_manifests),
		cmocka_unit_test(bad_manifests),
		cmocka_unit_test(all_errors_are_reported_and_the_first_is_the_error),
		cmocka_unit_test(an_entrypoint_can_be_optional),
		cmocka_unit_test(repeats_are_merged_with_a_warning),
		cmocka_unit_test(caps_hold_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
