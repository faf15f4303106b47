#include "skill/skill.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "manifest/write.h"
#include "manifest/yaml_text.h"
#include "os/file.h"
#include "skill/derive.h"
#include "skill/loose.h"
#include "skill/programs.h"

#define SKILLWARE_FILE  "manifest.yaml"
#define SKILLWARE_ENTRY "skill.py"

/* By which file a format is known; the first that is there decides. Some write it small. */
static const char *const MARKDOWN_FILES[] = { "SKILL.md", "skill.md" };

struct search {
	const char *dir;    /* real, absolute: whose skill it is */
	const char *source; /* where its files are read */
	int fd;             /* of the source, O_PATH */
	const char *config_dir;
	char *const *args;
	struct ssb_diags *diags;
};

const char *skill_format_name(enum skill_format f)
{
	static const char *const NAMES[] = {
		[SKILL_DECLARED] = MANIFEST_FILE, [SKILL_SIDECAR] = "sidecar",
		[SKILL_MARKDOWN] = "SKILL.md",    [SKILL_SKILLWARE] = "skillware",
		[SKILL_SCRIPT] = "script",
	};

	return (size_t)f < ARRAY_LEN(NAMES) ? NAMES[f] : "?";
}

void skill_found_done(struct skill_found *f)
{
	manifest_free(f->manifest);
	free(f->file);
	free(f->text);
	*f = (struct skill_found){ 0 };
}

static int no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
}

static char *join(const char *dir, const char *name)
{
	char *s = NULL;

	return asprintf(&s, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) < 0 ? NULL : s;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* ---- is there one? ---------------------------------------------------------------- */

static bool has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

static const char *markdown_file(int dir)
{
	for (size_t i = 0; i < ARRAY_LEN(MARKDOWN_FILES); i++) {
		if (has(dir, MARKDOWN_FILES[i])) {
			return MARKDOWN_FILES[i];
		}
	}
	return NULL;
}

static bool is_skillware(int dir)
{
	return has(dir, SKILLWARE_FILE) && has(dir, SKILLWARE_ENTRY);
}

bool skill_is_one(const char *dir)
{
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && (has(fd, MANIFEST_FILE) || markdown_file(fd) != NULL || is_skillware(fd));
}

bool skill_file_names_one(const char *name)
{
	bool markdown = false;

	for (size_t i = 0; i < ARRAY_LEN(MARKDOWN_FILES); i++) {
		markdown |= strcmp(name, MARKDOWN_FILES[i]) == 0;
	}
	return markdown || strcmp(name, MANIFEST_FILE) == 0 || strcmp(name, SKILLWARE_FILE) == 0;
}

static const char *derived_from(int dir, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(MARKDOWN_FILES); i++) {
		if (strcmp(name, MARKDOWN_FILES[i]) == 0 && has(dir, name)) {
			return MARKDOWN_FILES[i];
		}
	}
	return strcmp(name, SKILLWARE_FILE) == 0 && is_skillware(dir) ? SKILLWARE_FILE : NULL;
}

/* ---- written ones ----------------------------------------------------------------- */

static int find_declared(const struct search *s, struct skill_found *ret, struct ssb_error *err)
{
	auto_free char *file = join(s->dir, MANIFEST_FILE);

	if (file == NULL) {
		return no_memory(err);
	}
	if (manifest_load(s->source, &ret->manifest, s->diags, err) != 0) {
		return -1;
	}
	/* What is said of its lines is for who writes it, wherever the copy lies. */
	free(ret->manifest->file);
	ret->manifest->file = strdup(file);
	ret->format = SKILL_DECLARED;
	ret->file = steal_ptr(&file);
	return ret->manifest->file == NULL ? no_memory(err) : 0;
}

static char *sidecar_file(const struct search *s)
{
	char *file = NULL;

	return s->config_dir == NULL || asprintf(&file, "%s/skills/%s.yaml", s->config_dir,
	                                         base_of(s->dir)) < 0
	               ? NULL
	               : file;
}

/* The one that the sidecar names is this one, or it names none. */
static bool is_for(const struct manifest *m, const char *dir)
{
	auto_free char *real = m->directory.s != NULL ? realpath(m->directory.s, NULL) : NULL;

	return m->directory.s == NULL || (real != NULL && strcmp(real, dir) == 0);
}

/* A stranger's skill may bear the name as well. The line to add is said as it has to
 * stand there. */
static void warn_unbound(const struct search *s, const char *file)
{
	auto_buf path;

	buf_init(&path, (size_t)2 * MAX_PATH_BYTES);
	manifest_put_text(&path, s->dir);
	diag_add(s->diags, SSB_ALARM, file, "",
	         "your %s does not say for which directory it is, and counts for every one of "
	         "that name; if this is the one, add the line 'directory: %s' under 'skill:'",
	         file, path.failed || path.data == NULL ? "PATH" : path.data);
}

/* The owner's word: nobody else may have written it, and what is wrong with it is not
 * passed over. One for another directory of that name finds nothing. */
static int find_sidecar(const struct search *s, const char *file, int fd, struct skill_found *ret,
                        struct ssb_error *err)
{
	AUTO(manifest_freep) struct manifest *m = NULL;
	auto_buf bytes;

	buf_init(&bytes, MAX_YAML_BYTES);
	if (file_check_owned(fd, getuid(), "sidecar", file, err) != 0) {
		return -1;
	}
	if (file_read_all(fd, &bytes) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "read the sidecar");
	}
	if (manifest_parse(file, bytes.data != NULL ? bytes.data : "", bytes.len, &m, s->diags,
	                   err) != 0) {
		return -1;
	}
	if (!is_for(m, s->dir)) {
		diag_add(s->diags, SSB_NOTE, file, "",
		         "it is for the skill in '%.200s', not for this one", m->directory.s);
		return 0;
	}
	ret->unbound = m->directory.s == NULL;
	if (ret->unbound) {
		warn_unbound(s, file);
	}
	ret->manifest = steal_ptr(&m);
	ret->format = SKILL_SIDECAR;
	ret->file = strdup(file);
	return ret->file == NULL ? no_memory(err) : 0;
}

/* ---- derived ones ------------------------------------------------------------------- */

/* The head of a file of the skill: more of it than frontmatter can have is not looked at. */
static int read_head(const struct search *s, const char *name, struct buf *out,
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

static void warn_programs(const struct search *s, const char *file, const struct says *says)
{
	const struct wish_list *all = &says->wishes[WISH_BINS];
	const struct wish_list *any = &says->wishes[WISH_ANY_BINS];
	bool found = any->n == 0;

	for (size_t i = 0; i < all->n; i++) {
		if (!program_exists(all->v[i].name)) {
			diag_add(
			        s->diags, SSB_WARNING, file,
			        "install it, or give its directory with --read and PATH with --env",
			        "it needs the program '%s', which the system does not have",
			        all->v[i].name);
		}
	}
	for (size_t i = 0; i < any->n; i++) {
		found |= program_exists(any->v[i].name);
	}
	if (!found) {
		diag_add(s->diags, SSB_WARNING, file, "install one",
		         "it needs one of several programs ('%s', ...), and the system has none",
		         any->v[0].name);
	}
}

static void warn_wishes(const struct search *s, const char *file, const struct says *says)
{
	const struct wish_list *os = &says->wishes[WISH_OS];
	const struct wish_list *packages = &says->wishes[WISH_PACKAGES];
	bool linux_too = os->n == 0;

	warn_programs(s, file, says);
	for (size_t i = 0; i < os->n; i++) {
		linux_too |= strcmp(os->v[i].name, "linux") == 0;
	}
	if (!linux_too) {
		diag_add(s->diags, SSB_WARNING, file, "", "it is not made for Linux, but for '%s'",
		         os->v[0].name);
	}
	for (size_t i = 0; i < packages->n; i++) {
		diag_add(s->diags, SSB_NOTE, file,
		         "install it for the system, or use --toolchain auto",
		         "it needs the Python package '%s'", packages->v[i].name);
	}
}

static const char *fallback_name(const struct search *s)
{
	const char *base = base_of(s->dir);
	size_t len = strlen(base);

	return len > 0 && len <= MAX_NAME_BYTES && strpbrk(base, "/\t\n") == NULL &&
	                       base[0] != ' ' && base[len - 1] != ' ' && yaml_can_hold(base)
	               ? base
	               : "skill";
}

/* Parses what was derived. Each variable stands where the skill asked for it. */
static int take_derived(const struct search *s, const struct derived *d, const struct buf *head,
                        struct skill_found *ret, struct ssb_error *err)
{
	const struct wish_list *env = &d->says->wishes[WISH_ENV];
	auto_buf text;

	buf_init(&text, MAX_YAML_BYTES);
	derive_manifest(&text, d);
	ret->file = join(s->dir, d->from);
	if (text.failed || ret->file == NULL) {
		return no_memory(err);
	}
	if (manifest_parse(ret->file, text.data, text.len, &ret->manifest, s->diags, err) != 0) {
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

/* interpreter, its words, "/skill/PATH"; `argv` borrows but for the last, which is new. */
static int script_argv(const struct script *script, char *argv[MAX_SHEBANG_WORDS + 2],
                       struct ssb_error *err)
{
	memcpy(argv, script->words, script->n * sizeof(argv[0]));
	argv[script->n] = join("/skill", script->path);
	argv[script->n + 1] = NULL;
	return argv[script->n] == NULL ? no_memory(err) : 0;
}

static int find_markdown(const struct search *s, const char *name, struct skill_found *ret,
                         struct ssb_error *err)
{
	AUTO(says_done) struct says says = { 0 };
	AUTO(script_done) struct script script = { 0 };
	char *argv[MAX_SHEBANG_WORDS + 2] = { NULL };
	auto_free char *file = join(s->dir, name);
	auto_buf head;

	buf_init(&head, MAX_YAML_BYTES);
	if (file == NULL) {
		return no_memory(err);
	}
	if (read_head(s, name, &head, err) != 0) {
		return -1;
	}
	if (says_markdown(&says, file, head.data != NULL ? head.data : "", head.len, s->diags) !=
	    0) {
		return no_memory(err);
	}
	ret->format = SKILL_MARKDOWN;
	if (s->args != NULL && s->args[0] != NULL) {
		if (script_find(s->fd, s->dir, s->args[0], &script, s->diags, err) != 0 ||
		    script_argv(&script, argv, err) != 0) {
			return -1;
		}
		ret->used = 1;
	}
	auto_free char *last = argv[script.n];
	ret->no_entry = argv[0] == NULL;
	if (has(s->fd, "agents/openai.yaml")) {
		diag_add(s->diags, SSB_NOTE, file, "",
		         "agents/openai.yaml is for the agent; nothing is taken from it");
	}
	warn_wishes(s, file, &says);
	const struct derived d = { name, fallback_name(s), &says, argv };
	return take_derived(s, &d, &head, ret, err);
}

/* Its code is imported by a program of ours, which the sandbox shows: the parameters are
 * an argument, or come by standard input. */
static int find_skillware(const struct search *s, struct skill_found *ret, struct ssb_error *err)
{
	AUTO(says_done) struct says says = { 0 };
	char *const argv[] = { "python3", SKILL_WORKER, "--once", "/skill", NULL };
	auto_free char *file = join(s->dir, SKILLWARE_FILE);
	auto_buf head;

	buf_init(&head, MAX_YAML_BYTES);
	if (file == NULL) {
		return no_memory(err);
	}
	if (read_head(s, SKILLWARE_FILE, &head, err) != 0) {
		return -1;
	}
	if (says_skillware(&says, file, head.data != NULL ? head.data : "", head.len, s->diags) !=
	    0) {
		return no_memory(err);
	}
	ret->format = SKILL_SKILLWARE;
	warn_wishes(s, file, &says);
	const struct derived d = { SKILLWARE_FILE, fallback_name(s), &says, argv };
	return take_derived(s, &d, &head, ret, err);
}

/* A directory that says nothing of itself, and a script in it that the caller names. */
static int find_script(const struct search *s, struct skill_found *ret, struct ssb_error *err)
{
	AUTO(script_done) struct script script = { 0 };
	const struct says nothing = { 0 };
	char *argv[MAX_SHEBANG_WORDS + 2] = { NULL };
	auto_buf head;

	buf_init(&head, MAX_YAML_BYTES);
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

static bool names_script(const struct search *s)
{
	return s->args != NULL && s->args[0] != NULL && s->args[0][0] != '/' &&
	       has(s->fd, s->args[0]);
}

/* ---- the order ---------------------------------------------------------------------- */

/* Is the sidecar one for this directory? One that cannot be read may be. */
static bool counts_no_more(const struct search *s, const char *file, int fd)
{
	AUTO(diags_freep) struct ssb_diags *unsaid = ssb_diags_new();
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct search quiet = *s;
	struct ssb_error none = { 0 };

	quiet.diags = unsaid;
	return unsaid == NULL || find_sidecar(&quiet, file, fd, &found, &none) != 0 ||
	       found.manifest != NULL;
}

static int find(const struct search *s, struct skill_found *ret, struct ssb_error *err)
{
	auto_free char *file = sidecar_file(s);
	auto_fd sidecar =
	        file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int closed = file != NULL && sidecar < 0 ? errno : 0;
	bool owners = file != NULL && closed != ENOENT;
	struct stat st;

	/* Whatever bears the manifest's name decides, be it what it may. */
	if (fstatat(s->fd, MANIFEST_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (owners && closed != 0) {
			diag_add(s->diags, SSB_ALARM, file,
			         "make it readable for you, or remove it",
			         "cannot see whether there is a manifest of yours (%s); "
			         "the " MANIFEST_FILE " of the skill counts",
			         strerrordesc_np(closed));
		} else if (owners && counts_no_more(s, file, sidecar)) {
			diag_add(s->diags, SSB_ALARM, file, "remove one of them",
			         "the skill has a " MANIFEST_FILE
			         " of its own, which counts in place of what you wrote in %s",
			         file);
		}
		return find_declared(s, ret, err);
	}
	if (owners && sidecar < 0) {
		return ssb_fail(err, SSB_E_SYS, closed, file, "open the sidecar");
	}
	int failed = owners ? find_sidecar(s, file, sidecar, ret, err) : 0;
	if (failed != 0 || ret->manifest != NULL) {
		return failed;
	}
	const char *markdown = markdown_file(s->fd);
	if (markdown != NULL) {
		return find_markdown(s, markdown, ret, err);
	}
	return is_skillware(s->fd) ? find_skillware(s, ret, err)
	       : names_script(s)   ? find_script(s, ret, err)
	                           : find_declared(s, ret, err);
}

int skill_find_in(const char *dir, const char *source, const char *config_dir, char *const args[],
                  struct skill_found *ret, struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	auto_free char *real = realpath(dir, NULL);
	const char *from = source != NULL ? source : dir;
	auto_fd fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct search s = { .dir = real,
		                  .source = from,
		                  .fd = fd,
		                  .config_dir = config_dir,
		                  .args = args,
		                  .diags = diags };

	if (real == NULL || fd < 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, "skill",
		                "'%.200s'", from);
	}
	if (find(&s, &found, err) != 0) {
		return -1;
	}
	*ret = found;
	found = (struct skill_found){ 0 };
	return 0;
}

int skill_find(const char *dir, const char *config_dir, char *const args[], struct skill_found *ret,
               struct ssb_diags *diags, struct ssb_error *err)
{
	return skill_find_in(dir, NULL, config_dir, args, ret, diags, err);
}

int skill_find_file(const char *file, struct skill_found *ret, struct ssb_diags *diags,
                    struct ssb_error *err)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	auto_free char *dir = strndup(file, (size_t)(base_of(file) - file));
	auto_free char *real = dir != NULL ? realpath(dir[0] != '\0' ? dir : ".", NULL) : NULL;
	auto_fd fd = real != NULL ? open(real, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	const char *name = fd >= 0 ? derived_from(fd, base_of(file)) : NULL;
	const struct search s = { .dir = real, .source = real, .fd = fd, .diags = diags };

	if (name == NULL) {
		return 0;
	}
	if ((strcmp(name, SKILLWARE_FILE) == 0 ? find_skillware(&s, &found, err)
	                                       : find_markdown(&s, name, &found, err)) != 0) {
		return -1;
	}
	*ret = found;
	found = (struct skill_found){ 0 };
	return 1;
}

void skill_scripts(const char *dir, struct buf *out)
{
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	script_names(fd, out);
}

const char *const SKILL_FOREIGN[N_SKILL_FOREIGN] = { ".git", ".hg", ".svn" };

bool skill_is_foreign(const char *name, size_t len)
{
	for (size_t i = 0; i < N_SKILL_FOREIGN; i++) {
		if (strlen(SKILL_FOREIGN[i]) == len && memcmp(SKILL_FOREIGN[i], name, len) == 0) {
			return true;
		}
	}
	return false;
}
