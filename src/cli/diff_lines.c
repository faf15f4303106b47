/* diff_lines.c - see diff_lines.h. */
#include "cli/diff_lines.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/line_diff.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/say.h"
#include "consent/words.h"
#include "os/file.h"

#define CONTEXT        3
#define LEAD           40 /* bytes shown before the first byte that differs */
#define MAX_SIDE_SHOWN 20 /* lines shown of each text if they differ too much */
#define FLUSH          (1UL << 20)
#define BENEATH        (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* Reads the file and checks that it still has the bytes that were hashed. Returns NULL, or the
 * reason why the file cannot be shown. The skill's author may have put anything at this path.
 * So this function follows no symlink, waits for no FIFO, and reads at most MAX_DIFF_BYTES. */
static const char *read_hashed(const char *root, const struct skill_file *f, struct buf *out)
{
	uint8_t hash[SHA256_BYTES];
	struct stat st;
	auto_fd dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd fd =
	        dir < 0 ? -1
	                : file_openat2(dir, f->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, BENEATH);

	buf_init(out, MAX_DIFF_BYTES);
	if (f->size > MAX_DIFF_BYTES) {
		return "it is too large to be shown (more than 1 MiB)";
	}
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || file_read_all(fd, out) != 0) {
		return "the file cannot be read";
	}
	sha256(out->len > 0 ? out->data : "", out->len, hash);
	return memcmp(hash, f->sha256, sizeof(hash)) == 0 ? NULL : "it was changed in the meantime";
}

/* Returns true if the content can be shown as lines. A script is shown even if it contains
 * bytes that are not text, because otherwise such a byte could hide all other changes. */
static bool is_shown(const struct file_change *f, const struct buf *b)
{
	return utf8_is_text(b->data, b->len) ||
	       (f->kind != FILE_OTHER && (b->len < 4 || memcmp(b->data, "\177ELF", 4) != 0));
}

/* ---- one line ------------------------------------------------------------ */

/* Returns true for characters that look like a space, or that are invisible at the end of a
 * line. */
static bool is_blank(uint32_t cp)
{
	return cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x202f ||
	       cp == 0x205f || cp == 0x2800 || cp == 0x3000;
}

/* Writes the text so that any two different bytes look different. Blanks are made visible as
 * well, because two lines may differ only in blanks. `end` is true if the text reaches the end
 * of its line: blanks there are made visible. */
static void put_bytes(struct buf *out, const char *text, size_t len, bool end)
{
	size_t spaces = 0;
	size_t from = 0;

	while (end && spaces < len && text[len - spaces - 1] == ' ') {
		spaces++;
	}
	len -= spaces;
	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text + i, len - i, &cp);
		if (n > 0 && is_blank(cp)) {
			visible_bytes(out, text + from, i - from, false);
			buf_addf(out, "\\u{%" PRIx32 "}", cp);
			from = i + n;
		}
		i += n > 0 ? n : 1;
	}
	visible_bytes(out, text + from, len - from, false);
	for (; spaces > 0; spaces--) {
		buf_adds(out, "\\x20");
	}
}

/* Returns the start of the character that contains the byte at `at`. */
static size_t find_boundary(const struct line_edit *e, size_t at)
{
	while (at > 0 && at < e->len && ((unsigned char)e->text[at] & 0xc0) == 0x80) {
		at--;
	}
	return at;
}

/* Writes a part of a long line: the part around the first byte that differs from the line on the
 * other side. */
static void put_window(struct buf *out, const struct line_edit *e, size_t differs)
{
	size_t from = differs > LEAD ? find_boundary(e, differs - LEAD) : 0;
	size_t to =
	        e->len - from > MAX_WORD_BYTES ? find_boundary(e, from + MAX_WORD_BYTES) : e->len;

	buf_adds(out, from > 0 ? "..." : "");
	put_bytes(out, e->text + from, to - from, to == e->len);
	buf_adds(out, to < e->len ? "..." : "");
}

static size_t find_column(const struct line_edit *e, size_t at)
{
	size_t n = 1;

	for (size_t i = 0; i < at; i++) {
		n += ((unsigned char)e->text[i] & 0xc0) != 0x80 ? 1 : 0;
	}
	return n;
}

/* Finds the part in which two lines differ. It begins at byte *ret_from, and ends *ret_to bytes
 * before the end of each line. */
static void compare_lines(const struct line_edit *a, const struct line_edit *b, size_t *ret_from,
                          size_t *ret_to)
{
	size_t least = a->len < b->len ? a->len : b->len;
	size_t from = 0, to = 0;

	while (from < least && a->text[from] == b->text[from]) {
		from++;
	}
	while (to < least - from && a->text[a->len - to - 1] == b->text[b->len - to - 1]) {
		to++;
	}
	*ret_from = from;
	*ret_to = to;
}

/* Finds the line of the other text that is compared with the line `at`. In a group of changed
 * lines, the first '-' belongs to the first '+', the second to the second, and so on. NULL:
 * none. */
static const struct line_edit *find_peer(const struct line_edits *e, size_t at)
{
	const char op = e->v[at].op;
	size_t from = at, number = 0;

	while (from > 0 && (e->v[from - 1].op == '-' || e->v[from - 1].op == '+')) {
		from--;
		number += e->v[from].op == op ? 1 : 0;
	}
	for (size_t i = from; i < e->n && (e->v[i].op == '-' || e->v[i].op == '+'); i++) {
		if (e->v[i].op != op && number-- == 0) {
			return &e->v[i];
		}
	}
	return NULL;
}

/* Writes a note that says which part of a long line is not shown. */
static void put_note(struct buf *out, const struct line_edit *e, const struct line_edit *peer)
{
	size_t from = 0, to = 0;

	if (peer == NULL) {
		buf_addf(out, "        (%zu bytes more; --all shows them)\n",
		         e->len - MAX_WORD_BYTES);
		return;
	}
	compare_lines(e, peer, &from, &to);
	size_t first = find_column(e, from), last = find_column(e, e->len - to) - 1;
	buf_addf(out, "        (differs from column %zu to %zu of %zu%s)\n", first,
	         last > first ? last : first, find_column(e, e->len) - 1,
	         e->len - to > from + MAX_WORD_BYTES - LEAD ? "; --all shows all of it" : "");
}

/* ---- lines --------------------------------------------------------------- */

static void put_line(struct buf *out, char op, const char *text)
{
	enum say_colour colour = op == '-'   ? SAY_RED
	                         : op == '+' ? SAY_GREEN
	                         : op == '@' ? SAY_BOLD
	                                     : SAY_PLAIN;

	buf_adds(out, "      ");
	say_colour(out, STDOUT_FILENO, colour, text);
	buf_addc(out, '\n');
	if (out->len > FLUSH) {
		(void)say_out(STDOUT_FILENO, out);
		buf_reset(out);
	}
}

static void put_edit(struct buf *out, const struct line_edits *edits, size_t at, bool all)
{
	const struct line_edit *e = &edits->v[at];
	bool changed = e->op == '-' || e->op == '+';
	const struct line_edit *peer = changed ? find_peer(edits, at) : NULL;
	bool cut = e->len > MAX_WORD_BYTES && !(all && changed);
	size_t differs = 0, to = 0;
	auto_buf line = BUF(SAY_MAX);

	if (e->op == '@') {
		buf_addf(&line, "@@ from line %zu on (now line %zu)", e->before, e->now);
	} else {
		buf_addc(&line, e->op);
	}
	if (cut) {
		if (peer != NULL) {
			compare_lines(e, peer, &differs, &to);
		}
		put_window(&line, e, differs);
	} else {
		put_bytes(&line, e->text, e->len, changed);
	}
	put_line(out, e->op, line.failed ? "(a line that is too long to be shown)" : line.data);
	if (cut && changed) {
		put_note(out, e, peer);
	}
}

/* Writes the lines of one text of a file that differs too much: at most `most` lines (0: all),
 * from the position `at` on. */
static void put_side(struct buf *out, const struct buf *b, size_t at, char op, size_t most)
{
	size_t n = 0;

	while (at < b->len && (most == 0 || n++ < most)) {
		const char *end = memchr(b->data + at, '\n', b->len - at);
		size_t len = end != NULL ? (size_t)(end - b->data) - at : b->len - at;
		struct line_edit e = { .op = op, .text = b->data + at, .len = len };
		put_edit(out, &(struct line_edits){ &e, 1 }, 0, most == 0);
		at += len + 1;
	}
}

/* Writes the lines of both texts, from the first line that differs. */
static void put_sides(struct buf *out, const struct buf *before, const struct buf *now, bool all)
{
	size_t least = before->len < now->len ? before->len : now->len;
	size_t at = 0, line = 0, number = 1;
	char head[64];

	for (; at < least && before->data[at] == now->data[at]; at++) {
		if (before->data[at] == '\n') {
			line = at + 1;
			number++;
		}
	}
	snprintf(head, sizeof(head), "@@ from line %zu on", number);
	put_line(out, '@', head);
	put_side(out, before, line, '-', all ? 0 : MAX_SIDE_SHOWN);
	put_side(out, now, line, '+', all ? 0 : MAX_SIDE_SHOWN);
	buf_adds(out, all ? ""
	                  : "      (too many lines differ: these are the first of them; "
	                    "--all shows all)\n");
}

static bool lacks_newline(const struct buf *b)
{
	return b->len > 0 && b->data[b->len - 1] != '\n';
}

static void put_edits(struct buf *out, const struct buf *before, const struct buf *now, bool all)
{
	AUTO(line_edits_done) struct line_edits e = { 0 };

	if (line_diff(before->len > 0 ? before->data : "", before->len,
	              now->len > 0 ? now->data : "", now->len, CONTEXT, &e) != 0) {
		put_sides(out, before, now, all);
		return;
	}
	size_t most = all || e.n < MAX_DIFF_SHOWN ? e.n : MAX_DIFF_SHOWN;
	for (size_t i = 0; i < most; i++) {
		put_edit(out, &e, i, all);
	}
	if (e.n > most) {
		buf_addf(out, "      (and %zu more lines; --all shows them)\n", e.n - most);
	}
	if (before->len > 0 && now->len > 0 && lacks_newline(before) != lacks_newline(now)) {
		buf_adds(out, lacks_newline(now) ? "      (its last line has no newline now)\n"
		                                 : "      (its last line had no newline)\n");
	}
}

bool diff_has_lines(const struct file_change *f, bool all)
{
	bool link = (f->before != NULL && f->before->link != NULL) ||
	            (f->now != NULL && f->now->link != NULL);
	bool dir = (f->before != NULL && f->before->dir) || (f->now != NULL && f->now->dir);

	return !link && !dir &&
	       (f->change == CHANGE_CONTENT ||
	        (f->change == CHANGE_ADDED && (all || f->kind != FILE_OTHER)));
}

void diff_lines(struct buf *out, const char *before, const char *now, const struct file_change *f,
                bool all)
{
	auto_buf a = BUF(0), b = BUF(0);
	const char *why = f->before != NULL ? read_hashed(before, f->before, &a) : NULL;
	why = why != NULL ? why : read_hashed(now, f->now, &b);
	why = why != NULL || (is_shown(f, &a) && is_shown(f, &b)) ? why : "it is not text";
	auto_buf head = BUF(16UL * MAX_WORD_BYTES);

	words_quote(&head, f->now->path);
	buf_adds(&head, why != NULL ? ": " : "");
	buf_adds(&head, why != NULL ? why : "");
	words_fold(out, f->change == CHANGE_ADDED ? "  + " : "  ~ ", head.failed ? "" : head.data,
	           WORDS_COLUMNS);
	if (why == NULL) {
		put_edits(out, &a, &b, all);
	}
}
