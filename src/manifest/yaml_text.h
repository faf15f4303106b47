/* yaml_text.h - which characters a file may contain. */
#ifndef MANIFEST_YAML_TEXT_H
#define MANIFEST_YAML_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "manifest/report.h"

/* What is wrong with a character as a static text, or NULL. Tab and line feed are allowed
 * here; a carriage return is not. */
const char *yaml_char_problem(uint32_t cp);

/* True for UTF-8 without any of those characters. */
bool yaml_can_hold(const char *text);

/* Checks the raw bytes of a file and reports each bad place. */
bool yaml_bytes_ok(const struct report *rep, const char *bytes, size_t len);

#endif
