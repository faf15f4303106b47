/* needs_view.c - see needs_view.h. */
#include "cli/needs_view.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/say.h"

void needs_view_line(struct buf *out, const struct need *n)
{
	buf_adds(out, "  ");
	need_text(out, n);
	visible_addf(out, "  (%s", n->why != NULL ? n->why : "");
	if (n->count > 1) {
		buf_addf(out, ", %" PRIu64 " times", n->count);
	}
	buf_adds(out, ")\n");
	if (n->danger != NULL) {
		visible_addf(out, "      dangerous: %s\n", n->danger);
	}
}

void needs_view_json(struct json *j, const struct need *n)
{
	json_open(j, '{');
	json_kstr(j, "kind", need_kind_name(n->kind));
	json_kstr(j, "value", n->value);
	if (n->kind == NEED_NETWORK && n->port != 0) {
		json_kuint(j, "port", n->port);
		json_kstr(j, "protocol", protocol_name(n->protocol));
	}
	json_kuint(j, "count", n->count);
	json_kbool(j, "was_denied", n->denied);
	json_kstr(j, "where", n->why);
	json_kstr(j, "danger", n->danger);
	json_close(j, '}');
}

int needs_skill(const struct owner *o, const char *path, struct skill_found *ret,
                struct ssb_error *err)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	struct stat st;
	int rc;

	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		rc = manifest_load(path, &found.manifest, diags, err);
		found.file = strdup(path);
	} else {
		rc = skill_find(path, o->config_dir, NULL, &found, diags, err);
	}
	if (rc != 0) {
		if (diags != NULL) {
			say_diags(diags, SSB_ERROR);
		}
		return -1;
	}
	if (found.file == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	*ret = found;
	found = (struct skill_found){ 0 };
	return 0;
}
