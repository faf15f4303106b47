/* yaml_text.h - which characters a file may contain. */
#ifndef MANIFEST_YAML_TEXT_H
#define MANIFEST_YAML_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "manifest/report.h"

/* Returns what is wrong with a character, as a static text; NULL if it is allowed. Tab and line
 * feed are allowed here; a carriage return is not. */
const char *yaml_char_problem(uint32_t cp);

/* True for valid UTF-8 that contains only allowed characters. */
bool yaml_can_hold(const char *text);

/* Checks the raw bytes of a file and reports each bad place. Returns true if there is none. */
bool yaml_bytes_ok(const struct report *rep, const char *bytes, size_t len);

#endif
