/* otlp_url.h - the owner's words for an endpoint, headers and attributes. */
#ifndef OTEL_OTLP_URL_H
#define OTEL_OTLP_URL_H

#include "otel/otlp_env.h"

/* http:// or https://, host, port and path of a URL; `append` is put behind
 * the path. User names, fragments and what is no URL are refused. Neither the
 * URL nor a part of it is repeated in the error. */
int otlp_url_parse(struct otlp_target *ret, const char *url, const char *append, const char *var,
                   struct ssb_error *err);

/* `url` without the ending that one signal would have. */
int otlp_url_base(const char *url, char ret[OTLP_MAX_URL], struct ssb_error *err);

/* "a=b,c=d", values percent-encoded. Headers must be such as can be sent. */
int otlp_pairs_parse(struct otlp_pairs *ret, const char *text, bool headers, const char *var,
                     struct ssb_error *err);
void otlp_pairs_done(struct otlp_pairs *p);

#endif
