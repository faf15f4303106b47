/* cmd_setup.c - adds SkillSandbox as an MCP server to the configuration of an agent (the client),
 * or removes it.
 *
 * If the client has a command for the change, this command is run. Otherwise (OpenCode lacks
 * some) the client's file is edited here. The change is shown first, and made only if you
 * agree. An entry with the name SETUP_SERVER that starts another program is never touched. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/config_edit.h"
#include "cli/say.h"
#include "cli/setup_client.h"
#include "os/file.h"
#include "policy/path.h"

struct setup {
	const struct setup_client *client;
	bool project;
	bool removing;
	bool editing;  /* the client lacks a command, so its file is edited here */
	char *program; /* path of the client's program; NULL: not found */
	struct string_list
	        server; /* the server's words: this program, "serve", "--skills", DIR, ... */
	char *file;
	bool existed;
	mode_t mode;
	struct buf before; /* the text of the file, or the list that the client printed */
	struct buf after;  /* the new text of the file, if it is edited here */
	struct json_doc doc;
	const struct json_node *entry; /* the entry SETUP_SERVER in `doc`; NULL: none */
};

static void setup_done(struct setup *s)
{
	free(s->program);
	free(s->file);
	string_list_done(&s->server);
	buf_done(&s->before);
	buf_done(&s->after);
	json_doc_done(&s->doc);
}

/* ---- the server ------------------------------------------------------------------ */

/* Returns true if the name can be written to a configuration unchanged. */
static bool can_be_written(const char *s)
{
	size_t len = strlen(s);
	uint32_t cp;

	for (size_t at = 0, n; at < len; at += n) {
		n = utf8_decode(s + at, len - at, &cp);
		if (n == 0 || cp < ' ' || cp == 127) {
			return false;
		}
	}
	return true;
}

static int add_word(struct setup *s, const char *word, struct ssb_error *err)
{
	return string_list_add(&s->server, word, 2 + 2 * MAX_SERVED) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_USAGE, 0, "", "more than %d --skills", MAX_SERVED);
}

static int add_skills(struct setup *s, const char *dir, struct ssb_error *err)
{
	struct stat st;
	auto_free char *real = realpath(dir, NULL);

	if (real == NULL || stat(real, &st) != 0 || !S_ISDIR(st.st_mode)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "--skills %s: directory not found", dir);
	}
	if (!can_be_written(real)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--skills: the name has control characters, or is not UTF-8");
	}
	return add_word(s, "--skills", err) != 0 ? -1 : add_word(s, real, err);
}

/* Makes `--skills A B` mean the same as `--skills A --skills B`. Without --skills, the directory of
 * the client's own skills is served. */
static int find_skills(struct setup *s, const struct request *r, struct ssb_error *err)
{
	const char *home = getenv("HOME");
	size_t n = r->n_skills + (size_t)r->operands.n - 1;

	for (size_t i = 0; i < n; i++) {
		bool named = i < r->n_skills;
		const char *dir = named ? r->skills[i] : r->operands.v[1 + i - r->n_skills];
		if (add_skills(s, dir, err) != 0) {
			return -1;
		}
	}
	auto_free char *own = home != NULL ? path_join(home, s->client->skills) : NULL;
	if (n == 0 && (own == NULL || add_skills(s, own, err) != 0)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "name the skills to serve: --skills DIR (there is no ~/%s)",
		                s->client->skills);
	}
	return 0;
}

static int find_server(struct setup *s, const struct request *r, struct ssb_error *err)
{
	auto_free char *self = realpath("/proc/self/exe", NULL);

	if (self == NULL || !can_be_written(self)) {
		return ssb_fail(err, SSB_E_SYS, errno, "",
		                "cannot find the path of this program, or the path has control "
		                "characters or is not UTF-8");
	}
	if (add_word(s, self, err) != 0 || add_word(s, "serve", err) != 0) {
		return -1;
	}
	return s->removing ? 0 : find_skills(s, r, err);
}

/* ---- the configuration ----------------------------------------------------------- */

static int find_file(struct setup *s, struct ssb_error *err)
{
	const struct setup_client *c = s->client;
	const char *set = getenv(c->variable);
	const char *home = getenv("HOME");
	auto_free char *cwd = s->project ? getcwd(NULL, 0) : NULL;
	auto_buf path = BUF(PATH_MAX);

	if (s->project && cwd != NULL) {
		buf_addf(&path, "%s/%s", cwd, c->project);
	} else if (!s->project && set != NULL && set[0] == '/') {
		buf_addf(&path, "%s/%s", set, c->file);
	} else if (!s->project && home != NULL && home[0] == '/') {
		buf_addf(&path, "%s/%s/%s", home, c->otherwise, c->file);
	} else {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                s->project ? "the current directory has no path (was it removed?)"
		                           : "HOME is not set");
	}
	if (c->jsonc) {
		buf_addc(&path, 'c');
	}
	if (c->jsonc && !path.failed && access(path.data, F_OK) != 0) {
		path.data[--path.len] = '\0';
	}
	if (path.failed) {
		return ssb_fail(err, SSB_E_SYS, ENAMETOOLONG, "", "the path of the configuration");
	}
	/* If the file is a symlink of yours, the symlink stays: the file to which it leads is
	 * read and changed. */
	s->file = s->project ? NULL : realpath(path.data, NULL);
	if (s->file == NULL && !s->project && errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, errno, path.data, "cannot be reached");
	}
	s->file = s->file != NULL ? s->file : buf_steal(&path);
	return 0;
}

static int read_file(const char *file, struct buf *out, bool *ret_exists, mode_t *ret_mode,
                     struct ssb_error *err)
{
	auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		*ret_exists = false;
		*ret_mode = 0600;
		return 0;
	}
	if (fd < 0 && errno == ELOOP) {
		/* Other people may have written the project. A symlink in it could lead to a
		 * file of yours, which would then be changed, or copied into the project. */
		return ssb_fail(err, SSB_E_POLICY, 0, file,
		                "it is a symlink; in a project, setup changes only a regular file");
	}
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || file_read_all(fd, out) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "cannot be read as a file");
	}
	*ret_exists = true;
	*ret_mode = st.st_mode & 07777;
	return 0;
}

/* Finds the entry SETUP_SERVER. Codex prints an array of servers, in which each has its name as a
 * member. */
static const struct json_node *find_entry(const struct setup *s)
{
	const struct json_node *node = json_top(&s->doc);
	const char *const *name = s->client->path;

	if (json_is(node, JSON_ARRAY)) {
		node = json_first(&s->doc, node);
		while (node != NULL && strcmp(json_string(json_member(&s->doc, node, "name"), ""),
		                              SETUP_SERVER) != 0) {
			node = json_next(&s->doc, node);
		}
	}
	while (node != NULL && *name != NULL) {
		node = json_member(&s->doc, node, *name++);
	}
	return node;
}

/* Runs one of the client's commands. Its output is appended to `out`. If `out` is NULL, the
 * command writes to the standard output of this program. */
static int run_step(const struct setup *s, enum setup_step step, struct buf *out,
                    struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list command = { 0 };

	return setup_client_command(s->client, step, s->project, &s->server, &command, err) != 0
	               ? -1
	               : setup_client_run(s->program, &command, s->project, out, err);
}

/* Reads the client's servers into `doc`, and finds the entry. A file that cannot be parsed is an
 * error, because Claude Code would replace it. */
static int read_servers(struct setup *s, struct ssb_error *err)
{
	bool listed = setup_client_has(s->client, SETUP_LIST);
	const char *why = NULL;
	int rc = listed ? run_step(s, SETUP_LIST, &s->before, err) : find_file(s, err);

	if (rc == 0 && !listed) {
		rc = read_file(s->file, &s->before, &s->existed, &s->mode, err);
	}
	if (rc != 0 || s->before.len == 0) {
		return rc;
	}
	if (json_read_del(&s->doc, s->before.data, s->before.len, &why) != 0 ||
	    (!listed && !json_is(json_top(&s->doc), JSON_OBJECT))) {
		return ssb_fail(err, SSB_E_POLICY, 0, listed ? s->program : s->file,
		                "%s not plain JSON (comments?): %s; change it by hand",
		                listed ? "its list is" : "it is",
		                why != NULL ? why : "it is not an object");
	}
	s->entry = find_entry(s);
	return 0;
}

/* Reads the program and the arguments of the entry. */
static void read_words(const struct setup *s, struct string_list *ret)
{
	const struct json_node *codex = json_member(&s->doc, s->entry, "transport");
	const struct json_node *from = codex != NULL ? codex : s->entry;
	const struct json_node *words = json_member(&s->doc, from, "command");

	if (!json_is(words, JSON_ARRAY)) {
		(void)string_list_add(ret, json_string(words, ""), SETUP_MAX_WORDS);
		words = json_member(&s->doc, from, "args");
	}
	for (words = json_first(&s->doc, words); words != NULL; words = json_next(&s->doc, words)) {
		(void)string_list_add(ret, json_string(words, ""), SETUP_MAX_WORDS);
	}
}

/* Returns the name of a setting that was added to the entry by hand: `setup` would not write it.
 * NULL: there is none. */
static const char *find_own_setting(const struct setup *s, const struct json_node *object)
{
	static const char *const KNOWN[] = { "args",      "auth_status",
		                             "command",   "disabled_reason",
		                             "enabled",   "name",
		                             "transport", "type" };

	JSON_EACH (n, &s->doc, object) {
		bool known = json_is(n, JSON_NULL) || json_is(n, JSON_FALSE) ||
		             (n->type >= JSON_ARRAY && n->n == 0);
		for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
			known = known || strcmp(n->key, KNOWN[i]) == 0;
		}
		if (!known) {
			return n->key;
		}
	}
	return NULL;
}

/* Returns the first word of the entry that `setup` would not have written: it is not `serve`,
 * --skills or a directory. NULL: there is none. */
static const char *find_own_option(const struct string_list *words)
{
	for (size_t i = 2; i < words->n; i++) {
		if (strcmp(words->v[i], "--skills") == 0) {
			i++;
		} else if (strncmp(words->v[i], "--skills=", strlen("--skills=")) != 0) {
			return words->v[i];
		}
	}
	return NULL;
}

/* Compares the entry with what you asked for. *ret_done is true if nothing has to change. */
static int check_entry(const struct setup *s, bool *ret_done, struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list words = { 0 };
	const char *where = s->file != NULL ? s->file : s->program;

	if (s->entry == NULL) {
		*ret_done = s->removing;
		return 0;
	}
	read_words(s, &words);
	if (words.n < 2 || strcmp(words.v[1], "serve") != 0 ||
	    (strcmp(words.v[0], s->server.v[0]) != 0 && strcmp(words.v[0], SETUP_SERVER) != 0)) {
		return ssb_fail(err, SSB_E_POLICY, 0, where,
		                "its entry '" SETUP_SERVER
		                "' starts another program; change the entry by hand");
	}
	if (!s->removing && json_is(json_member(&s->doc, s->entry, "enabled"), JSON_FALSE)) {
		return ssb_fail(err, SSB_E_POLICY, 0, where,
		                "its entry '" SETUP_SERVER
		                "' is switched off ('enabled' is false); switch it on by hand, or "
		                "--remove it first");
	}
	bool same = words.n == s->server.n;
	for (size_t i = 0; same && i < words.n; i++) {
		same = strcmp(words.v[i], s->server.v[i]) == 0;
	}
	const char *own = find_own_setting(s, s->entry);
	own = own != NULL ? own : find_own_setting(s, json_member(&s->doc, s->entry, "transport"));
	own = own != NULL ? own : find_own_option(&words);
	if (!s->removing && !same && own != NULL) {
		return ssb_fail(err, SSB_E_POLICY, 0, where,
		                "its entry '" SETUP_SERVER
		                "' has a setting of yours ('%s'), which would be lost; change the "
		                "entry by hand, or --remove it first",
		                own);
	}
	*ret_done = !s->removing && same;
	return 0;
}

/* Makes the new text of OpenCode's file. */
static int edit_config(struct setup *s, struct ssb_error *err)
{
	auto_buf value = BUF(MAX_CONFIG_BYTES);
	struct json j;

	json_init(&j, &value, false);
	json_open(&j, '{');
	json_kstr(&j, "type", "local");
	json_kstrs(&j, "command", s->server.v, s->server.n);
	json_kbool(&j, "enabled", true);
	json_close(&j, '}');
	return value.failed ? ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory")
	                    : config_edit_set(&s->doc, s->client->path,
	                                      s->removing ? NULL : value.data, &s->after, err);
}

static int replace_file(const struct setup *s, struct ssb_error *err)
{
	auto_buf now = BUF(MAX_CONFIG_BYTES);
	bool exists = false;
	mode_t mode = 0;

	if (read_file(s->file, &now, &exists, &mode, err) != 0) {
		return -1;
	}
	if (exists != s->existed || now.len != s->before.len ||
	    (now.len > 0 && memcmp(now.data, s->before.data, now.len) != 0)) {
		return ssb_fail(err, SSB_E_POLICY, 0, s->file,
		                "it was changed in the meantime; try again");
	}
	return file_replace(s->file, s->after.data, s->after.len, s->mode) != 0
	               ? ssb_fail(err, SSB_E_SYS, errno, s->file, "cannot be replaced")
	               : 0;
}

/* ---- all of it ------------------------------------------------------------------- */

/* Fills `ret` with the client's commands that must be run, and returns their number. If the file
 * is edited here, there are none. */
static size_t list_steps(const struct setup *s, enum setup_step ret[2])
{
	size_t n = 0;

	if (!s->editing && (s->removing || (s->entry != NULL && !s->client->replaces))) {
		ret[n++] = SETUP_REMOVE;
	}
	if (!s->editing && !s->removing) {
		ret[n++] = SETUP_ADD;
	}
	return n;
}

static void put_step(const struct setup *s, enum setup_step step, struct buf *out)
{
	AUTO(string_list_done) struct string_list command = { 0 };
	struct ssb_error err = { 0 };

	out->failed |=
	        setup_client_command(s->client, step, s->project, &s->server, &command, &err) != 0;
	for (size_t i = 0; i < command.n; i++) {
		buf_adds(out, i > 0 ? " " : "");
		say_word(out, command.v[i]);
	}
	buf_addc(out, '\n');
}

/* Shows what will change: the lines of the file that is edited here; or the entry that is removed,
 * and the client's commands that will be run. */
static int show_change(const struct setup *s)
{
	enum setup_step steps[2];
	auto_buf old = BUF(SAY_MAX);
	auto_buf diff = BUF(SAY_MAX);
	auto_buf out = BUF(SAY_MAX);
	struct json j;

	if (s->editing) {
		config_edit_diff(s->before.len > 0 ? s->before.data : "", s->after.data, &diff);
		visible_addf(&out, "--- %s%s\n", s->existed ? "" : "(new) ", s->file);
	} else if (s->entry != NULL) {
		json_init(&j, &old, true);
		json_copy(&j, &s->doc, s->entry);
		config_edit_diff(old.failed ? "" : old.data, "", &diff);
	}
	visible_text(&out, diff.len > 0 ? diff.data : "", true);
	for (size_t i = 0, n = list_steps(s, steps); i < n; i++) {
		put_step(s, steps[i], &out);
	}
	return say_out(STDOUT_FILENO, &out);
}

static int make_change(const struct setup *s, struct ssb_error *err)
{
	enum setup_step steps[2];
	int rc = s->editing ? replace_file(s, err) : 0;

	for (size_t i = 0, n = list_steps(s, steps); rc == 0 && i < n; i++) {
		rc = run_step(s, steps[i], NULL, err);
		if (rc != 0 && i > 0) {
			say_warningf("the old entry is removed, and the new one was not added: run "
			             "the last command above yourself");
		}
	}
	return rc;
}

/* Reads the configuration again and checks it: a client's command may change nothing and still
 * end with 0. */
static int check_change(struct setup *s, struct ssb_error *err)
{
	bool done = false;

	free(s->file);
	s->file = NULL;
	s->entry = NULL;
	buf_reset(&s->before);
	json_doc_done(&s->doc);
	s->doc = (struct json_doc){ 0 };
	if (read_servers(s, err) != 0 || check_entry(s, &done, err) != 0) {
		return -1;
	}
	return done ? 0
	            : ssb_fail(err, SSB_E_POLICY, 0, s->file != NULL ? s->file : s->program,
	                       "the client's command ended without an error, but the entry "
	                       "'" SETUP_SERVER "' %s; run the command above yourself",
	                       s->removing ? "is still there"
	                                   : "is missing, or differs from what was given");
}

/* Returns the exit status, or -1 with `err`. */
static int set_up(struct setup *s, const struct request *r, struct ssb_error *err)
{
	bool able = s->editing || s->program != NULL;
	bool done = false;

	if (find_server(s, r, err) != 0 ||
	    (able && (read_servers(s, err) != 0 || check_entry(s, &done, err) != 0)) ||
	    (s->editing && !done && edit_config(s, err) != 0)) {
		return -1;
	}
	if (done) {
		say_notef("%s: nothing to change", s->client->name);
		return EXIT_FINE;
	}
	int status = show_change(s);
	if (status != EXIT_FINE) {
		return status;
	}
	if (!able) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, s->client->program,
		                "not found in PATH, so nothing was changed; install %s, or run the "
		                "command above where it is installed",
		                s->client->name);
	}
	if (!request_has(r, FLAG_WRITE_CONFIG) && ask_yes("change it?") != ASKED_YES) {
		say_notef("nothing was changed; to change it without a question, give --write");
		return EXIT_FINDINGS;
	}
	if (make_change(s, err) != 0 || (!s->editing && check_change(s, err) != 0)) {
		return -1;
	}
	say_notef("done; restart %s to use it", s->client->name);
	return EXIT_FINE;
}

int cmd_setup(struct request *r)
{
	AUTO(setup_done)
	struct setup s = {
		.client = setup_client_find(r->operands.v[0]),
		.project = request_has(r, FLAG_PROJECT),
		.removing = request_has(r, FLAG_REMOVE),
		.before = BUF(MAX_CONFIG_BYTES),
		.after = BUF(2 * MAX_CONFIG_BYTES),
	};
	struct ssb_error err = { 0 };

	if (s.client == NULL) {
		say_errorf("setup needs one of: claude-code, codex, openclaw, opencode");
		return EXIT_USAGE;
	}
	if (s.project && s.client->project == NULL) {
		say_errorf("%s has no configuration file in a project", s.client->name);
		return EXIT_USAGE;
	}
	s.editing = !setup_client_has(s.client, SETUP_REMOVE) && (s.project || s.removing);
	s.program = setup_client_program(s.client);
	int status = set_up(&s, r, &err);
	if (status < 0) {
		say_error(&err);
		return exit_status_of(&err, false);
	}
	return status;
}
