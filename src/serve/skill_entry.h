/* skill_entry.h - describes a skill in the form of MCP's skills extension: a directory of files
 * with a SKILL.md, whose address ends with the name that is in that SKILL.md.
 *
 *   skill://NAME/SKILL.md         if the name from SKILL.md is the name of the directory
 *   skill://NAME/OWN/SKILL.md     if the name from SKILL.md is another one (OWN)
 *
 * The server chooses NAME (skills.h), and NAME decides which skill is meant. The skill chooses OWN,
 * which cannot replace another skill's NAME. For a skill without SKILL.md the server makes one from
 * the manifest; it says how to run the skill. */
#ifndef SERVE_SKILL_ENTRY_H
#define SERVE_SKILL_ENTRY_H

#include "base/json.h"
#include "serve/frontmatter.h"
#include "serve/serve.h"
#include "serve/served_files.h"
#include "serve/skills.h"

struct skill_entry {
	const struct skill *skill; /* borrowed until the next skills_list() */
	char *path; /* the path in its address, encoded: "weather", "tools/weather" */
	struct frontmatter front;
	char *made; /* SKILL.md that the server made; NULL: the skill has its own */
};

/* Makes the entry of a skill; `all` are the skills that are served. Returns -1 if the skill cannot
 * be served as files; *ret_why then has the reason (static). The caller must pass *ret to
 * skill_entry_done() in both cases. */
int skill_entry_read(struct skill_entry *ret, const struct skill *skill, const struct skill *all,
                     size_t n_all, const char **ret_why);
void skill_entry_done(struct skill_entry *e);

/* Finds the skill at an address (the part after skill://). *ret_rest is new: the decoded path of a
 * file in the skill, or "" for the skill's directory. Returns -1 if there is no such skill;
 * *ret_why then has the reason. */
int skill_entry_find(struct serve *s, const char *address, struct skill_entry *ret, char **ret_rest,
                     const char **ret_why);

/* Writes {"uri":..,"frontmatter":..,"resources":[..]}. Returns -1 if the skill cannot be served;
 * nothing is written then. *ret_bytes is the size of the files that were read, also after a
 * failure. */
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
