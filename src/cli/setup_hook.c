/* setup_hook.c - see setup_hook.h.
 *
 * The settings have {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
 * "command": "/usr/bin/skillsandbox hook claude-code", "timeout": 20}]}]}}. Only an element of the
 * array that has our command and no other is ever removed. */
#include "cli/setup_hook.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/say.h"

#define EVENT        "PreToolUse"
#define OUR_WORDS    " hook claude-code"
#define HOOK_SECONDS 20

static const char *const PLACE[] = { "hooks", EVENT, NULL };

/* Returns true if the command runs this program's hook, perhaps of another installation. The path
 * may be in quotes. */
static bool is_ours(const char *command)
{
	static const char ours[] = SETUP_SERVER;
	size_t all = strlen(command);
	size_t n = all - (sizeof(OUR_WORDS) - 1);

	if (all < sizeof(OUR_WORDS) || strcmp(command + n, OUR_WORDS) != 0) {
		return false;
	}
	n -= command[n - 1] == '\'' || command[n - 1] == '"';
	size_t name = sizeof(ours) - 1;
	return n >= name && strncmp(command + n - name, ours, name) == 0 &&
	       (n == name || command[n - name - 1] == '/');
}

/* The hook in the settings. */
struct found {
	const struct json_node *list;    /* the array of PreToolUse; NULL: none */
	const struct json_node *element; /* the element with our command and no other */
	const char *command;             /* our command, in any element; NULL: not there */
};

static void find_hook(const struct json_doc *doc, struct found *ret)
{
	const struct json_node *node = json_top(doc);

	for (size_t i = 0; node != NULL && PLACE[i] != NULL; i++) {
		node = json_member(doc, node, PLACE[i]);
	}
	*ret = (struct found){ .list = node };
	JSON_EACH (element, doc, node) {
		const struct json_node *hooks = json_member(doc, element, "hooks");
		JSON_EACH (hook, doc, hooks) {
			const char *command = json_string(json_member(doc, hook, "command"), "");
			if (is_ours(command)) {
				ret->command = command;
				ret->element = hooks->n == 1 ? element : NULL;
			}
		}
	}
}

static void put_element(struct json *j, const char *command)
{
	json_open(j, '{');
	json_kstr(j, "matcher", "Bash");
	json_kopen(j, "hooks", '[');
	json_open(j, '{');
	json_kstr(j, "type", "command");
	json_kstr(j, "command", command);
	json_kuint(j, "timeout", HOOK_SECONDS);
	json_close(j, '}');
	json_close(j, ']');
	json_close(j, '}');
}

/* Makes the array without our element, and with a new one if `command` is not NULL. */
static int put_list(struct setup_file *f, const struct found *at, const char *command,
                    struct ssb_error *err)
{
	auto_buf value = BUF(MAX_CONFIG_BYTES);
	struct json j = JSON_TO(&value, false);

	json_open(&j, '[');
	JSON_EACH (element, &f->doc, at->list) {
		if (element != at->element) {
			json_copy(&j, &f->doc, element);
		}
	}
	if (command != NULL) {
		put_element(&j, command);
	}
	json_close(&j, ']');
	return value.failed ? ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory")
	                    : setup_file_set(f, PLACE, value.data, err);
}

int setup_hook_plan(struct setup_file *f, const struct setup_client *c, bool project,
                    const char *program, bool removing, bool *ret_done, struct ssb_error *err)
{
	auto_buf command = BUF(SAY_MAX);
	struct found at;

	say_word(&command, program);
	buf_adds(&command, OUR_WORDS);
	if (command.failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	if (setup_file_read(f, &c->hook, project, err) != 0) {
		return -1;
	}
	find_hook(&f->doc, &at);
	*ret_done = removing ? at.command == NULL
	                     : at.command != NULL && strcmp(at.command, command.data) == 0;
	if (*ret_done) {
		return 0;
	}
	if (at.list != NULL && !json_is(at.list, JSON_ARRAY)) {
		return ssb_fail(err, SSB_E_POLICY, 0, f->path,
		                "\"" EVENT "\" is not an array; change it by hand");
	}
	if (at.command != NULL && at.element == NULL) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, f->path,
		        "the hook '%s' is in one element with another hook; change it by hand",
		        at.command);
	}
	return put_list(f, &at, removing ? NULL : command.data, err);
}
