/* lock_json.h - an approval as text, and back. Pure.
 *
 *   { "version": 1,
 *     "skill": "/home/me/skills/weather", "name": "weather", "format": "SKILL.md",
 *     "at": RFC 3339, "by": "me on terminal",
 *     "expires": RFC 3339 or null, "uses": runs that are left or null: any number,
 *     "manifest": "sha256:HEX", "asked": [...], "declined": [...],
 *     "grants": [{"option": "read", "value": "~/.ssh"}],
 *     "allowed": [{"option": "net", "value": "api.example.com", "at": RFC 3339, "reason": "..."}],
 *     "snapshot": true, "tree": "sha256:HEX",
 *     "files": [{"path": "a", "sha256": "sha256:HEX", "size": 7, "mode": "0644"},
 *               {"path": "b", "link": "a"}, {"path": "empty", "dir": true}] }
 *
 * Every member but "allowed" must be present and no other, and `tree` must be the digest of
 * `files`. Any other text is not an approval. */
#ifndef CONSENT_LOCK_JSON_H
#define CONSENT_LOCK_JSON_H

#include "base/buf.h"
#include "base/json.h"
#include "consent/lock.h"

/* These append members to an open object. lock_json_skill() writes which skill it is;
 * lock_json_terms() who approved it, when, and for how long; lock_json_given() what it asks
 * for, and what it was given; lock_json_allowed() what the owner added. */
void lock_json_skill(struct json *j, const struct lock *l);
void lock_json_terms(struct json *j, const struct lock *l);
void lock_json_given(struct json *j, const struct lock *l);
void lock_json_allowed(struct json *j, const struct lock *l);
/* Writes the whole approval. */
void lock_write(struct buf *out, const struct lock *l);
/* Reads an approval. Returns NULL, or what is wrong with the text; then *ret is untouched. */
const char *lock_parse(const char *text, size_t len, struct lock *ret);

#endif
