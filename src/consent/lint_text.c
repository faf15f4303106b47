/* lint_text.c - one file's bytes: what kind it is, pickles, and characters that deceive. */
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "consent/lint_priv.h"

#define LOOK_FOR_NUL 4096 /* other text has none */

static bool has_ending(const char *file, const char *const endings[], size_t n)
{
	const char *base = strrchr(file, '/');
	const char *dot = strrchr(base != NULL ? base : file, '.');

	for (size_t i = 0; dot != NULL && i < n; i++) {
		if (strcasecmp(dot + 1, endings[i]) == 0) {
			return true;
		}
	}
	return false;
}

static enum lint_kind kind_of(const char *file, bool executable, const char *bytes, size_t len)
{
	static const char *const code[] = { "py",  "sh",  "bash", "zsh", "js",  "mjs", "cjs", "ts",
		                            "tsx", "jsx", "rb",   "pl",  "pm",  "php", "ps1", "lua",
		                            "go",  "pyw", "fish", "awk", "tcl", "r",   "mk" };
	static const char *const prose[] = { "md",   "markdown", "txt", "rst",
		                             "adoc", "html",     "htm", "mdx" };

	if (has_ending(file, code, ARRAY_LEN(code)) || (len > 2 && memcmp(bytes, "#!", 2) == 0)) {
		return LINT_CODE;
	}
	if (has_ending(file, prose, ARRAY_LEN(prose))) {
		return LINT_PROSE;
	}
	const char *base = strrchr(file, '/');
	bool bare = strchr(base != NULL ? base + 1 : file, '.') == NULL;
	return executable ? LINT_CODE : bare ? LINT_PROSE : LINT_DATA;
}

/* ---- programs --------------------------------------------------------------------- */

static bool is_native(const char *bytes, size_t len)
{
	static const struct {
		const char *magic;
		size_t len;
	} kinds[] = {
		{ "\x7f"
		  "ELF",
		  4 },
		{ "\xcf\xfa\xed\xfe", 4 }, /* macOS */
		{ "\xca\xfe\xba\xbe", 4 }, /* the same, and Java */
		{ "\0asm", 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (len > kinds[i].len && memcmp(bytes, kinds[i].magic, kinds[i].len) == 0) {
			return true;
		}
	}
	/* "MZ" begins many a text; a Windows program names its header at 0x3c. */
	return len > 0x40 && memcmp(bytes, "MZ", 2) == 0 && memchr(bytes, '\0', 0x40) != NULL;
}

/* ---- pickles ---------------------------------------------------------------------- */

/* As pickles write a name: a length before it, or "c" before and a newline behind. */
static bool is_named(const char *bytes, size_t len, size_t at, size_t n)
{
	const unsigned char *b = (const unsigned char *)bytes;

	if (at > 0 && b[at - 1] == n) {
		return true;
	}
	if (at >= 4 && b[at - 4] == n && b[at - 3] == 0 && b[at - 2] == 0 && b[at - 1] == 0) {
		return true;
	}
	return at > 0 && at + n < len && b[at - 1] == 'c' && b[at + n] == '\n';
}

static bool names_module(const char *bytes, size_t len, const char *module)
{
	size_t n = strlen(module);

	for (size_t at = 0; at + n <= len;) {
		const char *hit = memmem(bytes + at, len - at, module, n);
		if (hit == NULL) {
			return false;
		}
		if (is_named(bytes, len, (size_t)(hit - bytes), n)) {
			return true;
		}
		at = (size_t)(hit - bytes) + 1;
	}
	return false;
}

static bool is_pickle(const char *file, const char *bytes, size_t len)
{
	static const char *const endings[] = { "pkl", "pickle", "joblib", "pck" };

	return has_ending(file, endings, ARRAY_LEN(endings)) ||
	       (len > 3 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5 &&
	        bytes[len - 1] == '.');
}

static void look_at_pickle(struct lint *l, const char *file, const char *bytes, size_t len)
{
	static const char *const modules[] = { "os",         "posix",     "nt",    "subprocess",
		                               "builtins",   "runpy",     "pty",   "__builtin__",
		                               "webbrowser", "importlib", "code",  "socket",
		                               "commands",   "shutil",    "ctypes" };

	if (!is_pickle(file, bytes, len)) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		if (names_module(bytes, len, modules[i])) {
			lint_add(l, LINT_PICKLE_RUNS, file, 0,
			         "loading it can call functions of the module '%s'", modules[i]);
			return;
		}
	}
	lint_add(l, LINT_PICKLE, file, 0, "it is a pickle");
}

/* ---- characters ------------------------------------------------------------------- */

static bool turns(uint32_t cp)
{
	return (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

static bool is_selector(uint32_t cp)
{
	return (cp >= 0xfe00 && cp <= 0xfe0f) || (cp >= 0xe0100 && cp <= 0xe01ef);
}

/* Not shown, and no part of any script or picture: joiners and marks of direction have
 * their use in texts. A flag made of tags begins with a black flag. */
static bool is_hidden(uint32_t cp, uint32_t before, bool in_flag)
{
	if (cp >= 0xe0001 && cp <= 0xe007f) {
		return !in_flag;
	}
	if (is_selector(cp)) {
		return is_selector(before);
	}
	return cp == 0x200b || (cp >= 0x2060 && cp <= 0x2064) || cp == 0xfeff || cp == 0x3164 ||
	       cp == 0x115f || cp == 0x1160 || cp == 0x180e;
}

/* Of text alone: those that deceive. */
static void look_at_characters(struct lint *l, const char *file, const char *bytes, size_t len)
{
	unsigned line = 1, told_turn = 0, told_hidden = 0;
	uint32_t before = 0;
	bool in_flag = false;

	for (size_t i = 0; i < len;) {
		uint32_t cp = (unsigned char)bytes[i];
		size_t n = cp < 0x80 ? 1 : utf8_decode(bytes + i, len - i, &cp);
		if (n == 0) { /* in no encoding that we know: no character */
			n = 1;
			cp = 0;
		}
		if (turns(cp) && told_turn != line) {
			lint_add(l, LINT_BIDI, file, line, "U+%04X turns the text around",
			         (unsigned)cp);
			told_turn = line;
		}
		if (i > 0 && told_hidden != line && is_hidden(cp, before, in_flag)) {
			lint_add(l, LINT_INVISIBLE, file, line, "U+%04X is not shown",
			         (unsigned)cp);
			told_hidden = line;
		}
		in_flag = cp == 0x1f3f4 || (in_flag && cp >= 0xe0020 && cp <= 0xe007f);
		line += cp == '\n';
		before = cp;
		i += n;
	}
}

void lint_bytes(struct lint *l, const char *file, bool executable, const char *bytes, size_t len)
{
	if (is_native(bytes, len)) {
		lint_add(l, LINT_NATIVE, file, 0, "it is a compiled program");
		return;
	}
	look_at_pickle(l, file, bytes, len);
	enum lint_kind kind = kind_of(file, executable, bytes, len);
	size_t look = len < LOOK_FOR_NUL ? len : (size_t)LOOK_FOR_NUL;
	/* A shell reads over a NUL. */
	if (kind != LINT_CODE && look > 0 && memchr(bytes, '\0', look) != NULL) {
		return;
	}
	lint_frontmatter(l, file, bytes, len);
	look_at_characters(l, file, bytes, len);
	lint_idioms(l, file, kind, bytes, len);
}
