/* setup_file.h - a configuration file of an agent that `setup` edits itself: JSON, or the YAML of
 * Goose. Everything in the file that is not the edited member keeps its value. */
#ifndef CLI_SETUP_FILE_H
#define CLI_SETUP_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/json_read.h"
#include "skillsandbox.h"

/* Where the file is. */
struct setup_place {
	const char *variable;  /* environment variable that names its directory; NULL: none */
	const char *otherwise; /* its directory beneath the home, if the variable is not set */
	const char *file;
	bool jsonc;          /* true: if `file` with "c" at its end exists, it is used instead */
	bool yaml;           /* true: YAML; false: JSON */
	const char *project; /* the file in a project; NULL: projects have none */
};

struct setup_file {
	char *path;
	bool yaml;
	bool existed;
	mode_t mode;
	struct buf before;
	struct buf after;
	struct json_doc doc; /* the content of the file; YAML is converted */
};

#define SETUP_FILE                                                                                 \
	{                                                                                          \
		.before = BUF(MAX_CONFIG_BYTES), .after = BUF(2 * MAX_CONFIG_BYTES)                \
	}
void setup_file_done(struct setup_file *f);

/* Finds the file, reads it and parses it. If the file is missing, `doc` stays empty. A
 * file that cannot be parsed is an error. With `project`, a symlink on the way to the file is an
 * error, too. */
int setup_file_read(struct setup_file *f, const struct setup_place *place, bool project,
                    struct ssb_error *err);
/* Makes the new text, in which the member at `names` (NULL-terminated) has this value. The value is
 * JSON text; if it is NULL, the member is removed. For YAML, there are exactly two names. */
int setup_file_set(struct setup_file *f, const char *const names[], const char *value,
                   struct ssb_error *err);
/* Appends what changes, as lines with "-" and "+". */
void setup_file_show(const struct setup_file *f, struct buf *out);
/* Replaces the file with the new text. Fails if the file was changed since it was read. */
int setup_file_replace(const struct setup_file *f, struct ssb_error *err);

#endif
