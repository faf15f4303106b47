/* A shell command line of arbitrary bytes. If the reader says that a command is plain, its words,
 * quoted again, must be read as the same words. */
#include <string.h>

/* The command line is a program, not part of the library. */
#include "fuzz.h"
#include "base/shell_quote.h"
#include "cli/hook_line.c"

static const struct hook_name NAMES[] = { { "HOME", "/home/me", false },
	                                  { "ODD", "a 'b", false },
	                                  { NULL, NULL, false } };

static bool is_plain(const struct hook_command *c)
{
	for (size_t i = 0; i < c->n_words; i++) {
		if (!c->words[i].plain) {
			return false;
		}
	}
	return c->n_words > 0;
}

static void read_back(const struct hook_command *c)
{
	struct hook_line again = { 0 };
	auto_buf text = BUF((size_t)64 << 20);

	/* "x" first: what stands there could be a keyword. */
	buf_adds(&text, "x");
	for (size_t i = 0; i < c->n_words; i++) {
		buf_addc(&text, ' ');
		shell_quote(&text, c->words[i].text);
	}
	if (text.failed || text.len > MAX_SHELL_BYTES || c->n_words + 1 > MAX_SHELL_WORDS) {
		return;
	}
	must(hook_line_read(&again, text.data, text.len, NAMES, false) == 0);
	must(!again.odd && again.n_commands == 1);
	must(again.commands[0].n_words == c->n_words + 1 && again.commands[0].n_redirects == 0);
	for (size_t i = 0; i < c->n_words; i++) {
		must(again.commands[0].words[i + 1].plain);
		must(strcmp(again.commands[0].words[i + 1].text, c->words[i].text) == 0);
	}
	hook_line_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size + (size == 0));

	must(exact != NULL);
	memcpy(exact, data, size);
	for (int nested = 0; nested < 2; nested++) {
		struct hook_line line = { 0 };
		if (hook_line_read(&line, exact, size, NAMES, nested == 1) == 0) {
			for (size_t i = 0; i < line.n_commands; i++) {
				if (line.commands[i].n_words > 0) {
					(void)hook_line_assigns(&line.commands[i].words[0]);
				}
				if (is_plain(&line.commands[i])) {
					read_back(&line.commands[i]);
				}
			}
			must(memchr(exact, '\0', size) == NULL || line.odd);
		}
		hook_line_done(&line);
	}
	free(exact);
	return 0;
}
