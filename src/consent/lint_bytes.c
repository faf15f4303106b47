/* lint_bytes.c - checks one file's bytes: its kind, pickles, deceptive characters, frontmatter. */
#include <string.h>

#include "base/array.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"
#include "consent/lint_priv.h"
#include "skill/block.h"
#include "skill/loose.h"

#define LOOK_FOR_NUL 4096 /* if the first LOOK_FOR_NUL bytes have a NUL, the file is not text */

static bool has_ending(const char *file, const char *const endings[], size_t n)
{
	const char *base = strrchr(file, '/');
	const char *dot = strrchr(base != NULL ? base : file, '.');

	return dot != NULL && ARRAY_HAS(e, endings, n, strcasecmp(dot + 1, *e) == 0);
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
		{ "\xca\xfe\xba\xbe", 4 }, /* macOS programs for several processors, and Java */
		{ "\0asm", 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (len > kinds[i].len && memcmp(bytes, kinds[i].magic, kinds[i].len) == 0) {
			return true;
		}
	}
	/* Text can begin with "MZ", too. But the first 0x40 bytes of a Windows program always
	 * contain a NUL. */
	return len > 0x40 && memcmp(bytes, "MZ", 2) == 0 && memchr(bytes, '\0', 0x40) != NULL;
}

/* ---- pickles ---------------------------------------------------------------------- */

/* Returns true if the `n` bytes at `at` could be a name in a pickle: the bytes before them are
 * their length, or they are between "c" and a newline. */
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
			         "loading this pickle can call functions of the module '%s'",
			         modules[i]);
			return;
		}
	}
	lint_add(l, LINT_PICKLE, file, 0, "the file is a pickle");
}

/* ---- characters ------------------------------------------------------------------- */

static bool turns_text(uint32_t cp)
{
	return (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

static bool is_selector(uint32_t cp)
{
	return (cp >= 0xfe00 && cp <= 0xfe0f) || (cp >= 0xe0100 && cp <= 0xe01ef);
}

/* Returns true if the character is not shown and has no use in any script or picture. Joiners and
 * direction marks are useful in some texts. Tag characters (U+E0001 to U+E007F) are useful only in
 * the picture of a flag, which begins with a black flag. */
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

/* Finds characters that deceive the reader of a text. */
static void look_at_characters(struct lint *l, const char *file, const char *bytes, size_t len)
{
	unsigned line = 1, told_turn = 0, told_hidden = 0;
	uint32_t before = 0;
	bool in_flag = false;

	for (size_t i = 0; i < len;) {
		uint32_t cp = (unsigned char)bytes[i];
		size_t n = cp < 0x80 ? 1 : utf8_decode(bytes + i, len - i, &cp);
		if (n == 0) { /* not UTF-8 */
			n = 1;
			cp = 0;
		}
		if (turns_text(cp) && told_turn != line) {
			lint_add(l, LINT_BIDI, file, line,
			         "U+%04X reverses the direction of the text", (unsigned)cp);
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

/* ---- the frontmatter -------------------------------------------------------------- */

/* Only the frontmatter of a SKILL.md at the top of the skill is used. */
static void look_at_frontmatter(struct lint *l, const char *file, const char *bytes, size_t len)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	unsigned line = 0;
	auto_buf block = BUF(MAX_YAML_BYTES);

	if (strcasecmp(file, "SKILL.md") != 0 || diags == NULL) {
		return;
	}
	int found = block_find(&block, bytes, len, &line);
	if (found < 0) {
		lint_add(l, LINT_FRONTMATTER, file, line,
		         "the frontmatter does not end, or is too large");
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

void lint_bytes(struct lint *l, const char *file, bool executable, const char *bytes, size_t len)
{
	if (is_native(bytes, len)) {
		lint_add(l, LINT_NATIVE, file, 0, "the file is a compiled program");
		return;
	}
	look_at_pickle(l, file, bytes, len);
	enum lint_kind kind = kind_of(file, executable, bytes, len);
	size_t look = len < LOOK_FOR_NUL ? len : (size_t)LOOK_FOR_NUL;
	/* A NUL means that this is not text. But a shell skips NULs, so code is always checked. */
	if (kind != LINT_CODE && look > 0 && memchr(bytes, '\0', look) != NULL) {
		return;
	}
	look_at_frontmatter(l, file, bytes, len);
	look_at_characters(l, file, bytes, len);
	lint_idioms(l, file, kind, bytes, len);
}
