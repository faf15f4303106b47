/* skill.c - chooses the manifest of a skill: its own, the owner's, or a derived one. */
#include "skill/derive.h"
#include "skill/skill.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/tail.h"
#include "manifest/write.h"
#include "os/file.h"
#include "skill/programs.h"
#include "skill/script.h"
#include "skill/skill_priv.h"

static const char *const FORMAT_NAMES[] = {
	[SKILL_DECLARED] = MANIFEST_FILE, [SKILL_SIDECAR] = "sidecar",
	[SKILL_MARKDOWN] = "SKILL.md",    [SKILL_SKILLWARE] = "skillware",
	[SKILL_SCRIPT] = "script",
};

const char *skill_format_name(enum skill_format f)
{
	return (size_t)f < ARRAY_LEN(FORMAT_NAMES) ? FORMAT_NAMES[f] : "?";
}

bool skill_format_from(const char *name, enum skill_format *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(FORMAT_NAMES); i++) {
		if (strcmp(FORMAT_NAMES[i], name) == 0) {
			*ret = (enum skill_format)i;
			return true;
		}
	}
	return false;
}

void skill_found_done(struct skill_found *f)
{
	manifest_free(f->manifest);
	free(f->file);
	free(f->text);
	string_list_done(&f->argv);
	*f = (struct skill_found){ 0 };
}

int skill_no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
}

char *skill_join(const char *dir, const char *name)
{
	char *s = NULL;

	return asprintf(&s, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) < 0 ? NULL : s;
}

const char *skill_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* ---- its directory ----------------------------------------------------------------- */

int skill_dir_open(const char *named, struct skill_dir *ret, struct ssb_error *err)
{
	assert(named != NULL && ret != NULL);

	auto_fd fd = file_open_real(named, O_PATH | O_DIRECTORY);
	auto_free char *real = fd >= 0 ? strdup(named) : realpath(named, NULL);

	if (fd < 0 && real != NULL) {
		/* No symlink is followed from here on: the opened directory is the one that `real`
		 * names. */
		fd = file_open_nosymlink(real, O_PATH | O_DIRECTORY);
	}
	if (fd < 0 && errno == ENOTDIR && real != NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, "skill",
		                "'%.200s' is not a directory; name the skill's directory, which "
		                "contains its manifest",
		                named);
	}
	if (fd < 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, "skill",
		                "'%.200s'", named);
	}
	*ret = (struct skill_dir){ named, steal_ptr(&real), steal_fd(&fd) };
	return 0;
}

void skill_dir_close(struct skill_dir *d)
{
	free(d->path);
	own_close(&d->fd);
	*d = (struct skill_dir)SKILL_DIR_NONE;
}

/* ---- derived manifests ------------------------------------------------------------- */

static const char *derived_from(int dir, const char *name)
{
	for (size_t i = 0; i < N_MANIFEST_MARKDOWN; i++) {
		if (strcmp(name, MANIFEST_MARKDOWN[i]) == 0 && skill_has(dir, name)) {
			return MANIFEST_MARKDOWN[i];
		}
	}
	return strcmp(name, SKILLWARE_FILE) == 0 && skill_is_ware(dir) ? SKILLWARE_FILE : NULL;
}

/* ---- written manifests ------------------------------------------------------------ */

/* Explains why there is no skill if a SKILL.md exists, but is not a file that can be read. */
static int check_markdown(const struct skill_search *s, struct ssb_error *err)
{
	struct stat st;

	for (size_t i = 0; i < N_MANIFEST_MARKDOWN; i++) {
		const char *name = MANIFEST_MARKDOWN[i];
		if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    (fstatat(s->fd, name, &st, 0) == 0 && S_ISREG(st.st_mode))) {
			continue;
		}
		auto_free char *file = skill_join(s->dir, name);
		const char *kind = S_ISLNK(st.st_mode)    ? "a symlink that cannot be followed"
		                   : S_ISDIR(st.st_mode)  ? "a directory"
		                   : S_ISFIFO(st.st_mode) ? "a FIFO"
		                                          : "a socket or a device";
		diag_add(s->diags, SSB_ERROR, file != NULL ? file : name,
		         "put a regular file there", "it is %s, not a regular file", kind);
		return ssb_fail(err, SSB_E_MANIFEST, 0, file != NULL ? file : name,
		                "it is %s, not a regular file; put a regular file there", kind);
	}
	return 0;
}

static int find_declared(const struct skill_search *s, struct skill_found *ret,
                         struct ssb_error *err)
{
	auto_free char *file = skill_join(s->dir, MANIFEST_FILE);

	if (file == NULL) {
		return skill_no_memory(err);
	}
	if (manifest_load_in(s->fd, s->source, &ret->manifest, s->diags, err) != 0) {
		return -1;
	}
	/* Messages name the file that its author edits, even if a copy of it was read. */
	free(ret->manifest->file);
	ret->manifest->file = strdup(file);
	ret->format = SKILL_DECLARED;
	ret->file = steal_ptr(&file);
	return ret->manifest->file == NULL ? skill_no_memory(err) : 0;
}

static char *sidecar_file(const struct skill_search *s)
{
	char *file = NULL;

	return s->config_dir == NULL || asprintf(&file, "%s/skills/%s.yaml", s->config_dir,
	                                         skill_base(s->dir)) < 0
	               ? NULL
	               : file;
}

/* True if the sidecar names this directory, or none. Symlinks in the named path are not followed.
 * Otherwise a program that may replace such a symlink could choose the skill that the sidecar is
 * for. */
static bool is_for(const struct manifest *m, const char *dir)
{
	auto_free char *named = m->directory.s != NULL ? file_follow_fixed(m->directory.s) : NULL;

	return m->directory.s == NULL || (named != NULL && strcmp(named, dir) == 0);
}

/* Warns that the sidecar names no directory: another author's skill may have the same name. The
 * message shows the line to add exactly as it must be written. */
static void warn_unbound(const struct skill_search *s, const char *file)
{
	auto_buf path = BUF((size_t)2 * MAX_PATH_BYTES);

	manifest_put_text(&path, s->dir);
	diag_add(s->diags, SSB_ALARM, file, "",
	         "your %s has no line 'directory:', so it is used for every skill whose directory "
	         "has the same name; to use it only for this skill, add the line 'directory: %s' "
	         "under "
	         "'skill:'",
	         file, path.failed || path.data == NULL ? "PATH" : path.data);
}

static void pass_over(const struct skill_search *s, const char *file, const char *directory)
{
	auto_free char *real = realpath(directory, NULL);

	if (real != NULL && strcmp(real, s->dir) == 0) {
		diag_add(s->diags, SSB_ALARM, file, "",
		         "this manifest is not used: a symlink leads from '%.200s' to this skill; "
		         "write the "
		         "real path, 'directory: %.200s'",
		         directory, real);
		return;
	}
	diag_add(s->diags, SSB_NOTE, file, "",
	         "this manifest is for the skill in '%.200s', not for this one", directory);
}

/* Reads the owner's sidecar. Fails if another user could have written the file, or if the file is
 * not valid. A sidecar that names another directory is ignored: `ret` stays unchanged. */
static int find_sidecar(const struct skill_search *s, const char *file, int fd,
                        struct skill_found *ret, struct ssb_error *err)
{
	AUTO(manifest_freep) struct manifest *m = NULL;
	auto_buf bytes = BUF(MAX_YAML_BYTES);

	if (file_check_owned(fd, getuid(), "sidecar", file, err) != 0) {
		return -1;
	}
	if (file_read_all(fd, &bytes) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "read the sidecar");
	}
	const char *text = bytes.data != NULL ? bytes.data : "";
	bool markdown = manifest_markdown(s->fd) != NULL;
	if (manifest_parse_as(markdown ? ENTRY_OPTIONAL : ENTRY_BY_DIRECTORY, file, text, bytes.len,
	                      &m, s->diags, err) != 0) {
		return -1;
	}
	if (!is_for(m, s->dir)) {
		pass_over(s, file, m->directory.s);
		return 0;
	}
	if (m->command.s == NULL && !markdown) {
		AUTO(manifest_freep) struct manifest *none = NULL;
		return manifest_parse(file, text, bytes.len, &none, s->diags, err); /* says why */
	}
	ret->unbound = m->directory.s == NULL;
	if (ret->unbound) {
		warn_unbound(s, file);
	}
	ret->manifest = steal_ptr(&m);
	ret->format = SKILL_SIDECAR;
	ret->file = strdup(file);
	return ret->file == NULL ? skill_no_memory(err) : 0;
}

/* ---- the order ---------------------------------------------------------------------- */

static bool names_script(const struct skill_search *s)
{
	return s->args != NULL && s->args[0] != NULL && s->args[0][0] != '/' &&
	       skill_has(s->fd, s->args[0]);
}

/* True if the sidecar is for this directory. Also true if the sidecar cannot be read, because it
 * could be for this directory. */
static bool counts_no_more(const struct skill_search *s, const char *file, int fd)
{
	AUTO(diags_freep) struct ssb_diags *unsaid = ssb_diags_new();
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct skill_search quiet = *s;
	struct ssb_error none = { 0 };

	quiet.diags = unsaid;
	return unsaid == NULL || find_sidecar(&quiet, file, fd, &found, &none) != 0 ||
	       found.manifest != NULL;
}

static int find_any(const struct skill_search *s, struct skill_found *ret, struct ssb_error *err)
{
	auto_free char *file = sidecar_file(s);
	auto_fd sidecar =
	        file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int closed = file != NULL && sidecar < 0 ? errno : 0;
	bool owners = file != NULL && closed != ENOENT;
	struct stat st;

	/* Anything with the manifest's name is used as the manifest, even if it is not a regular
	 * file. */
	if (fstatat(s->fd, MANIFEST_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (owners && closed != 0) {
			diag_add(s->diags, SSB_ALARM, file,
			         "make it readable for you, or remove it",
			         "cannot check whether you have a manifest for this skill (%s); "
			         "the " MANIFEST_FILE " of the skill is used",
			         strerrordesc_np(closed));
		} else if (owners && counts_no_more(s, file, sidecar)) {
			diag_add(s->diags, SSB_ALARM, file, "remove one of them",
			         "the skill has its own " MANIFEST_FILE
			         ", which is used instead of your %s",
			         file);
		}
		return find_declared(s, ret, err);
	}
	if (errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, errno, "skill", "'%.200s/" MANIFEST_FILE "'",
		                s->source);
	}
	if (owners && sidecar < 0) {
		return ssb_fail(err, SSB_E_SYS, closed, file, "open the sidecar");
	}
	int failed = owners ? find_sidecar(s, file, sidecar, ret, err) : 0;
	if (failed != 0 || ret->manifest != NULL) {
		return failed;
	}
	const char *markdown = manifest_markdown(s->fd);
	if (markdown != NULL) {
		return skill_find_markdown(s, markdown, ret, err);
	}
	return skill_is_ware(s->fd)          ? skill_find_skillware(s, ret, err)
	       : names_script(s)             ? skill_find_script(s, ret, err)
	       : check_markdown(s, err) != 0 ? -1
	                                     : skill_absent(s, err);
}

/* ---- the command ---------------------------------------------------------------------- */

/* Adds the words of the entrypoint to the command. */
static int add_entry(struct skill_found *f)
{
	const struct manifest *m = f->manifest;
	int failed = string_list_add(&f->argv, m->command.s, MAX_ARGS);

	for (size_t i = 0; i < m->args.n && failed == 0; i++) {
		failed = string_list_add(&f->argv, m->args.v[i].s, MAX_ARGS);
	}
	return failed;
}

/* Adds the interpreter and the path of the script that the first argument names. */
static int add_script(const struct skill_search *s, struct skill_found *f, struct ssb_error *err)
{
	AUTO(script_done) struct script script = { 0 };

	if (script_find(s->fd, s->dir, s->args[0], &script, s->diags, err) != 0) {
		return -1;
	}
	auto_free char *path = skill_join("/skill", script.path);
	int failed = path == NULL;
	for (size_t i = 0; i < script.n && failed == 0; i++) {
		failed = string_list_add(&f->argv, script.words[i], MAX_ARGS);
	}
	f->used = 1;
	return failed != 0 || string_list_add(&f->argv, path, MAX_ARGS) != 0 ? skill_no_memory(err)
	                                                                     : 0;
}

/* Warns if the first argument is the path of a script that the entrypoint does not name: the
 * caller may expect that this script runs. */
static void warn_argument(const struct skill_search *s, const struct skill_found *f)
{
	AUTO(script_done) struct script script = { 0 };
	struct ssb_error none = { 0 };
	bool other = names_script(s) &&
	             script_find(s->fd, s->dir, s->args[0], &script, NULL, &none) == 0 &&
	             !ARRAY_HAS(word, f->argv.v, f->argv.n, tail_behind(*word, '/', script.path));

	if (other) {
		diag_add(s->diags, SSB_ALARM, f->file, "",
		         "'%.150s' is passed to the entrypoint as an argument, and is not executed "
		         "itself%s",
		         script.path,
		         manifest_markdown(s->fd) == NULL
		                 ? ""
		                 : "; to run scripts by their names, remove the entrypoint from "
		                   "the manifest");
	}
}

static int take_command(const struct skill_search *s, struct skill_found *f, struct ssb_error *err)
{
	if (f->manifest->command.s == NULL) {
		f->no_entry = s->args == NULL || s->args[0] == NULL;
		return f->no_entry ? 0 : add_script(s, f, err);
	}
	if (add_entry(f) != 0) {
		return skill_no_memory(err);
	}
	if (!skill_format_derived(f->format)) {
		warn_argument(s, f);
		programs_warn(f->file, &f->manifest->command, SSB_WARNING, s->diags);
	}
	return 0;
}

int skill_find_in(const struct skill_dir *dir, const struct skill_dir *source,
                  const char *config_dir, char *const args[], struct skill_found *ret,
                  struct ssb_diags *diags, struct ssb_error *err)
{
	assert(dir->path != NULL && source->fd >= 0);

	AUTO(skill_found_done) struct skill_found found = { 0 };
	const struct skill_search s = { .dir = dir->path,
		                        .source = source->named,
		                        .fd = source->fd,
		                        .config_dir = config_dir,
		                        .args = args,
		                        .diags = diags };

	if (find_any(&s, &found, err) != 0 || take_command(&s, &found, err) != 0) {
		return -1;
	}
	*ret = found;
	found = (struct skill_found){ 0 };
	return 0;
}

int skill_find(const char *dir, const char *config_dir, char *const args[], struct skill_found *ret,
               struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(skill_dir_close) struct skill_dir d = SKILL_DIR_NONE;

	assert(dir != NULL && ret != NULL);
	return skill_dir_open(dir, &d, err) != 0
	               ? -1
	               : skill_find_in(&d, &d, config_dir, args, ret, diags, err);
}

int skill_find_file(const char *file, struct skill_found *ret, struct ssb_diags *diags,
                    struct ssb_error *err)
{
	assert(file != NULL && ret != NULL);

	AUTO(skill_found_done) struct skill_found found = { 0 };
	auto_free char *dir = strndup(file, (size_t)(skill_base(file) - file));
	auto_free char *real = dir != NULL ? realpath(dir[0] != '\0' ? dir : ".", NULL) : NULL;
	auto_fd fd = real != NULL ? open(real, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	const char *name = fd >= 0 ? derived_from(fd, skill_base(file)) : NULL;
	const struct skill_search s = { .dir = real, .source = real, .fd = fd, .diags = diags };

	if (name == NULL) {
		return 0;
	}
	if ((strcmp(name, SKILLWARE_FILE) == 0 ? skill_find_skillware(&s, &found, err)
	                                       : skill_find_markdown(&s, name, &found, err)) != 0) {
		return -1;
	}
	*ret = found;
	found = (struct skill_found){ 0 };
	return 1;
}

void skill_scripts(const struct skill_dir *dir, struct buf *out)
{
	assert(dir->fd >= 0);
	script_names(dir->fd, out);
}

const char *const SKILL_FOREIGN[N_SKILL_FOREIGN] = { ".git", ".hg", ".svn" };

bool skill_is_foreign(const char *name, size_t len)
{
	return ARRAY_HAS(skill_foreign, SKILL_FOREIGN, N_SKILL_FOREIGN,
	                 strlen(*skill_foreign) == len && memcmp(*skill_foreign, name, len) == 0);
}

const char *skill_version(const struct skill_found *f)
{
	const char *version = f->manifest->version;

	return skill_format_derived(f->format) && strcmp(version, DERIVED_NO_VERSION) == 0
	               ? ""
	               : version;
}
