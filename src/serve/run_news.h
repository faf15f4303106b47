/* run_news.h - sends news of a run to the client that waits for it: lines of output and denied
 * attempts, a few times a second. */
#ifndef SERVE_RUN_NEWS_H
#define SERVE_RUN_NEWS_H

#include "trace/reader.h"
#include "serve/serve.h"

struct run_news;

/* Returns new, or NULL if the client does not want news or memory is short, which is not an error.
 * Borrows the call. All other functions accept NULL. */
struct run_news *run_news_new(struct loop *l, struct mcp_call *c);
void run_news_free(struct run_news *n);
void run_news_output(struct run_news *n, int stream, const char *data, size_t len);
void run_news_line(struct run_news *n, const struct line *l);

#endif
