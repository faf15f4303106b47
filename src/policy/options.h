/* options.h - the owner's options from the command line (ssb_options). */
#ifndef POLICY_OPTIONS_H
#define POLICY_OPTIONS_H

#include "base/limits.h"
#include "policy/plan.h"

/* The value of a resource that was not given. */
#define OPTION_UNSET UINT64_MAX

/* A file or directory of the runtime that is shown in place of one that a skill asks for. */
struct stand_in {
	char *path;
	char *target;
	enum access access;
};

/* Options of a learning run. The manifest's requests for files and hosts are neither granted nor
 * refused in it. Stand-ins are shown, and any host name can be looked up. */
struct learn_options {
	enum learning mode; /* LEARNING_NOT: the other members are not used */
	uint16_t ports[MAX_LEARN_PORTS];
	size_t n_ports;
	char canary[CANARY_BYTES];
	const struct stand_in *stand_ins; /* borrowed */
	size_t n_stand_ins;
};

struct ssb_options {
	struct string_list read;
	struct string_list write;
	struct string_list net; /* HOST[:PORT], or "@SET" */
	struct string_list env;
	struct string_list allow_private; /* normalised */
	struct resources res;             /* each OPTION_UNSET until given */
	int profile;                      /* -1 until given */
	int unix_sockets;                 /* -1 until given */
	bool toolchain_auto;
	bool toolchain_given; /* the flag was "auto" or "off", which overrides the policy file */
	unsigned best_effort;
	char *policy_file; /* NULL: the default place; "": no file */
	char *trace_output;
	char *project; /* NULL: the policy file says whether there is one */
	enum access project_access;
	char *rootfs; /* NULL: the host's system directories */
	/* the image's work directory, for a bare command whose current directory is not granted; or
	 * NULL */
	char *workdir;
	/* a program and its arguments that run instead of the skill's entry point; borrowed, as are
	 * the words; NULL: none */
	char *const *shell;
	enum tty_mode tty;
	int audit; /* enum audit_level; -1 until given */
	/* Items of plan->requested that the owner declined with --without. */
	struct string_list withhold;
	struct string_list preset; /* names */
	uint64_t cache_mb;         /* 0: no cache was asked for */
	struct learn_options learn;
};

/* SSB_OPT_TOOLCHAIN also accepts "default", which means "auto" unless the policy file says off. The
 * command line sets it if the flag is absent. */

/* Returns the name of the flag that sets an option, for messages: "--read". */
const char *options_flag(enum ssb_option what);

/* Parses HOST[:PORT] of --net as a rule (port 443 if none is given). Returns NULL, or what is wrong
 * with the value. On success fills `*ret`, whose domain.s and ports are new. */
const char *options_net(const char *value, struct egress_rule *ret);

/* Normalises an address or range, with its prefix. Returns NULL, or what is wrong with the value;
 * `*ret` is new on success. */
const char *options_cidr(const char *value, char **ret);

/* Reads the size of a cache in MiB. Returns NULL, or "is not ...; write ...". */
const char *options_cache(const char *value, uint64_t *ret);

#endif
