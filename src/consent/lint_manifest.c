/* lint_manifest.c - checks the requests of a manifest, and their combinations. */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "base/tail.h"
#include "consent/lint_priv.h"
#include "manifest/resources.h"
#include "os/file.h"
#include "policy/danger_set.h"
#include "policy/path.h"
#include "policy/protect.h"
#include "policy/secrets.h"
#include "policy/view.h"
#include "skill/skill.h"

#define FEW_PORTS 4
#define FEW_HOSTS 1 /* a secret should be able to go to one host only */

/* ---- hosts ------------------------------------------------------------------------ */

/* Services where anyone can get an address without registration. Whoever has the address can read
 * what is sent to it. */
static const char *const DROPS[] = { "webhook.site",
	                             "requestbin.com",
	                             "requestbin.net",
	                             "pipedream.net",
	                             "ngrok.io",
	                             "ngrok.app",
	                             "ngrok-free.app",
	                             "ngrok-free.dev",
	                             "oast.fun",
	                             "oast.pro",
	                             "oast.live",
	                             "oast.site",
	                             "oast.online",
	                             "oast.me",
	                             "interact.sh",
	                             "oastify.com",
	                             "burpcollaborator.net",
	                             "beeceptor.com",
	                             "requestcatcher.com",
	                             "hookbin.com",
	                             "pastebin.com",
	                             "paste.rs",
	                             "transfer.sh",
	                             "file.io",
	                             "0x0.st",
	                             "termbin.com",
	                             "dpaste.org",
	                             "trycloudflare.com",
	                             "serveo.net",
	                             "localhost.run",
	                             "loca.lt",
	                             "dnslog.cn",
	                             "api.telegram.org",
	                             "ntfy.sh" };

static bool is_drop(const char *name)
{
	return ARRAY_HAS(drop, DROPS, ARRAY_LEN(DROPS), tail_behind(name, '.', *drop));
}

static bool is_wide(const struct egress_rule *r)
{
	return r->kind == HOST_WILDCARD || r->kind == HOST_CIDR || is_drop(r->domain.s);
}

static void look_at_rule(struct lint *l, const struct egress_rule *r, const char *file)
{
	static const enum lint_id kinds[] = { [HOST_EXACT] = LINT_NETWORK,
		                              [HOST_WILDCARD] = LINT_WILDCARD,
		                              [HOST_ADDRESS] = LINT_ADDRESS,
		                              [HOST_CIDR] = LINT_RANGE };
	const char *host = r->domain.s;
	unsigned line = r->domain.line;

	if (is_drop(host)) {
		lint_add(l, LINT_DROP, file, line,
		         "the skill can send data to '%s', where anyone can collect it", host);
	} else {
		lint_add(l, kinds[r->kind], file, line, "the skill can send data to '%s'", host);
	}
	if (r->n_ports > FEW_PORTS) {
		lint_add(l, LINT_PORTS, file, line, "the skill can reach %zu ports of '%s'",
		         r->n_ports, host);
	}
}

/* ---- files ------------------------------------------------------------------------ */

static bool lies_in(const char *path, const char *place, bool also_beneath)
{
	size_t n = strlen(place);

	return strncmp(path, place, n) == 0 &&
	       (path[n] == '\0' || (also_beneath && path[n] == '/'));
}

/* Returns true for "/", a home and all homes: these contain far more than one skill needs. */
static bool is_whole(const char *path)
{
	static const char *const places[] = { "/",     "~",    "/home", "/root",  "/etc",
		                              "/var",  "/srv", "/mnt",  "/media", "/run",
		                              "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (strcmp(path, places[i]) == 0) {
			return true;
		}
	}
	/* The path is the whole home of another user. */
	return strncmp(path, "/home/", 6) == 0 && strchr(path + 6, '/') == NULL;
}

/* Compares paths as manifests write them, with "~". Does not use the file system. */
static const char *danger_of(const char *path, unsigned access, bool code)
{
	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		const struct danger_row *row = &DANGER_ROWS[i];
		bool is_code = (row->flags & DANGER_READ) == 0;
		if ((row->flags & access) != 0 && is_code == code &&
		    lies_in(path, row->path, (row->flags & DANGER_BENEATH) != 0)) {
			return row->why;
		}
	}
	return NULL;
}

/* Returns true if the path ends in a place whose files are executed later, such as
 * "~/work/app/.git/hooks". */
static bool runs_later(const char *path)
{
	for (const char *s = strchr(path, '/'); s != NULL; s = strchr(s + 1, '/')) {
		if (protect_has_name(s + 1)) {
			return true;
		}
	}
	return false;
}

struct asked_files {
	bool reads;  /* the skill can read files of the owner */
	bool stores; /* the skill can read places where keys and tokens are kept */
};

static void look_at_path(struct lint *l, const struct mtext *t, bool write, const char *file,
                         struct asked_files *a)
{
	const char *word = write ? "change" : "read";
	const char *why = NULL;

	a->reads = true;
	if (is_whole(t->s)) {
		a->stores = a->stores || t->s[0] == '~' || t->s[1] == '\0' ||
		            strncmp(t->s, "/home", 5) == 0 || strcmp(t->s, "/root") == 0;
		lint_add(l, LINT_WHOLE, file, t->line, "the skill asks to %s all of '%s'", word,
		         t->s);
	} else if ((why = danger_of(t->s, DANGER_READ, false)) != NULL) {
		a->stores = true;
		lint_add(l, LINT_STORE, file, t->line, "the skill asks to %s '%s', which %s", word,
		         t->s, why);
	} else if (write && (why = danger_of(t->s, DANGER_WRITE, true)) != NULL) {
		lint_add(l, LINT_CODE_DIR, file, t->line, "the skill asks to change '%s', which %s",
		         t->s, why);
	} else if (write && runs_later(t->s)) {
		lint_add(l, LINT_EXECUTED, file, t->line,
		         "the skill asks to change '%s', which tools execute or apply later", t->s);
	} else {
		lint_add(l, write ? LINT_WRITES : LINT_READS, file, t->line,
		         "the skill can %s '%s'", word, t->s);
	}
}

/* ---- the environment -------------------------------------------------------------- */

static void look_at_secrets(struct lint *l, const struct manifest *m, const char *file)
{
	bool wide = m->n_egress > FEW_HOSTS;

	for (size_t i = 0; i < m->n_egress; i++) {
		wide = wide || is_wide(&m->egress[i]);
	}
	for (size_t i = 0; i < m->env.n; i++) {
		const struct mtext *t = &m->env.v[i];
		enum secret kind = secret_of(t->s, NULL);
		if (kind == SECRET_NOT) {
			continue;
		}
		if (m->n_egress == 0) {
			lint_add(l, LINT_SECRET, file, t->line, "the skill asks for '%s'", t->s);
		} else {
			lint_add(l,
			         wide                    ? LINT_SECRET_WIDE
			         : kind >= SECRET_OWNERS ? LINT_CREDENTIAL_OUT
			                                 : LINT_SECRET_OUT,
			         file, t->line, "'%s' can be sent to '%s'%s", t->s,
			         m->egress[0].domain.s, m->n_egress > 1 ? " and other places" : "");
		}
	}
}

/* ---- limits ----------------------------------------------------------------------- */

#define LIMIT(field, unit, most)                                                                   \
	{                                                                                          \
#field, unit, offsetof(struct manifest, field), (most)                             \
	}

static const struct {
	const char *name;
	enum unit unit;
	size_t at;
	uint64_t most; /* a larger limit is a finding */
} LIMITS[] = {
	LIMIT(resources.memory_mb, UNIT_MIB, 4096),
	LIMIT(resources.max_runtime_seconds, UNIT_SECONDS, 3600),
	LIMIT(resources.max_output_bytes, UNIT_BYTES, 256ULL << 20),
	LIMIT(resources.max_processes, UNIT_COUNT, 2048),
	LIMIT(resources.max_open_files, UNIT_COUNT, 65536),
	LIMIT(resources.max_disk_mb, UNIT_MIB, 8192),
	LIMIT(net.max_connections, UNIT_COUNT, 1024),
	LIMIT(net.max_bytes_out, UNIT_BYTES, 16ULL << 30),
	LIMIT(net.max_bytes_in, UNIT_BYTES, 64ULL << 30),
};

static void look_at_limits(struct lint *l, const struct manifest *m, const char *file)
{
	for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
		uint64_t v = *(const uint64_t *)(const void *)((const char *)m + LIMITS[i].at);
		if (v > LIMITS[i].most) {
			auto_buf amount = BUF(64);
			resource_amount(&amount, LIMITS[i].unit, v);
			lint_add(l, LINT_LIMITS, file, 0, "%s is %s",
			         strchr(LIMITS[i].name, '.') + 1, amount.data);
		}
	}
}

void lint_manifest(struct lint *l, const struct manifest *m, const char *file)
{
	struct asked_files a = { 0 };

	if (m->description == NULL || m->description[strspn(m->description, " \t\n")] == '\0') {
		lint_add(l, LINT_DESCRIPTION, file, 0,
		         "the manifest has no description that says what the skill is for");
	}
	for (size_t i = 0; i < m->n_egress; i++) {
		look_at_rule(l, &m->egress[i], file);
	}
	for (size_t i = 0; i < m->read.n; i++) {
		look_at_path(l, &m->read.v[i], false, file, &a);
	}
	for (size_t i = 0; i < m->write.n; i++) {
		look_at_path(l, &m->write.v[i], true, file, &a);
	}
	a.reads |= m->arguments != NAMED_NOTHING;
	if (m->arguments == NAMED_WRITE) {
		lint_add(l, LINT_WRITES, file, m->arguments_at.line,
		         "the skill can change the files that its caller names");
	}
	look_at_secrets(l, m, file);
	if (m->profile == PROFILE_PERMISSIVE) {
		lint_add(l, LINT_PERMISSIVE, file, 0,
		         "the skill may make almost every system call");
	}
	look_at_limits(l, m, file);
	if (m->n_egress > 0 && a.stores) {
		lint_add(l, LINT_STORE_OUT, file, m->egress[0].domain.line,
		         "keys and tokens that the skill can read can be sent to '%s'",
		         m->egress[0].domain.s);
	} else if (m->n_egress > 0 && a.reads) {
		lint_add(l, LINT_READS_OUT, file, m->egress[0].domain.line,
		         "files of yours that the skill can read can be sent to '%s'",
		         m->egress[0].domain.s);
	}
}

/* ---- the entry point -------------------------------------------------------------- */

static const char *in_skill(const char *path)
{
	static const char skill[] = "/skill/";

	if (strncmp(path, skill, strlen(skill)) == 0) {
		return path + strlen(skill);
	}
	while (strncmp(path, "./", 2) == 0) {
		path += 2;
	}
	return path[0] == '/' || strncmp(path, "../", 3) == 0 ? NULL : path;
}

static bool is_there(int dir_fd, const char *path)
{
	auto_fd fd = file_openat2(dir_fd, path, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	return fd >= 0;
}

/* Returns true if the first argument of an interpreter is a script, such as "main.py". */
static bool looks_like_script(const char *word)
{
	static const char *const ends[] = { ".py",  ".sh", ".bash", ".js", ".mjs",
		                            ".cjs", ".ts", ".rb",   ".pl", ".php" };

	/* A word that is only an ending has no name before it. */
	return word[0] != '-' && word[0] != '\0' &&
	       ARRAY_HAS(end, ends, ARRAY_LEN(ends), tail_is(word + 1, *end));
}

static void look_for(struct lint *l, const struct mtext *t, const char *file, int dir_fd)
{
	const char *path = in_skill(t->s);

	if (path != NULL ? !is_there(dir_fd, path) : !view_is_system(t->s)) {
		lint_add(l, LINT_ENTRYPOINT, file, t->line, "'%s' is not in the skill", t->s);
	}
}

void lint_entrypoint(struct lint *l, const struct manifest *m, const char *file, int dir_fd)
{
	/* Check only a path in /skill: in another working directory, the same path names another
	 * file. */
	if (m->command.s == NULL || (m->workdir != NULL && strcmp(m->workdir, "/skill") != 0)) {
		return;
	}
	if (strchr(m->command.s, '/') != NULL) {
		look_for(l, &m->command, file, dir_fd);
	}
	if (m->args.n > 0 && looks_like_script(m->args.v[0].s)) {
		look_for(l, &m->args.v[0], file, dir_fd);
	}
}

/* Returns true if `word` is a file of version control. A relative path begins at the working
 * directory, and links are followed. */
static bool is_foreign(const struct manifest *m, const char *word, int dir_fd)
{
	char top[PATH_MAX], real[PATH_MAX];
	auto_free char *path = path_from(m->workdir, word);
	const char *in = path != NULL ? path_beneath(path, "/skill") : NULL;
	auto_fd fd = in == NULL ? -1
	                        : file_openat2(dir_fd, *in != '\0' ? in : ".", O_PATH,
	                                       RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	if (file_path(dir_fd, top, sizeof(top)) < 0 || file_path(fd, real, sizeof(real)) < 0) {
		return false;
	}
	const char *rest = path_beneath(real, top);
	return rest != NULL && skill_is_foreign(rest, strcspn(rest, "/"));
}

bool lint_starts_foreign(const struct manifest *m, int dir_fd)
{
	if (m->command.s == NULL || m->workdir == NULL) {
		/* The manifest is derived, and the skill has several possible programs. */
		return false;
	}
	bool foreign = is_foreign(m, m->command.s, dir_fd);

	for (size_t i = 0; i < m->args.n && !foreign; i++) {
		foreign = is_foreign(m, m->args.v[i].s, dir_fd);
	}
	return foreign;
}
