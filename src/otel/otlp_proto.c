/* otlp_proto.c - writes the protobuf form. Each field is its number and wire type, then its value.
 * The length of a nested message comes before the message, so it is inserted when the message is
 * closed. */
#include <assert.h>
#include <string.h>

#include "otel/otlp.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

#define VARINT_MAX 10

static size_t put_varint(uint8_t out[VARINT_MAX], uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		out[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	out[n++] = (uint8_t)v;
	return n;
}

static void add_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	buf_add(b, bytes, put_varint(bytes, v));
}

static void add_tag(struct otlp *w, struct otlp_field f, enum wire type)
{
	add_varint(w->out, (uint64_t)f.number << 3 | type);
}

/* Appends a number, least significant byte first, whatever the byte order of the machine. */
static void add_fixed(struct buf *b, uint64_t v, size_t size)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < size; i++) {
		bytes[i] = (uint8_t)(v >> (8 * i));
	}
	buf_add(b, bytes, size);
}

static void proto_nothing(struct otlp *w)
{
	(void)w;
}

static void proto_no_list(struct otlp *w, struct otlp_field f)
{
	(void)w;
	(void)f;
}

static void proto_open(struct otlp *w, struct otlp_field f)
{
	assert(w->depth < OTLP_DEPTH);
	add_tag(w, f, WIRE_BYTES);
	w->begin[w->depth++] = w->out->len;
}

static void proto_close(struct otlp *w)
{
	uint8_t bytes[VARINT_MAX];

	assert(w->depth > 0);
	size_t begin = w->begin[--w->depth];
	if (w->out->failed) {
		return;
	}
	size_t len = w->out->len - begin;
	size_t n = put_varint(bytes, len);
	buf_add(w->out, bytes, n); /* only makes room; memmove() overwrites these bytes */
	if (!w->out->failed) {
		memmove(w->out->data + begin + n, w->out->data + begin, len);
		memcpy(w->out->data + begin, bytes, n);
	}
}

static void proto_bytes(struct otlp *w, struct otlp_field f, const void *data, size_t len)
{
	add_tag(w, f, WIRE_BYTES);
	add_varint(w->out, len);
	buf_add(w->out, data, len);
}

static void proto_text(struct otlp *w, struct otlp_field f, const char *s, size_t len)
{
	proto_bytes(w, f, s, len);
}

static void proto_id(struct otlp *w, struct otlp_field f, const uint8_t *id, size_t len)
{
	proto_bytes(w, f, id, len);
}

static void proto_fixed64(struct otlp *w, struct otlp_field f, uint64_t v)
{
	add_tag(w, f, WIRE_64);
	add_fixed(w->out, v, 8);
}

static void proto_fixed32(struct otlp *w, struct otlp_field f, uint32_t v)
{
	add_tag(w, f, WIRE_32);
	add_fixed(w->out, v, 4);
}

static void proto_int64(struct otlp *w, struct otlp_field f, int64_t v)
{
	add_tag(w, f, WIRE_VARINT);
	add_varint(w->out, (uint64_t)v);
}

static void proto_uint32(struct otlp *w, struct otlp_field f, uint32_t v)
{
	add_tag(w, f, WIRE_VARINT);
	add_varint(w->out, v);
}

static void proto_boolean(struct otlp *w, struct otlp_field f, bool v)
{
	proto_uint32(w, f, v);
}

static void proto_real(struct otlp *w, struct otlp_field f, double v)
{
	uint64_t bits = 0;

	static_assert(sizeof(bits) == sizeof(v), "a double of 64 bits");
	memcpy(&bits, &v, sizeof(bits));
	proto_fixed64(w, f, bits);
}

/* ---- the answer -------------------------------------------------------- */

/* The unread rest of an answer. These bytes are hostile. */
struct proto_in {
	const uint8_t *p;
	size_t n;
};

static bool get_varint(struct proto_in *in, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; in->n > 0 && shift < 64; shift += 7) {
		uint8_t c = *in->p++;
		in->n--;
		v |= (uint64_t)(c & 0x7f) << shift;
		if ((c & 0x80) == 0) {
			*ret = v;
			return true;
		}
	}
	return false;
}

struct proto_value {
	uint32_t number;
	uint64_t v;            /* WIRE_VARINT */
	struct proto_in bytes; /* WIRE_BYTES */
};

static bool take_bytes(struct proto_in *in, uint64_t n, struct proto_in *ret)
{
	if (n > in->n) {
		return false;
	}
	*ret = (struct proto_in){ in->p, (size_t)n };
	in->p += n;
	in->n -= (size_t)n;
	return true;
}

static bool get_field(struct proto_in *in, struct proto_value *ret)
{
	uint64_t tag = 0;
	uint64_t len = 0;

	*ret = (struct proto_value){ 0 };
	if (!get_varint(in, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) {
		return false;
	}
	ret->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case WIRE_VARINT:
		return get_varint(in, &ret->v);
	case WIRE_64:
		return take_bytes(in, 8, &ret->bytes);
	case WIRE_32:
		return take_bytes(in, 4, &ret->bytes);
	case WIRE_BYTES:
		return get_varint(in, &len) && take_bytes(in, len, &ret->bytes);
	default:
		return false;
	}
}

/* Reads the partial success of an answer. In the answers of both services, it is field 1 and has
 * the same fields. */
static bool proto_partial(const char *body, size_t len, struct otlp_partial *ret)
{
	struct proto_in in = { (const uint8_t *)body, len };
	struct proto_value answer = { 0 };
	struct proto_value v;
	struct otlp_partial found = { 0 };

	while (in.n > 0) {
		if (!get_field(&in, &v)) {
			return false;
		}
		answer = v.number == 1 ? v : answer;
	}
	while (answer.bytes.n > 0) {
		if (!get_field(&answer.bytes, &v)) {
			return false;
		}
		if (v.number == 1) {
			found.rejected = (int64_t)v.v;
		} else if (v.number == 2 && v.bytes.n > 0) {
			size_t n = v.bytes.n < sizeof(found.why) - 1 ? v.bytes.n
			                                             : sizeof(found.why) - 1;
			memcpy(found.why, v.bytes.p, n);
			found.why[n] = '\0';
		}
	}
	if (answer.number == 1) {
		*ret = found;
	}
	return answer.number == 1;
}

const struct otlp_format OTLP_PROTO = {
	.content_type = "application/x-protobuf",
	.begin = proto_nothing,
	.end = proto_nothing,
	.open = proto_open,
	.close = proto_close,
	.list = proto_no_list,
	.item = proto_open,
	.list_end = proto_nothing,
	.text = proto_text,
	.id = proto_id,
	.fixed64 = proto_fixed64,
	.fixed32 = proto_fixed32,
	.int64 = proto_int64,
	.uint32 = proto_uint32,
	.boolean = proto_boolean,
	.real = proto_real,
	.partial = proto_partial,
};
