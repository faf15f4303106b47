/* config_edit.c - see config_edit.h. */
#include "cli/config_edit.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/line_diff.h"
#include "base/own.h"

#define AROUND 1 /* unchanged lines that are shown before and after a change */

/* Copies `object` with the change; NULL counts as an empty object. The depth of the recursion is
 * the length of `path`. */
static void put_object(struct json *j, const struct json_doc *doc, const struct json_node *object,
                       const char *const path[], const char *value)
{
	const struct json_node *old = json_member(doc, object, path[0]);

	json_open(j, '{');
	JSON_EACH (n, doc, object) {
		if (n != old) {
			json_key(j, n->key);
			json_copy(j, doc, n);
		} else if (path[1] != NULL) {
			json_key(j, n->key);
			put_object(j, doc, n, path + 1, value);
		} else if (value != NULL) {
			json_key(j, n->key);
			json_raw(j, value, strlen(value));
		}
	}
	if (old == NULL && value != NULL) {
		json_key(j, path[0]);
		if (path[1] != NULL) {
			put_object(j, doc, NULL, path + 1, value);
		} else {
			json_raw(j, value, strlen(value));
		}
	}
	json_close(j, '}');
}

int config_edit_set(const struct json_doc *doc, const char *const path[], const char *value,
                    struct buf *out, struct ssb_error *err)
{
	const struct json_node *node = json_top(doc);
	struct json j;

	for (size_t i = 0; node != NULL && path[i] != NULL; i++) {
		if (!json_is(node, JSON_OBJECT)) {
			return ssb_fail(err, SSB_E_POLICY, 0, "",
			                "the value that should contain \"%s\" is not an object; "
			                "change it by hand",
			                path[i]);
		}
		node = json_member(doc, node, path[i]);
	}
	json_init(&j, out, true);
	put_object(&j, doc, json_top(doc), path, value);
	buf_addc(out, '\n');
	return out->failed ? ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory") : 0;
}

static void put_lines(struct buf *out, char sign, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		buf_addc(out, sign);
		buf_add(out, text, len);
		buf_addc(out, '\n');
		text += len + (text[len] == '\n');
	}
}

void config_edit_diff(const char *before, const char *after, struct buf *out)
{
	AUTO(line_edits_done) struct line_edits e = { 0 };

	if (line_diff(before, strlen(before), after, strlen(after), AROUND, &e) != 0) {
		put_lines(out, '-', before);
		put_lines(out, '+', after);
	}
	for (size_t i = 0; i < e.n; i++) {
		if (e.v[i].op != '@') {
			buf_addc(out, e.v[i].op);
			buf_add(out, e.v[i].text, e.v[i].len);
			buf_addc(out, '\n');
		} else if (i > 0) {
			buf_adds(out, " ...\n");
		}
	}
}
