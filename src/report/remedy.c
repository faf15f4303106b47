/* remedy.c - writes the change that would allow a denied attempt. */
#include "report/remedy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "report/limit_text.h"
#include "report/render.h"

/* Appends a word, quoted for a shell, with hidden characters made visible. */
static void put_word(struct buf *out, const char *word, size_t len)
{
	auto_buf shown = BUF(RENDER_MAX);

	visible_bytes(&shown, word, len, false);
	shell_quote(out, shown.failed || shown.data == NULL ? "" : shown.data);
}

/* Returns what a remedy that the record contains grants. Only its first words matter. */
static enum remedy_grant grant_of(const char *given)
{
	static const struct {
		const char *before;
		enum remedy_grant grants;
	} FLAGS[] = {
		{ "--write ", REMEDY_GRANTS_WRITE },
		{ "--net ", REMEDY_GRANTS_NET },
		{ "both --net ", REMEDY_GRANTS_NET }, /* "both --net HOST and --allow-private" */
	};

	for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
		if (strncmp(given, FLAGS[i].before, strlen(FLAGS[i].before)) == 0) {
			return FLAGS[i].grants;
		}
	}
	return REMEDY_GRANTS_OTHER;
}

/* Writes a remedy that the record contains, quoted for a shell. In a remedy such as "--read /a
 * path", everything after the flag is one word. */
static enum remedy_grant put_given(struct buf *out, const struct json_node *given)
{
	static const char both[] = "both ", and[] = " and --";
	static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                            "0123456789.:-/[]' ";
	enum remedy_grant grants = grant_of(given->str);
	const char *second = given->len > sizeof(both) ? strstr(given->str, and) : NULL;
	/* "both --net HOST and --allow-private ADDRESS": no value in it needs quotes. Anything else
	 * is not ours, and must not look like something to copy. */
	if (second != NULL && strncmp(given->str, both, sizeof(both) - 1) == 0 &&
	    strspn(given->str, PLAIN) == given->len) {
		const char *first = given->str + sizeof(both) - 1;
		visible_bytes(out, first, (size_t)(second - first), false);
		buf_addc(out, ' ');
		second += sizeof(" and ") - 1;
		visible_bytes(out, second, given->len - (size_t)(second - given->str), false);
		return grants;
	}
	const char *space = memchr(given->str, ' ', given->len);

	if (strncmp(given->str, "--", 2) != 0 || space == NULL) {
		visible_bytes(out, given->str, given->len, false);
		return grants;
	}
	size_t flag = (size_t)(space - given->str);
	visible_bytes(out, given->str, flag + 1, false);
	put_word(out, space + 1, given->len - flag - 1);
	return grants;
}

static enum remedy_grant put_network(struct buf *out, const struct json_node *to, int64_t port)
{
	auto_buf host = BUF(RENDER_MAX);

	buf_add(&host, to->str, to->len);
	if (port > 0 && port != 53) {
		buf_addf(&host, ":%" PRId64, port);
	}
	buf_adds(out, "--net ");
	put_word(out, host.data != NULL ? host.data : "", host.len);
	buf_adds(out, ", or the domain under permissions.network.egress in the manifest");
	return REMEDY_GRANTS_NET;
}

static bool is_read(const struct line *l)
{
	enum mode mode = line_get_mode(l);
	enum op op = line_get_op(l);

	return mode != MODE_NONE ? mode == MODE_READ
	                         : op == OP_NONE || op == OP_OPEN || op == OP_EXEC;
}

static enum remedy_grant put_file(struct buf *out, const struct line *l,
                                  const struct json_node *path)
{
	bool read = is_read(l);

	buf_adds(out, read ? "--read " : "--write ");
	put_word(out, path->str, path->len);
	buf_addf(out, ", or the path under permissions.filesystem.%s in the manifest",
	         read ? "read" : "write");
	return read ? REMEDY_GRANTS_OTHER : REMEDY_GRANTS_WRITE;
}

enum remedy_grant remedy_text(struct buf *out, const struct line *l, bool bare)
{
	const struct json_node *given = line_get(l, "remedy");
	const struct json_node *path = line_get(l, "path");
	const struct json_node *host = line_get(l, "name");
	const struct json_node *address = line_get(l, "address");
	enum reason reason = line_get_reason(l);
	enum reason_remedy kind = reason_remedy(reason);

	if (json_is(given, JSON_STRING) && given->len > 0) {
		enum remedy_grant grants = put_given(out, given);
		bool dir = reason == REASON_GRANTED_ALONE && grants == REMEDY_GRANTS_WRITE;
		buf_adds(out, dir ? ", in place of the grant of the file" : "");
		return grants;
	}
	if (limit_text_known(l)) {
		limit_text_remedy(out, l, bare);
		return REMEDY_GRANTS_OTHER;
	}
	if (kind == REMEDY_NETWORK && json_is(host, JSON_STRING) && host->len > 0) {
		return put_network(out, host, json_integer(line_get(l, "port"), 0));
	}
	if (kind == REMEDY_PATH && json_is(path, JSON_STRING)) {
		return put_file(out, l, path);
	}
	if (reason == REASON_GUARDED && json_is(address, JSON_STRING) && address->len > 0) {
		buf_adds(out, "--allow-private ");
		put_word(out, address->str, address->len);
		return REMEDY_GRANTS_OTHER;
	}
	if (kind == REMEDY_FIXED) {
		buf_adds(out, reason_fixed_remedy(reason));
	}
	return REMEDY_GRANTS_OTHER;
}

/* Returns what follows the flag in a remedy that the record contains. */
static char *value_given(const struct line *l, const char *given, enum ssb_option *ret_option)
{
	static const struct {
		const char *before;
		enum ssb_option option;
	} KNOWN[] = {
		{ "--read ", SSB_OPT_READ },
		{ "--write ", SSB_OPT_WRITE },
		{ "--net ", SSB_OPT_NET },
	};

	for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
		size_t n = strlen(KNOWN[i].before);
		/* If no host is known, the remedy has a placeholder instead: "--net HOST". */
		bool whole = KNOWN[i].option != SSB_OPT_NET || line_get(l, "name") != NULL ||
		             line_get(l, "address") != NULL;
		if (strncmp(given, KNOWN[i].before, n) == 0 && whole) {
			*ret_option = KNOWN[i].option;
			return strdup(given + n);
		}
	}
	return NULL;
}

char *remedy_value(const struct line *l, enum ssb_option *ret_option)
{
	const char *given = line_text(l, "remedy");
	const char *path = line_text(l, "path");
	const char *host = line_text(l, "name");
	int64_t port = json_integer(line_get(l, "port"), 0);
	enum reason_remedy kind = reason_remedy(line_get_reason(l));
	char *value = NULL;

	if (line_get_reason(l) == REASON_GRANTED_ALONE) {
		return NULL; /* the directory would be granted beside the file, which changes
		                nothing */
	}
	if (given != NULL && given[0] != '\0') {
		return value_given(l, given, ret_option);
	}
	if (limit_text_known(l)) {
		return NULL;
	}
	if (kind == REMEDY_PATH && path != NULL) {
		*ret_option = is_read(l) ? SSB_OPT_READ : SSB_OPT_WRITE;
		return strdup(path);
	}
	if (kind != REMEDY_NETWORK || host == NULL || host[0] == '\0') {
		return NULL;
	}
	*ret_option = SSB_OPT_NET;
	return port > 0 && port != 53
	               ? (asprintf(&value, "%s:%" PRId64, host, port) < 0 ? NULL : value)
	               : strdup(host);
}
