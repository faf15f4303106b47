/* cmd_setup.c - writes our MCP server into the configuration of an agent.
 *
 * It shows the diff first, and changes the file only if you agree. The file is changed completely
 * or not at all. A change that another program made in between is never overwritten. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/config_edit.h"
#include "cli/say.h"
#include "os/file.h"
#include "policy/path.h"

#define SERVER     "skillsandbox"
#define TOML_TABLE "mcp_servers." SERVER
#define TOML_MARK  "# written by skillsandbox setup; taken out by skillsandbox setup --remove"
#define LOCK_TRIES 40 /* attempts, 50 ms apart */

enum form { FORM_CLAUDE, FORM_OPENCLAW, FORM_OPENCODE, FORM_TOML };

/* Where each client keeps its configuration. The file is `variable`/`name_there` if the environment
 * variable is set, else `otherwise` beneath the home directory. */
static const struct setup_client {
	const char *name;
	enum form form;
	const char *variable;
	const char *name_there; /* NULL: the variable contains the path of the file itself */
	const char *otherwise;
	const char *project; /* the file in the directory of a project; NULL: projects have none */
	const char *path[4]; /* path of the server's member in the JSON text */
	const char *lock;    /* suffix of the client's lock directory; NULL: none */
	const char *skills;  /* directory of the client's own skills, beneath the home */
} CLIENTS[] = {
	{ "claude-code",
	  FORM_CLAUDE,
	  "CLAUDE_CONFIG_DIR",
	  ".claude.json",
	  ".claude.json",
	  ".mcp.json",
	  { "mcpServers", SERVER },
	  ".lock",
	  ".claude/skills" },
	{ "codex",
	  FORM_TOML,
	  "CODEX_HOME",
	  "config.toml",
	  ".codex/config.toml",
	  NULL,
	  { NULL },
	  NULL,
	  ".codex/skills" },
	{ "openclaw",
	  FORM_OPENCLAW,
	  "OPENCLAW_CONFIG_PATH",
	  NULL,
	  ".openclaw/openclaw.json",
	  NULL,
	  { "mcp", "servers", SERVER },
	  NULL,
	  ".openclaw/skills" },
	{ "opencode",
	  FORM_OPENCODE,
	  "XDG_CONFIG_HOME",
	  "opencode/opencode.json",
	  ".config/opencode/opencode.json",
	  "opencode.json",
	  { "mcp", SERVER },
	  NULL,
	  ".config/opencode/skills" },
};

struct setup {
	const struct setup_client *client;
	char *file; /* its path; without symlinks if the file exists */
	char *self;
	char *skills[MAX_SERVED];
	size_t n_skills;
	struct buf before;
	bool existed;
	mode_t mode;
	struct buf after;
};

static void setup_done(struct setup *s)
{
	free(s->file);
	free(s->self);
	for (size_t i = 0; i < s->n_skills; i++) {
		free(s->skills[i]);
	}
	buf_done(&s->before);
	buf_done(&s->after);
}

static const struct setup_client *find_client(const char *name)
{
	for (size_t i = 0; name != NULL && i < ARRAY_LEN(CLIENTS); i++) {
		if (strcmp(CLIENTS[i].name, name) == 0) {
			return &CLIENTS[i];
		}
	}
	return NULL;
}

/* Is the file (a real path) beneath the directory? */
static bool is_beneath(const char *file, const char *dir)
{
	auto_free char *real = realpath(dir, NULL);

	return real != NULL && path_beneath(file, real) != NULL;
}

static int find_file(struct setup *s, bool project, struct ssb_error *err)
{
	const struct setup_client *c = s->client;
	const char *dir = getenv(c->variable);
	const char *home = getenv("HOME");
	auto_free char *cwd = project ? getcwd(NULL, 0) : NULL;
	auto_free char *path = NULL;

	if (project && c->project == NULL) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "%s has no configuration file in a project", c->name);
	}
	if (project) {
		path = cwd != NULL ? path_join(cwd, c->project) : NULL;
	} else if (dir != NULL && dir[0] == '/') {
		path = c->name_there != NULL ? path_join(dir, c->name_there) : strdup(dir);
	} else if (home != NULL && home[0] == '/') {
		path = path_join(home, c->otherwise);
	} else {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "HOME is not set");
	}
	if (path == NULL) {
		return ssb_fail(err, SSB_E_SYS, errno, "", "cannot find the configuration");
	}
	/* The target is changed, and a symlink to it stays a symlink: the file may be in a
	 * directory of dotfiles. */
	s->file = realpath(path, NULL);
	if (s->file == NULL && errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, errno, path, "cannot be reached");
	}
	if (s->file == NULL) {
		s->file = steal_ptr(&path);
	} else if (project && !is_beneath(s->file, cwd)) {
		/* Other people may have written the project. Its symlinks must not select a file
		 * outside of it, because setup would change that file. */
		return ssb_fail(err, SSB_E_POLICY, 0, path,
		                "it is a symlink that leads out of the project");
	}
	return 0;
}

static int read_file(const char *file, struct buf *out, bool *ret_exists, mode_t *ret_mode,
                     struct ssb_error *err)
{
	auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		*ret_exists = false;
		*ret_mode = 0600;
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || file_read_all(fd, out) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "cannot be read as a file");
	}
	*ret_exists = true;
	*ret_mode = st.st_mode & 07777;
	return 0;
}

/* Can the name be written to a configuration unchanged? */
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
	if (s->n_skills == MAX_SERVED) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "more than %d --skills", MAX_SERVED);
	}
	s->skills[s->n_skills++] = steal_ptr(&real);
	return 0;
}

/* Makes `--skills A B` mean the same as `--skills A --skills B`. Without --skills, the directory of
 * the client's own skills is served. */
static int find_skills(struct setup *s, const struct request *r, struct ssb_error *err)
{
	for (size_t i = 0; i < r->n_skills; i++) {
		if (add_skills(s, r->skills[i], err) != 0) {
			return -1;
		}
	}
	for (int i = 1; i < r->operands.n; i++) {
		if (add_skills(s, r->operands.v[i], err) != 0) {
			return -1;
		}
	}
	if (s->n_skills > 0) {
		return 0;
	}
	const char *home = getenv("HOME");
	auto_free char *dir = home != NULL ? path_join(home, s->client->skills) : NULL;
	if (dir == NULL || add_skills(s, dir, err) != 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "name the skills to serve: --skills DIR (there is no ~/%s)",
		                s->client->skills);
	}
	return 0;
}

static void put_args(const struct setup *s, struct json *j)
{
	json_str(j, "serve");
	for (size_t i = 0; i < s->n_skills; i++) {
		json_str(j, "--skills");
		json_str(j, s->skills[i]);
	}
}

/* Writes the entry of our server in the form of the client. A JSON string is also a valid TOML
 * string. */
static void put_server(const struct setup *s, struct buf *out)
{
	enum form form = s->client->form;
	struct json j;

	json_init(&j, out, form != FORM_TOML);
	if (form == FORM_TOML) {
		buf_adds(out, "command = ");
		json_str(&j, s->self);
		buf_adds(out, "\nargs = ");
		json_init(&j, out, false);
		json_open(&j, '[');
		put_args(s, &j);
		json_close(&j, ']');
		buf_addc(out, '\n');
		return;
	}
	json_open(&j, '{');
	if (form != FORM_OPENCLAW) {
		json_kstr(&j, "type", form == FORM_CLAUDE ? "stdio" : "local");
	}
	json_key(&j, "command");
	if (form == FORM_OPENCODE) {
		json_open(&j, '[');
		json_str(&j, s->self);
	} else {
		json_str(&j, s->self);
		json_key(&j, "args");
		json_open(&j, '[');
	}
	put_args(s, &j);
	json_close(&j, ']');
	if (form == FORM_OPENCODE) {
		json_kbool(&j, "enabled", true);
	}
	json_close(&j, '}');
}

/* Is the server with our name in the JSON text an entry of ours: this program with "serve"? Also
 * returns true for a malformed text, which is reported later. */
static bool is_ours(const struct setup *s)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	const char *why = NULL;

	if (s->client->form == FORM_TOML || s->before.len == 0 ||
	    json_read(&doc, s->before.data, s->before.len, &why) != 0) {
		return true;
	}
	const struct json_node *node = json_top(&doc);
	for (const char *const *name = s->client->path; *name != NULL; name++) {
		node = json_member(&doc, node, *name);
	}
	if (node == NULL) {
		return true;
	}
	const struct json_node *command = json_member(&doc, node, "command");
	const struct json_node *args = json_member(&doc, node, "args");
	if (s->client->form == FORM_OPENCODE) {
		command = json_first(&doc, command);
		args = command != NULL ? json_next(&doc, command) : NULL;
	} else {
		args = json_first(&doc, args);
	}
	const char *program = json_string(command, "");
	return (strcmp(program, s->self) == 0 || strcmp(program, SERVER) == 0) &&
	       strcmp(json_string(args, ""), "serve") == 0;
}

static int edit_config(struct setup *s, bool removing, struct ssb_error *err)
{
	const char *text = s->existed ? (s->before.data != NULL ? s->before.data : "") : NULL;
	auto_buf server;

	buf_init(&server, MAX_CONFIG_BYTES);
	if (!is_ours(s)) {
		return ssb_fail(err, SSB_E_POLICY, 0, s->file,
		                "its entry " SERVER " starts another program; "
		                "change the entry by hand");
	}
	if (!removing) {
		put_server(s, &server);
		if (server.failed) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
		}
	}
	const char *value = removing ? NULL : server.data;
	int rc = s->client->form == FORM_TOML
	                 ? config_edit_toml(text, s->before.len, TOML_TABLE, TOML_MARK, value,
	                                    &s->after, err)
	                 : config_edit_json(text, s->before.len, s->client->path, value, &s->after,
	                                    err);
	if (rc != 0) {
		char line[16];
		snprintf(line, sizeof(line), "%.15s", err->where);
		snprintf(err->where, sizeof(err->where), "%.*s%s",
		         (int)(sizeof(err->where) - sizeof(line)), s->file, line);
	}
	return rc;
}

/* Takes the same lock as Claude Code, which makes a directory beside the file while it writes it.
 */
static int take_lock(const struct setup *s, char **ret_lock, struct ssb_error *err)
{
	if (s->client->lock == NULL) {
		return 0;
	}
	auto_buf path;
	buf_init(&path, PATH_MAX);
	buf_addf(&path, "%s%s", s->file, s->client->lock);
	for (int i = 0; !path.failed && i < LOCK_TRIES; i++) {
		if (mkdir(path.data, 0777) == 0) {
			*ret_lock = buf_steal(&path);
			return 0;
		}
		if (errno != EEXIST) {
			break;
		}
		(void)nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	}
	return ssb_fail(err, SSB_E_SYS, errno, s->file, "%s is writing it, or left %s behind",
	                s->client->name, s->client->lock);
}

static int replace_file(const struct setup *s, struct ssb_error *err)
{
	auto_buf now;
	bool exists = false;
	mode_t mode = 0;

	buf_init(&now, MAX_CONFIG_BYTES);
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

static int write_config(const struct setup *s, struct ssb_error *err)
{
	auto_free char *dir = path_parent(s->file);
	auto_free char *held = NULL;
	struct stat st;

	if (dir == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	auto_fd made = stat(dir, &st) == 0 ? -1 : file_mkdirs(dir);
	if (made < 0 && stat(dir, &st) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, dir, "cannot be created");
	}
	if (take_lock(s, &held, err) != 0) {
		return -1;
	}
	int rc = replace_file(s, err);
	if (held != NULL) {
		(void)rmdir(held);
	}
	return rc;
}

static int show_diff(const struct setup *s)
{
	auto_buf diff, out;

	buf_init(&diff, SAY_MAX);
	buf_init(&out, SAY_MAX);
	config_edit_diff(s->before.data != NULL ? s->before.data : "", s->after.data, &diff);
	buf_adds(&out, s->existed ? "--- " : "--- (new) ");
	visible_text(&out, s->file, false);
	buf_addc(&out, '\n');
	if (diff.data != NULL) {
		visible_text(&out, diff.data, true);
	}
	return say_out(STDOUT_FILENO, &out);
}

static int run_setup(struct setup *s, const struct request *r, struct ssb_error *err)
{
	bool removing = request_has(r, FLAG_REMOVE);

	s->self = realpath("/proc/self/exe", NULL);
	if (s->self == NULL || !can_be_written(s->self)) {
		return ssb_fail(err, SSB_E_SYS, errno, "",
		                "cannot find the path of this program, or it is not plain text");
	}
	if (find_file(s, request_has(r, FLAG_PROJECT), err) != 0 ||
	    (!removing && find_skills(s, r, err) != 0) ||
	    read_file(s->file, &s->before, &s->existed, &s->mode, err) != 0 ||
	    edit_config(s, removing, err) != 0) {
		return -1;
	}
	return 0;
}

int cmd_setup(struct request *r)
{
	AUTO(setup_done) struct setup s = { .client = find_client(r->operands.v[0]) };
	struct ssb_error err = { 0 };

	buf_init(&s.before, MAX_CONFIG_BYTES);
	buf_init(&s.after, 2 * MAX_CONFIG_BYTES);
	if (s.client == NULL) {
		say_errorf("setup needs one of: claude-code, codex, openclaw, opencode");
		return EXIT_USAGE;
	}
	if (run_setup(&s, r, &err) != 0) {
		say_error(&err);
		return exit_status_of(&err, false);
	}
	if (s.after.len == s.before.len &&
	    (s.after.len == 0 || memcmp(s.after.data, s.before.data, s.after.len) == 0)) {
		say_notef("%s: nothing to change", s.file);
		return EXIT_FINE;
	}
	int status = show_diff(&s);
	if (status != EXIT_FINE) {
		return status;
	}
	if (!request_has(r, FLAG_WRITE_CONFIG) && ask_yes("change it?") != ASKED_YES) {
		say_notef("nothing was changed; to change it without a question, give --write");
		return EXIT_FINDINGS;
	}
	if (write_config(&s, &err) != 0) {
		say_error(&err);
		return exit_status_of(&err, false);
	}
	say_notef("written; restart %s to use it", s.client->name);
	return EXIT_FINE;
}
