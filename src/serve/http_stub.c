#include "base/error.h"
#include "mcp/transport.h"
int mcp_http_new(struct mcp_server *s, struct loop *loop, const struct mcp_http_options *o,
                 struct mcp_http **ret, struct ssb_error *err)
{
	(void)s, (void)loop, (void)o, (void)ret;
	return ssb_fail(err, SSB_E_USAGE, 0, "--http", "not there yet");
}
void mcp_http_free(struct mcp_http *h)
{
	(void)h;
}
const char *mcp_http_url(const struct mcp_http *h)
{
	(void)h;
	return "";
}
