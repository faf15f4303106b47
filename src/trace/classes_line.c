/* classes_line.c - finds the classes of a record that has no signed end. It reads the lines and
 * applies the same rules as the writer (classes_table.c); a line contains everything that a rule
 * checks. */
#include "trace/classes.h"
#include "trace/reader.h"

static struct bytes read_bytes(const struct line *l, const char *name)
{
	const struct json_node *n = line_get(l, name);

	return json_is(n, JSON_STRING) ? (struct bytes){ n->str, n->len } : (struct bytes){ 0 };
}

static struct event read_event(const struct line *l)
{
	return (struct event){
		.kind = l->kind,
		.status = line_get_status(l),
		.violation = line_true(l, "violation"),
		.op = line_get_op(l),
		.program = read_bytes(l, "program"),
		.path = read_bytes(l, "path"),
		.path2 = read_bytes(l, "path2"),
		.mode = line_get_mode(l),
		.name = line_text(l, "name"),
		.address = line_text(l, "address"),
		.protocol = line_get_protocol(l),
		.rule = line_get_rule(l),
		.reason = line_get_reason(l),
	};
}

enum class_id classes_of_line(const struct line *l, const char *home)
{
	struct event e = read_event(l);

	return e.kind < EV_COUNT ? classes_of(&e, home).id : CLASS_NONE;
}

void classes_add_line(struct classes *c, const struct line *l)
{
	struct event e = read_event(l);

	e.times = line_times(l);
	/* A line of repeats contains only the number of the line that it repeats. */
	if (e.kind < EV_COUNT && line_get(l, "repeat_of") == NULL) {
		classes_add(c, &e, (uint64_t)l->seq);
	}
}
