/* record.c - from the lines of a record to needs.
 *
 * It is read twice: first for what stands at its end and belongs to earlier lines (how
 * often each was repeated, the names behind the addresses that a run is shown), then
 * line by line. All of it may be forged; what comes out is judged like any request. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/reader.h"
#include "audit/runs.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/needs.h"
#include "policy/paths.h"
#include "report/remedy.h"

struct repeat {
	int64_t of; /* seq of the first */
	uint64_t count;
};

struct shown_name {
	char *address; /* that stands for the host in the sandbox */
	char *name;
};

/* A granted place, in the sandbox. */
struct shown_place {
	char *target;
	bool own; /* the skill's or its interpreter's: shown without being asked for */
};

struct reading {
	const struct owner *owner;
	struct needs *out;
	const char *why;
	char *home; /* in the sandbox */
	struct repeat *repeats;
	size_t n_repeats;
	struct shown_name *names;
	size_t n_names;
	struct shown_place *places;
	size_t n_places;
	struct string_list asked; /* names of variables, as declared */
	bool begun;
	bool nomem;
};

static void reading_done(struct reading *r)
{
	for (size_t i = 0; i < r->n_names; i++) {
		free(r->names[i].address);
		free(r->names[i].name);
	}
	for (size_t i = 0; i < r->n_places; i++) {
		free(r->places[i].target);
	}
	for (size_t i = 0; i < r->asked.n; i++) {
		free(r->asked.v[i]);
	}
	free(r->asked.v);
	free(r->names);
	free(r->places);
	free(r->repeats);
	free(r->home);
}

/* A text that can be a value: whole, and no longer than a path. */
static const char *value_of(const struct json_node *n)
{
	return json_is(n, JSON_STRING) && n->len > 0 && n->len < MAX_PATH_BYTES &&
	                       strlen(n->str) == n->len
	               ? n->str
	               : NULL;
}

static const char *text_of(const struct line *l, const char *name)
{
	const char *text = value_of(line_get(l, name));

	return text != NULL ? text : "";
}

static bool is_one_of(const char *s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(s, words[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* ---- what belongs to earlier lines --------------------------------------------- */

/* One more item of `size` bytes at the end of *v; NULL past `max`. */
static void *grow(struct reading *r, void *v, size_t n, size_t max, size_t size)
{
	if (n >= max) {
		r->out->cut = true;
		return NULL;
	}
	if ((n & (n - 1)) != 0) { /* room for a power of two */
		return *(void **)v;
	}
	void *more = realloc(*(void **)v, (n == 0 ? 1 : 2 * n) * size);
	if (more == NULL) {
		r->nomem = true;
		return NULL;
	}
	*(void **)v = more;
	return more;
}

static void take_repeat(struct reading *r, int64_t of, int64_t count)
{
	if (count > 0 &&
	    grow(r, &r->repeats, r->n_repeats, MAX_NEED_REPEATS, sizeof(r->repeats[0])) != NULL) {
		r->repeats[r->n_repeats++] = (struct repeat){ of, (uint64_t)count };
	}
}

static const char *name_of(const struct reading *r, const char *address)
{
	for (size_t i = 0; i < r->n_names; i++) {
		if (strcmp(r->names[i].address, address) == 0) {
			return r->names[i].name;
		}
	}
	return NULL;
}

static void take_name(struct reading *r, const struct line *l)
{
	const char *address = text_of(l, "address_asked");
	const char *name = text_of(l, "name");

	if (address[0] == '\0' || name[0] == '\0' || name_of(r, address) != NULL ||
	    grow(r, &r->names, r->n_names, MAX_NEED_NAMES, sizeof(r->names[0])) == NULL) {
		return;
	}
	struct shown_name n = { strdup(address), strdup(name) };
	r->nomem |= n.address == NULL || n.name == NULL;
	r->names[r->n_names++] = n;
}

static void look_ahead(struct reading *r, const struct line *l)
{
	int64_t of = json_integer(line_get(l, "repeat_of"), -1);

	if (of >= 0) {
		take_repeat(r, of, json_integer(line_get(l, "count"), 0));
	} else if (strcmp(l->kind, "end") == 0) {
		const struct json_node *counters = line_get(l, "counters");
		r->out->cut |= json_integer(json_member(&l->doc, counters, "dropped"), 0) > 0;
	} else {
		take_name(r, l);
	}
}

static int by_first(const void *a, const void *b)
{
	int64_t x = ((const struct repeat *)a)->of;
	int64_t y = ((const struct repeat *)b)->of;

	return x < y ? -1 : x > y;
}

/* One for each first line. */
static void sort_repeats(struct reading *r)
{
	size_t n = 0;

	if (r->n_repeats == 0) {
		return;
	}
	qsort(r->repeats, r->n_repeats, sizeof(r->repeats[0]), by_first);
	for (size_t i = 1; i < r->n_repeats; i++) {
		if (r->repeats[i].of == r->repeats[n].of) {
			r->repeats[n].count += r->repeats[i].count;
		} else {
			r->repeats[++n] = r->repeats[i];
		}
	}
	r->n_repeats = n + 1;
}

/* How often it was done, with all that was counted later. A count with a first time has
 * one of them in a line of its own already. */
static uint64_t times_of(const struct reading *r, const struct line *l)
{
	const struct repeat key = { .of = l->seq };
	int64_t count = json_integer(line_get(l, "count"), 1);
	uint64_t here = count < 2 ? 1 : (uint64_t)count - (line_get(l, "first") != NULL);
	const struct repeat *found = NULL;

	if (r->n_repeats > 0) {
		found = bsearch(&key, r->repeats, r->n_repeats, sizeof(key), by_first);
	}
	return here + (found != NULL ? found->count : 0);
}

/* ---- the first line ------------------------------------------------------------- */

static void take_place(struct reading *r, const struct line *l, const struct json_node *n)
{
	const char *target = value_of(json_member(&l->doc, n, "target"));
	const char *origin = json_string(json_member(&l->doc, n, "origin"), "");

	if (target != NULL &&
	    grow(r, &r->places, r->n_places, 4UL * MAX_GRANTS, sizeof(r->places[0])) != NULL) {
		char *copy = strdup(target);
		r->nomem |= copy == NULL;
		r->places[r->n_places] =
		        (struct shown_place){ copy, strcmp(origin, "skill") == 0 ||
			                                    strcmp(origin, "toolchain") == 0 };
		r->n_places += copy != NULL;
	}
}

static void take_asked(struct reading *r, const char *item)
{
	static const char PREFIX[] = "environment ";

	if (strncmp(item, PREFIX, sizeof(PREFIX) - 1) == 0 &&
	    grow(r, &r->asked.v, r->asked.n, MAX_LIST_ITEMS, sizeof(r->asked.v[0])) != NULL) {
		r->asked.v[r->asked.n] = strdup(item + sizeof(PREFIX) - 1);
		r->nomem |= r->asked.v[r->asked.n] == NULL;
		r->asked.n += r->asked.v[r->asked.n] != NULL;
	}
}

static void take_run(struct reading *r, const struct line *l)
{
	const struct json_node *plan = line_get(l, "plan");
	const struct json_node *files =
	        json_member(&l->doc, json_member(&l->doc, plan, "granted"), "files");
	const char *home = value_of(json_member(&l->doc, plan, "home"));

	for (const struct json_node *n = json_first(&l->doc, files); n != NULL;
	     n = json_next(&l->doc, n)) {
		take_place(r, l, n);
	}
	for (const struct json_node *n =
	             json_first(&l->doc, json_member(&l->doc, plan, "requested"));
	     n != NULL; n = json_next(&l->doc, n)) {
		const char *item = value_of(n);
		if (item != NULL) {
			take_asked(r, item);
		}
	}
	if (r->home == NULL) {
		r->home = strdup(home != NULL && home[0] == '/' ? home : r->owner->home);
		r->nomem |= r->home == NULL;
	}
	r->begun = true;
}

/* ---- events ------------------------------------------------------------------------ */

static void add(struct reading *r, const struct line *l, struct need *n)
{
	n->why = (char *)(uintptr_t)r->why;
	n->count = times_of(r, l);
	r->nomem |= needs_add(r->out, n) != 0;
}

/* Of things that nobody should get, what they are. */
static const char *danger_of(const char *reason)
{
	static const char *const GRANTABLE[] = { "",
		                                 "outside_plan",
		                                 "read_only",
		                                 "not_declared",
		                                 "undeclared_address",
		                                 "undeclared_port",
		                                 "profile",
		                                 "no_network",
		                                 "not_tls",
		                                 "not_http" };

	return is_one_of(reason, GRANTABLE, ARRAY_LEN(GRANTABLE)) ? NULL : remedy_reason(reason);
}

/* The nearest granted place around it; NULL: none. */
static const struct shown_place *place_of(const struct reading *r, const char *path)
{
	const struct shown_place *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < r->n_places; i++) {
		size_t n = strlen(r->places[i].target);
		if (path_beneath(path, r->places[i].target) != NULL && n >= longest) {
			best = &r->places[i];
			longest = n;
		}
	}
	return best;
}

/* "~/x" of what lies in the home of the sandbox. Returns new. */
static char *as_value(const struct reading *r, const char *path)
{
	const char *rest =
	        r->home != NULL && strcmp(r->home, "/") != 0 ? path_beneath(path, r->home) : NULL;
	char *value = NULL;

	if (rest == NULL) {
		return strdup(path);
	}
	return asprintf(&value, "~%s%s", *rest != '\0' ? "/" : "", rest) < 0 ? NULL : value;
}

/* What the owner has there; 0: nothing. */
static mode_t on_host(const struct reading *r, const char *value)
{
	auto_free char *path = path_expand(r->owner, value);
	struct stat st;

	return path != NULL && lstat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static void add_path(struct reading *r, const struct line *l, const char *path, bool write,
                     bool whole_dir, bool denied)
{
	auto_free char *dir = whole_dir ? path_parent(path) : NULL;
	auto_free char *value = as_value(r, whole_dir && dir != NULL ? dir : path);

	if (value == NULL) {
		r->nomem = true;
		return;
	}
	struct need n = { .kind = write ? NEED_WRITE : NEED_READ,
		          .value = value,
		          .denied = denied,
		          .danger = denied ? danger_of(text_of(l, "reason")) : NULL };
	add(r, l, &n);
}

/* To make or remove a name needs the directory that it stands in; so does a file that
 * is still to be made, for a grant of what is not there makes a directory. */
static bool needs_dir(const struct reading *r, const struct line *l, const char *path)
{
	static const char *const NAMES[] = { "unlink",  "rmdir", "rename", "link",
		                             "symlink", "mkdir", "mknod" };

	if (is_one_of(text_of(l, "op"), NAMES, ARRAY_LEN(NAMES))) {
		return true;
	}
	auto_free char *value = as_value(r, path);
	return strcmp(text_of(l, "mode"), "create") == 0 && value != NULL &&
	       on_host(r, value) != S_IFREG;
}

static bool is_read(const struct line *l)
{
	static const char *const READS[] = { "open", "exec", "connect", "send" };
	const char *mode = text_of(l, "mode");

	return mode[0] != '\0' ? strcmp(mode, "read") == 0
	                       : is_one_of(text_of(l, "op"), READS, ARRAY_LEN(READS));
}

/* What it looked for in its home, and would have found in the owner's. Tools look for
 * files of their own there, which begin with a dot, and do without. */
static bool is_missed(const struct reading *r, const char *path)
{
	auto_free char *value = as_value(r, path);

	if (value == NULL || strncmp(value, "~/", 2) != 0 || value[2] == '.') {
		return false;
	}
	mode_t there = on_host(r, value);
	return there == S_IFREG || there == S_IFDIR;
}

static void take_one_path(struct reading *r, const struct line *l, const char *path)
{
	static const char *const FIXED[] = { "system", "private", "kernel", "skill", "view" };
	bool denied = line_true(l, "violation");
	const char *status = text_of(l, "status");
	bool fixed = is_one_of(text_of(l, "rule"), FIXED, ARRAY_LEN(FIXED));
	const struct shown_place *place = place_of(r, path);
	bool write = !is_read(l);

	if (path[0] != '/') {
		return;
	}
	if (denied) {
		/* Whole directories are not asked for by what was refused in them alone,
		 * but to write a file that is not there nothing less will do. */
		add_path(r, l, path, write, write && needs_dir(r, l, path), true);
	} else if (strcmp(status, "absent") == 0 && !write && is_missed(r, path) && place == NULL) {
		add_path(r, l, path, false, false, true);
	} else if (strcmp(status, "denied") != 0 && !fixed && place != NULL && !place->own) {
		add_path(r, l, path, write, write && needs_dir(r, l, path), false);
	}
}

static void take_file(struct reading *r, const struct line *l)
{
	const char *path = text_of(l, "path");
	const char *other = text_of(l, "path2");

	take_one_path(r, l, path);
	if (other[0] != '\0') {
		take_one_path(r, l, other);
	}
}

static enum protocol protocol_of(const char *name, const char *reason, uint16_t port)
{
	int known = protocol_from_name(name);

	if (strcmp(reason, "not_tls") == 0 || strcmp(reason, "not_http") == 0) {
		return PROTO_TCP;
	}
	if (known >= 0 && known != PROTO_TCP) {
		return (enum protocol)known;
	}
	/* Who was refused before a word was said has said nothing. */
	bool said = known == PROTO_TCP && reason[0] != '\0' && strcmp(reason, "ok") == 0;
	return said                       ? PROTO_TCP
	       : port == 443 || port == 0 ? PROTO_TLS
	       : port == 80               ? PROTO_HTTP
	                                  : PROTO_TCP;
}

static void take_network(struct reading *r, const struct line *l)
{
	const char *name = text_of(l, "name");
	const char *address = text_of(l, "address");
	const char *reason = text_of(l, "reason");
	int64_t port = json_integer(line_get(l, "port"), 0);
	bool question = strcmp(text_of(l, "protocol"), "dns") == 0;
	bool denied = line_true(l, "violation");

	if (name[0] == '\0' && address[0] != '\0') {
		name = name_of(r, address) != NULL ? name_of(r, address) : address;
	}
	if (name[0] == '\0' || port < 0 || port > UINT16_MAX ||
	    strcmp(text_of(l, "protocol"), "unix") == 0) {
		return;
	}
	enum host_kind kind = HOST_EXACT;
	auto_free char *domain = NULL;
	if (check_domain(name, &domain, &kind) == NULL) {
		name = domain; /* in the one form that rules have */
	}
	uint16_t at = question ? 0 : (uint16_t)port;
	struct need n = { .kind = NEED_NETWORK,
		          .value = (char *)(uintptr_t)name,
		          .port = at,
		          .protocol =
		                  protocol_of(text_of(l, "protocol"), denied ? reason : "ok", at),
		          .denied = denied,
		          .danger = denied ? danger_of(reason) : NULL };
	add(r, l, &n);
}

/* Every sandbox sets these, whether they are asked for or not. */
static bool is_given(const struct reading *r, const char *name)
{
	static const char *const GIVEN[] = { "HOME", "TMPDIR",        "PATH",
		                             "LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS" };

	return is_one_of(name, GIVEN, ARRAY_LEN(GIVEN)) &&
	       !is_one_of(name, (const char *const *)r->asked.v, r->asked.n);
}

static void take_variables(struct reading *r, const struct line *l, const char *list, bool absent)
{
	const struct json_node *names = line_get(l, list);

	for (const struct json_node *n = json_first(&l->doc, names); n != NULL;
	     n = json_next(&l->doc, n)) {
		const char *name = value_of(n);
		if (name != NULL && !is_given(r, name)) {
			struct need need = { .kind = NEED_ENV,
				             .value = (char *)(uintptr_t)name,
				             .absent = absent };
			add(r, l, &need);
		}
	}
}

static void take_environment(struct reading *r, const struct line *l)
{
	take_variables(r, l, "granted", false);
	take_variables(r, l, "absent", true);
}

static void take_program(struct reading *r, const struct line *l)
{
	const char *path = text_of(l, "path");

	if (path[0] == '/') {
		struct need n = { .kind = NEED_PROGRAM, .value = (char *)(uintptr_t)path };
		add(r, l, &n);
		take_one_path(r, l, path);
	}
}

static void take_call(struct reading *r, const struct line *l)
{
	const char *op = text_of(l, "op");
	const char *reason = text_of(l, "reason");

	if (op[0] != '\0' && line_true(l, "violation")) {
		struct need n = { .kind = NEED_SYSCALL,
			          .value = (char *)(uintptr_t)op,
			          .profile = strcmp(reason, "no_network") == 0 ? PROFILE_DEFAULT
			                     : strcmp(reason, "profile") == 0  ? PROFILE_PERMISSIVE
			                                                       : -1,
			          .denied = true };
		n.danger = n.profile == PROFILE_PERMISSIVE
		                   ? "only the profile permissive has it, which has many more"
		                   : danger_of(reason);
		add(r, l, &n);
	}
}

static void take_line(struct reading *r, const struct line *l)
{
	static const struct {
		const char *kind;
		void (*take)(struct reading *r, const struct line *l);
	} KINDS[] = {
		{ "run", take_run },
		{ "file_read", take_file },
		{ "file_write", take_file },
		{ "file_blocked", take_file },
		{ "dns_resolution", take_network },
		{ "network_egress_allowed", take_network },
		{ "network_egress_blocked", take_network },
		{ "env_var_access", take_environment },
		{ "process_spawned", take_program },
		{ "syscall_blocked", take_call },
	};

	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		if (strcmp(l->kind, KINDS[i].kind) == 0 && line_get(l, "repeat_of") == NULL) {
			KINDS[i].take(r, l);
			return;
		}
	}
}

/* ---- the whole ------------------------------------------------------------------- */

static int each_line(struct reading *r, int fd, void (*take)(struct reading *, const struct line *),
                     struct ssb_error *err)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	enum reader_line got;

	reader_init(&in, fd, 0);
	for (uint64_t at = 1; (got = reader_next(&in, &text, &len)) == READER_LINE; at++) {
		if (at == 1 && reader_is_header(text, len)) {
			continue;
		}
		if (line_parse(&l, text, len, &why) != 0) {
			return ssb_fail(err, SSB_E_MANIFEST, 0, "record",
			                "%s: line %llu is no record (%s); see 'audit verify'",
			                r->why, (unsigned long long)at, why);
		}
		take(r, &l);
		if (r->nomem) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "record", "out of memory");
		}
	}
	if (got == READER_FAIL) {
		return ssb_fail(err, SSB_E_SYS, errno, "record", "cannot read the record");
	}
	return got != READER_LONG
	               ? 0
	               : ssb_fail(err, SSB_E_LIMIT, 0, "record", "%s: a line is too long", r->why);
}

int needs_from_record(const struct owner *o, int fd, const char *why, struct needs *inout,
                      struct ssb_error *err)
{
	AUTO(reading_done) struct reading r = { .owner = o, .out = inout, .why = why };

	if (each_line(&r, fd, look_ahead, err) != 0) {
		return -1;
	}
	sort_repeats(&r);
	if (each_line(&r, fd, take_line, err) != 0) {
		return -1;
	}
	if (!r.begun) {
		return ssb_fail(err, SSB_E_MANIFEST, 0, "record", "%s: this is no record of a run",
		                why);
	}
	return needs_judge(o, NULL, inout, err);
}

int needs_from_run(const struct owner *o, const char *word, struct needs *inout,
                   struct ssb_error *err)
{
	AUTO(run_file_done) struct run_file file = RUN_FILE_NONE;
	auto_free char *why = NULL;

	if (run_file_open(&file, o->state_dir, word, err) != 0) {
		return -1;
	}
	int n = file.id[0] != '\0' ? asprintf(&why, "run %.8s", file.id)
	                           : asprintf(&why, "%s", file.path);
	if (n < 0) {
		why = NULL;
		return ssb_fail(err, SSB_E_NOMEM, 0, "record", "out of memory");
	}
	return needs_from_record(o, file.fd, why, inout, err);
}
