/* skill_entry.h - describes a skill as MCP's skills extension does: a directory of files with a
 * SKILL.md, at an address that ends with the name from that SKILL.md.
 *
 *   skill://NAME/SKILL.md         the skill's own name is that of its directory
 *   skill://NAME/OWN/SKILL.md     it is a different one
 *
 * NAME is chosen by us (skills.h) and decides which skill it is. OWN is chosen by the skill and
 * cannot replace another skill's NAME. For a skill without SKILL.md one is made from its manifest,
 * which says how to run it. */
#ifndef SERVE_SKILL_ENTRY_H
#define SERVE_SKILL_ENTRY_H

#include "base/json.h"
#include "serve/frontmatter.h"
#include "serve/serve.h"
#include "serve/served_files.h"
#include "serve/skills.h"

struct skill_entry {
	const struct skill *skill; /* borrowed until the skills are listed again */
	char *path; /* the path in its address, encoded: "weather", "tools/weather" */
	struct frontmatter front;
	char *made; /* the SKILL.md that was made for it; NULL: it has its own */
};

/* Makes the entry of a skill; `all` are the skills that are served. -1: it cannot be served as
 * files, and *ret_why has the reason (static). The caller must pass *ret to skill_entry_done() in
 * any case. */
int skill_entry_read(struct skill_entry *ret, const struct skill *skill, const struct skill *all,
                     size_t n_all, const char **ret_why);
void skill_entry_done(struct skill_entry *e);

/* Finds the skill at an address (the part after skill://). *ret_rest is new: the decoded path in
 * the skill, or "" for its directory. Returns -1 if there is no such skill; *ret_why then has the
 * reason. */
int skill_entry_find(struct serve *s, const char *address, struct skill_entry *ret, char **ret_rest,
                     const char **ret_why);

/* Writes {"uri":..,"frontmatter":..,"resources":[..]}. Returns -1 if the skill cannot be served;
 * then nothing was written. *ret_bytes is the size of the files that were read, in both cases. */
int skill_entry_json(const struct serve *s, const struct skill_entry *e, struct json *j,
                     uint64_t *ret_bytes, struct ssb_error *err);
/* Writes the address of one of the skill's files, or of its directory (""). */
void skill_entry_uri(struct buf *out, const struct skill_entry *e, const char *path);

/* Appends the content of a file. Returns -1 if there is no such file. */
int skill_entry_content(const struct skill_entry *e, const char *path, struct buf *out);

/* Appends the text of the skill's skillsandbox.yaml, or of the manifest that is derived for it.
 * Returns -1 if there is neither. */
int skill_manifest_text(const struct skill *skill, struct buf *out);

/* Returns the media type for the ending of the name, or NULL if it is unknown. */
const char *skill_mime(const char *path);

#endif
