#include "report/remedy.h"

#include <inttypes.h>
#include <string.h>

#include "base/own.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "report/render.h"

static const char REQUEST[] = "the skill must send another request";
static const char NO_EXPECT[] = "the skill must send without Expect (curl -H 'Expect:')";
static const char PRIVATE[] = "--allow-private RANGE, or allow_private in the policy file";

/* `remedy` where it does not depend on what was tried. */
static const struct {
	const char *code;
	const char *text;
	const char *remedy;
} REASONS[] = {
	{ "outside_plan", "neither the manifest nor the owner grants this place", NULL },
	{ "credential_store", "credentials are kept there; only the owner can grant it", NULL },
	{ "other_home", "this is somebody's home; only the owner can grant it", NULL },
	{ "read_only", "granted for reading only", NULL },
	{ "other_process", "what another process keeps in memory is not for a skill", NULL },
	{ "machine", "the machine's memory, disks and switches are not for a skill", NULL },
	{ "protected", "the host would execute or obey it; only the owner can grant it by name",
	  NULL },
	{ "special_file", "a FIFO or socket is not left behind in a directory of the host", NULL },
	{ "runtime_files", "the runtime's own records, keys and settings are not for a skill",
	  NULL },
	{ "unreadable", "the observer could not read what was asked for, so it was refused", NULL },
	{ "host_service", "a service that would do on the host what the skill cannot", NULL },
	{ "not_declared", "no rule declares this name", NULL },
	{ "undeclared_address", "no rule leads to this address", NULL },
	{ "undeclared_port", "the host is declared, this port is not", NULL },
	{ "guarded", "the name leads to a private address, to this machine or to a neighbour",
	  PRIVATE },
	{ "profile", "the profile of system calls does not have it", NULL },
	{ "no_network", "the profile has no sockets", NULL },
	{ "attack", "a system call that only an attack needs: the process was ended", NULL },
	{ "no_sni", "the connection does not say which host it wants", REQUEST },
	{ "other_sni", "the connection asks for another host than the declared one", NULL },
	{ "bad_sni", "the name that the connection asks for is malformed", REQUEST },
	{ "ech", "the connection hides which host it wants", REQUEST },
	{ "not_tls", "the connection does not begin as TLS", "protocol: tcp in the manifest" },
	{ "bad_hello", "the beginning of TLS is malformed", REQUEST },
	{ "not_http", "the connection does not begin as HTTP", "protocol: tcp in the manifest" },
	{ "no_host", "the request does not say which host it wants", REQUEST },
	{ "other_host", "the request asks for another host than the declared one", NULL },
	{ "other_port", "the request asks for another port than the declared one", NULL },
	{ "bad_host", "the host that the request asks for is malformed", REQUEST },
	{ "two_hosts", "the request asks for two hosts", REQUEST },
	{ "connect", "the request asks for a tunnel", "protocol: tcp in the manifest" },
	{ "bad_header", "a header of the request is malformed", REQUEST },
	{ "folded", "a header of the request goes on in a second line", REQUEST },
	{ "bad_chunk", "the body of the request is malformed", REQUEST },
	{ "too_long", "the head of the request is longer than 32 KiB", REQUEST },
	{ "version", "the request is not HTTP/1.0 or HTTP/1.1", "protocol: tcp in the manifest" },
	{ "h2", "HTTP/2 without TLS is not carried", "protocol: tcp in the manifest" },
	{ "late_upgrade",
	  "an upgrade was asked for, and not in the first request of its connection", REQUEST },
	{ "malformed", "the question for a name is malformed", REQUEST },
	{ "not_supported", "the question is not one for the address of a name", NULL },
	{ "smuggling", "the request could be read in two ways", REQUEST },
	{ "expect", "the request expects what no server is asked for here", NO_EXPECT },
	{ "late_expect", "a body was announced, and not in the first request of its connection",
	  NO_EXPECT },
	{ "no_continue", "a body was announced, and the server did not say that it wants it",
	  NO_EXPECT },
	{ "too_many_connections", "more connections at once than are allowed",
	  "max_connections in the manifest" },
	{ "canary", "it carried what was planted as a decoy", NULL },
	{ "too_many_names", "more names beneath one wildcard than a run may use", NULL },
	{ "byte_limit", "more bytes than are allowed",
	  "max_bytes_out or max_bytes_in in the manifest" },
};

const char *remedy_reason(const char *code)
{
	for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) {
		if (strcmp(REASONS[i].code, code) == 0) {
			return REASONS[i].text;
		}
	}
	return NULL;
}

static const char *fixed_remedy(const char *code)
{
	for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) {
		if (strcmp(REASONS[i].code, code) == 0) {
			return REASONS[i].remedy;
		}
	}
	return NULL;
}

/* A word for a shell, of which nothing is hidden. */
static void put_word(struct buf *out, const char *word, size_t len)
{
	auto_buf shown;

	buf_init(&shown, RENDER_MAX);
	visible_bytes(&shown, word, len, false);
	shell_quote(out, shown.failed || shown.data == NULL ? "" : shown.data);
}

/* "--read /a path": the rest behind the flag is one word. */
static void put_given(struct buf *out, const struct json_node *given)
{
	const char *space = memchr(given->str, ' ', given->len);

	if (strncmp(given->str, "--", 2) != 0 || space == NULL) {
		visible_bytes(out, given->str, given->len, false);
		return;
	}
	size_t flag = (size_t)(space - given->str);
	visible_bytes(out, given->str, flag + 1, false);
	put_word(out, space + 1, given->len - flag - 1);
}

static void put_network(struct buf *out, const struct json_node *to, int64_t port)
{
	auto_buf host;

	buf_init(&host, RENDER_MAX);
	buf_add(&host, to->str, to->len);
	if (port > 0 && port != 53) {
		buf_addf(&host, ":%" PRId64, port);
	}
	buf_adds(out, "--net ");
	put_word(out, host.data != NULL ? host.data : "", host.len);
	buf_adds(out, ", or the domain under permissions.network.egress in the manifest");
}

static void put_file(struct buf *out, const struct line *l, const struct json_node *path)
{
	const char *mode = line_text(l, "mode");
	const char *op = line_text(l, "op");
	bool read = mode != NULL ? strcmp(mode, "read") == 0
	                         : op == NULL || strcmp(op, "open") == 0 || strcmp(op, "exec") == 0;

	buf_adds(out, read ? "--read " : "--write ");
	put_word(out, path->str, path->len);
	buf_addf(out, ", or the path under permissions.filesystem.%s in the manifest",
	         read ? "read" : "write");
}

void remedy_text(struct buf *out, const struct line *l)
{
	const struct json_node *given = line_get(l, "remedy");
	const struct json_node *path = line_get(l, "path");
	const struct json_node *host = line_get(l, "name");
	const char *reason = line_text(l, "reason");
	const char *fixed = reason != NULL ? fixed_remedy(reason) : NULL;
	bool network = reason != NULL && (strcmp(reason, "not_declared") == 0 ||
	                                  strcmp(reason, "undeclared_port") == 0);

	if (json_is(given, JSON_STRING) && given->len > 0) {
		put_given(out, given);
	} else if (fixed != NULL) {
		buf_adds(out, fixed);
	} else if (network && json_is(host, JSON_STRING) && host->len > 0) {
		put_network(out, host, json_integer(line_get(l, "port"), 0));
	} else if (json_is(path, JSON_STRING) && reason != NULL &&
	           strcmp(reason, "outside_plan") == 0) {
		put_file(out, l, path);
	}
}
