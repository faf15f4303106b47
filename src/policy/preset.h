/* preset.h - named sets of hosts (data/net-sets.yaml) and presets (data/presets). Both are built
 * in. A file of the owner, config_dir/presets/NAME.yaml, adds a preset or replaces a built-in one.
 *
 * A preset only adds what the owner's flags could add. skillsandbox-policy(5) describes the
 * format. */
#ifndef POLICY_PRESET_H
#define POLICY_PRESET_H

#include "policy/plan.h"

#define CACHE_PLACE ".cache"  /* where the sandbox's home shows the cache */
#define CACHE_WORD  "{cache}" /* that place, in a value of `cache:` */

struct preset {
	char *name;
	char *where;           /* for people: "preset node" */
	struct mtext_list net; /* HOST[:PORT] or @SET */
	struct mtext_list read;
	struct string_list env; /* "NAME=VALUE" */
	struct string_list
	        cache; /* variables that are set if there is a cache: "NAME={cache}/npm" */
	struct resources limits; /* OPTION_UNSET: the preset does not say */
};

extern const char *const PRESET_NAMES[]; /* of the built-in presets */
extern const size_t N_PRESET_NAMES;

/* Returns NULL, or what is wrong with the form of a name. The preset may still be unknown. */
const char *preset_name_problem(const char *name);
/* Loads a preset; `o` NULL: a built-in one. `*ret` is new and must be released with preset_done().
 * Fails with SSB_E_USAGE if the owner has no file of this name and no preset is built in. Findings
 * go to `diags` (may be NULL). */
int preset_load(const struct owner *o, const char *name, struct preset *ret,
                struct ssb_diags *diags, struct ssb_error *err);
void preset_done(struct preset *p);

/* Appends each HOST[:PORT] for which `value` stands: those of a set such as "@npm", or `value`
 * itself. Fails with SSB_E_USAGE if the set is unknown; the message names all sets. */
int preset_expand_net(const char *value, struct string_list *to, struct ssb_error *err);
/* A check for readers of files: returns NULL with *ret new, or "what is wrong; remedy". */
const char *preset_check_net(const char *value, char **ret);

#endif
