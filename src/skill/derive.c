/* derive.c - writes the text of a derived manifest. */
#include "skill/derive.h"

#include <assert.h>

#include "manifest/write.h"

static void put_skill(struct buf *out, const struct derived *d)
{
	const struct says *s = d->says;

	buf_adds(out, "skill:\n  name: ");
	manifest_put_text(out, s->name != NULL ? s->name : d->name);
	if (s->name == NULL) {
		buf_adds(out, " # the name of the directory, because the skill gives none");
	}
	buf_adds(out, "\n  version: ");
	manifest_put_text(out, s->version != NULL ? s->version : DERIVED_NO_VERSION);
	if (s->version == NULL) {
		buf_adds(out, " # the skill gives no version");
	}
	buf_adds(out, "\n  description: ");
	manifest_put_text(out, s->description != NULL ? s->description : "");
	buf_adds(out, "\n\n");
}

static void put_permissions(struct buf *out, const struct derived *d)
{
	const struct wish_list *env = &d->says->wishes[WISH_ENV];

	buf_adds(out, "# No network, and no files except its own directory: a skill without\n"
	              "# a manifest gets nothing else.\n");
	if (env->n == 0) {
		buf_adds(out, "permissions: {}\n\n");
		return;
	}
	buf_adds(out, "permissions:\n  env_vars:\n    # The skill asks for these variables; they "
	              "are withheld until the owner grants them.\n    allow:\n");
	for (size_t i = 0; i < env->n; i++) {
		buf_adds(out, "      - ");
		manifest_put_text(out, env->v[i].name);
		buf_adds(out, " # ");
		manifest_put_comment(out, d->from);
		buf_addf(out, ":%u, %s\n", env->v[i].line, env->v[i].key);
	}
	buf_addc(out, '\n');
}

static void put_entry(struct buf *out, const struct derived *d)
{
	if (d->argv == NULL) {
		buf_adds(out, WRITE_NO_ENTRY);
		return;
	}
	buf_adds(out, "entrypoint:\n  command: ");
	manifest_put_text(out, d->argv[0]);
	buf_adds(out, "\n  args: [");
	for (size_t i = 1; d->argv[i] != NULL; i++) {
		buf_adds(out, i > 1 ? ", " : "");
		manifest_put_text(out, d->argv[i]);
	}
	buf_adds(out, "]\n");
}

void derive_manifest(struct buf *out, const struct derived *d)
{
	assert(d->from != NULL && d->name != NULL && d->says != NULL);
	buf_adds(out, "# Derived from ");
	manifest_put_comment(out, d->from); /* this may be a script's name, with any bytes */
	buf_adds(out, ".\n");
	put_skill(out, d);
	put_permissions(out, d);
	put_entry(out, d);
}
