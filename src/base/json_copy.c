#include "base/json_copy.h"

void json_copy(struct json *j, const struct json_doc *doc, const struct json_node *node)
{
	switch (node->type) {
	case JSON_NULL:
		json_null(j);
		break;
	case JSON_FALSE:
	case JSON_TRUE:
		json_bool(j, node->type == JSON_TRUE);
		break;
	case JSON_NUMBER:
		json_raw(j, node->str, node->len);
		break;
	case JSON_STRING:
		json_strn(j, node->str, node->len);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		json_open(j, node->type == JSON_OBJECT ? '{' : '[');
		for (const struct json_node *n = json_first(doc, node); n != NULL;
		     n = json_next(doc, n)) {
			if (n->key != NULL) {
				json_key(j, n->key);
			}
			json_copy(j, doc, n);
		}
		json_close(j, node->type == JSON_OBJECT ? '}' : ']');
		break;
	}
}
