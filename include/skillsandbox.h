/* skillsandbox.h - the public interface of libskillsandbox.
 *
 * Runs an AI agent's skill with only what the skill declares and its owner grants. There are
 * three steps: set what the owner allows (ssb_options), freeze it into a plan (ssb_plan_*), run
 * the plan (ssb_run).
 *
 * Every function that can fail returns 0, or -1 with `err` filled once; it leaves `ret_*`
 * arguments untouched on failure. The library never prints, logs or exits. Distinct objects are
 * independent; one object must not be used by two threads at the same time. ssb_run() forks, so
 * it must be called from a single-threaded process. */
#ifndef SKILLSANDBOX_H
#define SKILLSANDBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SSB_VERSION "0.1.0"
#define SSB_API     __attribute__((visibility("default")))

/* ---- errors ---------------------------------------------------------- */

enum ssb_code {
	SSB_OK = 0,
	SSB_E_USAGE,     /* wrong use: an option, argument or value is not valid */
	SSB_E_MANIFEST,  /* the manifest is not valid */
	SSB_E_POLICY,    /* refused: the owner does not allow it */
	SSB_E_LAYER,     /* an enforcement layer cannot be applied */
	SSB_E_LIMIT,     /* a built-in bound was exceeded */
	SSB_E_NOT_FOUND, /* the named object does not exist */
	SSB_E_NOT_EXEC,  /* the entrypoint exists but cannot be executed */
	SSB_E_SYS,       /* a system call failed: see sys_errno */
	SSB_E_NOMEM,
};

/* Passed by value, without heap memory: works after fork and under seccomp. */
struct ssb_error {
	enum ssb_code code; /* SSB_OK until the first failure */
	int sys_errno;      /* 0: no system call failed */
	char where[96];     /* "mounts", "weather/skillsandbox.yaml:14:7" */
	char text[400];     /* what happened, and what to do about it */
};

/* ---- diagnostics: all findings of a file or plan, not only the first ------ */

/* SSB_ALARM is not an error: the owner allowed something that removes a protection. */
enum ssb_severity { SSB_NOTE, SSB_WARNING, SSB_ALARM, SSB_ERROR };

struct ssb_diag {
	enum ssb_severity severity;
	const char *where;  /* "file:line:column", or the flag; never NULL */
	const char *text;   /* what is wrong; never NULL */
	const char *remedy; /* what to write instead; may be "" */
};

struct ssb_diags;

SSB_API struct ssb_diags *ssb_diags_new(void);             /* returns new, or NULL */
SSB_API void ssb_diags_free(struct ssb_diags *d);          /* accepts NULL */
SSB_API size_t ssb_diags_count(const struct ssb_diags *d); /* accepts NULL */
SSB_API const struct ssb_diag *ssb_diags_get(const struct ssb_diags *d, size_t i); /* borrows */

/* ---- what the owner allows -------------------------------------------- */

enum ssb_option {
	SSB_OPT_READ,          /* path; repeatable */
	SSB_OPT_WRITE,         /* path; repeatable */
	SSB_OPT_NET,           /* HOST[:PORT], or a set of hosts such as "@npm"; repeatable */
	SSB_OPT_ENV,           /* NAME or NAME=VALUE; repeatable */
	SSB_OPT_MEMORY,        /* "512M", "1G", bare number = MiB */
	SSB_OPT_TIMEOUT,       /* "30s", "5m", "1h", bare number = seconds */
	SSB_OPT_CPU_SHARES,    /* 2..262144 */
	SSB_OPT_MAX_OUTPUT,    /* bytes, "1M" */
	SSB_OPT_MAX_PROCESSES, /* 1..65536 */
	SSB_OPT_MAX_FILES,     /* open files per process */
	SSB_OPT_MAX_DISK,      /* "64M"; bare number = MiB */
	SSB_OPT_PROFILE,       /* "default" | "strict" | "permissive" */
	SSB_OPT_TOOLCHAIN,   /* "auto" | "off" | "default" (the policy file decides; else "auto") */
	SSB_OPT_BEST_EFFORT, /* name of a layer that may be missing; repeatable */
	/* "yes" | "no": allow all AF_UNIX sockets, even if a path is granted for writing */
	SSB_OPT_UNIX_SOCKETS,
	/* file to use instead of ~/.config/skillsandbox/policy.yaml; "": none */
	SSB_OPT_POLICY_FILE,
	SSB_OPT_TRACE_OUTPUT,  /* file for trace.json, instead of the state directory */
	SSB_OPT_TTY,           /* "auto" | "yes" | "no": whether the skill gets a new pty */
	SSB_OPT_ALLOW_PRIVATE, /* CIDR: private addresses that host names may have; repeatable */
	SSB_OPT_AUDIT,         /* "full", "violations" or "off": what is observed and recorded */
	/* a request of the manifest that must not be granted: "read ~/notes"; repeatable */
	SSB_OPT_WITHHOLD,
	/* directory with a root file system, which is shown instead of the host's */
	SSB_OPT_ROOTFS,
	/* the directory of a project, which the skill may read and write, or only read; "." is the
	 * current directory. Not a home directory or one around it */
	SSB_OPT_PROJECT,
	SSB_OPT_PROJECT_READ,
	/* a name: "node"; its hosts, paths, variables and limits are granted; repeatable */
	SSB_OPT_PRESET,
	/* "1G", bare number = MiB: the size of a directory that the skill keeps between runs */
	SSB_OPT_CACHE,
};

struct ssb_options;

SSB_API struct ssb_options *ssb_options_new(void);    /* returns new, or NULL */
SSB_API void ssb_options_free(struct ssb_options *o); /* accepts NULL */
/* Copies `value`. Fails with SSB_E_USAGE for a bad value; the text says what to write. */
SSB_API int ssb_options_set(struct ssb_options *o, enum ssb_option what, const char *value,
                            struct ssb_error *err);

/* ---- manifests and plans ---------------------------------------------- */

/* Checks the manifest of a skill's directory, or a manifest file (also a SKILL.md, from which a
 * manifest is derived). Executes nothing and opens only the manifest. All findings go to `diags`
 * (borrowed, may be NULL). Returns -1 with SSB_E_MANIFEST if any of them is an error. */
SSB_API int ssb_validate(const char *path, struct ssb_diags *diags, struct ssb_error *err);

struct ssb_plan;

/* Freezes the manifest, the owner's policy file and the options into a plan. `args`
 * (NULL-terminated, may be NULL, borrowed) are appended to the arguments of the skill's entrypoint.
 * If it has none, the first of them names the script.
 * Refusals and warnings go to `diags` (may be NULL). A plan with refusals is also returned and can
 * be inspected, but ssb_run() rejects it. `*ret_plan` is new and must be freed with
 * ssb_plan_free(). */
SSB_API int ssb_plan_skill(const struct ssb_options *o, const char *dir, char *const args[],
                           struct ssb_plan **ret_plan, struct ssb_diags *diags,
                           struct ssb_error *err);
/* Like ssb_plan_skill(), for a bare command. There is no manifest: the options and the policy file
 * decide. */
SSB_API int ssb_plan_command(const struct ssb_options *o, char *const argv[],
                             struct ssb_plan **ret_plan, struct ssb_diags *diags,
                             struct ssb_error *err);
SSB_API void ssb_plan_free(struct ssb_plan *p); /* accepts NULL */
SSB_API size_t ssb_plan_refusals(const struct ssb_plan *p);
/* Both return a new NUL-terminated text, which the caller must free(), or NULL if out of memory. */
SSB_API char *ssb_plan_json(const struct ssb_plan *p);
SSB_API char *ssb_plan_text(const struct ssb_plan *p);

/* ---- running ----------------------------------------------------------- */

enum ssb_end {
	SSB_END_EXITED,   /* the skill exited: exit_status is its status */
	SSB_END_SIGNALED, /* the skill was ended by the signal `signal` */
	SSB_END_TIMEOUT,  /* the skill ran longer than max_runtime_seconds */
	SSB_END_MEMORY,   /* the skill used more than memory_mb */
	SSB_END_CANCELED, /* the caller received a signal to stop */
	SSB_END_SESSION,  /* a rule of the run's session ended the run */
};

#define SSB_STATUS_CUT 122 /* the skill exited with 0, but its output was cut */

struct ssb_result {
	enum ssb_end end;
	/* the exit status of `skillsandbox run`: that of the skill, 128+N, 122, 124, 125 or 137 */
	int exit_status;
	int signal;
	uint64_t duration_us;
	uint64_t stdout_bytes; /* bytes that were delivered */
	uint64_t stderr_bytes;
	int stdout_cut; /* output exceeded max_output_bytes */
	int stderr_cut;
	int stdout_open; /* the last line has no line end */
	int stderr_open;
	size_t violations;
	size_t limits_hit; /* limits of the run that were reached; ssb_denials_read() names them */
	/* the highest severity of the run's threat classes: "critical"; "" if none */
	char severity[16];
	/* names of the threat classes, worst first, separated by ", "; "" if none */
	char classes[320];
	char session_reason[256]; /* SSB_END_SESSION: the reason */
	char lost_layers[80]; /* layers that were missing, as --best-effort allows; "" if none */
	char run_id[40];
	char trace_path[4096];
};

/* Builds the sandbox, runs the plan to its end, and writes the trace. The standard streams of the
 * skill are relayed to `stdio` (borrowed fds; -1: the input is empty, or the output is discarded).
 * Fails closed: if the sandbox cannot be built, the skill is not started. Returns -1 in that case,
 * and also if the skill could not be executed (SSB_E_NOT_FOUND, SSB_E_NOT_EXEC), if the sandbox
 * broke during the run, or if the trace could not be finished. */
SSB_API int ssb_run(const struct ssb_plan *p, const int stdio[3], struct ssb_result *ret_result,
                    struct ssb_error *err);

/* Like ssb_run(), as part of the session `id` (see `skillsandbox session start`): the run is
 * counted in the session, and is ended or paused together with it. If the session does not allow
 * the run, starts nothing and returns -1 with SSB_E_POLICY and the reason. If the session ends the
 * run, ret_result->end is SSB_END_SESSION. */
SSB_API int ssb_run_in_session(const struct ssb_plan *p, const char *id, const int stdio[3],
                               struct ssb_result *ret_result, struct ssb_error *err);

/* A callback of ssb_run_watched(). on_record is called once, when the record of the run exists and
 * before the skill starts. The library writes to `record` (borrowed); to read it, open
 * /proc/self/fd/N again. on_record may fork. */
struct ssb_watch {
	void (*on_record)(void *arg, int record);
	void *arg;
};

/* Like ssb_run() (if `id` is NULL) or ssb_run_in_session(). Also calls `watch` (borrowed during the
 * call). */
SSB_API int ssb_run_watched(const struct ssb_plan *p, const char *id, const int stdio[3],
                            const struct ssb_watch *watch, struct ssb_result *ret_result,
                            struct ssb_error *err);

/* ---- what a run was denied ---------------------------------------------- */

/* One thing that the skill was denied, however often it tried. The texts are never NULL. Parts that
 * the skill chose (paths, host names) are escaped and cannot control a terminal. */
struct ssb_denial {
	const char *kind;    /* the name of its event in the record: "file_blocked" */
	const char *what;    /* "read ~/.ssh/id_rsa", "connect to api.example:443 (tls)" */
	const char *reason;  /* stable code: "credential_store"; skillsandbox-trace(5); may be "" */
	const char *why;     /* the reason in words */
	const char *remedy;  /* the smallest change that allows it; "" if nothing can */
	const char *program; /* path in the sandbox; "" if unknown */
	uint64_t count;      /* attempts */
	int violation;       /* 0: an ordinary refusal, which belongs to no threat class */
	int prevented;       /* 0: the attempt was only recorded, not prevented */
};

struct ssb_denials;

/* Reads what a run was denied from the record of the run. `of` (borrowed) must be the result of an
 * ssb_run() that returned 0. Violations come first. `*ret_denials` is new and must be freed with
 * ssb_denials_free(). The record is next to of->trace_path and must still exist (otherwise
 * SSB_E_NOT_FOUND). This function does not verify it: use `skillsandbox audit verify`. */
SSB_API int ssb_denials_read(const struct ssb_result *of, struct ssb_denials **ret_denials,
                             struct ssb_error *err);
SSB_API void ssb_denials_free(struct ssb_denials *d);          /* accepts NULL */
SSB_API size_t ssb_denials_count(const struct ssb_denials *d); /* accepts NULL */
/* Borrows from `d`; NULL if `i` is not below the count. */
SSB_API const struct ssb_denial *ssb_denials_get(const struct ssb_denials *d, size_t i);
/* Returns 1 if the list contains everything that was denied. Returns 0 if the run was not observed
 * (SSB_OPT_AUDIT "off"), if the record is damaged, or if the record or this list was full. */
SSB_API int ssb_denials_complete(const struct ssb_denials *d);

/* ---- what this machine offers, and proof that the sandbox holds -------- */

struct ssb_check {
	const char *name; /* "userns", "landlock", ... */
	int ok;           /* 1: available; 0: missing */
	char detail[200];
	char remedy[300];
};

/* Checks what this machine supports. `*ret_checks` is new (free()), `*ret_count` is its length. */
SSB_API int ssb_doctor(struct ssb_check **ret_checks, size_t *ret_count, struct ssb_error *err);

enum ssb_probe_outcome {
	SSB_PROBE_HELD,       /* the attack works outside the sandbox and fails inside */
	SSB_PROBE_LEAKED,     /* the attack works inside */
	SSB_PROBE_NO_CONTROL, /* the attack does not work outside either, so it proves nothing */
};

struct ssb_probe {
	const char *name;
	const char *what; /* one line for people */
	enum ssb_probe_outcome outcome;
	char inside[120];
	char outside[120];
};

/* Builds the same sandbox as ssb_run() and attacks it from inside. `*ret_probes` is new
 * (free()). */
SSB_API int ssb_prove(const struct ssb_plan *p, struct ssb_probe **ret_probes, size_t *ret_count,
                      struct ssb_error *err);

#ifdef __cplusplus
}
#endif
#endif
