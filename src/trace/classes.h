/* classes.h - finds the threat classes of the attempts of a run.
 *
 * A class is a combination of facts. What ordinary programs try as well (to look up a host that is
 * not declared, to write to a directory that is granted for reading) has no class by itself; it
 * counts for its class if the skill also tried to get credentials.
 *
 * There are two tables (classes_table.c): the classes, and the rules that assign an event to a
 * class. Only observed events count, never the configuration. Each class lists the lines of the
 * record that were assigned to it. Two classes are derived from others at the end. If the skill
 * tried to reach credentials, every attempt to send data out is also credential_exfiltration, and
 * both together are a supply_chain_attack. The tables have a fixed size, so a skill cannot make
 * them use more memory. */
#ifndef TRACE_CLASSES_H
#define TRACE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "base/json.h"

/* Ordered by severity, the most severe first; reports use this order. */
enum class_id {
	CLASS_SUPPLY_CHAIN_ATTACK,
	CLASS_CREDENTIAL_EXFILTRATION,
	CLASS_CREDENTIAL_HARVESTING,
	CLASS_PRIVILEGE_ESCALATION,
	CLASS_SANDBOX_EVASION,
	CLASS_PERSISTENCE,
	CLASS_COMMAND_AND_CONTROL,
	CLASS_UNAUTHORIZED_FILE_ACCESS,
	CLASS_DATA_EXFILTRATION,
	CLASS_RESOURCE_ABUSE,
	CLASS_DISCOVERY,
	CLASS_COUNT,
	CLASS_NONE = CLASS_COUNT,
};

/* In ascending order of severity. */
enum class_severity {
	SEVERITY_NONE,
	SEVERITY_UNCLASSIFIED, /* there are violations, but they belong to no class */
	SEVERITY_LOW,
	SEVERITY_MEDIUM,
	SEVERITY_HIGH,
	SEVERITY_CRITICAL,
};

struct class_info {
	const char *name;
	enum class_severity severity;
	const char *description;
	const char *prevented_by;
	const char *tactic;     /* short name in MITRE ATT&CK */
	const char *techniques; /* ids that the rules of this class may name, separated by spaces */
};

extern const struct class_info CLASSES[CLASS_COUNT];

#define CLASS_EVIDENCE   16 /* the most lines that are listed for a class */
#define CLASS_TECHNIQUES 8
#define CLASS_NO_LINE    UINT64_MAX /* as `seq`: the event has no line in the record */

struct class_hits {
	uint64_t count;
	uint64_t not_prevented;
	uint64_t evidence[CLASS_EVIDENCE];
	size_t n_evidence;
	/* the techniques that the matching rules name */
	const char *techniques[CLASS_TECHNIQUES];
	size_t n_techniques;
};

struct classes {
	const char *home; /* borrowed: the skill's home in the sandbox */
	uint64_t enforced;
	uint64_t not_prevented; /* violations that were not denied */
	uint64_t unwritten;     /* violations that have no line in the record and do not repeat an
	                           earlier one */
	struct class_hits hits[CLASS_COUNT];
	struct class_hits ordinary[CLASS_COUNT]; /* attempts with an ordinary verdict */
};

struct line;

struct class_verdict {
	enum class_id id; /* CLASS_NONE: the event is harmless, or no rule assigns it to a class */
	const char *technique;
	bool ordinary; /* belongs to the class only if the skill tried to get credentials, too */
};

/* Returns the class of an event, by the first rule that matches (classes_table.c). */
struct class_verdict classes_of(const struct event *e, const char *home);
/* Returns whether any rule names this reason. A test calls it for every reason. */
bool classes_names_reason(enum reason reason);
/* Returns whether the path is a file that the owner's shell runs when it starts. */
bool classes_startup_file(const char *home, const char *path);
/* Returns whether a name in the path is one under which keys or passwords are kept, in any
 * directory. */
bool classes_secret_name(const char *path);
/* Returns whether the path is in the store that this program of the host keeps for itself, such as
 * ~/.gnupg for gpg. */
bool classes_own_store(const char *home, const char *program, const char *path);
/* Returns whether this program of the host reads this secret file whenever a person uses it, as a
 * shell reads its history. */
bool classes_routine_read(const char *home, const char *program, const char *path);

void classes_init(struct classes *c, const char *home);
/* Counts an event that belongs to `class`. The event is line `seq` of the record, or repeats that
 * line. */
void classes_count(struct classes *c, const struct event *e, struct class_verdict class,
                   uint64_t seq);
/* Like classes_count(), but finds the class of the event first. */
void classes_add(struct classes *c, const struct event *e, uint64_t seq);
/* Counts a line that was read from a record. Does not count a line with `repeat_of`, because the
 * line does not contain enough to find its class. So the counts are lower bounds. */
void classes_add_line(struct classes *c, const struct line *l);

enum class_id classes_of_line(const struct line *l, const char *home);

/* Returns whether there is nothing to report; violation_summary is then left out. */
bool classes_empty(const struct classes *c);
/* Copies `c` into *ret and adds the classes that are derived from others. */
void classes_derive(const struct classes *c, struct classes *ret);
/* Writes the JSON object violation_summary. */
void classes_write(const struct classes *c, struct json *j);
const char *classes_severity_name(enum class_severity severity); /* "" for SEVERITY_NONE */
/* Returns SEVERITY_NONE for an unknown name. */
enum class_severity classes_severity_from(const char *name);
/* Returns the highest severity; SEVERITY_NONE if there is no class. */
enum class_severity classes_worst(const struct classes *c);
/* Writes the names of the classes to `out`, as in "supply_chain_attack, persistence". If they do
 * not fit, the last names are left out. *ret_severity is the name of the highest severity. Both
 * texts are "" if there is no class. */
void classes_names(const struct classes *c, char *out, size_t size, const char **ret_severity);

#endif
