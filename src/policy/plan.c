/* plan.c - builds a plan: manifest ∩ owner's policy file ∩ owner's options, in order of growing
 * authority. The owner's options are read first, so that a request of the manifest can be
 * recognised as already granted. */
#include "policy/plan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/own_dirs.h"
#include "policy/owner.h"
#include "policy/view.h"
#include "skill/skill.h"

/* the most bytes of script names in a message; further names are only counted */
#define SCRIPT_NAMES 160 /* bytes for the names of a skill's scripts */

#define BUILD_OF(q, d)                                                                             \
	{                                                                                          \
		.request = (q), .owner = (q)->owner, .opt = (q)->options, .diags = (d)             \
	}

static void build_done(struct build *b)
{
	policy_done(&b->policy);
	danger_free(b->danger);
	ssb_plan_free(b->plan);
	for (size_t i = 0; i < b->n_presets; i++) {
		preset_done(&b->presets[i]);
	}
	free(b->presets);
	free(b->tool_bin);
	string_list_done(&b->ca_env);
	string_list_done(&b->given_env);
	arguments_done(b);
}

/* ---- paths ---------------------------------------------------------------- */

static void add_flags(struct build *b, const struct string_list *l, enum access access)
{
	const char *where = options_flag(access == ACCESS_WRITE ? SSB_OPT_WRITE : SSB_OPT_READ);

	for (size_t i = 0; i < l->n; i++) {
		resolve_request(b, &(struct path_request){ l->v[i], access, ORIGIN_FLAG, where,
		                                           NULL, NULL, false });
	}
}

static void add_always(struct build *b, enum policy_list list, enum access access)
{
	const struct mtext_list *l = &b->policy.lists[list];
	char where[192];

	for (size_t i = 0; i < l->n; i++) {
		policy_where(&b->policy, &l->v[i], where, sizeof(where));
		resolve_request(b, &(struct path_request){ l->v[i].s, access, ORIGIN_POLICY, where,
		                                           NULL, NULL, false });
	}
}

/* Returns why the directory is not one of a project, or NULL. A home directory, and one around a
 * home, contains everything that the sandbox is there to protect. */
static const char *no_project(const struct build *b, const char *dir)
{
	auto_free char *real = path_real(dir);
	auto_free char *home = path_real(b->owner->home);

	return real == NULL || home == NULL       ? "it cannot be examined"
	       : path_beneath(home, real) != NULL ? "it is your home directory, or contains it"
	       : path_is_top(real)                ? "it is a top directory of the machine"
	                                          : NULL;
}

/* Grants the project directory: the one that the owner names, or the current directory if the
 * policy file says so and it can be one. */
static void add_project(struct build *b)
{
	bool named = b->opt->project != NULL;
	const char *dir = named ? b->opt->project : ".";
	enum access access = named ? b->opt->project_access : (enum access)b->policy.project;
	char where[192];

	if (!named && b->policy.project < 0) {
		return;
	}
	if (named) {
		snprintf(where, sizeof(where), "%s",
		         options_flag(access == ACCESS_WRITE ? SSB_OPT_PROJECT
		                                             : SSB_OPT_PROJECT_READ));
	} else {
		policy_where(&b->policy, &b->policy.project_at, where, sizeof(where));
	}
	const char *why = no_project(b, dir);
	if (why == NULL) {
		resolve_request(b, &(struct path_request){ dir, access,
		                                           named ? ORIGIN_FLAG : ORIGIN_POLICY,
		                                           where, NULL, NULL, false });
	} else if (named) {
		build_refuse(b, REFUSAL_OTHER, where, dir, why,
		             "name the directory of a project; to grant this one in spite of that: "
		             "--write or --read");
	}
}

/* Resolves a path that an approval gives, like a path of the owner's flag. */
static void add_given(struct build *b, const char *path, enum access access)
{
	resolve_request(b,
	                &(struct path_request){
	                        path, access, ORIGIN_FLAG,
	                        options_flag(access == ACCESS_WRITE ? SSB_OPT_WRITE : SSB_OPT_READ),
	                        NULL, NULL, false });
}

/* If a sidecar that names no directory requests to write `path`, only the owner can allow it.
 * Returns true if the request was granted by the approval, or was withheld. */
static bool add_unbound(struct build *b, const char *where, const char *what, const char *path)
{
	if (b->unbound && build_gives(b, SSB_OPT_WRITE, path)) {
		add_given(b, path, ACCESS_WRITE);
		return true;
	}
	return build_unbound(b, where, what, path);
}

/* Adds one path that the skill asks for. `owned`: the owner added it, not the manifest. */
static void add_wanted(struct build *b, const char *path, const char *where, enum access access,
                       bool owned)
{
	auto_free char *what = build_printf(b, "%s%s", build_access_words(access), path);
	enum refusal_kind kind = access == ACCESS_WRITE ? REFUSAL_WRITE : REFUSAL_READ;
	size_t n = b->plan->n_grants;

	if (what != NULL) {
		build_add(b, &b->plan->requested, what, MAX_REQUESTS);
	}
	if (what == NULL || build_taken_out(b, kind, where, what) ||
	    (!owned && access == ACCESS_WRITE && add_unbound(b, where, what, path)) ||
	    b->opt->learn.mode != LEARNING_NOT) {
		return;
	}
	b->lifted = false;
	resolve_request(b, &(struct path_request){ path, access, ORIGIN_MANIFEST, where, NULL, NULL,
	                                           false });
	if (b->lifted) {
		add_given(b, path, access);
	}
	for (; owned && n < b->plan->n_grants; n++) {
		b->plan->grants[n].unasked = false;
	}
}

static void add_declared(struct build *b, const struct mtext_list *l, enum access access)
{
	char where[192];

	for (size_t i = 0; i < l->n; i++) {
		build_where(b, &l->v[i], where, sizeof(where));
		add_wanted(b, l->v[i].s, where, access, false);
	}
}

/* Adds the paths of the remembered grants. */
static void add_remembered(struct build *b, enum ssb_option option, enum access access)
{
	const struct plan_consent *c = &b->request->consent;

	for (size_t i = 0; i < c->n_asked; i++) {
		if (c->asked[i].option == option) {
			add_wanted(b, c->asked[i].value, WHERE_REMEMBERED, access, true);
		}
	}
}

static void add_paths(struct build *b)
{
	/* Writes before reads, so that a path declared for both becomes one grant. */
	add_flags(b, &b->opt->write, ACCESS_WRITE);
	add_flags(b, &b->opt->read, ACCESS_READ);
	add_project(b);
	add_always(b, POLICY_ALWAYS_WRITE, ACCESS_WRITE);
	add_always(b, POLICY_ALWAYS_READ, ACCESS_READ);
	preset_add_paths(b);
	if (b->manifest != NULL) {
		add_remembered(b, SSB_OPT_WRITE, ACCESS_WRITE);
		add_remembered(b, SSB_OPT_READ, ACCESS_READ);
		add_declared(b, &b->manifest->write, ACCESS_WRITE);
		add_declared(b, &b->manifest->read, ACCESS_READ);
		resolve_skill(b);
		arguments_build(b);
	}
	for (size_t i = 0; i < b->opt->learn.n_stand_ins; i++) {
		resolve_stand_in(b, &b->opt->learn.stand_ins[i]);
	}
}

/* Returns the home in the sandbox, where a private tmpfs is mounted. It has the path of the owner's
 * home, so that "~" means the same inside, unless the sandbox uses that path itself. */
static const char *sandbox_home(const struct owner *o)
{
	return view_claimed(o->home, VIEW_OURS | VIEW_ITSELF) ? "/home/skill" : o->home;
}

/* True if `path` is or lies in a cover that does not contain the grant as a whole. */
static bool is_covered(const struct ssb_plan *p, const struct grant *g, const char *path)
{
	for (size_t i = 0; i < p->n_covers; i++) {
		const char *target = p->covers[i].target;
		if (path_beneath(path, target) != NULL && path_beneath(g->target, target) == NULL) {
			return true;
		}
	}
	return false;
}

/* Returns whether the directory has the same path in the sandbox: the host's system shows it, or
 * something in it is granted. The root, where services start, does not count. */
static bool is_shown(const struct ssb_plan *p, const char *dir)
{
	bool shown = p->rootfs.path == NULL && view_is_system(dir);

	for (size_t i = 0; dir[1] != '\0' && i < p->n_grants && !shown; i++) {
		const struct grant *g = &p->grants[i];
		shown = strcmp(g->path, g->target) == 0 && path_beneath(g->path, dir) != NULL;
	}
	return shown;
}

/* Returns the path in the sandbox of the current directory; new; NULL: the sandbox does not show
 * it. */
static char *shown_cwd(const struct ssb_plan *p)
{
	auto_free char *cwd = getcwd(NULL, 0);

	if (cwd == NULL || cwd[0] != '/') {
		return NULL;
	}
	if (p->n_grants == 0) {
		return is_shown(p, cwd) ? steal_ptr(&cwd) : NULL;
	}
	auto_fd fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct chain c;

	if (fd < 0 || chain_from(fd, cwd, &c) < 0) {
		return NULL;
	}
	const char *tail = cwd + strlen(cwd);
	for (size_t up = 0; up < c.n; up++) {
		for (size_t i = 0; i < p->n_grants; i++) {
			const struct grant *g = &p->grants[i];
			if (g->is_dir && !g->create &&
			    object_same(c.v[up], (struct object){ g->dev, g->ino })) {
				auto_free char *dir =
				        path_join(g->target, *tail == '/' ? tail + 1 : tail);
				return dir != NULL && !is_covered(p, g, dir) ? steal_ptr(&dir)
				                                             : NULL;
			}
		}
		while (tail > cwd && *--tail != '/') {
		}
	}
	return is_shown(p, cwd) ? steal_ptr(&cwd) : NULL;
}

/* Copies the approval, because the plan keeps nothing of the request. */
static void set_approval(struct build *b)
{
	const struct plan_approval *from = &b->request->consent.approval;

	b->plan->consent_state = b->request->consent.state;
	if (from->by == NULL) {
		return;
	}
	struct plan_approval *a = b->plan->approved = calloc(1, sizeof(*a));
	if (a == NULL) {
		b->failed = true;
		return;
	}
	a->snapshot = from->snapshot;
	a->counted = from->counted;
	a->by = build_printf(b, "%s", from->by);
	a->at = build_printf(b, "%s", from->at);
	a->tree = build_printf(b, "%s", from->tree);
}

static void set_simple(struct build *b)
{
	struct ssb_plan *p = b->plan;
	bool served = b->request->served;

	p->best_effort = b->opt->best_effort | b->policy.best_effort;
	p->tty = served ? TTY_NO : b->opt->tty;
	p->toolchain_auto = b->opt->toolchain_given || b->policy.toolchain < 0
	                            ? b->opt->toolchain_auto
	                            : b->policy.toolchain != 0;
	if (b->opt->trace_output != NULL && !served) {
		p->trace_output = build_printf(b, "%s", b->opt->trace_output);
	}
	p->home = build_printf(b, "%s", sandbox_home(b->owner));
	p->consent = b->policy.consent;
	set_approval(b);
}

/* ---- the two entry points --------------------------------------------------- */

static int add_arguments(struct build *b, char *const args[], struct ssb_error *err)
{
	size_t bytes = 0;

	for (size_t i = 0; args != NULL && args[i] != NULL; i++) {
		if (b->plan->argv.n >= MAX_ARGS) {
			return ssb_fail(err, SSB_E_LIMIT, 0, "arguments", "more than %d arguments",
			                MAX_ARGS);
		}
		build_add(b, &b->plan->argv, args[i], MAX_ARGS);
	}
	for (size_t i = 0; i < b->plan->argv.n; i++) {
		bytes += strlen(b->plan->argv.v[i]) + 1;
	}
	if (bytes > MAX_ARG_BYTES) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "arguments",
		                "the arguments have %zu bytes together; the limit is %d", bytes,
		                MAX_ARG_BYTES);
	}
	return 0;
}

/* Gives the plan the owner's secret places, which the observer compares with paths of the sandbox.
 * If the home has another path in the sandbox, the paths cannot be compared: then it does
 * nothing. */
static void take_stores(struct build *b)
{
	struct ssb_plan *p = b->plan;

	if (!b->failed && b->danger != NULL && strcmp(p->home, b->owner->home) == 0) {
		b->failed = danger_stores(b->danger, p->home, &p->stores) != 0;
		p->stores_known = true;
	}
}

/* Builds the rest of a plan whose names and argv are set. */
static int build_plan(struct build *b, struct ssb_plan **ret_plan, struct ssb_error *err)
{
	set_simple(b);
	if (preset_build(b, err) != 0) {
		return -1;
	}
	if (b->failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	rootfs_build(b);
	add_paths(b);
	network_build(b);
	upstream_build(b);
	if (b->opt->rootfs == NULL) { /* these need the host's directories at the host's paths */
		ca_build(b);
		toolchain_build(b);
	}
	cache_build(b);
	grants_finish(b);
	own_build_covers(b);
	if (env_build(b, err) < 0) {
		return -1;
	}
	settings_build(b);
	withhold_finish(b);
	if (b->manifest == NULL || b->plan->by_script || b->opt->shell != NULL ||
	    skill_format_derived(b->plan->format)) {
		b->plan->workdir = shown_cwd(b->plan);
		b->plan->elsewhere = b->plan->workdir == NULL;
	}
	if (b->plan->workdir == NULL) {
		b->plan->workdir = build_printf(b, "%s",
		                                b->manifest != NULL       ? b->manifest->workdir
		                                : b->opt->workdir != NULL ? b->opt->workdir
		                                                          : b->plan->home);
	}
	arguments_rewrite(b);
	narrow_build(b);
	take_stores(b);
	if (b->failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	*ret_plan = steal_ptr(&b->plan);
	return 0;
}

static int begin_build(struct build *b, struct ssb_error *err)
{
	policy_init(&b->policy);
	b->plan = build_new_plan();
	if (b->plan == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	return policy_load(b->owner, b->opt, &b->policy, b->diags, err);
}

OWN_FREEP(freep_options, struct ssb_options, ssb_options_free)

/* Begins the build. Sets defaults if the caller gave no options or no list for findings. */
static int with_defaults(struct build *b, struct ssb_options **ret_o, struct ssb_diags **ret_d,
                         struct ssb_error *err)
{
	if (b->opt == NULL) {
		b->opt = *ret_o = ssb_options_new();
	}
	if (b->diags == NULL) {
		b->diags = *ret_d = ssb_diags_new();
	}
	if (b->opt == NULL || b->diags == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	return begin_build(b, err);
}

static int decide_command(const struct plan_request *q, struct ssb_plan **ret_plan,
                          struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(freep_options) struct ssb_options *own_o = NULL;
	AUTO(diags_freep) struct ssb_diags *own_d = NULL;
	AUTO(build_done) struct build b = BUILD_OF(q, diags);
	char *const *argv = q->args;

	if (argv == NULL || argv[0] == NULL || argv[0][0] == '\0') {
		return ssb_fail(err, SSB_E_USAGE, 0, "command", "there is no command to run");
	}
	if (with_defaults(&b, &own_o, &own_d, err) < 0) {
		return -1;
	}
	b.plan->name = build_printf(&b, "%s", path_base(argv[0]));
	b.plan->version = build_printf(&b, "%s", "");
	if (add_arguments(&b, argv, err) < 0) {
		return -1;
	}
	return build_plan(&b, ret_plan, err);
}

/* Adds the findings about a manifest to the diags, and each alarm also to the warnings of the plan.
 * If `in_plan`, adds each warning to them, too: the file was read leniently, and the warning is
 * about unusual content in it. */
static void tell_findings(struct build *b, const struct ssb_diags *found, bool in_plan)
{
	for (size_t i = 0; i < ssb_diags_count(found); i++) {
		const struct ssb_diag *d = ssb_diags_get(found, i);
		diag_add(b->diags, d->severity, d->where, d->remedy, "%s", d->text);
		if ((in_plan && d->severity == SSB_WARNING) || d->severity == SSB_ALARM) {
			build_add(b, &b->plan->warnings, d->text, 8UL * MAX_GRANTS);
		}
	}
}

static int find_skill(struct build *b, const struct skill_dir *dir, const struct skill_dir *source,
                      struct skill_found *ret, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *found = ssb_diags_new();

	if (found == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	int failed =
	        skill_find_in(dir, source, b->owner->config_dir, b->request->args, ret, found, err);
	tell_findings(b, found, failed == 0 && skill_format_derived(ret->format));
	return failed;
}

/* Lists the scripts for people. A skill without any manifest is run often and asks for little, so
 * its scripts are listed only if the caller must name one. */
static void set_scripts(struct build *b, const struct skill_found *found)
{
	auto_buf names = BUF(SCRIPT_NAMES);

	b->plan->by_script = b->manifest->command.s == NULL;
	if (b->plan->by_script && (found->no_entry || !skill_format_derived(found->format))) {
		skill_scripts(b->source, &names);
		b->plan->scripts = build_printf(b, "%s", names.len > 0 ? names.data : "none");
	}
}

static void set_entry(struct build *b, const struct skill_found *found)
{
	for (size_t i = 0; b->opt->shell == NULL && i < found->argv.n; i++) {
		build_add(b, &b->plan->argv, found->argv.v[i], MAX_ARGS);
	}
	for (size_t i = 0; b->opt->shell != NULL && b->opt->shell[i] != NULL; i++) {
		build_add(b, &b->plan->argv, b->opt->shell[i], MAX_ARGS);
	}
	set_scripts(b, found);
}

int plan_check_script(const struct ssb_plan *p, struct ssb_error *err)
{
	return !plan_lacks_script(p)
	               ? 0
	               : ssb_fail(err, SSB_E_USAGE, 0, "script",
	                          "after the skill's directory, name the script to run; the skill "
	                          "has: %s",
	                          p->scripts);
}

/* Opens the copy that the owner approved. It is read and shown instead of the skill's directory.
 * Its path must not contain a symlink. */
static int open_copy(const char *path, struct skill_dir *ret, struct ssb_error *err)
{
	auto_fd fd = file_open_nosymlink(path, O_PATH | O_DIRECTORY);
	char *copy = fd >= 0 ? strdup(path) : NULL;

	if (copy == NULL) {
		return ssb_fail(err, SSB_E_SYS, errno, "skill", "'%.200s'", path);
	}
	*ret = (struct skill_dir){ path, copy, steal_fd(&fd) };
	return 0;
}

static int decide_skill(const struct plan_request *q, struct ssb_plan **ret_plan,
                        struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(freep_options) struct ssb_options *own_o = NULL;
	AUTO(diags_freep) struct ssb_diags *own_d = NULL;
	AUTO(skill_found_done) struct skill_found found = { 0 };
	AUTO(skill_dir_close) struct skill_dir opened = SKILL_DIR_NONE;
	AUTO(skill_dir_close) struct skill_dir copy = SKILL_DIR_NONE;
	AUTO(build_done) struct build b = BUILD_OF(q, diags);
	const struct skill_dir *dir = q->dir != NULL ? q->dir : &opened;
	const struct skill_dir *source = q->consent.source != NULL ? &copy : dir;
	char *const *args = q->args;

	if ((q->dir == NULL && skill_dir_open(q->skill, &opened, err) < 0) ||
	    (q->consent.source != NULL && open_copy(q->consent.source, &copy, err) < 0) ||
	    with_defaults(&b, &own_o, &own_d, err) < 0 ||
	    find_skill(&b, dir, source, &found, err) < 0) {
		return -1;
	}
	assert(found.manifest != NULL);
	b.manifest = found.manifest;
	b.unbound = found.unbound;
	b.skill_dir = dir->path;
	b.skill_fd = dir->fd;
	b.source = source;
	b.plan->name = build_printf(&b, "%s", found.manifest->name);
	b.plan->version = build_printf(&b, "%s", skill_version(&found));
	b.plan->manifest = build_printf(&b, "%s", found.file);
	b.plan->skill_dir = build_printf(&b, "%s", dir->path);
	b.plan->format = found.format;
	memcpy(b.plan->manifest_digest, found.manifest->digest, sizeof(found.manifest->digest));
	set_entry(&b, &found);
	b.first_arg = b.plan->argv.n;
	if (add_arguments(&b, args != NULL ? args + found.used : NULL, err) < 0) {
		return -1;
	}
	return build_plan(&b, ret_plan, err);
}

int plan_decide(const struct plan_request *q, struct ssb_plan **ret_plan, struct ssb_diags *diags,
                struct ssb_error *err)
{
	assert(q->owner != NULL && ret_plan != NULL);
	return q->skill != NULL || q->dir != NULL ? decide_skill(q, ret_plan, diags, err)
	                                          : decide_command(q, ret_plan, diags, err);
}

/* Makes a plan whose owner is the calling user. */
static int decide_for_caller(const struct plan_request *q, struct ssb_plan **ret_plan,
                             struct ssb_diags *diags, struct ssb_error *err)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct plan_request owned = *q;

	if (owner_load(&owner, err) < 0) {
		return -1;
	}
	owned.owner = &owner;
	return plan_decide(&owned, ret_plan, diags, err);
}

int ssb_plan_skill(const struct ssb_options *o, const char *dir, char *const args[],
                   struct ssb_plan **ret_plan, struct ssb_diags *diags, struct ssb_error *err)
{
	const struct plan_request q = { .options = o, .skill = dir, .args = args };

	return decide_for_caller(&q, ret_plan, diags, err);
}

int ssb_plan_command(const struct ssb_options *o, char *const argv[], struct ssb_plan **ret_plan,
                     struct ssb_diags *diags, struct ssb_error *err)
{
	const struct plan_request q = { .options = o, .args = argv };

	return decide_for_caller(&q, ret_plan, diags, err);
}
