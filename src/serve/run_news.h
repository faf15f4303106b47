/* run_news.h - what a run does, told as it happens to the client that waits for it:
 * lines of its output and what it was denied, a few times a second. */
#ifndef SERVE_RUN_NEWS_H
#define SERVE_RUN_NEWS_H

#include "trace/reader.h"
#include "serve/serve.h"

struct run_news;

/* NULL where the client does not want to hear of it, or there is no memory: news are
 * not worth an error. The call is borrowed. All of the others accept NULL. */
struct run_news *run_news_new(struct loop *l, struct mcp_call *c);
void run_news_free(struct run_news *n);
void run_news_output(struct run_news *n, int stream, const char *data, size_t len);
void run_news_line(struct run_news *n, const struct line *l);

#endif
