/* words_say.c - explains each request to a person who has never seen a manifest: what the skill
 * could do, with which thing, and what could happen then. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "consent/words_priv.h"
#include "manifest/resources.h"
#include "policy/danger.h"
#include "policy/secrets.h"

/* For each limit, the words before and after its amount. */
static const struct {
	const char *name;
	const char *before;
	const char *after;
} LIMITS[] = {
	{ "memory_mb", "use up to ", " of memory" },
	{ "cpu_shares", "take ", " shares of the processor" },
	{ "max_runtime_seconds", "run for up to ", "" },
	{ "max_output_bytes", "print up to ", "" },
	{ "max_processes", "start up to ", " processes" },
	{ "max_open_files", "hold up to ", " files open" },
	{ "max_disk_mb", "fill up to ", " of private disk space, which is kept in memory" },
	{ "max_connections", "hold up to ", " connections" },
	{ "max_connections_per_second", "make up to ", " connections a second" },
	{ "max_bytes_out", "send up to ", "" },
	{ "max_bytes_in", "receive up to ", "" },
};

/* Usual names of places that contain secrets (danger_named()), and what another person could
 * do with the secrets. A file in such a place is described with the name of the place. */
static const struct {
	const char *path;
	const char *name;
	const char *why;
} PLACES[] = {
	{ "~/.ssh", "your SSH keys", "whoever has them can log in as you" },
	{ "~/.gnupg", "your PGP keys", "whoever has them can sign and decrypt as you" },
	{ "~/.aws", "your AWS credentials", "whoever has them can use your account and money" },
	{ "~/.azure", "your Azure credentials", "whoever has them can use your account and money" },
	{ "~/.config/gcloud", "your Google Cloud credentials",
	  "whoever has them can use your account and money" },
	{ "~/.kube", "your Kubernetes credentials", "whoever has them commands your cluster" },
	{ "~/.docker", "your registry credentials", "whoever has them can publish images as you" },
	{ "~/.npmrc", "your npm token", "whoever has it can publish packages as you" },
	{ "~/.pypirc", "your PyPI token", "whoever has it can publish packages as you" },
	{ "~/.netrc", "your passwords", "whoever has them can log in as you" },
	{ "~/.git-credentials", "your git passwords", "whoever has them can push as you" },
	{ "~/.config/gh", "your GitHub token", "whoever has it acts as you on GitHub" },
	{ "~/.password-store", "your passwords", "whoever has them can log in as you" },
	{ "~/.mozilla", "your browser's cookies and passwords",
	  "whoever has them is logged in as you" },
	{ "~/.config/google-chrome", "your browser's cookies and passwords",
	  "whoever has them is logged in as you" },
	{ "~/.config/chromium", "your browser's cookies and passwords",
	  "whoever has them is logged in as you" },
	{ "/etc/shadow", "the password hashes of this machine",
	  "whoever has them can try to guess the passwords" },
};

static enum ability_kind kind_of(const char *asked, const char **ret_value)
{
	static const enum ability_kind KINDS[] = {
		[REQUESTED_NETWORK] = ABILITY_NETWORK, [REQUESTED_READ] = ABILITY_READ,
		[REQUESTED_WRITE] = ABILITY_WRITE,     [REQUESTED_ENV] = ABILITY_ENV,
		[REQUESTED_PROFILE] = ABILITY_OTHER,   [REQUESTED_PROGRAMS] = ABILITY_PROGRAMS,
		[REQUESTED_LIMIT] = ABILITY_LIMIT,     [REQUESTED_OTHER] = ABILITY_OTHER,
		[REQUESTED_ARGUMENTS] = ABILITY_READ,
	};
	enum requested_kind requested = plan_requested_kind(asked, ret_value);
	enum ability_kind kind = KINDS[requested];

	if (requested == REQUESTED_ARGUMENTS) {
		kind = named_files_from(*ret_value) == NAMED_WRITE ? ABILITY_WRITE : ABILITY_READ;
		*ret_value = asked; /* it must not be taken for a path */
	}
	if (kind == ABILITY_OTHER) {
		*ret_value = asked;
	}
	return kind;
}

/* Makes the reason of a refusal visible. This program wrote the reason, but not the paths in

 * it. */
static char *visible_why(const struct refusal *r)
{
	auto_buf out = BUF(MAX_SENTENCE);

	words_plain(&out, r->why);
	return buf_steal(&out);
}

/* ---- the network --------------------------------------------------------- */

/* "HOST", "HOST:80,443", "[ADDR]:80/udp" */
struct endpoint {
	char *host;           /* new */
	char *ports;          /* new; "443" if none is given */
	const char *protocol; /* "/udp"; "": the usual protocol of the ports */
};

static void endpoint_done(struct endpoint *p)
{
	free(p->host);
	free(p->ports);
}

/* Returns where the host ends and the port begins. An IPv6 address is in brackets, or has no
 * port. */
static const char *host_end(const char *value)
{
	const char *colon = strchr(value, ':');
	const char *bracket = value[0] == '[' ? strchr(value, ']') : NULL;
	bool address = colon != NULL && strchr(colon + 1, ':') != NULL;

	return bracket != NULL ? bracket : colon != NULL && !address ? colon : strchr(value, '\0');
}

static int endpoint_parse(const char *value, struct endpoint *ret)
{
	const char *end = host_end(value);
	const char *host = value + (*end == ']' ? 1 : 0);
	const char *ports = end + (*end == ']' ? 1 : 0);

	ports = *ports == ':' ? ports + 1 : "443";
	size_t len = strspn(ports, "0123456789,");
	*ret = (struct endpoint){
		.host = strndup(host, (size_t)(end - host)),
		.ports = strndup(ports, len),
		.protocol = ports + len,
	};
	return ret->host == NULL || ret->ports == NULL ? -1 : 0;
}

static const char *protocol_words(const struct endpoint *at)
{
	static const struct {
		const char *said; /* the protocol or, if none is named, the ports */
		const char *words;
	} KNOWN[] = { { "/udp", " (UDP)" }, { "/tls", " (TLS)" }, { "/http", " (HTTP)" },
		      { "443", " (TLS)" },  { "80", " (HTTP)" },  { "22", " (SSH)" },
		      { "25", " (mail)" },  { "53", " (DNS)" } };
	const char *said = *at->protocol != '\0' ? at->protocol : at->ports;

	for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
		if (strcmp(KNOWN[i].said, said) == 0) {
			return KNOWN[i].words;
		}
	}
	return "";
}

static int say_network(const char *value, struct buf *text, struct buf *thing)
{
	AUTO(endpoint_done) struct endpoint at = { 0 };

	if (endpoint_parse(value, &at) != 0) {
		return -1;
	}
	bool wild = strncmp(at.host, "*.", 2) == 0;
	bool range = strchr(at.host, '/') != NULL;
	buf_adds(thing, wild ? "every host beneath " : range ? "every address in " : "");
	words_quote(thing, wild ? at.host + 2 : at.host);
	if (thing->failed) {
		return -1;
	}
	buf_addf(text, "connect to %s, port%s ", thing->data,
	         strchr(at.ports, ',') != NULL ? "s" : "");
	for (const char *p = at.ports; *p != '\0'; p++) {
		buf_addc(text, *p);
		buf_adds(text, *p == ',' ? " " : "");
	}
	buf_adds(text, protocol_words(&at));
	return 0;
}

/* ---- files --------------------------------------------------------------- */

static bool is_beneath(const char *path, const char *place)
{
	size_t n = strlen(place);

	return strncmp(path, place, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Returns the grant whose path is the requested one. Returns NULL if there is none: nothing was
 * granted, or the requested path leads to another path by a symlink. */
static const struct grant *grant_of(const struct ssb_plan *p, const char *value)
{
	bool home = value[0] == '~' && p->home != NULL;
	size_t n = home ? strlen(p->home) : 0;

	for (size_t i = 0; i < p->n_grants; i++) {
		const char *path = p->grants[i].path;
		if (home ? strncmp(path, p->home, n) == 0 && strcmp(path + n, value + 1) == 0
		         : strcmp(path, value) == 0) {
			return &p->grants[i];
		}
	}
	return NULL;
}

static void say_where(const struct ssb_plan *p, const char *value, struct buf *text,
                      const char *thing)
{
	const struct grant *g = grant_of(p, value);

	buf_addf(text, "%s%s",
	         g == NULL   ? "what is in "
	         : g->is_dir ? "every file in "
	                     : "the file ",
	         thing);
}

/* Describes the files that the caller names in the arguments. Returns false if the request is about
 * something else. */
static bool say_arguments(const struct ability *a, struct buf *text, struct buf *thing)
{
	const char *value;

	if (plan_requested_kind(a->asked, &value) != REQUESTED_ARGUMENTS) {
		return false;
	}
	buf_adds(thing, "the files you name when you call it");
	buf_addf(text, "%sthe files you name when you call it",
	         named_files_from(value) == NAMED_WRITE ? "read and change " : "read ");
	return true;
}

static int say_files(const struct ssb_plan *p, const char *value, struct ability *a,
                     struct buf *text, struct buf *thing)
{
	const char *verb = a->kind == ABILITY_WRITE ? "read, change and delete " : "read ";
	auto_buf path = BUF(MAX_SENTENCE);

	words_quote(&path, value);
	if (path.failed) {
		return -1;
	}
	a->secret = danger_named("~", value) != NULL ||
	            (p->home != NULL && danger_named(p->home, value) != NULL);
	for (size_t i = 0; i < ARRAY_LEN(PLACES) && a->secret; i++) {
		if (is_beneath(value, PLACES[i].path)) {
			a->why = strdup(PLACES[i].why);
			buf_addf(thing, "%s (%s)", PLACES[i].name, path.data);
			buf_addf(text, "%s%s (%s)", verb, PLACES[i].name, path.data);
			return a->why != NULL ? 0 : -1;
		}
	}
	const char *name = strcmp(value, "~") == 0 || strcmp(value, "~/") == 0
	                           ? "your whole home directory"
	                   : strcmp(value, "/") == 0 ? "the whole machine"
	                                             : path.data;
	buf_addf(thing, "%s%s", a->secret ? "the secrets in " : "", name);
	buf_adds(text, verb);
	say_where(p, value, text, name);
	return 0;
}

/* ---- the rest ------------------------------------------------------------ */

static int say_env(const char *value, struct ability *a, struct buf *text, struct buf *thing)
{
	const char *opens = NULL;
	enum secret kind = secret_of(value, &opens);

	buf_adds(thing, "the variable ");
	words_quote(thing, value);
	buf_adds(text, "see the variable ");
	words_quote(text, value);
	if (kind != SECRET_NOT) {
		auto_buf why = BUF(256);

		buf_addf(&why, "a key%s%s: whoever has it can use it as you",
		         opens != NULL ? " to " : " or a password, judging by its name",
		         opens != NULL ? opens : "");
		a->secret = true;
		a->why = buf_steal(&why);
		return a->why != NULL ? 0 : -1;
	}
	return 0;
}

static const struct resource *find_limit(const char *name)
{
	for (size_t i = 0; i < RESOURCE_COUNT + NET_LIMIT_COUNT; i++) {
		const struct resource *r =
		        i < RESOURCE_COUNT ? &RESOURCES[i] : &NET_LIMITS[i - RESOURCE_COUNT];
		if (strcmp(r->name, name) == 0) {
			return r;
		}
	}
	return NULL;
}

/* Describes a limit "NAME NUMBER". Returns false if LIMITS does not have it. */
static bool say_limit(const char *value, struct buf *text, struct buf *thing)
{
	for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
		size_t n = strlen(LIMITS[i].name);
		const struct resource *r = find_limit(LIMITS[i].name);
		uint64_t v = 0;
		if (strncmp(value, LIMITS[i].name, n) != 0 || value[n] != ' ' || r == NULL ||
		    !resource_number(value + n + 1, UNIT_COUNT, &v) || v > r->most) {
			continue;
		}
		resource_amount(thing, r->unit, v);
		buf_adds(thing, LIMITS[i].after);
		buf_addf(text, "%s%s", LIMITS[i].before, thing->failed ? "" : thing->data);
		return true;
	}
	return false;
}

static void say_programs(const char *value, struct buf *text, struct buf *thing)
{
	buf_adds(thing, "the programs in ");
	words_quote(thing, value);
	buf_adds(text, "use the programs in ");
	words_quote(text, value);
	buf_adds(text, ", and read every file there");
}

static int say_other(const char *value, struct ability *a, struct buf *text, struct buf *thing)
{
	const char *name;

	if (plan_requested_kind(value, &name) == REQUESTED_PROFILE &&
	    profile_from_name(name) == PROFILE_PERMISSIVE) {
		buf_adds(text, "make almost every system call");
		buf_adds(thing, "almost every system call");
		a->why = strdup("more of the kernel can be attacked");
		return a->why != NULL ? 0 : -1;
	}
	words_plain(text, value);
	words_plain(thing, value);
	return 0;
}

int words_say(const struct ssb_plan *p, const struct refusal *r, struct ability *a)
{
	auto_buf text = BUF(MAX_SENTENCE), thing = BUF(MAX_SENTENCE);
	int rc = -1;

	a->kind = kind_of(a->asked, &a->value);
	switch (a->kind) {
	case ABILITY_NETWORK:
		rc = say_network(a->value, &text, &thing);
		break;
	case ABILITY_READ:
	case ABILITY_WRITE:
		rc = say_arguments(a, &text, &thing) ? 0 : say_files(p, a->value, a, &text, &thing);
		break;
	case ABILITY_ENV:
		rc = say_env(a->value, a, &text, &thing);
		break;
	case ABILITY_PROGRAMS:
		say_programs(a->value, &text, &thing);
		rc = 0;
		break;
	case ABILITY_LIMIT:
		rc = say_limit(a->value, &text, &thing) ? 0 : say_other(a->asked, a, &text, &thing);
		break;
	case ABILITY_OTHER:
		rc = say_other(a->value, a, &text, &thing);
		break;
	}
	if (rc == 0 && a->why == NULL && r != NULL) {
		a->why = visible_why(r);
		rc = a->why != NULL ? 0 : -1;
	}
	a->text = rc == 0 ? buf_steal(&text) : NULL;
	a->thing = rc == 0 ? buf_steal(&thing) : NULL;
	return a->text != NULL && a->thing != NULL ? 0 : -1;
}
