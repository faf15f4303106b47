/* otlp.h - writes messages of the OpenTelemetry protocol, field by field.
 *
 * What is said is the same in both forms; how it is spelt is one of two tables:
 * protobuf (otlp_proto.c) or JSON (otlp_json.c). A field is named once, with
 * its number and its JSON name (otlp_fields.h). */
#ifndef OTEL_OTLP_H
#define OTEL_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct otlp_field {
	uint32_t number;
	const char *name;
};

#define OTLP_DEPTH 16

struct otlp {
	struct buf *out; /* borrowed; its failure is the only one */
	const struct otlp_format *format;
	struct json json;         /* JSON */
	size_t begin[OTLP_DEPTH]; /* protobuf: where the open messages begin */
	unsigned depth;
	struct otlp_field attributes; /* the list that otlp_attr_* add to */
};

/* What an export service says of what it did not take. */
struct otlp_partial {
	int64_t rejected;
	char why[160]; /* the server's words, cut */
};

struct otlp_format {
	const char *content_type;
	void (*begin)(struct otlp *w); /* the whole message */
	void (*end)(struct otlp *w);
	void (*open)(struct otlp *w, struct otlp_field f); /* a message in it */
	void (*close)(struct otlp *w);
	void (*list)(struct otlp *w, struct otlp_field f); /* a repeated field */
	void (*item)(struct otlp *w, struct otlp_field f); /* a message in it; then close */
	void (*list_end)(struct otlp *w);
	void (*text)(struct otlp *w, struct otlp_field f, const char *s, size_t len); /* UTF-8 */
	void (*id)(struct otlp *w, struct otlp_field f, const uint8_t *id, size_t len);
	void (*fixed64)(struct otlp *w, struct otlp_field f, uint64_t v);
	void (*fixed32)(struct otlp *w, struct otlp_field f, uint32_t v);
	void (*int64)(struct otlp *w, struct otlp_field f, int64_t v);
	void (*uint32)(struct otlp *w, struct otlp_field f, uint32_t v); /* enumerations too */
	void (*boolean)(struct otlp *w, struct otlp_field f, bool v);
	/* To the millionth: no number of a record is finer. */
	void (*real)(struct otlp *w, struct otlp_field f, double v);
	/* Reads the answer to an export; false: it says nothing of that kind. */
	bool (*partial)(const char *body, size_t len, struct otlp_partial *ret);
};

extern const struct otlp_format OTLP_PROTO;
extern const struct otlp_format OTLP_JSON;

void otlp_init(struct otlp *w, struct buf *out, const struct otlp_format *format);

/* Any bytes; what is no UTF-8, and control characters, become \xNN: no reader
 * of telemetry has to be trusted with them. Cut at OTLP_MAX_TEXT. */
void otlp_text(struct otlp *w, struct otlp_field f, const char *s, size_t len);

/* A list of attributes, and what is in it. The keys are ours, and unique. */
void otlp_attrs(struct otlp *w, struct otlp_field f);
void otlp_attrs_end(struct otlp *w);
void otlp_attr_text(struct otlp *w, const char *key, const char *s, size_t len);
void otlp_attr_str(struct otlp *w, const char *key, const char *s); /* NULL: none */
void otlp_attr_int(struct otlp *w, const char *key, int64_t v);
void otlp_attr_bool(struct otlp *w, const char *key, bool v);
void otlp_attr_real(struct otlp *w, const char *key, double v);
/* An array of texts: otlp_element() as often as wanted in between. */
void otlp_attr_array(struct otlp *w, const char *key);
void otlp_element(struct otlp *w, const char *s, size_t len);
void otlp_attr_array_end(struct otlp *w);

#endif
