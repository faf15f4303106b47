/* setup_client.c - see setup_client.h. */
#include "cli/setup_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/path.h"

static const char SCOPE[] = "user"; /* in a command for a project, "project" replaces it */

static const struct setup_client CLIENTS[] = {
	{ .name = "claude-code",
	  .program = "claude",
	  .commands = { [SETUP_ADD] = { "mcp", "add", "--scope", SCOPE, SETUP_SERVER, "--" },
	                [SETUP_REMOVE] = { "mcp", "remove", "--scope", SCOPE, SETUP_SERVER } },
	  .place = { "CLAUDE_CONFIG_DIR", "", ".claude.json", .project = ".mcp.json" },
	  .hook = { "CLAUDE_CONFIG_DIR", ".claude", "settings.json",
	            .project = ".claude/settings.json" },
	  .path = { "mcpServers", SETUP_SERVER },
	  .skills = ".claude/skills" },
	{ .name = "codex",
	  .program = "codex",
	  .commands = { [SETUP_LIST] = { "mcp", "list", "--json" },
	                [SETUP_ADD] = { "mcp", "add", SETUP_SERVER, "--" },
	                [SETUP_REMOVE] = { "mcp", "remove", SETUP_SERVER } },
	  .replaces = true,
	  .skills = ".codex/skills" },
	{ .name = "openclaw",
	  .program = "openclaw",
	  .commands = { [SETUP_LIST] = { "mcp", "show", "--json" },
	                [SETUP_ADD] = { "mcp", "set", SETUP_SERVER },
	                [SETUP_REMOVE] = { "mcp", "unset", SETUP_SERVER } },
	  .replaces = true,
	  .adds_json = true,
	  .path = { SETUP_SERVER },
	  .skills = ".openclaw/skills" },
	{ .name = "opencode",
	  .program = "opencode",
	  .commands = { [SETUP_ADD] = { "mcp", "add", SETUP_SERVER, "--" } },
	  .replaces = true,
	  .form = SETUP_FORM_COMMAND,
	  .place = { "XDG_CONFIG_HOME", ".config", "opencode/opencode.json", .jsonc = true,
	             .project = "opencode.json" },
	  .path = { "mcp", SETUP_SERVER },
	  .skills = ".config/opencode/skills" },
	{ .name = "cursor",
	  .program = "cursor",
	  .place = { NULL, ".cursor", "mcp.json", .project = ".cursor/mcp.json" },
	  .path = { "mcpServers", SETUP_SERVER },
	  .skills = ".cursor/skills" },
	{ .name = "gemini-cli",
	  .program = "gemini",
	  .place = { NULL, ".gemini", "settings.json", .project = ".gemini/settings.json" },
	  .path = { "mcpServers", SETUP_SERVER },
	  .skills = ".gemini/skills" },
	{ .name = "vscode",
	  .program = "code",
	  .form = SETUP_FORM_STDIO,
	  .place = { "XDG_CONFIG_HOME", ".config", "Code/User/mcp.json",
	             .project = ".vscode/mcp.json" },
	  .path = { "servers", SETUP_SERVER },
	  .skills = ".copilot/skills" },
	{ .name = "goose",
	  .program = "goose",
	  .form = SETUP_FORM_CMD,
	  .place = { "XDG_CONFIG_HOME", ".config", "goose/config.yaml", .yaml = true },
	  .path = { "extensions", SETUP_SERVER },
	  .skills = ".config/goose/skills" },
};

const struct setup_client *setup_client_find(const char *name)
{
	for (size_t i = 0; name != NULL && i < ARRAY_LEN(CLIENTS); i++) {
		if (strcmp(CLIENTS[i].name, name) == 0 || strcmp(CLIENTS[i].program, name) == 0) {
			return &CLIENTS[i];
		}
	}
	return NULL;
}

void setup_client_names(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(CLIENTS); i++) {
		buf_addf(out, "%s%s", i > 0 ? ", " : "", CLIENTS[i].name);
	}
}

const struct setup_client *setup_client_at(size_t i)
{
	return i < ARRAY_LEN(CLIENTS) ? &CLIENTS[i] : NULL;
}

bool setup_client_has(const struct setup_client *c, enum setup_step step)
{
	return c->commands[step][0] != NULL;
}

char *setup_client_program(const struct setup_client *c)
{
	const char *dirs = getenv("PATH");

	while (dirs != NULL && *dirs != '\0') {
		size_t n = strcspn(dirs, ":");
		auto_free char *dir = strndup(dirs, n);
		auto_free char *file = dir != NULL ? path_join(dir, c->program) : NULL;
		struct stat st;
		if (file != NULL && file[0] == '/' && stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(file, X_OK) == 0) {
			return steal_ptr(&file);
		}
		dirs += n + (dirs[n] == ':');
	}
	return NULL;
}

static int add_word(struct string_list *l, const char *word)
{
	return string_list_add(l, word, SETUP_MAX_WORDS);
}

static int add_json(const struct string_list *server, struct string_list *ret)
{
	auto_buf text = BUF(MAX_CONFIG_BYTES);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	json_kstr(&j, "command", server->v[0]);
	json_kstrs(&j, "args", server->v + 1, server->n - 1);
	json_close(&j, '}');
	return text.failed ? -1 : add_word(ret, text.data);
}

int setup_client_command(const struct setup_client *c, enum setup_step step, bool project,
                         const struct string_list *server, struct string_list *ret,
                         struct ssb_error *err)
{
	int rc = add_word(ret, c->program);

	for (const char *const *word = c->commands[step]; rc == 0 && *word != NULL; word++) {
		rc = add_word(ret, *word == SCOPE && project ? "project" : *word);
	}
	if (rc == 0 && step == SETUP_ADD && c->adds_json) {
		rc = add_json(server, ret);
	} else if (step == SETUP_ADD) {
		for (size_t i = 0; rc == 0 && i < server->n; i++) {
			rc = add_word(ret, server->v[i]);
		}
	}
	return rc == 0 ? 0 : ssb_fail(err, SSB_E_NOMEM, errno, "", "cannot make the command");
}

/* Starts the program. `out` becomes its standard output; -1: it gets that of this program.
 * Returns 0 or an errno. */
static int start_program(const char *program, char *const argv[], bool project, int out,
                         pid_t *ret_pid)
{
	posix_spawn_file_actions_t todo;
	int rc = posix_spawn_file_actions_init(&todo);

	if (rc != 0) {
		return rc;
	}
	rc = posix_spawn_file_actions_addopen(&todo, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (rc == 0 && out >= 0) {
		rc = posix_spawn_file_actions_adddup2(&todo, out, STDOUT_FILENO);
	}
	if (rc == 0 && !project) {
		rc = posix_spawn_file_actions_addchdir_np(&todo, "/");
	}
	rc = rc != 0 ? rc : posix_spawn(ret_pid, program, &todo, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&todo);
	return rc;
}

/* Waits for the end of the program, and kills it if it takes too long. */
static int wait_for(pid_t pid, const char *program, int *ret_status, struct ssb_error *err)
{
	auto_fd pidfd = pidfd_open(pid, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	bool late = pidfd >= 0 && TEMP_FAILURE_RETRY(poll(&p, 1, SETUP_SECONDS * 1000)) == 0;

	if (late) {
		(void)kill(pid, SIGKILL);
	}
	if (TEMP_FAILURE_RETRY(waitpid(pid, ret_status, 0)) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, program, "cannot wait for the command");
	}
	return late ? ssb_fail(err, SSB_E_POLICY, 0, program,
	                       "the command did not end within %d s and was killed", SETUP_SECONDS)
	            : 0;
}

int setup_client_run(const char *program, const struct string_list *command, bool project,
                     struct buf *out, struct ssb_error *err)
{
	/* The output goes to a file in memory: a pipe would have to be read while the program
	 * runs. */
	auto_fd file = out != NULL ? memfd_create("output", MFD_CLOEXEC) : -1;
	int status = 0;
	pid_t pid = -1;

	if (out != NULL && file < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "",
		                "cannot make a file for the output of the command");
	}
	int rc = start_program(program, command->v, project, file, &pid);
	if (rc != 0) {
		return ssb_fail(err, SSB_E_SYS, rc, program, "cannot be started");
	}
	if (wait_for(pid, program, &status, err) != 0) {
		return -1;
	}
	if (out != NULL && (lseek(file, 0, SEEK_SET) != 0 || file_read_all(file, out) != 0)) {
		return ssb_fail(err, SSB_E_SYS, errno, program,
		                "the output of the command cannot be read");
	}
	return status == 0 ? 0
	                   : ssb_fail(err, SSB_E_POLICY, 0, program,
	                              "the command '%s %s' ended with %s %d", command->v[1],
	                              command->v[2], WIFEXITED(status) ? "exit status" : "signal",
	                              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}
