/* key.c - loads, makes and checks the owner's key. */
#include "trace/key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/own.h"
#include "os/file.h"

#define WHERE "trace key"

struct key_file {
	const char *name;
	mode_t mode;
	mode_t refused;   /* the file is refused if it has any of these permission bits */
	const char *harm; /* what these bits allow, for the message */
};

static const struct key_file SECRET = { "trace.key", 0600, 0077, "open to others" };
static const struct key_file PUBLIC = { "trace.pub", 0644, 0022, "writable by others" };

/* Returns -1 with `err` if the file is not a regular file, is not owned by the user, or gives other
 * users too many permissions. */
static int key_check(const struct owner *o, const struct key_file *f, const struct stat *st,
                     struct ssb_error *err)
{
	if (!S_ISREG(st->st_mode)) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "'%s/%s' is not a regular file; remove it", o->state_dir, f->name);
	}
	if (st->st_uid != o->uid) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "'%s/%s' belongs to uid %u, not to you; remove it, or set "
		                "XDG_STATE_HOME to a directory of your own",
		                o->state_dir, f->name, st->st_uid);
	}
	if ((st->st_mode & f->refused) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "'%s/%s' is %s (mode %04o); if no other user has used it, run "
		                "chmod %o on it; otherwise remove it to get a new one",
		                o->state_dir, f->name, f->harm, st->st_mode & 07777U, f->mode);
	}
	return 0;
}

/* Reads a key from the fd. Returns 0, 1 if the file does not contain a key, or -1 with errno if it
 * cannot be read. */
static int key_decode(int fd, uint8_t ret[32])
{
	char text[TRACE_KEY_TEXT + 1]; /* one more byte, to detect a file that is too long */
	ssize_t n = read(fd, text, sizeof(text));

	if (n < 0) {
		return -1;
	}
	bool good = n == (ssize_t)TRACE_KEY_TEXT && text[TRACE_KEY_TEXT - 1] == '\n' &&
	            hex_decode(text, TRACE_KEY_TEXT - 1, ret, 32) == 0;
	explicit_bzero(text, sizeof(text));
	return good ? 0 : 1;
}

/* Reads a key file. Returns 0, 1 if there is no such file, or -1 with `err`. */
static int key_read(const struct owner *o, int dir_fd, const struct key_file *f, uint8_t ret[32],
                    struct ssb_error *err)
{
	struct stat st;
	/* O_NONBLOCK: opening a FIFO must not block. */
	auto_fd fd = openat(dir_fd, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		if (errno == ENOENT) {
			return 1;
		}
		return errno == ELOOP ? ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                                 "'%s/%s' is a symlink; put the file itself there",
		                                 o->state_dir, f->name)
		                      : ssb_fail(err, SSB_E_SYS, errno, WHERE,
		                                 "cannot open '%s/%s'", o->state_dir, f->name);
	}
	if (fstat(fd, &st) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot look at '%s/%s'",
		                o->state_dir, f->name);
	}
	if (key_check(o, f, &st, err) != 0) {
		return -1;
	}
	int rc = key_decode(fd, ret);
	if (rc < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot read '%s/%s'", o->state_dir,
		                f->name);
	}
	return rc == 0 ? 0
	               : ssb_fail(err, SSB_E_POLICY, 0, WHERE,
	                          "'%s/%s' is not 64 hexadecimal digits and a newline; restore it, "
	                          "or remove it to get a new one",
	                          o->state_dir, f->name);
}

/* Makes the name that the file has until it is complete. No other process uses this name. */
static int key_part_name(const struct key_file *f, char *ret, size_t size)
{
	uint8_t random[8];
	char hex[2 * sizeof(random) + 1];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		return -1;
	}
	hex_encode(random, sizeof(random), hex);
	snprintf(ret, size, ".%s.%s", f->name, hex);
	return 0;
}

static int key_write_part(int dir_fd, const char *part, const struct key_file *f,
                          const uint8_t bytes[32])
{
	char text[TRACE_KEY_TEXT + 1];
	auto_fd fd =
	        openat(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0) {
		return -1;
	}
	hex_encode(bytes, 32, text);
	text[TRACE_KEY_TEXT - 1] = '\n';
	/* fchmod() is needed because the umask may have removed bits. The file is synced before it
	 * gets its name, because an incomplete key would stop every later run. */
	int rc = fchmod(fd, f->mode) == 0 && file_write_all(fd, text, TRACE_KEY_TEXT) == 0 &&
	                         fdatasync(fd) == 0
	                 ? 0
	                 : -1;
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* Gives the new file its name. If another file already has this name, that file stays. */
static int key_place_new(int dir_fd, const char *part, const char *name)
{
	int rc = renameat2(dir_fd, part, dir_fd, name, RENAME_NOREPLACE);

	if (rc != 0 && errno == EINVAL) { /* a file system without RENAME_NOREPLACE, such as NFS */
		rc = linkat(dir_fd, part, dir_fd, name, 0);
	}
	return rc == 0 || errno == EEXIST ? 0 : -1;
}

static int key_put(const struct owner *o, int dir_fd, const struct key_file *f,
                   const uint8_t bytes[32], struct ssb_error *err)
{
	char part[64] = "";
	int rc = key_part_name(f, part, sizeof(part));

	if (rc == 0) {
		rc = key_write_part(dir_fd, part, f, bytes);
	}
	if (rc == 0) {
		rc = f == &SECRET ? key_place_new(dir_fd, part, f->name)
		                  : renameat(dir_fd, part, dir_fd, f->name);
	}
	if (rc != 0) {
		ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot make '%s/%s'", o->state_dir,
		         f->name);
	}
	if (part[0] != '\0') {
		(void)unlinkat(dir_fd, part,
		               0); /* fails if the file was renamed, which is harmless */
	}
	return rc;
}

static int key_make(const struct owner *o, int dir_fd, struct ssb_error *err)
{
	uint8_t seed[ED25519_SEED];
	auto_fd dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot get random bytes for a key");
	}
	int rc = key_put(o, dir_fd, &SECRET, seed, err);
	explicit_bzero(seed, sizeof(seed));
	/* The key must be on the disk before any record that it signs. */
	if (rc == 0 && (dir < 0 || fsync(dir) != 0)) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot sync '%s'", o->state_dir);
	}
	return rc;
}

/* Refuses a directory to which other users may write, because they could put their own key
 * there. */
static int key_directory_check(const struct owner *o, int dir_fd, struct ssb_error *err)
{
	struct stat st;

	if (fstat(dir_fd, &st) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot look at '%s'", o->state_dir);
	}
	if (st.st_uid != o->uid) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the directory '%s' belongs to uid %u, not to you; set "
		                "XDG_STATE_HOME to a directory of your own",
		                o->state_dir, st.st_uid);
	}
	if ((st.st_mode & 0022) != 0) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, WHERE,
		        "others may write to the directory '%s' (mode %04o); run chmod 700 on it",
		        o->state_dir, st.st_mode & 07777U);
	}
	return 0;
}

static int key_publish(const struct owner *o, int dir_fd, const uint8_t public[ED25519_PUBLIC],
                       struct ssb_error *err)
{
	uint8_t there[ED25519_PUBLIC];
	struct ssb_error ignored = { 0 };

	if (key_read(o, dir_fd, &PUBLIC, there, &ignored) == 0 &&
	    memcmp(there, public, sizeof(there)) == 0) {
		return 0;
	}
	return key_put(o, dir_fd, &PUBLIC, public, err);
}

int trace_key_load(const struct owner *o, struct trace_key *ret, struct ssb_error *err)
{
	uint8_t seed[ED25519_SEED];
	struct trace_key key;
	auto_fd dir_fd = file_mkdirs(o->state_dir);

	if (dir_fd < 0) {
		return ssb_fail(
		        err, SSB_E_SYS, errno, WHERE,
		        "cannot create '%.200s' (set XDG_STATE_HOME to a directory that you "
		        "can write)",
		        o->state_dir);
	}
	if (key_directory_check(o, dir_fd, err) != 0) {
		return -1;
	}
	int rc = key_read(o, dir_fd, &SECRET, seed, err);
	if (rc == 1) {
		/* Read the key that now has the name: ours, or that of another run. */
		rc = key_make(o, dir_fd, err);
		rc = rc == 0 ? key_read(o, dir_fd, &SECRET, seed, err) : rc;
	}
	if (rc != 0) {
		return rc < 0 ? -1
		              : ssb_fail(err, SSB_E_SYS, 0, WHERE, "'%s/%s' was removed meanwhile",
		                         o->state_dir, SECRET.name);
	}
	ed25519_key_init(&key.pair, seed);
	explicit_bzero(seed, sizeof(seed));
	rc = key_publish(o, dir_fd, key.pair.public, err);
	if (rc == 0) {
		*ret = key;
	}
	explicit_bzero(&key, sizeof(key));
	return rc;
}

bool trace_key_ready(const struct owner *o)
{
	uint8_t seed[ED25519_SEED];
	char secret[PATH_MAX], public[PATH_MAX];
	struct stat dir, key, pub;

	if (snprintf(secret, sizeof(secret), "%s/%s", o->state_dir, SECRET.name) >=
	            (int)sizeof(secret) ||
	    snprintf(public, sizeof(public), "%s/%s", o->state_dir, PUBLIC.name) >=
	            (int)sizeof(public) ||
	    stat(o->state_dir, &dir) != 0 || dir.st_uid != o->uid || (dir.st_mode & 0022) != 0 ||
	    lstat(public, &pub) != 0 || !S_ISREG(pub.st_mode)) {
		return false;
	}
	auto_fd fd = open(secret, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool ready = fd >= 0 && fstat(fd, &key) == 0 && S_ISREG(key.st_mode) &&
	             key.st_uid == o->uid && (key.st_mode & SECRET.refused) == 0 &&
	             key_decode(fd, seed) == 0;
	explicit_bzero(seed, sizeof(seed));
	return ready;
}

void trace_key_done(struct trace_key *k)
{
	ed25519_key_done(&k->pair);
}

void trace_key_sign(const struct trace_key *k, const uint8_t hash[SHA256_BYTES],
                    uint8_t ret[ED25519_SIGNATURE])
{
	ed25519_sign(&k->pair, hash, SHA256_BYTES, ret);
}

int trace_key_public(const struct owner *o, uint8_t ret[ED25519_PUBLIC], struct ssb_error *err)
{
	uint8_t public[ED25519_PUBLIC];
	auto_fd dir_fd = open(o->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = 1;

	if (dir_fd >= 0) {
		rc = key_directory_check(o, dir_fd, err) == 0
		             ? key_read(o, dir_fd, &PUBLIC, public, err)
		             : -1;
	} else if (errno != ENOENT) {
		rc = ssb_fail(err, SSB_E_SYS, errno, WHERE, "cannot open '%s'", o->state_dir);
	}
	if (rc == 1) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, WHERE,
		                "there is no '%s/%s' yet; the first run makes it", o->state_dir,
		                PUBLIC.name);
	}
	if (rc == 0) {
		memcpy(ret, public, sizeof(public));
	}
	return rc;
}
