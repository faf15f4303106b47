/* script.c - chooses the interpreter of a script. */
#include "skill/script.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/own.h"
#include "base/tail.h"
#include "base/visible.h"
#include "manifest/yaml_text.h"
#include "os/entries.h"
#include "os/file.h"
#include "skill/programs.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)

static const struct {
	const char *end;
	const char *program;
} ENDINGS[] = {
	{ ".py", "python3" }, { ".sh", "sh" },    { ".bash", "bash" }, { ".js", "node" },
	{ ".mjs", "node" },   { ".cjs", "node" }, { ".rb", "ruby" },   { ".pl", "perl" },
};

static const char *by_ending(const char *path)
{
	for (size_t i = 0; path[0] != '\0' && i < ARRAY_LEN(ENDINGS); i++) {
		if (tail_is(path + 1, ENDINGS[i].end)) {
			return ENDINGS[i].program;
		}
	}
	return NULL;
}

static void words_done(struct script *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->words[i]);
	}
	s->n = 0;
}

void script_done(struct script *s)
{
	words_done(s);
	free(s->path);
	*s = (struct script){ 0 };
}

/* ---- the first line --------------------------------------------------------------- */

static bool is_env(const char *word)
{
	const char *slash = strrchr(word, '/');

	return strcmp(slash != NULL ? slash + 1 : word, "env") == 0;
}

static void drop_word(struct script *s, size_t i)
{
	free(s->words[i]);
	memmove(&s->words[i], &s->words[i + 1], (s->n - i - 1) * sizeof(s->words[0]));
	s->n--;
}

/* "env -S python3 -u" and "env python3" become python3, for which toolchains can be found. env
 * itself stays if it does more (NAME=VALUE, -i). In this case only -S is dropped, because the words
 * are separated already. */
static void drop_env(struct script *s)
{
	if (s->n < 2 || !is_env(s->words[0])) {
		return;
	}
	if (strcmp(s->words[1], "-S") == 0) {
		drop_word(s, 1);
	} else if (strncmp(s->words[1], "-S", 2) == 0) {
		memmove(s->words[1], s->words[1] + 2, strlen(s->words[1] + 2) + 1);
	}
	if (s->n > 1 && s->words[1][0] != '-' && strchr(s->words[1], '=') == NULL) {
		drop_word(s, 0);
	}
}

int script_read_shebang(const char *text, size_t len, struct script *ret)
{
	struct script s = { 0 };
	size_t at = 2;

	if (len < 2 || memcmp(text, "#!", 2) != 0) {
		return -1;
	}
	while (at < len) {
		size_t n = 0;
		while (at < len && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r')) {
			at++;
		}
		while (at + n < len && memchr(" \t\r\n", text[at + n], 5) == NULL) {
			/* memchr() also finds the NUL at the end of the string, so a NUL ends a
			 * word, too */
			n++;
		}
		if (n == 0) {
			break;
		}
		char *word = s.n < MAX_SHEBANG_WORDS ? strndup(text + at, n) : NULL;
		if (word == NULL || !yaml_can_hold(word)) {
			free(word);
			words_done(&s);
			return -1;
		}
		s.words[s.n++] = word;
		at += n;
	}
	if (s.n == 0) {
		return -1;
	}
	drop_env(&s);
	memcpy(ret->words, s.words, sizeof(s.words));
	ret->n = s.n;
	return 0;
}

/* ---- one script -------------------------------------------------------------------- */

static int no_interpreter(const char *path, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_USAGE, 0, "script",
	                "'%.100s' does not say what runs it; begin it with a line such as "
	                "#!/usr/bin/env python3, or give it one of the endings .py .sh .bash .js "
	                ".mjs .cjs .rb .pl",
	                path);
}

static int take_program(struct script *s, const char *program, struct ssb_error *err)
{
	words_done(s);
	s->words[0] = strdup(program);
	if (s->words[0] == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "script", "out of memory");
	}
	s->n = 1;
	return 0;
}

static int choose_program(struct script *s, const char *head, size_t len, mode_t mode,
                          struct ssb_diags *diags, struct ssb_error *err)
{
	const char *program = by_ending(s->path);
	size_t skip = len >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	if (len >= 4 && memcmp(head,
	                       "\x7f"
	                       "ELF",
	                       4) == 0) {
		return (mode & S_IXUSR) != 0
		               ? 0
		               : ssb_fail(err, SSB_E_NOT_EXEC, 0, "script",
		                          "'%.150s' is a program, but not executable", s->path);
	}
	/* A first line that does not fit into `head` is ignored, because a path that was cut off
	 * names another file. */
	bool whole = len < MAX_SHEBANG_BYTES || memchr(head, '\n', len) != NULL;
	bool said = whole && script_read_shebang(head + skip, len - skip, s) == 0;
	if (said && (program == NULL || programs_has(s->words[0]))) {
		return 0;
	}
	if (program == NULL) {
		return no_interpreter(s->path, err);
	}
	if (said) {
		diag_add(diags, SSB_WARNING, "script", "",
		         "%s names the interpreter '%s', which is not installed; %s runs it "
		         "instead, because of the ending of its name",
		         s->path, s->words[0], program);
	}
	return take_program(s, program, err);
}

/* Sets *ret to the script's path relative to the skill. Returns NULL, or what is wrong with
 * `word`. */
static const char *place_in(const char *name, const char *word, const char **ret)
{
	size_t len = strlen(name);

	if (word[0] == '/') {
		if (strncmp(word, name, len) != 0 || word[len] != '/') {
			return "is outside the skill";
		}
		word += len;
		word += strspn(word, "/");
	}
	while (word[0] == '.' && word[1] == '/') {
		word += 2;
		word += strspn(word, "/");
	}
	*ret = word;
	for (const char *p = word; p != NULL && *p != '\0'; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0')) {
			return "has \"..\" in it";
		}
	}
	return *word == '-' ? "is not the path of a script; options go before the skill's directory"
	       : *word == '\0'                                      ? "is not the path of a script"
	       : strlen(word) >= MAX_PATH_BYTES - strlen("/skill/") ? "is too long"
	       : !yaml_can_hold(word)                               ? "has invisible characters"
	                                                            : NULL;
}

static int open_script(int dir, const char *path, int *ret_fd, struct stat *ret_st,
                       struct ssb_error *err)
{
	auto_fd fd = file_openat2(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, BENEATH);
	auto_buf names = BUF(160);

	if (fd < 0 && (errno == EXDEV || errno == ELOOP)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "script",
		                "'%.150s' is a symlink that leaves the skill", path);
	}
	if (fd < 0) {
		int e = errno;
		script_names(dir, &names);
		if (e != ENOENT && e != ENOTDIR) {
			return ssb_fail(err, SSB_E_SYS, e, "script", "'%.150s'", path);
		}
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "script",
		                "'%.80s' is not a file of the skill%s%s", path,
		                names.len > 0 ? "; the skill has: " : "",
		                names.len > 0 ? names.data : "");
	}
	if (fstat(fd, ret_st) != 0 || !S_ISREG(ret_st->st_mode)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "script", "'%.150s' is not a regular file",
		                path);
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

int script_find(int dir, const char *name, const char *word, struct script *ret,
                struct ssb_diags *diags, struct ssb_error *err)
{
	assert(dir >= 0 && name[0] == '/' && word != NULL);

	AUTO(script_done) struct script s = { 0 };
	const char *path = NULL;
	const char *why = place_in(name, word, &path);
	char head[MAX_SHEBANG_BYTES];
	auto_fd fd = -1;
	struct stat st = { 0 };

	if (why != NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, "script",
		                "'%.100s' %s; name a script by its path in the skill", word, why);
	}
	if (open_script(dir, path, &fd, &st, err) != 0) {
		return -1;
	}
	ssize_t n = pread(fd, head, sizeof(head), 0);
	s.path = strdup(path);
	if (n < 0 || s.path == NULL) {
		return ssb_fail(err, n < 0 ? SSB_E_SYS : SSB_E_NOMEM, n < 0 ? errno : 0, "script",
		                "read '%.150s'", path);
	}
	if (choose_program(&s, head, (size_t)n, st.st_mode, diags, err) != 0) {
		return -1;
	}
	*ret = s;
	s = (struct script){ 0 };
	return 0;
}

/* ---- all scripts ----------------------------------------------------------------------- */

struct script_walk {
	struct string_list *out;
	size_t looked;
	char path[MAX_PATH_BYTES];
};

static void list_directory(struct script_walk *l, int dir, size_t depth);

static bool is_left_out(const char *name)
{
	return name[0] == '.' || strcmp(name, "node_modules") == 0 ||
	       strcmp(name, "__pycache__") == 0;
}

static void list_entry(struct script_walk *l, int dir, const char *name, size_t depth)
{
	size_t len = strlen(l->path);
	struct stat st;

	if (len + strlen(name) + 2 > sizeof(l->path) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		return;
	}
	snprintf(l->path + len, sizeof(l->path) - len, "%s%s", len > 0 ? "/" : "", name);
	if (S_ISDIR(st.st_mode) && depth < MAX_SCRIPT_DEPTH) {
		auto_fd sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		list_directory(l, sub, depth + 1);
	} else if (S_ISREG(st.st_mode) &&
	           (by_ending(name) != NULL || (st.st_mode & S_IXUSR) != 0)) {
		(void)string_list_add(l->out, l->path, MAX_SCRIPT_NAMES);
	}
	l->path[len] = '\0';
}

static void list_directory(struct script_walk *l, int dir, size_t depth)
{
	auto_dir d = entries_open(dir, ".");
	const struct dirent *e;

	while (d != NULL && l->looked < MAX_SCRIPT_WALK && (e = readdir(d)) != NULL) {
		l->looked++;
		if (!is_left_out(e->d_name)) {
			list_entry(l, dirfd(d), e->d_name, depth);
		}
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void script_list(int dir, struct string_list *out)
{
	struct script_walk l = { .out = out };

	assert(dir >= 0 && out->n == 0);
	list_directory(&l, dir, 0);
	if (out->n > 1) {
		qsort(out->v, out->n, sizeof(out->v[0]), by_path);
	}
}

void script_names(int dir, struct buf *out)
{
	AUTO(string_list_done) struct string_list l = { 0 };
	size_t told = 0;

	script_list(dir, &l);
	for (size_t i = 0; i < l.n; i++) {
		auto_buf one = BUF(MAX_PATH_BYTES * 4);
		visible_text(&one, l.v[i], false);
		/* Leave room for the number of scripts that are not listed. */
		if (!one.failed && told == i && out->len + one.len + 24 < out->cap) {
			buf_addf(out, "%s%s", i > 0 ? ", " : "", one.data);
			told++;
		}
	}
	if (told < l.n) {
		buf_addf(out, "%sand %zu more", told > 0 ? ", " : "", l.n - told);
	}
}
