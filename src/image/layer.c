/* layer.c - the reader of a layer, and how the writer receives its steps. */
#include "image/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/confine.h"
#include "os/file.h"
#include "os/zlib.h"
#include "wire/tar.h"

#define CHUNK     ((size_t)64 * 1024)
#define MAX_EXTRA ((size_t)64 * 1024) /* bytes of one extended header */
#define IN        0
#define OUT       1

/* ---- the reader ------------------------------------------------------------- */

struct layer_reader {
	enum layer_pass pass;
	uint64_t most; /* unpacked bytes that may still be read */
	struct gunzip *gunzip;
	uint8_t packed[CHUNK];
	size_t packed_at, packed_len;
	bool packed_end;
	bool ended; /* the gzip stream has ended */
	uint8_t chunk[CHUNK];
	struct tar_over over;
	struct tar_member member;
};

static void write_bytes(const void *data, size_t len)
{
	if (file_write_all(OUT, data, len) != 0) {
		_exit(1); /* the writer has stopped reading */
	}
}

static void say_step(enum step_kind kind, const char *name, const char *link, uint64_t size,
                     bool executable)
{
	struct step s = { .kind = kind,
		          .executable = executable,
		          .size = size,
		          .name_len = (uint32_t)strlen(name),
		          .link_len = (uint32_t)strlen(link) };

	write_bytes(&s, sizeof(s));
	write_bytes(name, s.name_len);
	write_bytes(link, s.link_len);
}

static _Noreturn void fail_reader(const char *why)
{
	say_step(STEP_WRONG, why, "", 0, false);
	_exit(0);
}

static void refill_packed(struct layer_reader *r)
{
	if (r->packed_at < r->packed_len || r->packed_end) {
		return;
	}
	ssize_t n = 0;
	do {
		n = read(IN, r->packed, sizeof(r->packed));
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		fail_reader("it cannot be read");
	}
	r->packed_at = 0;
	r->packed_len = (size_t)n;
	r->packed_end = n == 0;
}

static size_t read_packed(struct layer_reader *r, uint8_t *out, size_t len)
{
	size_t n = r->packed_len - r->packed_at;

	n = n < len ? n : len;
	memcpy(out, r->packed + r->packed_at, n);
	r->packed_at += n;
	return n;
}

static size_t read_unpacked(struct layer_reader *r, uint8_t *out, size_t len)
{
	size_t in = r->packed_len - r->packed_at;
	int rc = zlib_gunzip_more(r->gunzip, r->packed + r->packed_at, &in, out, &len);

	if (rc < 0) {
		fail_reader("it is not gzip, or damaged");
	}
	r->ended = rc == 1;
	r->packed_at += in;
	return len;
}

/* Reads exactly `len` bytes. Returns false if not one byte is left; ends the process if the data
 * ends before all `len` bytes are read. */
static bool take_bytes(struct layer_reader *r, uint8_t *out, size_t len)
{
	size_t got = 0;

	while (got < len) {
		refill_packed(r);
		size_t n = r->gunzip != NULL ? read_unpacked(r, out + got, len - got)
		                             : read_packed(r, out + got, len - got);
		got += n;
		if (n == 0 && r->packed_end && r->packed_at == r->packed_len) {
			if (got == 0 && (r->gunzip == NULL || r->ended)) {
				return false;
			}
			fail_reader("it is truncated");
		}
	}
	if (r->most < len) {
		fail_reader("it is larger than the limit of an image");
	}
	r->most -= len;
	return true;
}

static void take_all(struct layer_reader *r, uint8_t *out, size_t len)
{
	if (len > 0 && !take_bytes(r, out, len)) {
		fail_reader("it is truncated");
	}
}

/* Sends the bytes of a member to the writer if `wanted`, otherwise drops them. Also skips the
 * padding of the last block. */
static void pass_data(struct layer_reader *r, uint64_t size, bool wanted)
{
	uint64_t fill = tar_padded(size) - size;

	while (size > 0) {
		size_t n = size < sizeof(r->chunk) ? (size_t)size : sizeof(r->chunk);
		take_all(r, r->chunk, n);
		if (wanted) {
			write_bytes(r->chunk, n);
		}
		size -= n;
	}
	take_all(r, r->chunk, (size_t)fill);
}

static void take_extra(struct layer_reader *r)
{
	const struct tar_member *m = &r->member;
	const char *why = NULL;

	if (m->size > MAX_EXTRA) {
		fail_reader("an extended header is too large");
	}
	take_all(r, r->chunk, (size_t)tar_padded(m->size));
	if (tar_extra(m->type, (const char *)r->chunk, (size_t)m->size, &r->over, &why) != 0) {
		fail_reader(why);
	}
}

/* Changes "./a//b/" into "a/b"; "" is the directory itself. The writer checks the result again. */
static void tidy_name(char *name)
{
	char *out = name;

	if (name[0] == '/') {
		fail_reader("it contains an absolute path");
	}
	for (const char *in = name; *in != '\0';) {
		size_t n = strcspn(in, "/");
		if (n == 2 && memcmp(in, "..", 2) == 0) {
			fail_reader("it contains a path with '..'");
		}
		if (n > 0 && !(n == 1 && *in == '.')) {
			if (out > name) {
				*out++ = '/';
			}
			memmove(out, in, n);
			out += n;
		}
		in += n;
		in += *in == '/';
	}
	*out = '\0';
}

/* Handles a whiteout. The name ".wh.NAME" removes the entry NAME that earlier layers made. The name
 * ".wh..wh..opq" removes all entries that earlier layers made in the same directory. Returns false
 * for any other name. */
static bool is_whiteout(struct layer_reader *r)
{
	char *name = r->member.name;
	char *slash = strrchr(name, '/');
	char *base = slash != NULL ? slash + 1 : name;

	if (strncmp(base, ".wh.", 4) != 0) {
		return false;
	}
	bool all = strcmp(base, ".wh..wh..opq") == 0;
	if (!all && strncmp(base, ".wh..wh.", 8) == 0) {
		return true; /* internal data of aufs */
	}
	if (all) {
		*(slash != NULL ? slash : base) = '\0';
	} else {
		memmove(base, base + 4, strlen(base + 4) + 1);
		if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
			fail_reader("it has a whiteout entry without a name");
		}
	}
	if (r->pass == PASS_REMOVE) {
		say_step(all ? STEP_EMPTY : STEP_REMOVE, name, "", 0, false);
	}
	return true;
}

static void add_member(struct layer_reader *r)
{
	struct tar_member *m = &r->member;

	switch (m->type) {
	case TAR_FILE:
		say_step(STEP_FILE, m->name, "", m->size, (m->mode & 0111) != 0);
		break;
	case TAR_DIR:
		say_step(STEP_DIR, m->name, "", 0, false);
		break;
	case TAR_SYMLINK:
		say_step(STEP_LINK, m->name, m->link, 0, false);
		break;
	case TAR_HARDLINK:
		tidy_name(m->link);
		say_step(STEP_HARD, m->name, m->link, 0, false);
		break;
	default:
		break; /* a device or FIFO is left out: the sandbox has its own */
	}
}

static void take_member(struct layer_reader *r)
{
	struct tar_member *m = &r->member;
	const char *why = NULL;

	if (m->type == TAR_PAX_GLOBAL) {
		pass_data(r, m->size, false);
		return;
	}
	if (m->type >= TAR_PAX) {
		take_extra(r);
		return;
	}
	if (tar_apply(&r->over, m, &why) != 0) {
		fail_reader(why);
	}
	tidy_name(m->name);
	bool wanted = !is_whiteout(r) && m->name[0] != '\0' && r->pass == PASS_ADD;
	if (wanted) {
		add_member(r);
	}
	pass_data(r, m->size, wanted && m->type == TAR_FILE);
}

static void find_packing(struct layer_reader *r)
{
	refill_packed(r);
	if (r->packed_len >= 2 && r->packed[0] == 0x1f && r->packed[1] == 0x8b) {
		r->gunzip = zlib_gunzip_new();
		if (r->gunzip == NULL) {
			fail_reader("out of memory");
		}
	}
	if (r->packed_len >= 4 && memcmp(r->packed, "\x28\xb5\x2f\xfd", 4) == 0) {
		fail_reader("it is packed with zstd, which is not supported; pack it with gzip "
		            "(skopeo copy --dest-compress-format gzip)");
	}
}

/* Reads the layer from fd 0 and writes its steps to fd 1. Never returns. zlib_load() must
 * have been called. */
static _Noreturn void layer_reader(enum layer_pass pass, uint64_t most_bytes)
{
	static struct layer_reader r; /* too large for the stack */
	uint8_t block[TAR_BLOCK];
	const char *why = NULL;
	int rc = 0;

	r = (struct layer_reader){ .pass = pass, .most = most_bytes };
	find_packing(&r);
	while (take_bytes(&r, block, sizeof(block)) &&
	       (rc = tar_header(block, &r.member, &why)) == 1) {
		take_member(&r);
	}
	if (rc < 0) {
		fail_reader(why);
	}
	say_step(STEP_END, "", "", 0, false);
	_exit(0);
}

/* ---- the writer's side of the conversation ------------------------------------ */

static int hear_bytes(int from, void *data, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = read(from, (char *)data + got, len - got);
		if (n <= 0 && !(n < 0 && errno == EINTR)) {
			return -1;
		}
		got += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int hear_name(int from, char out[PATH_MAX], uint32_t len)
{
	if (len >= PATH_MAX || hear_bytes(from, out, len) != 0 || memchr(out, '\0', len) != NULL) {
		return -1;
	}
	out[len] = '\0';
	return 0;
}

/* Receives one step and executes it. Returns 1 if more steps follow, 0 at the end, -1 with
 * `err`. */
static int next_step(int root_fd, int from, const char *layer, struct unpack_left *left,
                     struct ssb_error *err)
{
	char name[PATH_MAX], link[PATH_MAX];
	struct step s;

	if (hear_bytes(from, &s, sizeof(s)) != 0 || hear_name(from, name, s.name_len) != 0 ||
	    hear_name(from, link, s.link_len) != 0) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "image", "layer %.20s: it could not be read",
		                layer);
	}
	if (s.kind == STEP_END) {
		return 0;
	}
	if (s.kind == STEP_WRONG) {
		return ssb_fail(err, SSB_E_MANIFEST, 0, "image", "layer %.20s: %.200s", layer,
		                name);
	}
	return unpack_step(root_fd, &s, name, link, from, left, err) != 0 ? -1 : 1;
}

/* The reader process. It keeps only the fds of the layer and the pipe, and wipes the owner's
 * environment. */
static _Noreturn void reader_main(int blob, int out, enum layer_pass pass, uint64_t most)
{
	/* First duplicate both fds to numbers above OUT: if `out` had the number IN, the first
	 * dup2() would close it. */
	int from = fcntl(blob, F_DUPFD_CLOEXEC, OUT + 1);
	int to = fcntl(out, F_DUPFD_CLOEXEC, OUT + 1);

	if (from < 0 || to < 0 || dup2(from, IN) < 0 || dup2(to, OUT) < 0 ||
	    close_range(OUT + 1, ~0U, 0) != 0) {
		_exit(1);
	}
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		explicit_bzero(*e, strlen(*e));
	}
	confine_or_exit(confine_to_fds, -1);
	layer_reader(pass, most);
}

int layer_unpack(int root_fd, int blob, const char *name, enum layer_pass pass,
                 struct unpack_left *left, struct ssb_error *err)
{
	int ends[2];
	int more = 1;

	if (zlib_load(err) != 0) {
		return -1;
	}
	if (lseek(blob, 0, SEEK_SET) != 0 || pipe2(ends, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "image", "cannot read layer %.20s", name);
	}
	auto_fd from = ends[0];
	auto_fd to = ends[1];
	pid_t pid = fork();
	if (pid == 0) {
		/* The limit includes the header and the padding of each file. */
		reader_main(blob, to, pass, MAX_IMAGE_BYTES + MAX_IMAGE_FILES * 2 * TAR_BLOCK);
	}
	own_close(&to);
	if (pid < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "image", "cannot fork");
	}
	while (more == 1) {
		more = next_step(root_fd, from, name, left, err);
	}
	own_close(&from); /* ends a reader that still writes */
	(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	return more;
}
