/* ask.c - see ask.h. */
#include "cli/ask.h"

#include <errno.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/say.h"

/* How long ask_line() waits before it discards what was typed: text that was pasted together
 * with the command may still arrive. No person reads and answers a question in so short a
 * time. */
#define SETTLE_MS 120

bool ask_terminal(void)
{
	if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
		return false;
	}
	/* If this process read an answer in the background, the kernel would stop it, and the user
	 * would not see why. */
	pid_t front = tcgetpgrp(STDIN_FILENO);
	return front < 0 || front == getpgrp();
}

/* Reads one line byte by byte, because the terminal may be in a mode without lines. Bytes after
 * the line stay unread. */
static bool read_line(char *ret, size_t size)
{
	for (size_t n = 0; n < size;) {
		ssize_t got = read(STDIN_FILENO, ret + n, 1);
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got <= 0) {
			return false;
		}
		if (ret[n] == '\n' || ret[n] == '\r') {
			ret[n] = '\0';
			return true;
		}
		n++;
	}
	(void)tcflush(STDIN_FILENO, TCIFLUSH); /* discards the rest of the long line */
	return false;
}

bool ask_line(const char *prompt, char *ret, size_t size)
{
	const struct timespec settle = { .tv_nsec = SETTLE_MS * 1000000L };
	auto_buf text = BUF(SAY_MAX);

	if (!ask_terminal()) {
		return false;
	}
	buf_adds(&text, prompt);
	(void)nanosleep(&settle, NULL);
	if (tcflush(STDIN_FILENO, TCIFLUSH) != 0 || say_out(STDERR_FILENO, &text) != 0) {
		return false;
	}
	if (!read_line(ret, size)) {
		/* The next message must start on a new line. */
		(void)!write(STDERR_FILENO, "\n", 1);
		return false;
	}
	return true;
}

enum ask_answer ask_yes(const char *question)
{
	char answer[8] = "";
	auto_buf prompt = BUF(SAY_MAX);

	if (!ask_terminal()) {
		return ASKED_NOBODY;
	}
	buf_addf(&prompt, "skillsandbox: %s Type yes: ", question);
	return !prompt.failed && ask_line(prompt.data, answer, sizeof(answer)) &&
	                       strcmp(answer, "yes") == 0
	               ? ASKED_YES
	               : ASKED_NO;
}
