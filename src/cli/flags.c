/* flags.c - every option of every command, in one table. Help, completion
 * and the manual page follow it; a test compares them. */
#include "cli/cli.h"

#include "base/own.h"

const struct option_row FLAGS[] = {
	{ "read", 'r', "PATH", SSB_OPT_READ, NULL, ON_PLAN, "let the skill read PATH" },
	{ "write", 'w', "PATH", SSB_OPT_WRITE, NULL, ON_PLAN, "let the skill read and write PATH" },
	{ "net", 0, "HOST[:PORT]", SSB_OPT_NET, NULL, ON_PLAN, "let the skill connect to HOST" },
	{ "env", 0, "NAME[=VALUE]", SSB_OPT_ENV, NULL, ON_PLAN,
	  "pass the variable NAME on, or set it" },
	{ "memory", 'm', "SIZE", SSB_OPT_MEMORY, NULL, ON_PLAN,
	  "memory of all processes: 512M, 1G" },
	{ "timeout", 't', "TIME", SSB_OPT_TIMEOUT, NULL, ON_PLAN, "run time at most: 30s, 5m, 1h" },
	{ "cpu-shares", 0, "N", SSB_OPT_CPU_SHARES, NULL, ON_PLAN,
	  "weight of the processor share" },
	{ "max-output", 0, "SIZE", SSB_OPT_MAX_OUTPUT, NULL, ON_PLAN,
	  "bytes of stdout and of stderr at most" },
	{ "max-processes", 0, "N", SSB_OPT_MAX_PROCESSES, NULL, ON_PLAN,
	  "processes and threads at most" },
	{ "max-files", 0, "N", SSB_OPT_MAX_FILES, NULL, ON_PLAN, "open files per process at most" },
	{ "max-disk", 0, "SIZE", SSB_OPT_MAX_DISK, NULL, ON_PLAN,
	  "size of the private /tmp, /var/tmp and home" },
	{ "profile", 0, "NAME", SSB_OPT_PROFILE, NULL, ON_PLAN,
	  "system calls: default, strict or permissive" },
	{ "toolchain", 0, "auto|off", SSB_OPT_TOOLCHAIN, NULL, ON_PLAN,
	  "grant an interpreter that lives outside /usr" },
	{ "best-effort", 0, "LAYER", SSB_OPT_BEST_EFFORT, NULL, ON_PLAN,
	  "run although LAYER cannot be applied" },
	{ "unix-sockets", 0, NULL, SSB_OPT_UNIX_SOCKETS, "yes", ON_PLAN,
	  "unix sockets although a directory is writable" },
	{ "policy", 0, "FILE", SSB_OPT_POLICY_FILE, NULL, ON_PLAN,
	  "the owner's policy file; empty for none" },
	{ "trace-output", 0, "FILE", SSB_OPT_TRACE_OUTPUT, NULL, ON_RUN,
	  "write the trace to FILE" },
	{ "tty", 0, NULL, SSB_OPT_TTY, "yes", ON_RUN, "give the skill a terminal of its own" },
	{ "no-tty", 0, NULL, SSB_OPT_TTY, "no", ON_RUN, "give the skill pipes, never a terminal" },
	{ "dry-run", 0, NULL, FLAG_DRY_RUN, NULL, ON_RUN, "print the plan and execute nothing" },
	{ "prove", 0, NULL, FLAG_PROVE, NULL, ON_RUN,
	  "attack the sandbox first; run only if it holds" },
	{ "json", 0, NULL, FLAG_JSON, NULL, ON_PLAN | ON_VALIDATE | ON_DOCTOR,
	  "JSON for programs" },
	{ "verbose", 'v', NULL, FLAG_VERBOSE, NULL, ON_PLAN | ON_VALIDATE,
	  "also warnings, notes and a summary" },
	{ "quiet", 'q', NULL, FLAG_QUIET, NULL, ON_PLAN | ON_VALIDATE, "no messages but errors" },
	{ "help", 'h', NULL, FLAG_HELP, NULL, ON_ALL, "explain the command" },
};
const size_t N_FLAGS = ARRAY_LEN(FLAGS);
