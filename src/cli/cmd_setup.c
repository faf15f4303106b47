/* cmd_setup.c - lets an agent (the client) use skills in their sandboxes: adds SkillSandbox as an
 * MCP server to the client's configuration and, for Claude Code, the hook to its settings; or
 * removes both.
 *
 * If the client has a command for the change, this command is run. Otherwise the client's file is
 * edited here. The change is shown first, and made only if you agree. An entry with the name
 * SETUP_SERVER that starts another program is never touched. */
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
#include "cli/screen.h"
#include "cli/setup_client.h"
#include "cli/setup_file.h"
#include "cli/setup_hook.h"
#include "os/file.h"
#include "policy/path.h"

struct setup {
	const struct setup_client *client;
	bool project;
	bool removing;
	bool editing;  /* the client lacks a command, so its file is edited here */
	bool hooking;  /* the hook is added or removed, too */
	char *program; /* path of the client's program; NULL: not found */
	struct string_list
	        server; /* the server's words: this program, "serve", "--skills", DIR, ... */
	struct setup_file config; /* the client's servers: its file, or the list that it printed */
	struct setup_file hook;   /* the client's hooks */
	const struct json_node *entry; /* the entry SETUP_SERVER in `config`; NULL: none */
};

static void setup_done(struct setup *s)
{
	free(s->program);
	string_list_done(&s->server);
	setup_file_done(&s->config);
	setup_file_done(&s->hook);
}

/* ---- the server ------------------------------------------------------------------ */

static int add_word(struct setup *s, const char *word, struct ssb_error *err)
{
	return string_list_add(&s->server, word, SETUP_MAX_WORDS) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
}

static int add_skills(struct setup *s, const char *dir, struct ssb_error *err)
{
	struct stat st;
	auto_free char *real = realpath(dir, NULL);

	if (real == NULL || stat(real, &st) != 0 || !S_ISDIR(st.st_mode)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "--skills %s: directory not found", dir);
	}
	if (!utf8_is_line(real)) {
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

	if (n > MAX_SERVED) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "more than %d --skills", MAX_SERVED);
	}
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

/* Returns true if the option's value is a path of a file that must exist. */
static bool names_a_file(enum ssb_option option)
{
	return option == SSB_OPT_READ || option == SSB_OPT_WRITE || option == SSB_OPT_PROJECT ||
	       option == SSB_OPT_PROJECT_READ || option == SSB_OPT_POLICY_FILE;
}

/* Adds an option of the server as one word: --net=example.org. Paths become absolute, because the
 * client starts the server in any directory. --project without a directory stays as it is: it is
 * the project in which the client works. */
static int add_option(struct setup *s, const struct passed_option *o, struct ssb_error *err)
{
	const char *name = o->row->name;
	auto_buf word = BUF(2 * PATH_MAX);
	auto_free char *real = NULL;

	if (!utf8_is_line(o->value)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--%s: the value has control characters, or is not UTF-8", name);
	}
	if (names_a_file((enum ssb_option)o->row->id) && strcmp(o->value, ".") != 0 &&
	    o->value[0] != '\0') {
		real = realpath(o->value, NULL);
		if (real == NULL || !utf8_is_line(real)) {
			return ssb_fail(err, SSB_E_USAGE, 0, "", "--%s %s: not found", name,
			                o->value);
		}
	}
	const char *arg = o->row->arg;
	bool bare = arg == NULL || (arg[0] == '[' && strcmp(o->value, o->row->value) == 0);
	buf_addf(&word, "--%s%s%s", name, bare ? "" : "=",
	         bare           ? ""
	         : real != NULL ? real
	                        : o->value);
	return word.failed ? ssb_fail(err, SSB_E_USAGE, 0, "", "--%s: the value is too long", name)
	                   : add_word(s, word.data, err);
}

static int find_server(struct setup *s, const struct request *r, struct ssb_error *err)
{
	auto_free char *self = realpath("/proc/self/exe", NULL);

	if (self == NULL || !utf8_is_line(self)) {
		return ssb_fail(err, SSB_E_SYS, errno, "",
		                "cannot find the path of this program, or the path has control "
		                "characters or is not UTF-8");
	}
	if (add_word(s, self, err) != 0 || add_word(s, "serve", err) != 0) {
		return -1;
	}
	if (s->removing) {
		return 0;
	}
	int rc = find_skills(s, r, err);
	for (size_t i = 0; rc == 0 && i < r->n_passed; i++) {
		rc = add_option(s, &r->passed[i], err);
	}
	return rc;
}

/* ---- the configuration ----------------------------------------------------------- */

/* Finds the entry SETUP_SERVER. Codex prints an array of servers, in which each has its name as a
 * member. */
static const struct json_node *find_entry(const struct setup *s)
{
	const struct json_node *node = json_top(&s->config.doc);
	const char *const *name = s->client->path;

	if (json_is(node, JSON_ARRAY)) {
		node = json_first(&s->config.doc, node);
		while (node != NULL &&
		       strcmp(json_string(json_member(&s->config.doc, node, "name"), ""),
		              SETUP_SERVER) != 0) {
			node = json_next(&s->config.doc, node);
		}
	}
	while (node != NULL && *name != NULL) {
		node = json_member(&s->config.doc, node, *name++);
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

/* Reads the list of servers that the client prints. */
static int read_list(struct setup *s, struct ssb_error *err)
{
	const char *why = NULL;

	if (run_step(s, SETUP_LIST, &s->config.before, err) != 0) {
		return -1;
	}
	return s->config.before.len == 0 || json_read_del(&s->config.doc, s->config.before.data,
	                                                  s->config.before.len, &why) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_POLICY, 0, s->program,
	                          "its list is not plain JSON: %s; change it by hand", why);
}

/* Reads the client's servers, and finds the entry. A file that cannot be parsed is an error,
 * because Claude Code would replace it. */
static int read_servers(struct setup *s, struct ssb_error *err)
{
	int rc = setup_client_has(s->client, SETUP_LIST)
	                 ? read_list(s, err)
	                 : setup_file_read(&s->config, &s->client->place, s->project, err);

	s->entry = rc == 0 ? find_entry(s) : NULL;
	return rc;
}

/* Reads the program and the arguments of the entry. */
static void read_words(const struct setup *s, struct string_list *ret)
{
	const struct json_doc *doc = &s->config.doc;
	const struct json_node *codex = json_member(doc, s->entry, "transport");
	const struct json_node *from = codex != NULL ? codex : s->entry;
	const struct json_node *goose = json_member(doc, from, "cmd");
	const struct json_node *words = goose != NULL ? goose : json_member(doc, from, "command");

	if (!json_is(words, JSON_ARRAY)) {
		(void)string_list_add(ret, json_string(words, ""), SETUP_MAX_WORDS);
		words = json_member(doc, from, "args");
	}
	JSON_EACH (word, doc, words) {
		(void)string_list_add(ret, json_string(word, ""), SETUP_MAX_WORDS);
	}
}

/* Returns the name of a setting that was added to the entry by hand: `setup` would not write it.
 * NULL: there is none. */
static const char *find_own_setting(const struct setup *s, const struct json_node *object)
{
	static const char *const KNOWN[] = { "args",    "auth_status", "cmd",
		                             "command", "description", "disabled_reason",
		                             "enabled", "name",        "transport",
		                             "type" };

	JSON_EACH (n, &s->config.doc, object) {
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

/* Returns true if the word is an option that `setup` writes: --net=example.org, --project. */
static bool is_passed(const char *word)
{
	size_t n = strcspn(word, "=");

	for (size_t i = 0; i < N_FLAGS; i++) {
		const struct option_row *row = &FLAGS[i];
		if (row->id < FLAG_FIRST && (row->commands & ON_SETUP) != 0 && n > 2 &&
		    strlen(row->name) == n - 2 && strncmp(word + 2, row->name, n - 2) == 0) {
			return word[n] == '=' ? row->arg != NULL
			                      : row->arg == NULL || row->arg[0] == '[';
		}
	}
	return false;
}

/* Returns the first word of the entry that `setup` would not have written: it is not `serve`,
 * --skills, a directory or an option of the server. NULL: there is none. */
static const char *find_own_option(const struct string_list *words)
{
	for (size_t i = 2; i < words->n; i++) {
		if (strcmp(words->v[i], "--skills") == 0) {
			i++;
		} else if (strncmp(words->v[i], "--skills=", strlen("--skills=")) != 0 &&
		           !is_passed(words->v[i])) {
			return words->v[i];
		}
	}
	return NULL;
}

/* Compares the entry with what you asked for. *ret_done is true if nothing has to change. */
static int check_entry(const struct setup *s, bool *ret_done, struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list words = { 0 };
	const char *where = s->config.path != NULL ? s->config.path : s->program;

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
	if (!s->removing && json_is(json_member(&s->config.doc, s->entry, "enabled"), JSON_FALSE)) {
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
	own = own != NULL ? own
	                  : find_own_setting(s, json_member(&s->config.doc, s->entry, "transport"));
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

static void put_entry(const struct setup *s, struct json *j)
{
	enum setup_form form = s->client->form;

	json_open(j, '{');
	if (form == SETUP_FORM_CMD) {
		json_kbool(j, "enabled", true);
		json_kstr(j, "type", "stdio");
		json_kstr(j, "name", SETUP_SERVER);
		json_kstr(j, "description", "Skills, each in its own sandbox");
		json_kstr(j, "cmd", s->server.v[0]);
		json_kstrs(j, "args", s->server.v + 1, s->server.n - 1);
	} else if (form == SETUP_FORM_COMMAND) {
		json_kstr(j, "type", "local");
		json_kstrs(j, "command", s->server.v, s->server.n);
		json_kbool(j, "enabled", true);
	} else {
		if (form == SETUP_FORM_STDIO) {
			json_kstr(j, "type", "stdio");
		}
		json_kstr(j, "command", s->server.v[0]);
		json_kstrs(j, "args", s->server.v + 1, s->server.n - 1);
	}
	json_close(j, '}');
}

/* Makes the new text of the client's file. */
static int edit_config(struct setup *s, struct ssb_error *err)
{
	auto_buf value = BUF(MAX_CONFIG_BYTES);
	struct json j = JSON_TO(&value, false);

	put_entry(s, &j);
	return value.failed ? ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory")
	                    : setup_file_set(&s->config, s->client->path,
	                                     s->removing ? NULL : value.data, err);
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

/* What has to change. */
struct setup_change {
	bool server;
	bool hook;
};

/* Shows what will change: the lines of the files that are edited here; the entry that is removed;
 * and the client's commands that will be run. */
static int show_change(const struct setup *s, const struct setup_change *change)
{
	enum setup_step steps[2];
	auto_buf old = BUF(SAY_MAX);
	auto_buf diff = BUF(SAY_MAX);
	auto_buf out = BUF(2 * MAX_CONFIG_BYTES);
	struct json j;

	if (change->server && s->editing) {
		setup_file_show(&s->config, &out);
	} else if (change->server && s->entry != NULL) {
		json_init(&j, &old, true);
		json_copy(&j, &s->config.doc, s->entry);
		config_edit_diff(old.failed ? "" : old.data, "", &diff);
		screen_diff(&out, &diff);
	}
	for (size_t i = 0, n = change->server ? list_steps(s, steps) : 0; i < n; i++) {
		put_step(s, steps[i], &out);
	}
	if (change->hook) {
		setup_file_show(&s->hook, &out);
	}
	return say_out(STDOUT_FILENO, &out);
}

static int make_change(const struct setup *s, const struct setup_change *change,
                       struct ssb_error *err)
{
	enum setup_step steps[2];
	int rc = change->server && s->editing ? setup_file_replace(&s->config, err) : 0;

	for (size_t i = 0, n = change->server ? list_steps(s, steps) : 0; rc == 0 && i < n; i++) {
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

	setup_file_done(&s->config);
	s->config = (struct setup_file)SETUP_FILE;
	s->entry = NULL;
	if (read_servers(s, err) != 0 || check_entry(s, &done, err) != 0) {
		return -1;
	}
	return done ? 0
	            : ssb_fail(err, SSB_E_POLICY, 0,
	                       s->config.path != NULL ? s->config.path : s->program,
	                       "the client's command ended without an error, but the entry "
	                       "'" SETUP_SERVER "' %s; run the command above yourself",
	                       s->removing ? "is still there"
	                                   : "is missing, or differs from what was given");
}

/* Finds out what has to change. */
static int plan_change(struct setup *s, const struct request *r, struct setup_change *ret,
                       struct ssb_error *err)
{
	bool able = s->editing || s->program != NULL;
	bool server_done = false;
	bool hook_done = true;

	if (find_server(s, r, err) != 0 ||
	    (able && (read_servers(s, err) != 0 || check_entry(s, &server_done, err) != 0)) ||
	    (s->editing && !server_done && edit_config(s, err) != 0) ||
	    (s->hooking && setup_hook_plan(&s->hook, s->client, s->project, s->server.v[0],
	                                   s->removing, &hook_done, err) != 0)) {
		return -1;
	}
	*ret = (struct setup_change){ .server = !server_done, .hook = !hook_done };
	return 0;
}

/* Returns the exit status, or -1 with `err`. */
static int set_up(struct setup *s, const struct request *r, struct ssb_error *err)
{
	struct setup_change change;

	if (plan_change(s, r, &change, err) != 0) {
		return -1;
	}
	if (!change.server && !change.hook) {
		say_notef("%s: nothing to change", s->client->name);
		return EXIT_FINE;
	}
	int status = show_change(s, &change);
	if (status != EXIT_FINE) {
		return status;
	}
	if (change.server && !s->editing && s->program == NULL) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, s->client->program,
		                "not found in PATH, so nothing was changed; install %s, or run the "
		                "command above where it is installed",
		                s->client->name);
	}
	if (!request_has(r, FLAG_YES) && ask_yes("change it?") != ASKED_YES) {
		say_notef("nothing was changed; to change it without a question, give --yes");
		return EXIT_FINDINGS;
	}
	if (make_change(s, &change, err) != 0 ||
	    (change.server && !s->editing && check_change(s, err) != 0) ||
	    (change.hook && setup_file_replace(&s->hook, err) != 0)) {
		return -1;
	}
	say_notef("done; restart %s", s->client->name);
	return EXIT_FINE;
}

static int refuse_client(const char *name)
{
	auto_buf names = BUF(SAY_MAX);

	setup_client_names(&names);
	say_errorf("%s%s%ssetup needs one of: %s", name != NULL ? "'" : "",
	           name != NULL ? name : "", name != NULL ? "' is not known; " : "",
	           names.failed ? "" : names.data);
	return EXIT_USAGE;
}

int cmd_setup(struct request *r)
{
	AUTO(setup_done)
	struct setup s = {
		.client = setup_client_find(r->operands.v[0]),
		.project = request_has(r, FLAG_LOCAL),
		.removing = request_has(r, FLAG_REMOVE),
		.config = SETUP_FILE,
		.hook = SETUP_FILE,
	};
	struct ssb_error err = { 0 };

	if (s.client == NULL) {
		return refuse_client(r->operands.v[0]);
	}
	if (s.project && s.client->place.project == NULL) {
		say_errorf("%s has no configuration file in a project", s.client->name);
		return EXIT_USAGE;
	}
	s.editing = !setup_client_has(s.client, SETUP_ADD) ||
	            (!setup_client_has(s.client, SETUP_REMOVE) && (s.project || s.removing));
	s.hooking = s.client->hook.file != NULL && !request_has(r, FLAG_NO_HOOK);
	s.program = setup_client_program(s.client);
	int status = set_up(&s, r, &err);
	if (status < 0) {
		return exit_status_told(&err);
	}
	return status;
}
