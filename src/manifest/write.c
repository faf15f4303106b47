/* write.c - writes a manifest as text. */
#include "manifest/write.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "manifest/resources.h"
#include "manifest/yaml_doc.h"
#include "manifest/yaml_text.h"

/* ---- texts --------------------------------------------------------------- */

bool manifest_can_say(const char *s)
{
	return strlen(s) <= MAX_SCALAR_BYTES && yaml_can_hold(s);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* True if the text needs no quotes: every YAML reader reads it, unquoted, as a string with exactly
 * this content. */
static bool is_plain(const char *s)
{
	struct ynode n = { .kind = YNODE_SCALAR, .text = (char *)(uintptr_t)s };
	bool begins = is_letter(s[0]) || s[0] == '/' || s[0] == '_' || strncmp(s, "~/", 2) == 0;
	size_t len = strlen(s);

	if (!begins || s[len - 1] == ' ' || ynode_is_null(&n) || ynode_is_bool(&n)) {
		return false;
	}
	for (const char *p = s; *p != '\0'; p++) {
		if (!is_letter(*p) && (*p < '0' || *p > '9') && strchr(" _./+-~()", *p) == NULL) {
			return false;
		}
	}
	return true;
}

void manifest_put_text(struct buf *out, const char *s)
{
	if (!manifest_can_say(s)) {
		out->failed = true;
		return;
	}
	if (is_plain(s)) {
		buf_adds(out, s);
		return;
	}
	buf_addc(out, '"');
	for (; *s != '\0'; s++) {
		switch (*s) {
		case '"':
		case '\\':
			buf_addc(out, '\\');
			buf_addc(out, *s);
			break;
		case '\n':
			buf_adds(out, "\\n");
			break;
		case '\t':
			buf_adds(out, "\\t");
			break;
		default:
			buf_addc(out, *s);
		}
	}
	buf_addc(out, '"');
}

void manifest_put_comment(struct buf *out, const char *s)
{
	auto_buf shown = BUF(MAX_YAML_BYTES);

	visible_text(&shown, s, false);
	for (size_t i = 0; i < shown.len && !shown.failed;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(shown.data + i, shown.len - i, &cp);
		if (yaml_char_problem(cp) != NULL) {
			buf_addc(out, '?');
		} else {
			buf_add(out, shown.data + i, n);
		}
		i += n;
	}
	out->failed |= shown.failed;
}

static void put_pad(struct buf *out, unsigned indent)
{
	buf_addf(out, "%*s", (int)indent, "");
}

static void put_pair(struct buf *out, unsigned indent, const char *key, const char *value)
{
	put_pad(out, indent);
	buf_addf(out, "%s: ", key);
	manifest_put_text(out, value);
	buf_addc(out, '\n');
}

static void put_head(struct buf *out, const char *head)
{
	while (head != NULL && *head != '\0') {
		size_t n = strcspn(head, "\n");
		auto_buf line = BUF(MAX_YAML_BYTES);
		buf_add(&line, head, n);
		buf_adds(out, n > 0 ? "# " : "#");
		manifest_put_comment(out, line.data != NULL ? line.data : "");
		buf_addc(out, '\n');
		head += n + (head[n] == '\n');
	}
}

/* ---- lists --------------------------------------------------------------- */

struct writer {
	struct buf *out;
	const struct manifest *m;
	const struct write_notes *notes;
};

static bool has_asides(const struct writer *w, enum write_list list)
{
	return ARRAY_HAS(aside, w->notes->asides, w->notes->n_asides, aside->list == list);
}

static void put_asides(const struct writer *w, enum write_list list, unsigned indent)
{
	for (size_t i = 0; i < w->notes->n_asides; i++) {
		const struct write_aside *a = &w->notes->asides[i];
		if (a->list != list) {
			continue;
		}
		put_pad(w->out, indent);
		buf_adds(w->out, list == WRITE_OTHER ? "# " : "# - ");
		manifest_put_comment(w->out, a->text);
		buf_adds(w->out, "  # ");
		manifest_put_comment(w->out, a->why);
		buf_addc(w->out, '\n');
	}
}

/* Writes the reason of an item, if there is one, and ends the line. */
static void put_why(const struct writer *w, enum write_list list, size_t item)
{
	const char *const *why = list < WRITE_OTHER ? w->notes->why[list] : NULL;

	if (why != NULL && why[item] != NULL) {
		buf_adds(w->out, "  # ");
		manifest_put_comment(w->out, why[item]);
	}
	buf_addc(w->out, '\n');
}

/* Writes a key. If its list has no items but only asides (`real` is false), the key is a comment,
 * too. */
static void put_key(const struct writer *w, unsigned indent, const char *key, bool real)
{
	put_pad(w->out, indent);
	buf_addf(w->out, "%s%s:\n", real ? "" : "# ", key);
}

static void put_list(const struct writer *w, unsigned indent, const char *key,
                     const struct mtext_list *l, enum write_list list)
{
	if (l->n == 0 && !has_asides(w, list)) {
		return;
	}
	put_key(w, indent, key, l->n > 0);
	for (size_t i = 0; i < l->n; i++) {
		put_pad(w->out, indent + 2);
		buf_adds(w->out, "- ");
		manifest_put_text(w->out, l->v[i].s);
		put_why(w, list, i);
	}
	put_asides(w, list, indent + 2);
}

static void put_rule(const struct writer *w, size_t at)
{
	const struct egress_rule *r = &w->m->egress[at];

	buf_adds(w->out, "      - domain: ");
	manifest_put_text(w->out, r->domain.s);
	put_why(w, WRITE_EGRESS, at);
	buf_adds(w->out, "        ports: [");
	for (size_t i = 0; i < r->n_ports; i++) {
		buf_addf(w->out, "%s%u", i > 0 ? ", " : "", (unsigned)r->ports[i]);
	}
	buf_addf(w->out, "]\n        protocol: %s\n", protocol_name(r->protocol));
}

/* ---- the parts ------------------------------------------------------------ */

/* Writes the limits that differ from their defaults (`out` NULL: writes nothing). Returns how many
 * differ. */
static size_t put_limits(struct buf *out, unsigned indent, const struct resource *rows, size_t n,
                         const void *is, const void *usual)
{
	size_t told = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t v = resource_of(is, &rows[i]);
		if (v != resource_of(usual, &rows[i])) {
			told++;
			if (out != NULL) {
				put_pad(out, indent);
				buf_addf(out, "%s: %" PRIu64 "\n", rows[i].name, v);
			}
		}
	}
	return told;
}

static bool says_network(const struct manifest *m)
{
	return m->n_egress > 0 ||
	       put_limits(NULL, 0, NET_LIMITS, NET_LIMIT_COUNT, &m->net, &NET_DEFAULTS) > 0;
}

static void put_network(const struct writer *w)
{
	const struct manifest *m = w->m;

	if (!says_network(m) && !has_asides(w, WRITE_EGRESS)) {
		return;
	}
	put_key(w, 2, "network", says_network(m));
	if (m->n_egress > 0 || has_asides(w, WRITE_EGRESS)) {
		put_key(w, 4, "egress", m->n_egress > 0);
	}
	for (size_t i = 0; i < m->n_egress; i++) {
		put_rule(w, i);
	}
	put_asides(w, WRITE_EGRESS, 6);
	(void)put_limits(w->out, 4, NET_LIMITS, NET_LIMIT_COUNT, &m->net, &NET_DEFAULTS);
}

static void put_files(const struct writer *w)
{
	const struct manifest *m = w->m;
	const char *named = named_files_name(m->arguments);
	bool real = m->read.n > 0 || m->write.n > 0 || named != NULL;

	if (!real && !has_asides(w, WRITE_READ) && !has_asides(w, WRITE_WRITE)) {
		return;
	}
	put_key(w, 2, "filesystem", real);
	put_list(w, 4, "read", &m->read, WRITE_READ);
	put_list(w, 4, "write", &m->write, WRITE_WRITE);
	if (named != NULL) {
		buf_addf(w->out, "    arguments: %s\n", named);
	}
}

static void put_permissions(const struct writer *w)
{
	const struct manifest *m = w->m;
	bool any = says_network(m) || m->read.n > 0 || m->write.n > 0 || m->env.n > 0 ||
	           m->arguments != NAMED_NOTHING || m->profile != PROFILE_DEFAULT;

	buf_addf(w->out, "\npermissions:%s\n", any ? "" : " {}");
	put_network(w);
	put_files(w);
	if (m->env.n > 0 || has_asides(w, WRITE_ENV)) {
		put_key(w, 2, "env_vars", m->env.n > 0);
		put_list(w, 4, "allow", &m->env, WRITE_ENV);
	}
	if (m->profile != PROFILE_DEFAULT) {
		buf_addf(w->out, "  syscalls:\n    profile: %s\n", profile_name(m->profile));
	}
	put_asides(w, WRITE_OTHER, 2);
}

static void put_skill(const struct writer *w)
{
	const struct manifest *m = w->m;

	buf_adds(w->out, "skill:\n");
	put_pair(w->out, 2, "name", m->name);
	put_pair(w->out, 2, "version", m->version);
	if (m->description[0] != '\0') {
		put_pair(w->out, 2, "description", m->description);
	}
	if (m->author[0] != '\0') {
		put_pair(w->out, 2, "author", m->author);
	}
	if (m->directory.s != NULL) {
		put_pair(w->out, 2, "directory", m->directory.s);
	}
}

static void put_entry(const struct writer *w)
{
	const struct manifest *m = w->m;

	if (m->command.s == NULL) {
		buf_adds(w->out, "\n" WRITE_NO_ENTRY);
		return;
	}
	buf_adds(w->out, "\nentrypoint:\n");
	put_pair(w->out, 2, "command", m->command.s);
	put_list(w, 2, "args", &m->args, WRITE_LISTS);
	if (strcmp(m->workdir, "/skill") != 0) {
		put_pair(w->out, 2, "workdir", m->workdir);
	}
}

void manifest_write(struct buf *out, const struct manifest *m, const struct write_notes *notes)
{
	static const struct write_notes none = { 0 };
	struct writer w = { out, m, notes != NULL ? notes : &none };

	put_head(out, w.notes->head);
	put_skill(&w);
	put_permissions(&w);
	if (put_limits(NULL, 0, RESOURCES, RESOURCE_COUNT, &m->resources, &RESOURCE_DEFAULTS) > 0) {
		buf_adds(out, "\nresources:\n");
		(void)put_limits(out, 2, RESOURCES, RESOURCE_COUNT, &m->resources,
		                 &RESOURCE_DEFAULTS);
	}
	put_entry(&w);
}
