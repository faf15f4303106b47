/* manifest.c - opens, parses and frees manifests. Nothing is executed, and only the
 * manifest is opened. */
#include "manifest/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "manifest/fields.h"
#include "manifest/report.h"
#include "manifest/yaml_doc.h"
#include "os/file.h"

void mtext_list_done(struct mtext_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].s);
	}
	free(l->v);
}

void manifest_free(struct manifest *m)
{
	if (m == NULL) {
		return;
	}
	for (size_t i = 0; i < m->n_egress; i++) {
		free(m->egress[i].domain.s);
		free(m->egress[i].ports);
	}
	free(m->egress);
	mtext_list_done(&m->read);
	mtext_list_done(&m->write);
	mtext_list_done(&m->env);
	mtext_list_done(&m->args);
	free(m->command.s);
	free(m->file);
	free(m->name);
	free(m->version);
	free(m->description);
	free(m->author);
	free(m->directory.s);
	free(m->workdir);
	free(m);
}

/* ---- parsing ------------------------------------------------------------- */

static bool set_default(char **s, const char *value)
{
	if (*s == NULL) {
		*s = strdup(value);
	}
	return *s != NULL;
}

int manifest_parse_as(enum manifest_entry entry, const char *file, const char *bytes, size_t len,
                      struct manifest **ret, struct ssb_diags *diags, struct ssb_error *err)
{
	/* A separate list is used, because the caller's list may be NULL, or contain findings about
	 * another file. */
	AUTO(diags_freep) struct ssb_diags *found = ssb_diags_new();
	AUTO(manifest_freep) struct manifest *m = calloc(1, sizeof(*m));

	if (found == NULL || m == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, file, "out of memory");
	}
	m->file = strdup(file);
	sha256(bytes, len, m->digest);
	m->resources = RESOURCE_DEFAULTS;
	m->net = NET_DEFAULTS;

	AUTO(ynode_freep) struct ynode *root = yaml_doc_parse(file, bytes, len, found);
	struct report rep = { file, found };
	if (root != NULL && !fields_read(&rep, root, entry, m)) {
		return ssb_fail(err, SSB_E_NOMEM, 0, file, "out of memory");
	}
	if (!report_deliver(found, SSB_E_MANIFEST, file, diags, err)) {
		return -1;
	}
	if (m->file == NULL || !set_default(&m->description, "") || !set_default(&m->author, "") ||
	    !set_default(&m->workdir, "/skill")) {
		return ssb_fail(err, SSB_E_NOMEM, 0, file, "out of memory");
	}
	*ret = steal_ptr(&m);
	return 0;
}

int manifest_parse(const char *file, const char *bytes, size_t len, struct manifest **ret,
                   struct ssb_diags *diags, struct ssb_error *err)
{
	return manifest_parse_as(ENTRY_REQUIRED, file, bytes, len, ret, diags, err);
}

/* ---- opening ------------------------------------------------------------- */

/* Reports that the manifest cannot be opened or read. Such a failure has no line number. Returns
 * -1. */
static int fail_open(enum ssb_code code, int sys_errno, const char *file, const char *text,
                     const char *remedy, struct ssb_diags *diags, struct ssb_error *err)
{
	char where[WHERE_SIZE];
	struct ssb_error e = { 0 };

	report_where(where, sizeof(where), file, 0, 0);
	(void)ssb_fail(&e, code, sys_errno, where, "%s", text);
	/* A finding is always about a manifest. With another code, no manifest was read. */
	if (code == SSB_E_MANIFEST) {
		diag_add(diags, SSB_ERROR, where, remedy, "%s", e.text);
	}
	if (remedy[0] != '\0') {
		return ssb_fail(err, code, 0, where, "%s; %s", e.text, remedy);
	}
	return ssb_fail(err, code, sys_errno, where, "%s", text);
}

static int fail_errno(int e, const char *file, struct ssb_diags *diags, struct ssb_error *err)
{
	switch (e) {
	case ENOENT:
	case ENOTDIR:
		return fail_open(SSB_E_NOT_FOUND, 0, file, "there is no such manifest",
		                 "write a " MANIFEST_FILE " into the skill's directory", diags,
		                 err);
	case EXDEV:
	case ELOOP:
		return fail_open(SSB_E_MANIFEST, 0, file,
		                 "the manifest is a symlink that leaves the skill's directory",
		                 "put the file itself there", diags, err);
	case ENXIO:
		return fail_open(SSB_E_MANIFEST, 0, file,
		                 "the manifest is a socket or a device, not a regular file",
		                 "put a regular file there", diags, err);
	default:
		return fail_open(SSB_E_SYS, e, file, "cannot open the manifest", "", diags, err);
	}
}

static const char *kind_text(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "the manifest is a directory, not a regular file";
	case S_IFIFO:
		return "the manifest is a FIFO, not a regular file";
	case S_IFSOCK:
		return "the manifest is a socket, not a regular file";
	default:
		return "the manifest is a device, not a regular file";
	}
}

static int fail_size(const char *file, struct ssb_diags *diags, struct ssb_error *err)
{
	char text[64];

	snprintf(text, sizeof(text), "the file is larger than %d bytes", MAX_YAML_BYTES);
	return fail_open(SSB_E_MANIFEST, 0, file, text, "shorten it", diags, err);
}

/* Opens `name` beneath dir_fd and reads it. The open never blocks and never acquires a
 * terminal. */
static int read_beneath(int dir_fd, const char *name, const char *file, struct buf *out,
                        struct ssb_diags *diags, struct ssb_error *err)
{
	struct stat st;
	auto_fd fd = file_openat2(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY,
	                          RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	if (fd < 0) {
		return fail_errno(errno, file, diags, err);
	}
	if (fstat(fd, &st) < 0) {
		return fail_open(SSB_E_SYS, errno, file, "cannot stat the manifest", "", diags,
		                 err);
	}
	if (!S_ISREG(st.st_mode)) {
		return fail_open(SSB_E_MANIFEST, 0, file, kind_text(st.st_mode),
		                 "put a regular file there", diags, err);
	}
	if (file_read_all(fd, out) < 0) {
		return errno == EFBIG ? fail_size(file, diags, err)
		                      : fail_open(SSB_E_SYS, errno, file,
		                                  "cannot read the manifest", "", diags, err);
	}
	return 0;
}

/* Splits a path into its directory (new) and the name in it. */
static char *parent_of(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_name = slash != NULL ? slash + 1 : path;
	if (slash == NULL) {
		return strdup(".");
	}
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static char *file_in(const char *dir)
{
	size_t len = strlen(dir);
	char *s = NULL;

	while (len > 1 && dir[len - 1] == '/') {
		len--;
	}
	const char *between = dir[len - 1] == '/' ? "" : "/";
	return asprintf(&s, "%.*s%s%s", (int)len, dir, between, MANIFEST_FILE) < 0 ? NULL : s;
}

/* Reports a skill.directory in a skill's own manifest: the place of that file already shows which
 * skill it is for. Only the owner's manifest, which is elsewhere, must name the directory. */
static int refuse_directory(const struct manifest *m, const char *file, struct ssb_diags *diags,
                            struct ssb_error *err)
{
	static const char what[] = "skill.directory is only for a manifest that the owner keeps "
	                           "outside of the skill's directory";
	char where[WHERE_SIZE];

	report_where(where, sizeof(where), file, m->directory.line, m->directory.col);
	diag_add(diags, SSB_ERROR, where, "remove the key", "%s", what);
	return ssb_fail(err, SSB_E_MANIFEST, 0, where, "%s; remove the key", what);
}

const char *const MANIFEST_MARKDOWN[N_MANIFEST_MARKDOWN] = { "SKILL.md", "skill.md" };

const char *manifest_markdown(int dir_fd)
{
	struct stat st;

	for (size_t i = 0; i < N_MANIFEST_MARKDOWN; i++) {
		if (fstatat(dir_fd, MANIFEST_MARKDOWN[i], &st, 0) == 0 && S_ISREG(st.st_mode)) {
			return MANIFEST_MARKDOWN[i];
		}
	}
	return NULL;
}

/* Loads the manifest `name` in a directory. Messages call it `file`. A manifest with another name
 * may be the owner's. */
static int load_beneath(int dir_fd, const char *name, const char *file, struct manifest **ret,
                        struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(manifest_freep) struct manifest *m = NULL;
	auto_buf bytes = BUF((size_t)MAX_YAML_BYTES);
	bool own = strcmp(name, MANIFEST_FILE) == 0;
	enum manifest_entry entry = manifest_markdown(dir_fd) != NULL ? ENTRY_OPTIONAL
	                            : own                             ? ENTRY_REQUIRED
	                                                              : ENTRY_BY_DIRECTORY;

	if (read_beneath(dir_fd, name, file, &bytes, diags, err) < 0 ||
	    manifest_parse_as(entry, file, bytes.data != NULL ? bytes.data : "", bytes.len, &m,
	                      diags, err) != 0) {
		return -1;
	}
	if (m != NULL && m->directory.s != NULL && own) {
		return refuse_directory(m, file, diags, err);
	}
	*ret = steal_ptr(&m);
	return 0;
}

int manifest_load_in(int dir_fd, const char *dir, struct manifest **ret, struct ssb_diags *diags,
                     struct ssb_error *err)
{
	auto_free char *file = file_in(dir);

	return file == NULL ? ssb_fail(err, SSB_E_NOMEM, 0, "manifest", "out of memory")
	                    : load_beneath(dir_fd, MANIFEST_FILE, file, ret, diags, err);
}

int manifest_load(const char *path, struct manifest **ret, struct ssb_diags *diags,
                  struct ssb_error *err)
{
	const char *name = MANIFEST_FILE;
	auto_free char *file = NULL;
	auto_free char *parent = NULL;

	if (path[0] == '\0' || strlen(path) >= MAX_PATH_BYTES) {
		return fail_open(SSB_E_NOT_FOUND, 0, path, "not a path",
		                 "name a skill's directory or a manifest", diags, err);
	}
	auto_fd dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		file = file_in(path);
	} else if (errno == ENOTDIR) {
		/* `path` is a file. Its directory is the skill, and no symlink may lead out of
		 * it. */
		file = strdup(path);
		parent = parent_of(path, &name);
		if (parent != NULL) {
			dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
		}
		if (parent != NULL && dir < 0) {
			return fail_errno(errno, path, diags, err);
		}
	} else if (errno == ENOENT) {
		return fail_open(SSB_E_NOT_FOUND, 0, path, "there is no such file or directory",
		                 "name a skill's directory or a manifest", diags, err);
	} else {
		return fail_errno(errno, path, diags, err);
	}
	if (file == NULL || dir < 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "manifest", "out of memory");
	}
	return load_beneath(dir, name, file, ret, diags, err);
}
