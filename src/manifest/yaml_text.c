/* yaml_text.c - checks which characters a file contains.
 *
 * A person must see in an editor what this program reads. So besides the characters that YAML
 * itself forbids, it refuses characters that make the view differ from the bytes: lone carriage
 * returns, rare line separators at which only some parsers break lines, and characters that change
 * the direction of the text. */
#include "manifest/yaml_text.h"

#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"

static const struct {
	uint32_t first, last;
	const char *what;
} REFUSED[] = {
	{ 0x0000, 0x0008, "control character" },
	{ 0x000b, 0x001f, "control character" },
	{ 0x007f, 0x009f, "control character" },
	{ 0x061c, 0x061c, "text-direction character" },
	{ 0x200e, 0x200f, "text-direction character" },
	{ 0x2028, 0x2029, "unusual line break" },
	{ 0x202a, 0x202e, "text-direction character" },
	{ 0x2066, 0x2069, "text-direction character" },
	{ 0xfeff, 0xfeff, "byte order mark inside the text" },
	{ 0xfffe, 0xffff, "code point that is not a character" },
};

const char *yaml_char_problem(uint32_t cp)
{
	for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
		if (cp >= REFUSED[i].first && cp <= REFUSED[i].last) {
			return REFUSED[i].what;
		}
	}
	return NULL;
}

bool yaml_can_hold(const char *text)
{
	for (size_t len = strlen(text); len > 0;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text, len, &cp);
		if (n == 0 || yaml_char_problem(cp) != NULL) {
			return false;
		}
		text += n;
		len -= n;
	}
	return true;
}

bool yaml_bytes_ok(const struct report *rep, const char *bytes, size_t len)
{
	unsigned line = 1;
	unsigned col = 1;
	unsigned found = 0;

	for (size_t i = 0; i < len && found < MAX_DIAGS; col++) {
		uint32_t cp = 0;
		size_t n = utf8_decode(bytes + i, len - i, &cp);
		const char *problem = n > 0 ? yaml_char_problem(cp) : NULL;

		if (n == 0) {
			found++;
			report_add(rep, SSB_ERROR, line, col, "save the file as UTF-8",
			           "invalid UTF-8: byte 0x%02x", (unsigned char)bytes[i]);
			n = 1;
		} else if (cp == '\r' && i + 1 < len && bytes[i + 1] == '\n') {
			problem = NULL;
		} else if (problem != NULL) {
			found++;
			report_add(rep, SSB_ERROR, line, col, "remove it", "%s U+%04X", problem,
			           cp);
		}
		i += n;
		if (cp == '\n') {
			line++;
			col = 0;
		}
	}
	return found == 0;
}
