/* start.c - finds or makes the manifest of the first round. */
#include "learn/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/own.h"
#include "manifest/check.h"
#include "manifest/write.h"
#include "policy/path.h"
#include "skill/script.h"

static int fail_no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
}

/* Finds the only script of the directory. If there are none or several, the error says so. */
static int find_only(int fd, const char *dir, struct script *ret, struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list all = { 0 };
	auto_buf names = BUF(160);

	script_list(fd, &all);
	if (all.n == 1) {
		return script_find(fd, dir, all.v[0], ret, NULL, err);
	}
	script_names(fd, &names);
	return all.n == 0 ? ssb_fail(err, SSB_E_NOT_FOUND, 0, "script",
	                             "there is no script to run in '%.200s'", dir)
	                  : ssb_fail(err, SSB_E_USAGE, 0, "script",
	                             "after the directory, name the script to run; it has: %s",
	                             names.data);
}

/* Finds the script that args[0] names. Without args, finds the first script with a usual name, or
 * the only script. */
static int find_script(int fd, const char *dir, char *const args[], struct script *ret,
                       struct ssb_error *err)
{
	static const char *const NAMES[] = { "main.py", "run.py",   "main.sh", "run.sh",
		                             "main.js", "index.js", "main",    "run" };

	if (args != NULL && args[0] != NULL) {
		return script_find(fd, dir, args[0], ret, NULL, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		struct ssb_error none = { 0 };
		if (script_find(fd, dir, NAMES[i], ret, NULL, &none) == 0) {
			return 0;
		}
	}
	return find_only(fd, dir, ret, err);
}

static int write_bare(const char *dir, const struct script *s, struct buf *out)
{
	struct mtext words[MAX_SHEBANG_WORDS + 2] = { 0 };
	auto_free char *name = NULL;
	size_t n = 0;

	if (check_name(path_base(dir), &name) != NULL || !manifest_can_say(name)) {
		free(name);
		name = strdup("skill");
	}
	for (size_t i = 0; i < s->n; i++) {
		words[n++].s = s->words[i];
	}
	auto_free char *path = path_join("/skill", s->path);
	if (name == NULL || path == NULL) {
		return -1;
	}
	words[n++].s = path;
	struct manifest m = { .name = name,
		              .version = "0.1.0",
		              .description = "",
		              .author = "",
		              .net = NET_DEFAULTS,
		              .resources = RESOURCE_DEFAULTS,
		              .command = words[0],
		              .args = { words + 1, n - 1 },
		              .workdir = "/skill" };
	manifest_write(out, &m, NULL);
	return out->failed ? -1 : 0;
}

static int start_bare(const char *dir, char *const args[], struct skill_found *ret,
                      struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(script_done) struct script script = { 0 };
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_buf text;

	buf_init(&text, MAX_YAML_BYTES);
	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "skill", "'%.200s'", dir);
	}
	if (find_script(fd, dir, args, &script, err) != 0) {
		return -1;
	}
	if (write_bare(dir, &script, &text) != 0) {
		return fail_no_memory(err);
	}
	return manifest_parse(MANIFEST_FILE, text.data, text.len, &ret->manifest, diags, err);
}

/* Moves the variables of a derived manifest to `inout` as hints, because they are not requests
 * yet. */
static int take_wishes(struct skill_found *f, struct needs *inout)
{
	struct mtext_list *env = &f->manifest->env;

	for (size_t i = 0; i < env->n; i++) {
		char *why = NULL;
		if (asprintf(&why, "%s:%u", path_base(f->file), env->v[i].line) < 0) {
			return -1;
		}
		struct need n = {
			.kind = NEED_ENV, .value = env->v[i].s, .why = why, .hint = true
		};
		int rc = needs_add(inout, &n);
		free(why);
		if (rc != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < env->n; i++) {
		free(env->v[i].s);
	}
	env->n = 0;
	return 0;
}

int start_find(const char *dir, const char *config_dir, char *const args[], struct needs *inout,
               struct skill_found *ret, struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };

	int rc = skill_is_one(dir) ? skill_find(dir, config_dir, args, &found, diags, err)
	                           : start_bare(dir, args, &found, diags, err);
	if (rc != 0) {
		return -1;
	}
	if (skill_format_derived(found.format) && take_wishes(&found, inout) != 0) {
		return fail_no_memory(err);
	}
	*ret = found;
	found = (struct skill_found){ 0 };
	return 0;
}
