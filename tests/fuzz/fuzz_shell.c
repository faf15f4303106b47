/* Reads a shell command line of arbitrary bytes. The words of a simple line are quoted and read
 * again: they must be the same words. No result of a reading may be much longer than the line,
 * except HOOK_BARE, which repeats commands that are nested in redirections. */
#include <string.h>

/* Included as source: the code of the command line is not in the library. */
#include "fuzz.h"
#include "base/limits.h"
#include "base/shell_quote.h"
#include "cli/hook_line.c"

static const struct hook_name NAMES[] = { { "HOME", "/home/me" },
	                                  { "ODD", "a 'b" },
	                                  { NULL, NULL } };

/* Quotes each literal word of the line and reads it back. */
static void read_back(const char *text)
{
	for (size_t n = 0; *(text += strspn(text, " ")) != '\0'; text += n) {
		n = strcspn(text, " ");
		auto_free char *word = strndup(text, n);
		auto_buf quoted, again;
		buf_init(&quoted, (size_t)64 << 20);
		buf_init(&again, (size_t)64 << 20);
		must(word != NULL);
		hook_line_unmask(word);
		buf_adds(&quoted, "x "); /* "x": otherwise the word could be a keyword */
		shell_quote(&quoted, word);
		must(hook_line_read(&again, quoted.data, quoted.len, NAMES, HOOK_EXACT));
		must(strncmp(again.data, " ; x ", 5) == 0);
		char *end = strchr(again.data + 5, ' ');
		must(end != NULL && strcmp(end, " ; ") == 0);
		*end = '\0';
		must(strpbrk(again.data + 5, "$*?[{!<>;|&") == NULL);
		hook_line_unmask(again.data + 5);
		must(strcmp(again.data + 5, word) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size + (size == 0));

	must(exact != NULL);
	memcpy(exact, data, size);
	for (int how = HOOK_EXACT; how <= HOOK_SPLIT; how++) {
		auto_buf text;
		buf_init(&text, 8 * size + 64);
		bool simple = hook_line_read(&text, exact, size, NAMES, (enum hook_reading)how);
		must(!text.failed && strstr(text.data, "  ") == NULL);
		must(simple || how == HOOK_EXACT);
		must(how != HOOK_EXACT || !simple || memchr(exact, '\0', size) == NULL ||
		     strchr(exact, '#') != NULL);
		if (how == HOOK_EXACT && simple) {
			read_back(text.data);
		}
	}
	auto_buf bare;
	buf_init(&bare, 8 * size + 64);
	must(hook_line_read(&bare, exact, size, NAMES, HOOK_BARE));
	must(bare.failed || strstr(bare.data, "  ") == NULL);
	free(exact);
	return 0;
}
