/* lint_front.c - the frontmatter of a SKILL.md: whether all who read it read the same. */
#include <string.h>

#include "base/diag.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"
#include "skill/block.h"
#include "skill/loose.h"

void lint_frontmatter(struct lint *l, const char *file, const char *bytes, size_t len)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	unsigned line = 0;
	auto_buf block;

	buf_init(&block, MAX_YAML_BYTES);
	if (strcasecmp(file, "SKILL.md") != 0 || diags == NULL) {
		return;
	}
	int found = block_find(&block, bytes, len, &line);
	if (found < 0) {
		lint_add(l, LINT_FRONTMATTER, file, line,
		         "its frontmatter does not end, or is too large");
	}
	if (found <= 0) {
		return;
	}
	yaml_doc_free(
	        loose_read(file, block.data != NULL ? block.data : "", block.len, line + 1, diags));
	for (size_t i = 0; i < ssb_diags_count(diags); i++) {
		const struct ssb_diag *d = ssb_diags_get(diags, i);
		lint_add(l, LINT_FRONTMATTER, file, lint_line_of(d->where), "%s", d->text);
	}
}
