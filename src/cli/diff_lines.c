#include "cli/diff_lines.h"

#include <errno.h>
#include <fcntl.h>
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

#define CONTEXT 3
#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* The bytes that were hashed, or why not. The skill's author may have put anything there:
 * nothing is followed, waited for, or read past its size. */
static const char *read_hashed(const char *root, const struct pinned_file *f, struct buf *out)
{
	uint8_t hash[SHA256_BYTES];
	struct stat st;
	auto_fd dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd fd =
	        dir < 0 ? -1
	                : file_openat2(dir, f->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, BENEATH);

	buf_init(out, MAX_DIFF_BYTES);
	if (f->size > MAX_DIFF_BYTES) {
		return "it is too large to be shown";
	}
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || file_read_all(fd, out) != 0) {
		return "its bytes are not there";
	}
	sha256(out->len > 0 ? out->data : "", out->len, hash);
	return memcmp(hash, f->sha256, sizeof(hash)) == 0 ? NULL : "it has changed meanwhile";
}

static bool is_text(const struct buf *b)
{
	for (size_t i = 0; i < b->len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(b->data + i, b->len - i, &cp);
		if (n == 0 || cp == 0) {
			return false;
		}
		i += n;
	}
	return true;
}

static void put_edit(struct buf *out, const struct line_edit *e)
{
	static const enum say_colour COLOURS[] = { SAY_PLAIN, SAY_RED, SAY_GREEN, SAY_BOLD };
	enum say_colour colour = COLOURS[e->op == '-'   ? 1
	                                 : e->op == '+' ? 2
	                                 : e->op == '@' ? 3
	                                                : 0];
	size_t len = e->len < MAX_WORD_BYTES ? e->len : MAX_WORD_BYTES;
	auto_buf line;

	buf_init(&line, 16UL * MAX_WORD_BYTES);
	if (e->op == '@') {
		buf_addf(&line, "@@ from line %zu on, now %zu", e->before, e->now);
	} else {
		buf_addc(&line, e->op);
		visible_bytes(&line, e->text, len, false);
		buf_adds(&line, len < e->len ? "..." : "");
	}
	buf_adds(out, "      ");
	say_colour(out, STDOUT_FILENO, colour, line.failed ? "" : line.data);
	buf_addc(out, '\n');
}

static void put_edits(struct buf *out, const struct buf *before, const struct buf *now)
{
	AUTO(line_edits_done) struct line_edits e = { 0 };

	if (line_diff(before->len > 0 ? before->data : "", before->len,
	              now->len > 0 ? now->data : "", now->len, CONTEXT, &e) != 0) {
		buf_adds(out, "      (too much of it differs to be shown)\n");
		return;
	}
	for (size_t i = 0; i < e.n && i < MAX_DIFF_SHOWN; i++) {
		put_edit(out, &e.v[i]);
	}
	if (e.n > MAX_DIFF_SHOWN) {
		buf_addf(out, "      (and %zu more lines)\n", e.n - MAX_DIFF_SHOWN);
	}
}

void diff_lines(struct buf *out, const char *before, const char *now, const struct file_change *f)
{
	auto_buf a, b;

	buf_init(&a, 0);
	buf_init(&b, 0);
	if (f->change != CHANGE_CONTENT || f->before->link != NULL || f->now->link != NULL ||
	    f->before->dir || f->now->dir) {
		return;
	}
	const char *why = read_hashed(before, f->before, &a);
	why = why != NULL ? why : read_hashed(now, f->now, &b);
	why = why != NULL || (is_text(&a) && is_text(&b)) ? why : "it is no text";
	auto_buf head;
	buf_init(&head, 16UL * MAX_WORD_BYTES);
	words_quote(&head, f->now->path);
	buf_adds(&head, why != NULL ? ": " : "");
	buf_adds(&head, why != NULL ? why : "");
	words_fold(out, "  ~ ", head.failed ? "" : head.data, WORDS_COLUMNS);
	if (why == NULL) {
		put_edits(out, &a, &b);
	}
}
