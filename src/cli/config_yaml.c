/* config_yaml.c - see config_yaml.h.
 *
 * The text is edited by lines: a parser says at which line and column the mapping and its members
 * begin. The lines of a member are those below its name that are indented more than the name. */
#include "cli/config_yaml.h"

#include <string.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/own.h"
#include "manifest/yaml_doc.h"

#define NEW_INDENT 2 /* spaces before a member, if the mapping has none yet */

static struct ynode *parse_yaml(const char *text, size_t len, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(ynode_freep)
	struct ynode *root = diags != NULL ? yaml_doc_parse("", text, len, diags) : NULL;
	const struct ssb_diag *first =
	        diags != NULL && ssb_diags_count(diags) > 0 ? ssb_diags_get(diags, 0) : NULL;

	if (root == NULL || first != NULL) {
		ssb_fail(err, SSB_E_POLICY, 0, "",
		         "it cannot be parsed (%s: %s); change it by hand",
		         first != NULL ? first->where : "", first != NULL ? first->text : "");
		return NULL;
	}
	return steal_ptr(&root);
}

/* The depth of the recursion is that of the document, which the parser bounds. */
static void put_node(struct json *j, const struct ynode *n)
{
	if (n->kind == YNODE_SCALAR) {
		if (ynode_is_null(n)) {
			json_null(j);
		} else if (ynode_is_bool(n)) { /* yes, true and on, in any case */
			char first = n->text[0], second = n->text[1];
			json_bool(j, first == 'y' || first == 'Y' || first == 't' || first == 'T' ||
			                     second == 'n' || second == 'N');
		} else {
			json_str(j, n->text);
		}
		return;
	}
	bool map = n->kind == YNODE_MAP;
	json_open(j, map ? '{' : '[');
	for (const struct ynode *child = n->first; child != NULL; child = child->next) {
		if (map) {
			json_key(j, child->key);
		}
		put_node(j, child);
	}
	json_close(j, map ? '}' : ']');
}

int config_yaml_to_json(const char *text, size_t len, struct buf *out, struct ssb_error *err)
{
	AUTO(ynode_freep) struct ynode *root = parse_yaml(text, len, err);
	struct json j = JSON_TO(out, false);

	if (root == NULL) {
		return -1;
	}
	put_node(&j, root);
	return out->failed ? ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory") : 0;
}

/* Returns the text from line `n` on; lines are counted from 1. */
static const char *find_line(const char *text, unsigned n)
{
	for (; n > 1 && *text != '\0'; n--) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

/* Returns the first line that does not belong to the member whose name is at `line`. Empty lines
 * and comments after the member do not belong to it. */
static const char *skip_member(const char *line, unsigned indent)
{
	const char *end = find_line(line, 2);

	for (line = end; *line != '\0'; line = find_line(line, 2)) {
		size_t spaces = strspn(line, " ");
		bool empty = line[spaces] == '\n' || line[spaces] == '\0' || line[spaces] == '#';
		if (!empty && spaces <= indent) {
			break;
		}
		end = empty ? end : find_line(line, 2);
	}
	return end;
}

/* Writes the member: each member of the object `value` is one line. */
static int put_member(struct buf *out, unsigned indent, const char *name, const char *value,
                      struct ssb_error *err)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	const char *why = NULL;

	if (json_read_del(&doc, value, strlen(value), &why) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "the new entry: %s", why);
	}
	buf_addf(out, "%*s%s:\n", (int)indent, "", name);
	JSON_EACH (n, &doc, json_top(&doc)) {
		struct json j = JSON_TO(out, false);
		buf_addf(out, "%*s%s: ", (int)indent + NEW_INDENT, "", n->key);
		json_copy(&j, &doc, n);
		buf_addc(out, '\n');
	}
	return 0;
}

/* The place of the change: the member's lines, which are replaced. */
struct yaml_place {
	const char *from;
	const char *to;
	unsigned indent;
	bool new_mapping; /* the mapping itself is missing */
};

static int find_change(struct ynode *root, const char *text, const char *const names[],
                       struct yaml_place *ret, struct ssb_error *err)
{
	const struct ynode *map = ynode_get(root, names[0]);
	const struct ynode *old = ynode_get((struct ynode *)map, names[1]);
	const char *end = text + strlen(text);

	if (root->kind != YNODE_MAP && !ynode_is_null(root)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "", "it is not a mapping; change it by hand");
	}
	if (map == NULL) {
		*ret = (struct yaml_place){ end, end, NEW_INDENT, true };
		return 0;
	}
	bool empty = map->kind == YNODE_SCALAR && ynode_is_null(map) && map->text[0] == '\0';
	if (!empty && (map->first == NULL || map->first->key == NULL ||
	               map->first->key_line == map->key_line)) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, "",
		        "'%s' is not written with one member on each line; change it by hand",
		        names[0]);
	}
	unsigned indent = empty ? NEW_INDENT : map->first->key_col - 1;
	unsigned line = old != NULL ? old->key_line : map->key_line + 1;
	const char *from = find_line(text, line);
	*ret = (struct yaml_place){ from, old != NULL ? skip_member(from, indent) : from, indent,
		                    false };
	return 0;
}

/* Refuses a result that is not the requested change: the lines of a member may have a form that
 * skip_member() does not know, such as braces. */
static int check_result(const struct buf *out, const char *const names[], bool wanted,
                        struct ssb_error *err)
{
	AUTO(ynode_freep)
	struct ynode *root = parse_yaml(out->len > 0 ? out->data : "", out->len, err);

	if (root == NULL) {
		return -1;
	}
	const struct ynode *map = ynode_get(root, names[0]);
	bool there = map != NULL && ynode_get((struct ynode *)map, names[1]) != NULL;
	return there == wanted ? 0
	                       : ssb_fail(err, SSB_E_POLICY, 0, "",
	                                  "'%s' is not understood; change it by hand", names[0]);
}

int config_yaml_set(const struct buf *text, const char *const names[], const char *value,
                    struct buf *out, struct ssb_error *err)
{
	const char *bytes = text->len > 0 ? text->data : "";
	AUTO(ynode_freep) struct ynode *root = parse_yaml(bytes, text->len, err);
	struct yaml_place at = { 0 };

	if (root == NULL || find_change(root, bytes, names, &at, err) != 0) {
		return -1;
	}
	buf_add(out, bytes, (size_t)(at.from - bytes));
	if (at.from > bytes && at.from[-1] != '\n') {
		buf_addc(out, '\n');
	}
	if (at.new_mapping && value != NULL) {
		buf_addf(out, "%s:\n", names[0]);
	}
	if (value != NULL && put_member(out, at.indent, names[1], value, err) != 0) {
		return -1;
	}
	buf_adds(out, at.to);
	return out->failed ? ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory")
	                   : check_result(out, names, value != NULL, err);
}
