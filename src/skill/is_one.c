/* is_one.c - is a directory a skill? If not, what is there instead? */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "os/entries.h"
#include "skill/script.h"
#include "skill/skill_priv.h"

#define SKILLWARE_ENTRY "skill.py"
#define LOOKED_AT       4096 /* entries of a directory */
#define LISTED          5    /* skills in a message */
#define LIST_BYTES      280U /* the list must fit into the message */

bool skill_has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

bool skill_is_ware(int dir)
{
	return skill_has(dir, SKILLWARE_FILE) && skill_has(dir, SKILLWARE_ENTRY);
}

static bool is_one_in(int at, const char *dir)
{
	auto_fd fd = openat(at, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 &&
	       (skill_has(fd, MANIFEST_FILE) || manifest_markdown(fd) != NULL || skill_is_ware(fd));
}

bool skill_is_one(const char *dir)
{
	return is_one_in(AT_FDCWD, dir);
}

bool skill_file_names_one(const char *name)
{
	bool markdown = ARRAY_HAS(markdown_name, MANIFEST_MARKDOWN, N_MANIFEST_MARKDOWN,
	                          strcmp(name, *markdown_name) == 0);
	return markdown || strcmp(name, MANIFEST_FILE) == 0 || strcmp(name, SKILLWARE_FILE) == 0;
}

/* ---- what is there instead ---------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Collects the names of the subdirectories that are skills, sorted. */
static void find_skills(int dir_fd, struct string_list *ret)
{
	DIR *dir = entries_open(dir_fd, ".");
	const struct dirent *e;

	for (int i = 0; dir != NULL && i < LOOKED_AT && (e = entries_of(dir)) != NULL; i++) {
		if (is_one_in(dir_fd, e->d_name)) {
			(void)string_list_add(ret, e->d_name, LOOKED_AT);
		}
	}
	if (dir != NULL) {
		(void)closedir(dir);
	}
	if (ret->n > 1) {
		qsort(ret->v, ret->n, sizeof(ret->v[0]), by_name);
	}
}

/* Appends the paths of the first skills, as a shell reads them. */
static void list_skills(const struct skill_search *s, const struct string_list *skills,
                        struct buf *out)
{
	size_t i = 0;

	for (; i < skills->n && i < LISTED; i++) {
		auto_free char *path = skill_join(s->dir, skills->v[i]);
		auto_buf word = BUF(LIST_BYTES);
		shell_quote(&word, path != NULL ? path : "");
		if (path == NULL || word.failed || out->len + word.len > LIST_BYTES - 32) {
			break;
		}
		buf_addf(out, "%s%s", i > 0 ? ", " : "", word.data);
	}
	if (i == 0) {
		buf_adds(out, skills->v[0]);
	} else if (i < skills->n) {
		buf_addf(out, ", and %zu more", skills->n - i);
	}
}

int skill_absent(const struct skill_search *s, struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list skills = { 0 };
	auto_buf text = BUF(LIST_BYTES);

	find_skills(s->fd, &skills);
	if (skills.n > 0) {
		list_skills(s, &skills, &text);
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, s->dir,
		                "this directory contains skills, but is not a skill itself; name "
		                "one of its skills: %s",
		                text.failed ? skills.v[0] : text.data);
	}
	auto_buf scripts = BUF(512);
	script_names(s->fd, &scripts);
	shell_quote(&text, s->dir);
	return ssb_fail(err, SSB_E_NOT_FOUND, 0, s->dir,
	                "this directory is not a skill: it has no SKILL.md and no " MANIFEST_FILE
	                "; write a SKILL.md into it, or %s: skillsandbox init %s",
	                scripts.len > 0 ? "run" : "put the script of the skill there and run",
	                text.failed || text.data == NULL ? "DIR" : text.data);
}
