/* record_events.c - makes needs from each event of a record. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/own.h"
#include "learn/record_priv.h"
#include "policy/path.h"
#include "report/overview.h"

static bool is_one_of(const char *s, const char *const *words, size_t n)
{
	return ARRAY_HAS(word, words, n, strcmp(s, *word) == 0);
}

/* ---- events ------------------------------------------------------------------------ */

static void add_need(struct record_reading *r, const struct line *l, struct need *n)
{
	n->why = (char *)(uintptr_t)r->why;
	n->count = record_times(r, l);
	r->nomem |= needs_add(r->out, n) != 0;
}

/* Returns why a need with this reason must never be granted, or NULL if it may be granted. */
static const char *danger_of(enum reason reason)
{
	return reason_is_grantable(reason) ? NULL : reason_text(reason);
}

/* Returns true if no grant would help, for example for a socket. In this case the record has a
 * remedy that is not an option of the command line such as "--read". */
static bool is_vain(const struct line *l)
{
	const char *remedy = record_text(l, "remedy");

	return remedy[0] != '\0' && strncmp(remedy, "--", 2) != 0;
}

/* Returns the innermost granted place that contains the path, or NULL if there is none. */
static const struct shown_place *place_of(const struct record_reading *r, const char *path)
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

/* Returns the path (new) as a manifest writes it: "~/x" for a path in the home. */
static char *as_value(const struct record_reading *r, const char *path)
{
	const char *rest =
	        r->home != NULL && strcmp(r->home, "/") != 0 ? path_beneath(path, r->home) : NULL;
	char *value = NULL;

	if (rest == NULL) {
		return strdup(path);
	}
	return asprintf(&value, "~%s%s", *rest != '\0' ? "/" : "", rest) < 0 ? NULL : value;
}

/* Returns the type of the file that is at this path on the host, or 0 if there is none. */
static mode_t on_host(const struct record_reading *r, const char *value)
{
	auto_free char *path = path_expand(r->owner, value);
	struct stat st;

	return path != NULL && lstat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static void add_path(struct record_reading *r, const struct line *l, const char *path, bool write,
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
		          .danger = denied ? danger_of(line_get_reason(l)) : NULL };
	if (denied && n.danger == NULL && is_vain(l)) {
		n.vain = true;
		n.danger = "no grant of this path allows what the skill tried";
	}
	/* To make a new file, the skill needs a grant of the directory. But a grant of a whole
	 * top directory such as "/srv" would be too much. */
	if (denied && dir != NULL && n.danger == NULL && path_is_top(dir)) {
		n.danger = "making a file there needs a grant of the whole directory";
	}
	add_need(r, l, &n);
}

/* Returns true if a grant of the directory is needed. It is needed to make or remove a name. It
 * is also needed for a file that does not exist yet, because a grant of a missing path makes a
 * directory. */
static bool needs_dir(const struct record_reading *r, const struct line *l, const char *path)
{
	if (op_names(line_get_op(l))) {
		return true;
	}
	auto_free char *value = as_value(r, path);
	return line_get_mode(l) == MODE_CREATE && value != NULL && on_host(r, value) != S_IFREG;
}

static bool is_read(const struct line *l)
{
	enum mode mode = line_get_mode(l);

	return mode != MODE_NONE ? mode == MODE_READ : op_reads(line_get_op(l));
}

/* Returns true if the skill tried to use a file of the owner that is hidden. Settings are ignored:
 * tools look for them and work without them. */
static bool is_missed(const struct record_reading *r, const struct line *l, const char *path)
{
	return line_get_reason(l) == REASON_NOT_GRANTED &&
	       !overview_is_settings(r->home != NULL ? r->home : "", path);
}

/* Returns true if every run of the skill may use the place without a grant. A root file system
 * that the owner chose for a run is not such a place: another run may lack it. */
static bool is_of_every_run(enum event_rule rule)
{
	return rule != RULE_NONE && rule != RULE_ENTRY && rule != RULE_ROOTFS;
}

static void add_named(struct record_reading *r, const struct line *l, bool write, bool denied)
{
	struct need n = { .kind = NEED_ARGUMENTS,
		          .value = (char *)(uintptr_t)named_files_name(write ? NAMED_WRITE
		                                                             : NAMED_READ),
		          .denied = denied };

	add_need(r, l, &n);
}

static void take_one_path(struct record_reading *r, const struct line *l, const char *path)
{
	bool denied = line_true(l, "violation") || is_missed(r, l, path);
	enum event_status status = line_get_status(l);
	const struct shown_place *place = place_of(r, path);
	bool write = !is_read(l);

	if (path[0] != '/') {
		return;
	}
	if (place != NULL && place->named && (denied || status != STATUS_DENIED)) {
		add_named(r, l, write, denied);
	} else if (denied) {
		/* A refused attempt in a directory is a need for that path, not for the whole
		 * directory. The exception is writing a file that does not exist: nothing less
		 * than the directory would help. */
		add_path(r, l, path, write, write && needs_dir(r, l, path), true);
	} else if (status != STATUS_DENIED && !is_of_every_run(line_get_rule(l)) && place != NULL &&
	           !place->own) {
		/* The name of a granted place exists already: making it again changes nothing. */
		bool itself = strcmp(place->target, path) == 0;
		add_path(r, l, path, write, write && !itself && needs_dir(r, l, path), false);
	}
}

static void take_file(struct record_reading *r, const struct line *l)
{
	const char *path = record_text(l, "path");
	const char *other = record_text(l, "path2");

	take_one_path(r, l, path);
	if (other[0] != '\0') {
		take_one_path(r, l, other);
	}
}

static enum protocol protocol_of(const char *name, enum reason reason, uint16_t port)
{
	int known = protocol_from_name(name);

	if (reason == REASON_NOT_TLS || reason == REASON_NOT_HTTP) {
		return PROTO_TCP;
	}
	if (known >= 0 && known != PROTO_TCP) {
		return (enum protocol)known;
	}
	/* A connection that was refused before its first byte has no known protocol. */
	bool said = known == PROTO_TCP && reason == REASON_OK;
	return said                       ? PROTO_TCP
	       : port == 443 || port == 0 ? PROTO_TLS
	       : port == 80               ? PROTO_HTTP
	                                  : PROTO_TCP;
}

static void take_network(struct record_reading *r, const struct line *l)
{
	const char *name = record_text(l, "name");
	const char *address = record_text(l, "address");
	enum reason reason = line_get_reason(l);
	int64_t port = json_integer(line_get(l, "port"), 0);
	bool question = line_get_protocol(l) == PROTOCOL_DNS;
	/* A datagram socket was connected to an undeclared port. This is refused, but is not a
	 * violation. */
	bool aimed = reason == REASON_UNDECLARED_PORT && !line_true(l, "violation");
	bool denied = aimed || line_true(l, "violation");

	if (reason == REASON_HOST_LOOPBACK) {
		return; /* a service of this machine is never proposed */
	}
	if (name[0] == '\0' && address[0] != '\0') {
		name = record_name(r, address) != NULL ? record_name(r, address) : address;
	}
	r->out->nameless |= question && denied && name[0] == '\0';
	if (name[0] == '\0' || port < 0 || port > UINT16_MAX ||
	    line_get_protocol(l) == PROTOCOL_UNIX) {
		return;
	}
	enum host_kind kind = HOST_EXACT;
	auto_free char *domain = NULL;
	if (domain_check(name, &domain, &kind) == NULL) {
		name = domain; /* the name in the form that rules use */
	}
	uint16_t at = question ? 0 : (uint16_t)port;
	struct need n = { .kind = NEED_NETWORK,
		          .value = (char *)(uintptr_t)name,
		          .port = at,
		          .protocol = protocol_of(record_text(l, "protocol"),
		                                  denied ? reason : REASON_OK, at),
		          .denied = denied,
		          .aimed = aimed,
		          .thief = denied && reason == REASON_CANARY,
		          .danger = denied ? danger_of(reason) : NULL };
	add_need(r, l, &n);
}

/* The total of a destination counts events that also have lines of their own. So it is used only
 * if some of these lines are missing. */
static void take_total(struct record_reading *r, const struct line *l)
{
	if (r->out->cut) {
		take_network(r, l);
	}
}

/* No request is needed for these variables: every sandbox sets them, or a preset of the owner does.
 */
static bool is_given(const struct record_reading *r, const char *name)
{
	static const char *const GIVEN[] = { "HOME", "TMPDIR",        "PATH",
		                             "LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS" };

	return (is_one_of(name, GIVEN, ARRAY_LEN(GIVEN)) || string_list_has(&r->preset, name)) &&
	       !is_one_of(name, (const char *const *)r->asked.v, r->asked.n);
}

static void take_variables(struct record_reading *r, const struct line *l, const char *list,
                           bool absent)
{
	const struct json_node *names = line_get(l, list);

	JSON_EACH (n, &l->doc, names) {
		const char *name = record_value(n);
		if (name != NULL && !is_given(r, name)) {
			struct need need = { .kind = NEED_ENV,
				             .value = (char *)(uintptr_t)name,
				             .absent = absent };
			add_need(r, l, &need);
		}
	}
}

static void take_environment(struct record_reading *r, const struct line *l)
{
	take_variables(r, l, "granted", false);
	take_variables(r, l, "absent", true);
}

static void take_program(struct record_reading *r, const struct line *l)
{
	const char *path = record_text(l, "path");

	if (path[0] == '/') {
		struct need n = { .kind = NEED_PROGRAM, .value = (char *)(uintptr_t)path };
		add_need(r, l, &n);
		take_one_path(r, l, path);
	}
}

/* Returns the profile that allows the call, an enum profile, or -1 if no profile alone does. */
static int profile_for(const struct line *l)
{
	switch (call_remedy_from(line_text(l, "remedy"))) {
	case CALL_REMEDY_DEFAULT:
		return PROFILE_DEFAULT;
	case CALL_REMEDY_PERMISSIVE:
		return PROFILE_PERMISSIVE;
	default:
		return -1;
	}
}

static void take_call(struct record_reading *r, const struct line *l)
{
	const char *op = record_text(l, "op");
	enum reason reason = line_get_reason(l);

	if (op[0] != '\0' && line_true(l, "violation")) {
		struct need n = { .kind = NEED_SYSCALL,
			          .value = (char *)(uintptr_t)op,
			          .profile = profile_for(l),
			          .denied = true };
		n.danger = n.profile == PROFILE_PERMISSIVE
		                   ? "only the profile 'permissive' allows this call, and it also "
		                     "allows many others"
		           : n.profile < 0 && danger_of(reason) == NULL
		                   ? "no profile alone allows this call"
		                   : danger_of(reason);
		add_need(r, l, &n);
	}
}

void record_event(struct record_reading *r, const struct line *l)
{
	static void (*const TAKE[EV_OTHER + 1])(struct record_reading * r, const struct line *l) = {
		[EV_FILE_READ] = take_file,
		[EV_FILE_WRITE] = take_file,
		[EV_FILE_BLOCKED] = take_file,
		[EV_DNS_RESOLUTION] = take_network,
		[EV_NETWORK_EGRESS_ALLOWED] = take_network,
		[EV_NETWORK_EGRESS_BLOCKED] = take_network,
		[EV_NETWORK_EGRESS_TOTAL] = take_total,
		[EV_ENV_VAR_ACCESS] = take_environment,
		[EV_PROCESS_SPAWNED] = take_program,
		[EV_SYSCALL_BLOCKED] = take_call,
	};

	if (TAKE[l->kind] != NULL) {
		TAKE[l->kind](r, l);
	}
}
