/* resolve_path.c - turns a path into a grant. The path is opened once, judged, and held open.
 *
 * A path of the manifest is walked without following any symlink. A path of the owner may contain
 * symlinks, but they may not lead to a dangerous place that the path does not name: a skill that
 * could write there may have put the symlink. A path to write that does not exist is held by its
 * nearest existing parent, and the run creates it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/kernel_fs.h"
#include "policy/own_dirs.h"
#include "policy/owner.h"
#include "policy/protect.h"
#include "policy/unlisted.h"
#include "policy/view.h"
#include "skill/skill.h"

static void refuse_errno(struct build *b, const struct path_request *r, int e)
{
	auto_free char *why = build_printf(b, "it cannot be opened: %s", strerrordesc_np(e));

	build_refuse_request(b, r, why, "name an existing file or directory that you may enter");
}

/* True if every sandbox shows the path. Never true if the owner names a root file system. */
static bool is_shown(const struct build *b, const char *path)
{
	return b->opt->rootfs == NULL && view_is_system(path);
}

/* True if the target `real` of the symlink is refused, too. Then the refusal of the target is
 * recorded, because it names the better reason. */
static bool leads_to_danger(struct build *b, const struct path_request *r, const char *real)
{
	auto_fd fd = real != NULL ? file_open_nosymlink(real, O_PATH) : -1;
	struct path_request led = *r;
	struct subject s;

	led.real = real;
	return fd >= 0 && subject_init(&s, fd, real, NULL) == 0 && !judge_request(b, &led, &s);
}

/* Refuses a path with a symlink: in a directory that others can write, it could lead anywhere. A
 * path that every sandbox shows needs no grant and is not refused. */
static void refuse_symlink(struct build *b, const struct path_request *r, const char *path)
{
	auto_free char *real = realpath(path, NULL);

	if (real != NULL && r->access == ACCESS_READ && is_shown(b, real)) {
		diag_add(b->diags, SSB_NOTE, r->where, "", "read %s: visible in every sandbox",
		         r->text);
		return;
	}
	if (leads_to_danger(b, r, real)) {
		return;
	}
	auto_free char *why = build_printf(b, "it goes through the symlink %.*s",
	                                   (int)file_first_symlink(AT_FDCWD, path), path);
	auto_free char *remedy = real != NULL ? build_printf(b, "declare the real path: %s", real)
	                                      : build_printf(b, "declare a path without symlinks");
	build_refuse_request(b, r, why, remedy);
}

/* A device node is recognised by its type, wherever it is. A directory of devices must be in the
 * host's /dev. */
static enum grant_kind kind_of(int fd, const char *path, const struct stat *st)
{
	struct stat dev;

	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ||
	    (path_beneath(path, "/dev") != NULL && S_ISDIR(st->st_mode) &&
	     stat("/dev", &dev) == 0 && dev.st_dev == st->st_dev)) {
		return GRANT_DEVICES;
	}
	return kernel_fs_of(fd) > KERNEL_FS_NONE ? GRANT_KERNEL : GRANT_FILES;
}

void resolve_take_object(struct build *b, const struct path_request *r, const char *path, int *fd,
                         const struct stat *st, bool of_whole)
{
	struct grant g = {
		.path = strdup(path),
		.target = strdup(r->origin == ORIGIN_CACHE ? b->cache_place : path),
		.access = r->access,
		.origin = r->origin,
		.where = strdup(r->where),
		.kind = kind_of(*fd, path, st),
		.of_whole = of_whole,
		.unasked = r->unasked,
		.is_dir = S_ISDIR(st->st_mode),
		OPEN_FILE(steal_fd(fd), st),
	};

	grants_add(b, &g);
}

/* True if the skill can open the device; otherwise records a refusal. If root starts the run, the
 * skill gets a uid that nothing else uses. The owner of a device cannot be mapped to that uid, so
 * the device must be open to all users. */
static bool device_opens(struct build *b, const struct path_request *r, const struct stat *st)
{
	mode_t need = r->access == ACCESS_WRITE ? S_IROTH | S_IWOTH : S_IROTH;

	if (b->owner->uid != 0 || (st->st_mode & need) == need) {
		return true;
	}
	auto_free char *why =
	        build_printf(b,
	                     "if root starts the run, the skill has its own uid, and the mode of "
	                     "the device (%04o) does not let other users open it",
	                     (unsigned)(st->st_mode & 07777));
	build_refuse_request(b, r, why,
	                     "start skillsandbox as a user who may open the device, or let all "
	                     "users open it (chmod)");
	return false;
}

static void resolve_existing(struct build *b, struct path_request *r, const char *path, int fd_in)
{
	auto_fd fd = fd_in;
	struct subject s;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		refuse_errno(b, r, errno);
		return;
	}
	bool device =
	        (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) && path_beneath(path, "/dev") != NULL;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !device) {
		build_refuse_request(b, r, "it is neither a directory nor a regular file",
		                     "sockets and FIFOs cannot be granted, devices only in /dev");
		return;
	}
	if (r->access == ACCESS_READ && is_shown(b, path)) {
		diag_add(b->diags, SSB_NOTE, r->where, "", "read %s: visible in every sandbox",
		         r->text);
		return;
	}
	if (r->origin == ORIGIN_MANIFEST && S_ISREG(st.st_mode) && st.st_nlink > 1) {
		build_refuse_request(
		        b, r,
		        "the file has other names (hard links), which may be in dangerous places",
		        "the owner can grant it: --read or --write with this path");
		return;
	}
	if (r->origin == ORIGIN_CACHE) {
		/* Not judged, because no other request can name it. The skill may have set its mode
		 * to 0. */
		resolve_take_object(b, r, path, &fd, &st, false);
		return;
	}
	if (subject_init(&s, fd, path, NULL) < 0) {
		refuse_errno(b, r, errno);
		return;
	}
	if ((r->origin == ORIGIN_MANIFEST || r->origin == ORIGIN_PRESET) &&
	    grants_cover(b->plan, &s.chain, path, r->access) != NULL) {
		return; /* the owner granted it already */
	}
	if (!judge_request(b, r, &s)) {
		return;
	}
	r->unasked = r->access == ACCESS_READ && r->origin == ORIGIN_MANIFEST &&
	             !judge_policy_allows(b, r, &s);
	if (strcmp(path, "/") == 0) {
		whole_resolve(b, r);
	} else if (own_resolve(b, r, path, &s.chain.v[0])) {
		return;
	} else if (!device || device_opens(b, r, &st)) {
		resolve_take_object(b, r, path, &fd, &st, false);
	}
}

/* Opens the nearest directory above `path` that can be opened: returns an O_PATH fd, and its
 * path (new) in *ret_parent. Returns -1 with errno. */
static int nearest_parent(const char *path, char **ret_parent)
{
	auto_free char *at = path_parent(path);

	while (at != NULL) {
		int fd = file_open_nosymlink(at, O_PATH | O_DIRECTORY);
		if (fd >= 0) {
			*ret_parent = steal_ptr(&at);
			return fd;
		}
		if ((errno != ENOENT && errno != EACCES) || strcmp(at, "/") == 0) {
			return -1;
		}
		char *up = path_parent(at);
		free(at);
		at = up;
	}
	errno = ENOMEM;
	return -1;
}

void resolve_take_missing(struct build *b, const struct path_request *r, const char *path,
                          int *parent, const char *missing)
{
	struct stat st;

	if (fstat(*parent, &st) < 0) {
		refuse_errno(b, r, errno);
		return;
	}
	if (kind_of(*parent, path, &st) != GRANT_FILES) {
		build_refuse_request(b, r, "no file can be created in a directory of devices",
		                     "name a device that exists");
		return;
	}
	struct grant g = {
		.path = strdup(path),
		.target = strdup(r->origin == ORIGIN_CACHE ? b->cache_place : path),
		.access = r->access,
		.origin = r->origin,
		.where = strdup(r->where),
		.is_dir = r->origin != ORIGIN_CALLER && !protect_is_file(path),
		.fd = -1,
		.uid = b->owner->uid,
		.gid = b->owner->gid,
		.create = true,
		.parent_fd = steal_fd(parent),
		.missing = strdup(missing),
	};
	bool own = r->origin == ORIGIN_MANIFEST && b->owner->state_dir != NULL &&
	           unlisted_is_own(b, path);
	g.made_for = own ? strdup(b->skill_dir) : NULL;
	g.kept_in = own ? strdup(b->owner->state_dir) : NULL;
	if (g.missing == NULL || (own && (g.made_for == NULL || g.kept_in == NULL))) {
		b->failed = true;
		grants_release(&g);
		return;
	}
	grants_add(b, &g);
}

/* Judges a path that cannot be opened, too: ~/.aws is also refused on a machine that does not have
 * it. `why` is the errno of the failed open. */
static void resolve_missing(struct build *b, const struct path_request *r, const char *path,
                            int why)
{
	auto_free char *parent = NULL;
	auto_fd fd = nearest_parent(path, &parent);
	struct subject s;

	if (fd < 0 && errno == ELOOP) {
		refuse_symlink(b, r, path);
		return;
	}
	if (fd < 0 || subject_init(&s, fd, parent, path_beneath(path, parent)) < 0) {
		refuse_errno(b, r, errno);
		return;
	}
	if (r->origin == ORIGIN_MANIFEST &&
	    grants_cover(b->plan, &s.chain, path, r->access) != NULL) {
		return;
	}
	if (!judge_request(b, r, &s)) {
		return;
	}
	if (why != ENOENT) {
		refuse_errno(b, r, why);
	} else if (r->access == ACCESS_WRITE) {
		resolve_take_missing(b, r, path, &fd, s.missing);
	} else if (r->origin == ORIGIN_FLAG) {
		build_refuse_request(b, r, "it does not exist",
		                     "name an existing file or directory");
	} else if (r->origin == ORIGIN_PRESET) {
		diag_add(b->diags, SSB_NOTE, r->where, "", "read %s: it does not exist", r->text);
	} else {
		build_warn(b, r->where, "read %s: it does not exist, so nothing is granted",
		           r->text);
	}
}

char *resolve_words(const struct build *b, const char *path)
{
	const char *env = owner_getenv(b->owner, "HOME");
	auto_free char *cwd = path[0] == '/' ? NULL : path_real(".");
	auto_free char *whole = path_from(cwd != NULL ? cwd : "/", path);
	auto_free char *words = whole != NULL ? path_words(whole) : NULL;
	auto_free char *home = path_words(env != NULL && env[0] == '/' ? env : b->owner->home);

	if (words == NULL || home == NULL) {
		return NULL;
	}
	const char *rest = home[1] != '\0' ? path_beneath(words, home) : NULL;
	if (rest != NULL) {
		return path_join(b->owner->home, rest);
	}
	auto_free char *followed = file_follow_fixed(words);
	return followed != NULL ? path_words(followed) : NULL;
}

void resolve_request(struct build *b, const struct path_request *asked)
{
	assert(asked->text != NULL && asked->where != NULL);

	auto_free char *path = path_expand(b->owner, asked->text);
	auto_free char *words = NULL;
	struct path_request r[1] = { *asked };

	if (path != NULL && r->origin != ORIGIN_MANIFEST) {
		char *real = path_real(path);
		if (real == NULL && errno == EINVAL) { /* ".." after a missing directory: the kernel
			                                  cannot follow it */
			build_refuse_request(
			        b, r,
			        "the path contains '..' after a directory that does not exist",
			        "name an existing file or directory");
			return;
		}
		if (real == NULL) {
			refuse_errno(b, r, errno);
			return;
		}
		words = resolve_words(b, path);
		free(path);
		path = real;
		/* If the texts differ, the path contains a symlink. Looking for the symlink on the
		 * disk again would not be safe: the process that made it may have removed it in the
		 * meantime. */
		if (words != NULL && strcmp(words, real) != 0) {
			r->words = words;
			r->real = real;
		}
	}
	if (path == NULL || (words == NULL && r->origin != ORIGIN_MANIFEST)) {
		b->failed = true;
		return;
	}
	if (b->manifest != NULL && path_beneath(path, "/skill") != NULL) {
		build_refuse_request(b, r, "/skill is the skill's own directory in the sandbox",
		                     "the skill's files are readable there without being declared");
		return;
	}
	int fd = file_open_nosymlink(path, O_PATH);
	if (fd >= 0) {
		resolve_existing(b, r, path, fd);
	} else if (errno == ELOOP) {
		refuse_symlink(b, r, path);
	} else {
		resolve_missing(b, r, path, errno);
	}
}

/* The owner named this directory, so it may lie in another user's home or among the agent's own
 * skills. It must not be a dangerous place itself or contain one. */
bool resolve_shown(struct build *b, const struct subject *s, const char *where, const char *what,
                   const char *remedy)
{
	struct danger_hits hits;

	assert(s->missing == NULL);
	if (build_danger(b, ACCESS_READ) == NULL ||
	    danger_judge(b->danger, s, ACCESS_READ, &hits) < 0) {
		b->failed |= b->danger == NULL;
		auto_free char *why = build_printf(b, "%s cannot be examined", what);
		if (why != NULL) {
			build_refuse(b, REFUSAL_OTHER, where, s->path, why,
			             "name a directory that you may enter");
		}
		return false;
	}
	for (size_t i = 0; i < hits.n; i++) {
		const struct place *p = hits.v[i].place;
		if (hits.v[i].how == DANGER_LIES_IN &&
		    (p->flags & (DANGER_HOMES | DANGER_SKILLS)) != 0) {
			continue;
		}
		auto_free char *why = build_printf(b, "used as %s, it would show %s, which %s",
		                                   what, p->path, p->why);
		if (why != NULL) {
			build_refuse(b, REFUSAL_OTHER, where, s->path, why, remedy);
		}
		return false;
	}
	return true;
}

static void no_directory(struct build *b)
{
	build_refuse(b, REFUSAL_OTHER, "skill", b->skill_dir,
	             "the skill's directory cannot be opened",
	             "name a directory that you may enter");
}

/* Grants the skill's files. If they are read from a copy in the owner's state directory, the
 * skill's own directory is judged instead of the copy. */
void resolve_skill(struct build *b)
{
	assert(b->skill_fd >= 0 && b->skill_dir != NULL);

	auto_fd fd = fcntl(b->source->fd, F_DUPFD_CLOEXEC, 0);
	struct subject s;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || subject_init(&s, b->skill_fd, b->skill_dir, NULL) < 0) {
		no_directory(b);
		return;
	}
	if (!resolve_shown(b, &s, "skill", "a skill's directory",
	                   "put the skill into a separate directory")) {
		return;
	}
	struct grant g = {
		.path = strdup(b->source->path),
		.target = strdup("/skill"),
		.access = ACCESS_READ,
		.origin = ORIGIN_SKILL,
		.where = strdup("skill"),
		.is_dir = true,
		OPEN_FILE(steal_fd(&fd), &st),
	};
	grants_add(b, &g);
}

void resolve_stand_in(struct build *b, const struct stand_in *s)
{
	auto_fd fd = file_open_nosymlink(s->path, O_PATH);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		build_refuse(b, REFUSAL_OTHER, "learn", s->target,
		             "the file that is shown in its place cannot be opened",
		             "run skillsandbox learn again");
		return;
	}
	struct grant g = {
		.path = strdup(s->path),
		.target = strdup(s->target),
		.access = s->access,
		.origin = ORIGIN_FLAG,
		.where = strdup("learn"),
		.scratch = s->access == ACCESS_WRITE,
		.is_dir = S_ISDIR(st.st_mode),
		OPEN_FILE(steal_fd(&fd), &st),
	};
	grants_add(b, &g);
}
