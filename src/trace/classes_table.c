/* classes_table.c - defines the threat classes and their rules, as data.
 *
 * A rule checks one event, and the first rule that matches decides. An exception (a rule with
 * CLASS_NONE) must come before the wider rules to which it is an exception. */
#include <limits.h>
#include <string.h>

#include "trace/classes.h"
#include "base/address.h"
#include "base/array.h"
#include "base/own.h"

const struct class_info CLASSES[CLASS_COUNT] = {
	[CLASS_SUPPLY_CHAIN_ATTACK] = { "supply_chain_attack", SEVERITY_CRITICAL,
	                                "tried to get credentials and to reach a place to send "
	                                "them to",
	                                "env_filter + network_egress_policy", "exfiltration",
	                                "T1195.002" },
	[CLASS_CREDENTIAL_EXFILTRATION] = { "credential_exfiltration", SEVERITY_CRITICAL,
	                                    "tried to reach an undeclared place after it had tried "
	                                    "to get credentials",
	                                    "network_egress_policy", "exfiltration",
	                                    "T1048 T1048.003 T1567 T1071 T1090.004 T1095 T1571" },
	[CLASS_CREDENTIAL_HARVESTING] = { "credential_harvesting", SEVERITY_CRITICAL,
	                                  "tried to get credentials that it was not given",
	                                  "filesystem_isolation + env_filter", "credential-access",
	                                  "T1552.001 T1552.003 T1552.004 T1552.005 T1555.003 "
	                                  "T1003.007 T1003.008" },
	[CLASS_PRIVILEGE_ESCALATION] = { "privilege_escalation", SEVERITY_HIGH,
	                                 "made a system call that could give it more rights",
	                                 "seccomp_bpf", "privilege-escalation",
	                                 "T1068 T1055.008 T1547.006 T1548.001" },
	[CLASS_SANDBOX_EVASION] = { "sandbox_evasion", SEVERITY_HIGH, "tried to leave the sandbox",
	                            "seccomp_bpf + filesystem_isolation", "defense-evasion",
	                            "T1611 T1562" },
	[CLASS_PERSISTENCE] = { "persistence", SEVERITY_HIGH,
	                        "tried to store something that runs again later",
	                        "filesystem_isolation", "persistence",
	                        "T1546.004 T1053.003 T1543.002 T1098.004 T1547.013 T1574.006 "
	                        "T1546 T1037.004" },
	[CLASS_COMMAND_AND_CONTROL] = { "command_and_control", SEVERITY_HIGH,
	                                "tried to connect in a way that hides the other end",
	                                "network_egress_policy", "command-and-control",
	                                "T1071 T1090.004 T1095 T1571" },
	[CLASS_UNAUTHORIZED_FILE_ACCESS] = { "unauthorized_file_access", SEVERITY_HIGH,
	                                     "tried to use files outside of its plan",
	                                     "filesystem_isolation", "collection",
	                                     "T1005 T1565.001" },
	[CLASS_DATA_EXFILTRATION] = { "data_exfiltration", SEVERITY_MEDIUM,
	                              "tried to reach an undeclared place", "network_egress_policy",
	                              "exfiltration", "T1048 T1048.003 T1567" },
	[CLASS_RESOURCE_ABUSE] = { "resource_abuse", SEVERITY_MEDIUM, "went past a limit",
	                           "resource_limits", "impact", "T1499" },
	[CLASS_DISCOVERY] = { "discovery", SEVERITY_LOW,
	                      "tried to explore things outside of its plan",
	                      "filesystem_isolation + network_egress_policy + seccomp_bpf",
	                      "discovery", "T1083 T1046 T1082" },
};

/* ---- what a rule can ask ------------------------------------------------ */

enum access_asked { ACCESS_ANY, READING, WRITING };

enum place_asked {
	ADDRESS_ANY,
	ADDRESS_GIVEN, /* any address, if the skill gave an address instead of a host name */
	ADDRESS_METADATA,
	ADDRESS_PRIVATE,
};

#define ON(kind) (1U << (kind))
_Static_assert(EV_COUNT <= 32, "each kind has a bit");

#define FILES   ON(EV_FILE_BLOCKED)
#define WRITES  (ON(EV_FILE_BLOCKED) | ON(EV_FILE_WRITE))
#define EGRESS  ON(EV_NETWORK_EGRESS_BLOCKED)
#define SYSCALL ON(EV_SYSCALL_BLOCKED)
#define LIMIT   ON(EV_RESOURCE_LIMIT_HIT)

/* A column that is zero is not checked. The items of a list are separated by spaces. An item of
 * `paths` matches that path and everything beneath it. An item that begins with "=" matches only
 * the path itself. "~/" is the skill's home. An item that begins with "//" matches at any depth. */
struct rule {
	enum class_id id;
	const char *technique;
	unsigned kinds;
	enum access_asked access;
	enum place_asked place;
	bool ordinary;   /* ordinary programs do it, too: it counts only together with a secret */
	bool long_label; /* the name has a label that looks like data */
	const enum reason *reasons; /* ends with REASON_NONE */
	const enum op *ops;         /* ends with OP_NONE */
	enum event_protocol protocol;
	/* names of programs; the program's path must be beneath /usr and end in one of them */
	const char *programs;
	const char *paths;
};

#define ANY_REASON(...) ((const enum reason[]){ __VA_ARGS__, REASON_NONE })
#define ANY_OP(...)     ((const enum op[]){ __VA_ARGS__, OP_NONE })

#define LONG_LABEL 40

#define STARTUP_FILES                                                                              \
	"~/.bashrc ~/.bash_profile ~/.bash_login ~/.bash_logout ~/.bash_aliases ~/.profile "       \
	"~/.zshrc ~/.zshenv ~/.zprofile ~/.zlogin ~/.config/fish"

/* Names of files and directories with keys or passwords, wherever they are. */
#define KEY_NAMES "//.ssh //.gnupg"
#define SECRET_NAMES                                                                               \
	"//.aws //.azure //.kube //.docker //.netrc //.git-credentials //.env //.npmrc "           \
	"//.config/gcloud //.config/gh"

#define GPG "gpg gpg-agent gpgsm gpgconf gpg-connect-agent dirmngr keyboxd scdaemon"
#define SSH "ssh ssh-add ssh-agent ssh-keygen ssh-keyscan scp sftp"

/* Programs that read their own store each time they start. */
struct own_store {
	const char *programs;
	const char *paths;
};
static const struct own_store OWN_STORES[] = {
	{ GPG, "~/.gnupg" },
	{ SSH, "~/.ssh" },
	{ "git", "~/.git-credentials ~/.config/git" },
	{ "node", "~/.npmrc" },
};

/* Files with secrets that these programs read in ordinary use. For example, a shell reads its
 * history, and git and wget read the password for a host. */
static const struct own_store ROUTINE[] = {
	{ "bash", "=~/.bash_history" },
	{ "zsh", "=~/.zsh_history" },
	{ "fish", "~/.local/share/fish" },
	{ "python", "=~/.python_history" },
	{ "node", "=~/.node_repl_history" },
	{ "psql", "=~/.psql_history =~/.pgpass" },
	{ "mysql mariadb", "=~/.mysql_history =~/.my.cnf" },
	{ "redis-cli", "=~/.rediscli_history" },
	{ "git-remote-http git-remote-https git-credential-store wget",
	  "=~/.netrc =~/.git-credentials =~/.config/git/credentials" },
};

static const struct rule RULES[] = {
	{ CLASS_RESOURCE_ABUSE, "T1499", .kinds = LIMIT, .ordinary = true },

	/* Persistence. Writing to the run's private copy of such a place counts, too, although it
	 * is not denied and the copy is removed with the run. */
	{ CLASS_PERSISTENCE, "T1546.004", WRITES, .access = WRITING,
	  .paths = STARTUP_FILES " /etc/profile /etc/profile.d /etc/bash.bashrc /etc/zsh" },
	{ CLASS_PERSISTENCE, "T1053.003", WRITES, .access = WRITING,
	  .paths = "/etc/crontab /etc/cron.d /etc/cron.hourly /etc/cron.daily /etc/cron.weekly "
	           "/etc/cron.monthly /etc/anacrontab /var/spool/cron" },
	{ CLASS_PERSISTENCE, "T1543.002", WRITES, .access = WRITING,
	  .paths = "~/.config/systemd ~/.config/environment.d ~/.local/share/systemd /etc/systemd "
	           "/usr/lib/systemd /lib/systemd /run/systemd" },
	{ CLASS_PERSISTENCE, "T1547.013", WRITES, .access = WRITING,
	  .paths = "~/.config/autostart /etc/xdg/autostart ~/.xsessionrc ~/.xprofile ~/.xinitrc" },
	/* A skill may write keys to ~/.ssh in its private home. But these files tell sshd who may
	 * log in and what to run. */
	{ CLASS_PERSISTENCE, "T1098.004", WRITES, .access = WRITING,
	  .paths = "//.ssh/authorized_keys //.ssh/authorized_keys2 //.ssh/rc //.ssh/environment" },
	{ CLASS_PERSISTENCE, "T1098.004", FILES, .access = WRITING, .paths = "~/.ssh" },
	{ CLASS_PERSISTENCE, "T1574.006", FILES, .access = WRITING,
	  .paths = "/etc/ld.so.preload /etc/ld.so.conf /etc/ld.so.conf.d" },
	{ CLASS_PERSISTENCE, "T1037.004", FILES, .access = WRITING,
	  .paths = "/etc/rc.local /etc/init.d /etc/rc.d" },
	{ CLASS_PERSISTENCE, "T1546", FILES, .access = WRITING,
	  .paths = "//.git/hooks //.git/config //.husky //.envrc //.vscode //.claude //.cursor "
	           "//.cursorrules //.codex //.gemini //.opencode //opencode.json //opencode.jsonc "
	           "//.qwen //.roo //.windsurf //.windsurfrules //.mcp.json //CLAUDE.md "
	           "//CLAUDE.local.md //AGENTS.md //AGENTS.override.md //GEMINI.md "
	           "//.github/workflows" },
	/* A skill that makes a symlink at a protected name in a git directory: through it, the
	 * owner's git would write and delete files elsewhere. */
	{ CLASS_PERSISTENCE, "T1546", FILES, .access = WRITING,
	  .reasons = ANY_REASON(REASON_PROTECTED), .ops = ANY_OP(OP_SYMLINK) },

	/* Exceptions: writes to the skill's own directory, which the skill may only read; the
	 * stores that package managers and GnuPG open each time they start; and the settings of
	 * ssh. */
	{ CLASS_NONE, NULL, FILES, .access = WRITING, .reasons = ANY_REASON(REASON_READ_ONLY),
	  .paths = "/skill" },
	{ CLASS_NONE, NULL, FILES, .access = READING, .programs = "node", .paths = "=~/.npmrc" },
	{ CLASS_NONE, NULL, FILES, .access = READING, .programs = GPG, .paths = "~/.gnupg" },
	{ CLASS_NONE, NULL, FILES, .access = READING, .programs = SSH,
	  .paths = "=~/.ssh/config =~/.ssh/known_hosts =~/.ssh/known_hosts2" },

	/* Search programs, ps and lsof open the directories of every process. Only these files hold
	 * what another process knows. */
	{ CLASS_CREDENTIAL_HARVESTING, "T1003.007", FILES,
	  .reasons = ANY_REASON(REASON_OTHER_PROCESS), .paths = "//environ //mem //auxv" },
	{ CLASS_NONE, NULL, FILES, .access = READING, .reasons = ANY_REASON(REASON_OTHER_PROCESS) },
	{ CLASS_CREDENTIAL_HARVESTING, "T1003.008", FILES,
	  .reasons = ANY_REASON(REASON_CREDENTIAL_STORE),
	  .paths = "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow-" },
	{ CLASS_CREDENTIAL_HARVESTING, "T1555.003", FILES,
	  .reasons = ANY_REASON(REASON_CREDENTIAL_STORE),
	  .paths = "~/.mozilla ~/.config/google-chrome ~/.config/chromium ~/.config/BraveSoftware "
	           "~/.config/microsoft-edge ~/.config/vivaldi ~/.config/opera" },
	{ CLASS_CREDENTIAL_HARVESTING, "T1552.004", FILES,
	  .reasons = ANY_REASON(REASON_CREDENTIAL_STORE),
	  .paths = "~/.ssh ~/.gnupg ~/.pki /etc/ssh /etc/ssl/private /etc/wireguard" },
	{ CLASS_CREDENTIAL_HARVESTING, "T1552.003", FILES,
	  .reasons = ANY_REASON(REASON_CREDENTIAL_STORE),
	  .paths = "~/.bash_history ~/.zsh_history ~/.python_history ~/.node_repl_history "
	           "~/.psql_history ~/.mysql_history ~/.rediscli_history ~/.local/share/fish" },
	{ CLASS_CREDENTIAL_HARVESTING, "T1552.001", FILES,
	  .reasons = ANY_REASON(REASON_CREDENTIAL_STORE) },
	{ CLASS_CREDENTIAL_HARVESTING, "T1552.004", FILES,
	  .reasons = ANY_REASON(REASON_OTHER_HOME, REASON_OUTSIDE_PLAN), .access = READING,
	  .paths = KEY_NAMES },
	{ CLASS_CREDENTIAL_HARVESTING, "T1552.001", FILES,
	  .reasons = ANY_REASON(REASON_OTHER_HOME, REASON_OUTSIDE_PLAN), .access = READING,
	  .paths = SECRET_NAMES },

	{ CLASS_SANDBOX_EVASION, "T1611", FILES, .reasons = ANY_REASON(REASON_HOST_SERVICE) },
	{ CLASS_SANDBOX_EVASION, "T1562", FILES, .access = WRITING, .paths = "/proc /sys" },
	{ CLASS_SANDBOX_EVASION, "T1562", FILES, .access = WRITING,
	  .reasons = ANY_REASON(REASON_RUNTIME_FILES) },
	{ CLASS_CREDENTIAL_HARVESTING, "T1552.001", FILES,
	  .reasons = ANY_REASON(REASON_RUNTIME_FILES) },

	{ CLASS_DISCOVERY, "T1083", FILES, .access = READING, .paths = "=/home =/root =/boot" },
	{ CLASS_UNAUTHORIZED_FILE_ACCESS, "T1565.001", FILES, .access = WRITING, .ordinary = true,
	  .reasons = ANY_REASON(REASON_READ_ONLY, REASON_OUTSIDE_PLAN) },
	{ CLASS_UNAUTHORIZED_FILE_ACCESS, "T1565.001", FILES, .access = WRITING },
	{ CLASS_UNAUTHORIZED_FILE_ACCESS, "T1005", .kinds = FILES },

	/* Attempts to send data out. */
	{ CLASS_CREDENTIAL_HARVESTING, "T1552.005", EGRESS, .place = ADDRESS_METADATA },
	/* A declared host on another port. Its address in the sandbox is a private one. */
	{ CLASS_COMMAND_AND_CONTROL, "T1571", EGRESS, .ordinary = true,
	  .reasons = ANY_REASON(REASON_UNDECLARED_PORT, REASON_OTHER_PORT) },
	{ CLASS_DISCOVERY, "T1046", EGRESS, .place = ADDRESS_PRIVATE },
	{ CLASS_COMMAND_AND_CONTROL, "T1090.004", EGRESS,
	  .reasons = ANY_REASON(REASON_OTHER_SNI, REASON_OTHER_HOST, REASON_ECH, REASON_NO_SNI,
	                        REASON_BAD_SNI, REASON_NO_HOST, REASON_BAD_HOST, REASON_TWO_HOSTS,
	                        REASON_CONNECT, REASON_SMUGGLING, REASON_BAD_HEADER, REASON_FOLDED,
	                        REASON_BAD_CHUNK, REASON_EXPECT) },
	{ CLASS_COMMAND_AND_CONTROL, "T1095", EGRESS, .place = ADDRESS_GIVEN,
	  .protocol = PROTOCOL_UDP },
	{ CLASS_COMMAND_AND_CONTROL, "T1071", EGRESS, .place = ADDRESS_GIVEN },
	{ CLASS_COMMAND_AND_CONTROL, "T1095", EGRESS,
	  .reasons = ANY_REASON(REASON_NOT_TLS, REASON_NOT_HTTP, REASON_BAD_HELLO) },
	{ CLASS_RESOURCE_ABUSE, "T1499", EGRESS,
	  .reasons = ANY_REASON(REASON_TOO_MANY_CONNECTIONS, REASON_TOO_MANY_NAMES,
	                        REASON_BYTE_LIMIT) },
	{ CLASS_DATA_EXFILTRATION, "T1048", EGRESS, .reasons = ANY_REASON(REASON_CANARY) },
	{ CLASS_DATA_EXFILTRATION, "T1048.003", EGRESS, .long_label = true },
	{ CLASS_DATA_EXFILTRATION, "T1567", EGRESS, .ordinary = true,
	  .reasons = ANY_REASON(REASON_NOT_DECLARED) },
	/* Exceptions: connections that use a protocol version or feature that the broker does not
	 * support, and events that were counted without details. */
	{ CLASS_NONE, NULL, EGRESS,
	  .reasons = ANY_REASON(REASON_TOO_LONG, REASON_H2, REASON_VERSION, REASON_LATE_UPGRADE,
	                        REASON_MALFORMED, REASON_NOT_SUPPORTED, REASON_REFUSED_RULE,
	                        REASON_NOT_LISTED, REASON_UNREADABLE) },
	{ CLASS_COMMAND_AND_CONTROL, "T1071",
	  .kinds = EGRESS }, /* any reason that no rule above names */
	{ CLASS_DATA_EXFILTRATION, "T1048", SYSCALL, .reasons = ANY_REASON(REASON_NO_NETWORK) },

	/* System calls. */
	{ CLASS_NONE, NULL, SYSCALL,
	  .ops = ANY_OP(OP_SOCKET, OP_SOCKETPAIR, OP_ADJTIMEX, OP_CLOCK_ADJTIME) },
	{ CLASS_DISCOVERY, "T1082", SYSCALL,
	  .ops = ANY_OP(OP_SYSLOG, OP_STATMOUNT, OP_LISTMOUNT, OP_KCMP) },
	{ CLASS_SANDBOX_EVASION, "T1611", SYSCALL,
	  .ops = ANY_OP(OP_UNSHARE, OP_SETNS, OP_MOUNT, OP_UMOUNT2, OP_PIVOT_ROOT, OP_CHROOT,
	                OP_FSOPEN, OP_FSCONFIG, OP_FSMOUNT, OP_FSPICK, OP_MOVE_MOUNT, OP_OPEN_TREE,
	                OP_OPEN_TREE_ATTR, OP_MOUNT_SETATTR, OP_CLONE, OP_OPEN_BY_HANDLE_AT,
	                OP_IOCTL) },
	{ CLASS_PRIVILEGE_ESCALATION, "T1055.008", SYSCALL,
	  .ops = ANY_OP(OP_PTRACE, OP_PROCESS_VM_READV, OP_PROCESS_VM_WRITEV, OP_PIDFD_GETFD) },
	{ CLASS_PRIVILEGE_ESCALATION, "T1547.006", SYSCALL,
	  .ops = ANY_OP(OP_KEXEC_LOAD, OP_KEXEC_FILE_LOAD, OP_INIT_MODULE, OP_FINIT_MODULE,
	                OP_DELETE_MODULE, OP_CREATE_MODULE) },
	{ CLASS_PRIVILEGE_ESCALATION, "T1548.001", SYSCALL,
	  .ops = ANY_OP(OP_CHMOD, OP_FCHMOD, OP_FCHMODAT, OP_FCHMODAT2, OP_CREAT, OP_OPEN,
	                OP_OPENAT, OP_MKDIR, OP_MKDIRAT, OP_MKNOD, OP_MKNODAT) },
	{ CLASS_PRIVILEGE_ESCALATION, "T1068", .kinds = SYSCALL },
};

/* ---- how it is answered ------------------------------------------------- */

static bool in_list(const char *list, const char *word)
{
	size_t n = word != NULL ? strlen(word) : 0;

	while (n > 0 && *list != '\0') {
		const char *end = strchrnul(list, ' ');
		if ((size_t)(end - list) == n && memcmp(list, word, n) == 0) {
			return true;
		}
		list = *end == ' ' ? end + 1 : end;
	}
	return false;
}

static bool is_reason(const enum reason *any, enum reason r)
{
	while (*any != REASON_NONE && *any != r) {
		any++;
	}
	return *any != REASON_NONE;
}

static bool is_op(const enum op *any, enum op op)
{
	while (*any != OP_NONE && *any != op) {
		any++;
	}
	return *any != OP_NONE;
}

/* A path that is compared with the places of many rules. Its other members do not depend on a
 * place, and are computed once. */
struct path {
	struct bytes whole;
	struct bytes in_home; /* the part after the home, with its slash; empty: not in the home */
	uint64_t names;       /* the name_bit() of each name in the path */
};

/* Returns the bit of the name that follows `slash`. The bit is computed from the first two
 * characters, so several names can have the same bit. */
static uint64_t name_bit(const char *slash, const char *end)
{
	unsigned one = slash + 1 < end ? (unsigned char)slash[1] : '/';
	unsigned two = slash + 2 < end ? (unsigned char)slash[2] : '/';

	return 1ULL << ((one + 5 * two) % 64);
}

static struct path path_of(struct bytes b, const char *home)
{
	struct path ret = { .whole = b };
	size_t n = home != NULL ? strlen(home) : 0;

	if (b.p == NULL) {
		return ret;
	}
	const char *end = b.p + b.n;
	if (n > 0 && b.n > n && memcmp(b.p, home, n) == 0) {
		ret.in_home = (struct bytes){ b.p + n, b.n - n };
	}
	for (const char *s = b.p; (s = memchr(s, '/', (size_t)(end - s))) != NULL; s++) {
		ret.names |= name_bit(s, end);
	}
	return ret;
}

static bool begins_with(struct bytes path, const char *with, size_t n, bool exact)
{
	return path.n >= n && memcmp(path.p, with, n) == 0 &&
	       (path.n == n || (!exact && path.p[n] == '/'));
}

/* Returns whether the path contains `part`, one or more whole names with a slash before them. */
static bool is_anywhere(const struct path *path, const char *part, size_t n)
{
	const char *s = path->whole.p;
	const char *end = s + path->whole.n;

	if ((path->names & name_bit(part, part + n)) == 0) {
		return false;
	}
	for (; (s = memchr(s, '/', (size_t)(end - s))) != NULL; s++) {
		if (begins_with((struct bytes){ s, (size_t)(end - s) }, part, n, false)) {
			return true;
		}
	}
	return false;
}

static bool path_matches(const struct path *path, const char *pattern, size_t n)
{
	bool exact = pattern[0] == '=';

	pattern += exact;
	n -= exact;
	if (n > 2 && pattern[0] == '/' && pattern[1] == '/') {
		return is_anywhere(path, pattern + 1, n - 1);
	}
	if (pattern[0] != '~') {
		return begins_with(path->whole, pattern, n, exact);
	}
	return path->in_home.n > 0 && begins_with(path->in_home, pattern + 1, n - 1, exact);
}

static bool in_places(const struct path *path, const char *list)
{
	while (path->whole.p != NULL && *list != '\0') {
		const char *end = strchrnul(list, ' ');
		if (path_matches(path, list, (size_t)(end - list))) {
			return true;
		}
		list = *end == ' ' ? end + 1 : end;
	}
	return false;
}

bool classes_startup_file(const char *home, const char *path)
{
	struct path p = path_of((struct bytes){ path, strlen(path) }, home);

	return in_places(&p, STARTUP_FILES);
}

bool classes_secret_name(const char *path)
{
	struct path p = path_of((struct bytes){ path, strlen(path) }, NULL);

	return in_places(&p, KEY_NAMES " " SECRET_NAMES);
}

static bool is_writing(const struct event *e)
{
	if (e->mode != MODE_NONE) {
		return e->mode != MODE_READ;
	}
	return e->op != OP_NONE && !op_reads(e->op);
}

/* Returns whether the program is a program of the host with one of these names, perhaps followed by
 * its version, as in "python3.11". A program outside /usr does not count, because the skill could
 * give any name to a file of its own. */
static bool is_program(struct bytes program, const char *names)
{
	static const char place[] = "/usr/";
	char name[NAME_MAX + 1];
	const char *slash = program.p != NULL ? memrchr(program.p, '/', program.n) : NULL;
	size_t n = slash != NULL ? program.n - (size_t)(slash + 1 - program.p) : 0;

	if (n == 0 || n >= sizeof(name) || program.n < sizeof(place) ||
	    memcmp(program.p, place, sizeof(place) - 1) != 0) {
		return false;
	}
	memcpy(name, slash + 1, n);
	name[n] = '\0';
	if (in_list(names, name)) {
		return true;
	}
	size_t stem = strcspn(name, "0123456789");
	bool version = stem > 0 && stem + strspn(name + stem, "0123456789.") == n;

	name[stem] = '\0';
	return version && in_list(names, name);
}

static bool keeps_store(const struct own_store *table, size_t n, const char *home,
                        const char *program, const char *path)
{
	const struct bytes who = { program, strlen(program) };
	const struct path what = path_of((struct bytes){ path, strlen(path) }, home);

	return ARRAY_HAS(own_store, table, n,
	                 is_program(who, own_store->programs) &&
	                         in_places(&what, own_store->paths));
}

bool classes_own_store(const char *home, const char *program, const char *path)
{
	return keeps_store(OWN_STORES, ARRAY_LEN(OWN_STORES), home, program, path);
}

bool classes_routine_read(const char *home, const char *program, const char *path)
{
	return keeps_store(ROUTINE, ARRAY_LEN(ROUTINE), home, program, path);
}

/* An event, and the facts about it that the rules check. rename and link have two paths. */
struct judged {
	const struct event *e;
	bool writing;
	struct path path;
	struct path path2;
};

/* If the event has two paths, a rule with a class needs only one path that matches, but an
 * exception (CLASS_NONE) must match both. */
static bool paths_match(const struct rule *r, const struct judged *j)
{
	bool one = in_places(&j->path, r->paths);

	if (j->path2.whole.p == NULL) {
		return one;
	}
	bool other = in_places(&j->path2, r->paths);
	return r->id == CLASS_NONE ? one && other : one || other;
}

static bool has_long_label(const char *name)
{
	while (name != NULL && *name != '\0') {
		size_t len = strcspn(name, ".");
		if (len >= LONG_LABEL) {
			return true;
		}
		name += len + (name[len] == '.');
	}
	return false;
}

static bool in_place(const char *text, enum place_asked place)
{
	static const struct {
		enum place_asked place;
		const char *range;
	} RANGES[] = {
		{ ADDRESS_METADATA, "169.254.0.0/16" },
		{ ADDRESS_METADATA, "100.100.100.200/32" },
		{ ADDRESS_METADATA, "168.63.129.16/32" },
		{ ADDRESS_METADATA, "fd00:ec2::/32" },
		{ ADDRESS_PRIVATE, "10.0.0.0/8" },
		{ ADDRESS_PRIVATE, "172.16.0.0/12" },
		{ ADDRESS_PRIVATE, "192.168.0.0/16" },
		{ ADDRESS_PRIVATE, "100.64.0.0/10" },
		{ ADDRESS_PRIVATE, "127.0.0.0/8" },
		{ ADDRESS_PRIVATE, "::1/128" },
		{ ADDRESS_PRIVATE, "fc00::/7" },
		{ ADDRESS_PRIVATE, "fe80::/10" },
	};
	struct address a;
	struct cidr range;

	if (text == NULL || place == ADDRESS_GIVEN || !address_parse(text, &a)) {
		return text != NULL && place == ADDRESS_GIVEN;
	}
	return ARRAY_HAS(e, RANGES, ARRAY_LEN(RANGES),
	                 e->place == place && cidr_parse(e->range, &range) &&
	                         cidr_contains(&range, &a));
}

/* Returns whether the event can belong to a class: a violation, a reached limit, or an allowed
 * write to a private place, because some programs write there to persist. */
static bool is_concern(const struct event *e)
{
	bool own = e->kind == EV_FILE_WRITE && e->status == STATUS_ASKED && e->rule == RULE_PRIVATE;

	return e->violation || own || e->kind == EV_RESOURCE_LIMIT_HIT;
}

static bool rule_matches(const struct rule *r, const struct judged *j)
{
	const struct event *e = j->e;

	return (r->kinds & ON(e->kind)) != 0 &&
	       (r->access == ACCESS_ANY || (r->access == WRITING) == j->writing) &&
	       (r->reasons == NULL || is_reason(r->reasons, e->reason)) &&
	       (r->ops == NULL || is_op(r->ops, e->op)) &&
	       (r->protocol == PROTOCOL_NONE || r->protocol == e->protocol) &&
	       (r->programs == NULL || is_program(e->program, r->programs)) &&
	       (r->place == ADDRESS_ANY || in_place(e->address, r->place)) &&
	       (!r->long_label || has_long_label(e->name)) &&
	       (r->paths == NULL || paths_match(r, j));
}

bool classes_names_reason(enum reason reason)
{
	return ARRAY_HAS(rule, RULES, ARRAY_LEN(RULES),
	                 rule->reasons != NULL && is_reason(rule->reasons, reason));
}

struct class_verdict classes_of(const struct event *e, const char *home)
{
	if (!is_concern(e)) {
		return (struct class_verdict){ .id = CLASS_NONE };
	}
	struct judged judged = {
		.e = e,
		.writing = is_writing(e),
		.path = path_of(e->path, home),
		.path2 = path_of(op_has_two(e->op) ? e->path2 : (struct bytes){ 0 }, home),
	};
	for (size_t i = 0; i < ARRAY_LEN(RULES); i++) {
		if (rule_matches(&RULES[i], &judged)) {
			return (struct class_verdict){ RULES[i].id, RULES[i].technique,
				                       RULES[i].ordinary };
		}
	}
	return (struct class_verdict){ .id = CLASS_NONE };
}
