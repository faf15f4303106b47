#include "cli/ask.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"

enum asked ask_yes(const char *question)
{
	char answer[8] = "";

	if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
		return ASKED_NOBODY;
	}
	say_notef("%s Type yes:", question);
	return fgets(answer, sizeof(answer), stdin) != NULL && strcmp(answer, "yes\n") == 0
	               ? ASKED_YES
	               : ASKED_NO;
}
