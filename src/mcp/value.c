/* Values of JSON as they were read: hashed, put together. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "mcp/priv.h"

static int hash_value(struct sha256 *s, const struct json_doc *doc, const struct json_node *node);

static void hash_bytes(struct sha256 *s, const char *data, size_t len)
{
	uint64_t n = len;

	sha256_update(s, &n, sizeof(n));
	if (len > 0) {
		sha256_update(s, data, len);
	}
}

static int by_key(const void *a, const void *b)
{
	const struct json_node *const *x = a;
	const struct json_node *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* What a retry brings beyond the request itself. */
static bool part_of_retry(const struct json_node *member)
{
	return strcmp(member->key, "_meta") == 0 || strcmp(member->key, "inputResponses") == 0 ||
	       strcmp(member->key, "requestState") == 0;
}

/* The order of members means nothing. */
static int hash_object(struct sha256 *s, const struct json_doc *doc, const struct json_node *object,
                       bool top)
{
	auto_free const struct json_node **v =
	        calloc(object->n + 1, sizeof(const struct json_node *));
	size_t n = 0;

	if (v == NULL) {
		return -1;
	}
	for (const struct json_node *m = json_first(doc, object); m != NULL;
	     m = json_next(doc, m)) {
		if (!top || !part_of_retry(m)) {
			v[n++] = m;
		}
	}
	qsort(v, n, sizeof(const struct json_node *), by_key);
	sha256_update(s, &n, sizeof(n));
	for (size_t i = 0; i < n; i++) {
		hash_bytes(s, v[i]->key, strlen(v[i]->key));
		if (hash_value(s, doc, v[i]) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Each value says its kind and its length before it: no two are the same bytes. */
static int hash_value(struct sha256 *s, const struct json_doc *doc, const struct json_node *node)
{
	uint8_t type = (uint8_t)node->type;

	sha256_update(s, &type, 1);
	if (node->type == JSON_OBJECT) {
		return hash_object(s, doc, node, false);
	}
	if (node->type == JSON_STRING || node->type == JSON_NUMBER) {
		hash_bytes(s, node->str, node->len);
	}
	if (node->type == JSON_ARRAY) {
		sha256_update(s, &node->n, sizeof(node->n));
		for (const struct json_node *e = json_first(doc, node); e != NULL;
		     e = json_next(doc, e)) {
			if (hash_value(s, doc, e) < 0) {
				return -1;
			}
		}
	}
	return 0;
}

int value_digest(const struct json_doc *doc, const struct json_node *object,
                 uint8_t ret[SHA256_BYTES])
{
	static const struct json_node nothing = { .type = JSON_OBJECT };
	struct sha256 s;

	sha256_init(&s);
	if (hash_object(&s, doc, object != NULL ? object : &nothing, true) < 0) {
		return -1;
	}
	sha256_final(&s, ret);
	return 0;
}

int value_graft(struct json_doc *to, const struct json_doc *from, uint32_t *ret_node)
{
	size_t n = to->n_nodes + from->n_nodes;
	uint32_t shift = (uint32_t)to->n_nodes;

	if (n > UINT32_MAX / 2) {
		return -1;
	}
	if (n > to->room_nodes) {
		struct json_node *nodes = realloc(to->nodes, n * sizeof(*nodes));
		if (nodes == NULL) {
			return -1;
		}
		to->nodes = nodes;
		to->room_nodes = n;
	}
	for (size_t i = 0; i < from->n_nodes; i++) {
		struct json_node *node = &to->nodes[shift + i];
		*node = from->nodes[i];
		node->first += node->first != 0 ? shift : 0;
		node->next += node->next != 0 ? shift : 0;
	}
	to->n_nodes = n;
	*ret_node = shift;
	return 0;
}

char *text_cut(const char *text, size_t max)
{
	return strndup(text, utf8_cut(text, max));
}
