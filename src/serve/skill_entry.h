/* skill_entry.h - a skill as MCP's skills extension has it: a directory of files with a
 * SKILL.md, at an address that ends in the name that SKILL.md gives it.
 *
 *   skill://NAME/SKILL.md         the directory is called as the skill calls itself
 *   skill://NAME/OWN/SKILL.md     it is not
 *
 * NAME is ours (skills.h) and decides; OWN is the skill's word, and cannot take the
 * place of another skill's NAME. A skill without SKILL.md gets one that is made from its
 * manifest: it says how to run it. */
#ifndef SERVE_SKILL_ENTRY_H
#define SERVE_SKILL_ENTRY_H

#include "base/json.h"
#include "serve/frontmatter.h"
#include "serve/serve.h"
#include "serve/served_files.h"
#include "serve/skills.h"

struct skill_entry {
	const struct skill *skill; /* borrowed until skills are looked at anew */
	char *path;                /* of its address, encoded: "weather", "tools/weather" */
	struct frontmatter front;
	char *made; /* its SKILL.md, where it has none; NULL: it has one */
};

/* -1 with the reason (static): it cannot be served as files. `ret` is done with
 * skill_entry_done() in any case; `all` are those that are served. */
int skill_entry_read(struct skill_entry *ret, const struct skill *skill, const struct skill *all,
                     size_t n_all, const char **ret_why);
void skill_entry_done(struct skill_entry *e);

/* Which skill an address (what follows skill://) is of; *ret_rest is new: the path in it,
 * decoded, "" for its directory. -1: none, with the reason. */
int skill_entry_find(struct serve *s, const char *address, struct skill_entry *ret, char **ret_rest,
                     const char **ret_why);

/* Writes {"uri":..,"frontmatter":..,"resources":[..]}. -1: it cannot be served, and nothing is
 * written. *ret_bytes is the size of the files that were read, in both cases. */
int skill_entry_json(const struct serve *s, const struct skill_entry *e, struct json *j,
                     uint64_t *ret_bytes, struct ssb_error *err);
/* The address of a file of it, or of its directory (""). */
void skill_entry_uri(struct buf *out, const struct skill_entry *e, const char *path);

/* The content of a file; -1: there is none. */
int skill_entry_content(const struct skill_entry *e, const char *path, struct buf *out);

/* What its skillsandbox.yaml says, or the manifest that it amounts to; -1: there is
 * neither. */
int skill_manifest_text(const struct skill *skill, struct buf *out);

/* By the end of its name; NULL: unknown. */
const char *skill_mime(const char *path);

#endif
