/* Reads a shell command line of arbitrary bytes. No reading may be much longer than its line, or
 * have two blanks or a control character. The bytes, quoted, must be shown as one literal word. */
#include <string.h>

/* Included as source: the code of the command line is not in the library. */
#include "fuzz.h"
#include "base/limits.h"
#include "base/shell_quote.h"
#include "cli/hook_line.c"

static const struct hook_name NAMES[] = { { "HOME", "/home/me" },
	                                  { "ODD", "a 'b" },
	                                  { NULL, NULL } };

static void show_quoted(const char *text)
{
	auto_buf quoted;

	buf_init(&quoted, (size_t)64 << 20);
	buf_adds(&quoted, "x ");
	shell_quote(&quoted, text);
	auto_free char *shown = hook_line_read(quoted.data, quoted.len, NAMES, HOOK_SHOWN);
	must(strlen(shown) == strlen(text) + strlen(" ; x  ; ") || text[0] == '\0');
	must(strpbrk(shown + strlen(" ; "), "$*?[{<>|&()`") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size + 1);

	must(exact != NULL);
	memcpy(exact, data, size);
	exact[size] = '\0';
	for (int how = HOOK_SHOWN; how <= HOOK_SPLIT; how++) {
		auto_free char *text = hook_line_read(exact, size, NAMES, (enum hook_reading)how);
		must(strlen(text) <= 16 * size + 64 && strstr(text, "  ") == NULL);
		must(strpbrk(text, "\n\t\r") == NULL);
	}
	show_quoted(exact);
	free(exact);
	return 0;
}
