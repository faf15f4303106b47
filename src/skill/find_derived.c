/* find_derived.c - derives manifests for skills without a skillsandbox.yaml, by format: SKILL.md,
 * Skillware, and a script that the caller names. What their files ask for becomes a manifest
 * (derive.h). */
#include "skill/skill_priv.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "manifest/yaml_text.h"
#include "os/file.h"
#include "skill/derive.h"
#include "skill/programs.h"

/* Reads the beginning of a file of the skill, up to the size that frontmatter can have. */
static int read_head(const struct skill_search *s, const char *name, struct buf *out,
                     struct ssb_error *err)
{
	auto_fd fd = file_openat2(s->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY,
	                          RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
	struct stat st;

	if (fd < 0 && (errno == EXDEV || errno == ELOOP)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "skill",
		                "its %s is a symlink that leaves the skill's directory; put the "
		                "file itself there",
		                name);
	}
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		return ssb_fail(err, SSB_E_SYS, fd < 0 ? errno : 0, "skill", "open its %s", name);
	}
	if (file_read_all(fd, out) != 0 && errno != EFBIG) {
		return ssb_fail(err, SSB_E_SYS, errno, "skill", "read its %s", name);
	}
	out->failed = false;
	return 0;
}

static void warn_programs(const struct skill_search *s, const char *file, const struct says *says)
{
	const struct wish_list *all = &says->wishes[WISH_BINS];
	const struct wish_list *any = &says->wishes[WISH_ANY_BINS];
	bool found = any->n == 0 || ARRAY_HAS(wish, any->v, any->n, programs_has(wish->name));

	for (size_t i = 0; i < all->n; i++) {
		if (!programs_has(all->v[i].name)) {
			diag_add(s->diags, SSB_WARNING, file,
			         "install it, or grant its directory with --read and set PATH with "
			         "--env",
			         "the skill needs the program '%s', which the system does not have",
			         all->v[i].name);
		}
	}
	if (!found) {
		diag_add(s->diags, SSB_WARNING, file, "install one",
		         "the skill needs one of several programs ('%s', ...), and the system has "
		         "none of them",
		         any->v[0].name);
	}
}

static void warn_wishes(const struct skill_search *s, const char *file, const struct says *says)
{
	const struct wish_list *os = &says->wishes[WISH_OS];
	const struct wish_list *packages = &says->wishes[WISH_PACKAGES];
	bool linux_too =
	        os->n == 0 || ARRAY_HAS(wish, os->v, os->n, strcmp(wish->name, "linux") == 0);

	warn_programs(s, file, says);
	if (!linux_too) {
		diag_add(s->diags, SSB_WARNING, file, "",
		         "the skill is made for '%s', not for Linux", os->v[0].name);
	}
	for (size_t i = 0; i < packages->n; i++) {
		diag_add(s->diags, SSB_NOTE, file,
		         "install it for the system, or use --toolchain auto",
		         "the skill needs the Python package '%s'", packages->v[i].name);
	}
}

static const char *fallback_name(const struct skill_search *s)
{
	const char *base = skill_base(s->dir);
	size_t len = strlen(base);

	return len > 0 && len <= MAX_NAME_BYTES && strpbrk(base, "/\t\n") == NULL &&
	                       base[0] != ' ' && base[len - 1] != ' ' && yaml_can_hold(base)
	               ? base
	               : "skill";
}

/* Parses the derived manifest. Each variable in it gets the line and column where the skill asked
 * for it. */
static int take_derived(const struct skill_search *s, const struct derived *d,
                        const struct buf *head, struct skill_found *ret, struct ssb_error *err)
{
	const struct wish_list *env = &d->says->wishes[WISH_ENV];
	auto_buf text = BUF(MAX_YAML_BYTES);

	derive_manifest(&text, d);
	ret->file = skill_join(s->dir, d->from);
	if (text.failed || ret->file == NULL) {
		return skill_no_memory(err);
	}
	if (manifest_parse_as(ENTRY_OPTIONAL, ret->file, text.data, text.len, &ret->manifest,
	                      s->diags, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < ret->manifest->env.n && i < env->n; i++) {
		ret->manifest->env.v[i].line = env->v[i].line;
		ret->manifest->env.v[i].col = env->v[i].col;
	}
	sha256(head->data != NULL ? head->data : "", head->len, ret->manifest->digest);
	ret->text = buf_steal(&text);
	return 0;
}

/* Fills `argv` with the interpreter, its arguments and "/skill/PATH". Borrows all of them except
 * the last, which is new. */
static int script_argv(const struct script *script, char *argv[MAX_SHEBANG_WORDS + 2],
                       struct ssb_error *err)
{
	memcpy(argv, script->words, script->n * sizeof(argv[0]));
	argv[script->n] = skill_join("/skill", script->path);
	argv[script->n + 1] = NULL;
	return argv[script->n] == NULL ? skill_no_memory(err) : 0;
}

typedef int says_fn(struct says *ret, const char *file, const char *text, size_t len,
                    struct ssb_diags *diags);

/* Reads the file `name` of the skill into `head`, and parses it with `says` into `ret`. `file` is
 * its absolute path, for messages; if `file` is NULL, the caller had no memory for it, and this
 * function fails. */
static int read_says(const struct skill_search *s, const char *name, const char *file,
                     says_fn *says, struct says *ret, struct buf *head, struct ssb_error *err)
{
	if (file == NULL) {
		return skill_no_memory(err);
	}
	if (read_head(s, name, head, err) != 0) {
		return -1;
	}
	return says(ret, file, head->data != NULL ? head->data : "", head->len, s->diags) != 0
	               ? skill_no_memory(err)
	               : 0;
}

int skill_find_markdown(const struct skill_search *s, const char *name, struct skill_found *ret,
                        struct ssb_error *err)
{
	AUTO(says_done) struct says says = { 0 };
	auto_free char *file = skill_join(s->dir, name);
	auto_buf head = BUF(MAX_YAML_BYTES);

	if (read_says(s, name, file, says_markdown, &says, &head, err) != 0) {
		return -1;
	}
	ret->format = SKILL_MARKDOWN;
	if (skill_has(s->fd, "agents/openai.yaml")) {
		diag_add(s->diags, SSB_NOTE, file, "",
		         "agents/openai.yaml is for the agent and is not used here");
	}
	warn_wishes(s, file, &says);
	const struct derived d = { name, fallback_name(s), &says, NULL };
	return take_derived(s, &d, &head, ret, err);
}

/* The command of a Skillware skill is a program of the runtime, which imports the skill's code.
 * This program gets the parameters as an argument or on standard input. */
int skill_find_skillware(const struct skill_search *s, struct skill_found *ret,
                         struct ssb_error *err)
{
	AUTO(says_done) struct says says = { 0 };
	char *const argv[] = { "python3", SKILL_WORKER, "--once", "/skill", NULL };
	auto_free char *file = skill_join(s->dir, SKILLWARE_FILE);
	auto_buf head = BUF(MAX_YAML_BYTES);

	if (read_says(s, SKILLWARE_FILE, file, says_skillware, &says, &head, err) != 0) {
		return -1;
	}
	ret->format = SKILL_SKILLWARE;
	warn_wishes(s, file, &says);
	const struct derived d = { SKILLWARE_FILE, fallback_name(s), &says, argv };
	return take_derived(s, &d, &head, ret, err);
}

/* Handles a directory without any manifest, in which the caller names a script. */
int skill_find_script(const struct skill_search *s, struct skill_found *ret, struct ssb_error *err)
{
	AUTO(script_done) struct script script = { 0 };
	const struct says nothing = { 0 };
	char *argv[MAX_SHEBANG_WORDS + 2] = { NULL };
	auto_buf head = BUF(MAX_YAML_BYTES);

	assert(s->args != NULL && s->args[0] != NULL);
	if (script_find(s->fd, s->dir, s->args[0], &script, s->diags, err) != 0 ||
	    read_head(s, script.path, &head, err) != 0 || script_argv(&script, argv, err) != 0) {
		return -1;
	}
	auto_free char *last = argv[script.n];
	ret->format = SKILL_SCRIPT;
	ret->used = 1;
	const struct derived d = { script.path, fallback_name(s), &nothing, argv };
	return take_derived(s, &d, &head, ret, err);
}
