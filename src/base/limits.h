/* limits.h - every bound on what a skill, manifest or peer can make large.
 * Each has a test at the cap and one past it. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* Manifest and policy files */
#define MAX_YAML_BYTES   (256 * 1024)
#define MAX_YAML_DEPTH   16
#define MAX_YAML_NODES   8192
#define MAX_SCALAR_BYTES 4096
#define MAX_NAME_BYTES   128 /* skill.name, skill.version */
#define MAX_LIST_ITEMS   256 /* any list of the manifest */
#define MAX_DIAGS        64  /* findings kept of one file */

/* Skills without a manifest: what is read of them, leniently */
#define MAX_LOOSE_ENTRIES 256 /* of a frontmatter that is read entry by entry */
#define MAX_BLANK_LINES   64  /* before it */
#define MAX_WISHES        256 /* names of one kind */
#define MAX_SHEBANG_BYTES 512
#define MAX_SHEBANG_WORDS 8
#define MAX_SCRIPT_NAMES  256  /* told of */
#define MAX_SCRIPT_WALK   4096 /* entries of directories looked at for them */
#define MAX_SCRIPT_DEPTH  4

/* Plans */
#define MAX_REQUESTS     (5UL * MAX_LIST_ITEMS) /* four lists of a manifest, and the rest of it */
#define MAX_GRANTS       256
#define MAX_COVERS       64 /* places of the runtime's own in them */
#define MAX_ENV_VARS     256
#define MAX_ENV_BYTES    (1024 * 1024)
#define MAX_ARGS         4096
#define MAX_ARG_BYTES    (1024 * 1024)
#define MAX_PATH_BYTES   4096
#define MAX_PATH_DEPTH   128         /* directories above a granted path */
#define MAX_HIDDEN_NAMES 65536       /* of the home, looked at for symlinks */
#define MAX_HIDDEN_LINKS 1024        /* symlinks among them */
#define MAX_MOUNTS_BYTES (4UL << 20) /* of /proc/self/mountinfo */

/* Root file systems and the images that they are unpacked from */
#define IMAGES_DIR       "images" /* in the state directory */
#define MAX_ROOTFS_PARTS 1024     /* mounts and links at its top, in /etc and in /var */
#define MAX_IMAGE_JSON   ((size_t)4 * 1024 * 1024)
#define MAX_IMAGE_LAYERS 128
#define MAX_IMAGE_FILES  UINT64_C(1000000)
#define MAX_IMAGE_BYTES  (UINT64_C(16) << 30) /* unpacked */
#define MAX_IMAGE_DEPTH  64                   /* directories in each other */

/* Resources: what may be asked for at all */
#define MIN_MEMORY_MB        4
#define MAX_MEMORY_MB        (1024 * 1024)
#define MIN_CPU_SHARES       2
#define MAX_CPU_SHARES       262144
#define MAX_RUNTIME_SECONDS  (30 * 24 * 3600)
#define MAX_OUTPUT_BYTES_CAP (1ULL << 40)
#define MAX_PROCESSES_CAP    65536
#define MIN_OPEN_FILES       16
#define MAX_OPEN_FILES_CAP   1048576
#define MAX_DISK_MB_CAP      (1024 * 1024)
#define MAX_CONNECTIONS_CAP  4096
#define MAX_CONNECTION_RATE  100000 /* a second */
#define MAX_NET_BYTES_CAP    (1ULL << 50)

/* Of one run, out of what its caller's uid has on the whole machine: 128 as a rule, and 8,192 or
 * more. */
#define MAX_INOTIFY_INSTANCES 16
#define MAX_INOTIFY_WATCHES   4096
#define MAX_TERMINALS         "64" /* ptys, of 3,072 for all sandboxes of the machine */

/* Resources: defaults of an absent key */
#define DEF_MEMORY_MB       256
#define DEF_CPU_SHARES      512
#define DEF_RUNTIME_SECONDS 60
#define DEF_OUTPUT_BYTES    1048576
#define DEF_PROCESSES       256
#define DEF_OPEN_FILES      1024
#define DEF_DISK_MB         64
#define DEF_CONNECTIONS     64
#define DEF_CONNECTION_RATE 100          /* a second */
#define DEF_NET_BYTES       (1ULL << 30) /* each way */

/* Session policies and prices */
#define MAX_SESSION_COUNT   1000000000ULL        /* of anything that is counted */
#define MAX_SESSION_SECONDS (366ULL * 24 * 3600) /* of any time */
#define MAX_GRACE_SECONDS   3600ULL
#define MAX_NOTIFY          16   /* receivers of one policy */
#define MAX_EXPORTS         16   /* of one ledger */
#define MAX_NOTIFY_URL      2048 /* bytes, with the NUL */
#define MAX_OTEL_URL        2032 /* the same; the path of a signal comes behind it */
#define MAX_ROUTING_KEY     129  /* the same */
#define MAX_PRICES          1024 /* models of the owner's file */

/* The files of a skill, in the record of a run */
#define MAX_SKILL_DEPTH    64 /* directories in each other, whoever reads them */
#define MAX_RECORDED_FILES 100000
#define MAX_RECORDED_READ  (4UL << 30)  /* bytes read, of all files together */
#define MAX_RECORDED_PATHS (32UL << 20) /* bytes of all names together */
#define MAX_SMALL_NAMES    4096         /* a directory with more names comes last */
#define MAX_SMALL_FILE     (16L << 20)  /* a file with more bytes comes last */

/* Approvals of the owner */
#define MAX_APPROVED       1024         /* skills; and grants of one client's session */
#define MAX_LOCK_BYTES     (16UL << 20) /* of one skill's approval, as written */
#define MAX_LOCK_TEXT      8192         /* bytes of one word in it */
#define MAX_PINNED_FILES   20000        /* of a skill that can be approved */
#define MAX_PINNED_BYTES   (1024UL << 20)
#define MAX_PINNED_PATHS   (2UL << 20) /* bytes of their names and links together */
#define MAX_PINNED_DIRS    20000
#define MAX_PINNED_HOLES   (64UL * 1024) /* bytes that a file has only on paper */
#define MAX_MARK_WAIT      5000000000LL  /* ns: for files that were changed just now */
#define SNAPSHOT_BYTES     (64UL << 20)  /* past it no copy is kept: checked at each run */
#define MAX_APPROVE_ROUNDS 4             /* questions about one call */
#define MAX_APPROVE_ITEMS  16            /* things asked for at once */

/* Questions at the terminal, and what they show */
#define MAX_WORD_BYTES  200         /* of one text of a skill's; its middle is left out */
#define MAX_SHOWN_ITEMS 12          /* lines of the question, before reads elsewhere are counted */
#define MAX_SHOWN_FILES 20          /* changed files; more are counted */
#define MAX_DIFF_BYTES  (1UL << 20) /* of a file whose lines are compared */
#define MAX_DIFF_LINES  4096        /* of the same, from its first difference to its last */
#define MAX_DIFF_EDITS  512         /* lines of it that differ */
#define MAX_DIFF_SHOWN  60          /* lines shown of one file */

/* Learning */
#define MAX_LEARN_ROUNDS  8
#define MAX_LEARN_SECONDS 600         /* after which no further round begins */
#define MAX_LEARN_OUTPUT  (64 * 1024) /* bytes of a round's output that are looked at */
#define MAX_DECOYS        64

/* A skill that is looked through: past these it is said not to have been */
#define MAX_LINT_FILES     4096
#define MAX_LINT_BYTES     (16UL << 20) /* of all files */
#define MAX_LINT_FILE      (1UL << 20)  /* of one */
#define MAX_LINT_LINE      16384        /* bytes; longer ones in pieces */
#define LINT_OVERLAP       1024         /* bytes that two of them share */
#define LINT_BLOB_BYTES    512          /* without a break: no text for people */
#define LINT_PAYLOAD_BYTES 40           /* the same, in a line that decodes it */
#define MAX_LINT_TRIES     32           /* of one idiom in one line */
#define MAX_LINT_FINDINGS  2048
#define MAX_LINT_SAME      8 /* of one rule in one file */

/* The private tmpfs: inodes beside bytes, for they cost kernel memory too */
#define SCRATCH_INODES        8192
#define SCRATCH_INODES_PER_MB 128

/* Traces */
#define MAX_TRACE_EVENTS 10000 /* further ones are counted, not written */
#define MAX_EVENT_TEXT   4096  /* bytes of one event's message */

/* Records as they are read back: whoever can write there may have forged them */
#define MAX_RECORD_LINE  (1024 * 1024) /* bytes of one line; a written one has 64 KiB at most */
#define MAX_JSON_DEPTH   32
#define MAX_JSON_NODES   (256 * 1024)
#define MAX_JSON_MEMBERS 1024 /* of one object */
/* Different things that are shown of one record; more are counted. */
#define MAX_VIEW_DENIED 5120      /* denied ones as they come */
#define MAX_VIEW_CLASS  256       /* and of each threat class beside them */
#define MAX_VIEW_GROUP  640       /* of a group of what was not denied */
#define MAX_VIEW_FIRSTS (1 << 18) /* lines that a later repeat may refer to */
#define MAX_RUNS        (1 << 20) /* in the state directory */
#define MAX_FOLLOWED    256       /* runs watched at once */

/* Egress */
#define EGRESS_POOL        32   /* names that a run may use beneath one wildcard */
#define LEARN_POOL         256  /* the same in a run that is to show what a skill needs */
#define MAX_LEARN_PORTS    64   /* that such a run answers on */
#define HOST_NAME_SIZE     254  /* of a host's name, with its end */
#define MAX_EGRESS_SLOTS   4096 /* names with an address of their own */
#define MAX_DIALS          64   /* resolved and connected at once */
#define MAX_DIAL_ADDRESSES 16   /* tried of one name */
#define MAX_SPARES         8    /* aimed at one server beforehand */
#define MAX_UDP_FLOWS      1024 /* at once, also where max_connections is more */
#define MAX_PROXY_URL      2048 /* bytes of the owner's proxy, all parts */
#define MAX_PROXY_USER     512  /* of its user and password, decoded */
#define MIN_RANGE_BITS4    16   /* the widest address range of a rule */
#define MIN_RANGE_BITS6    48
#define MAX_RANGE_SOCKETS  128 /* for one range; past it one socket takes a port whole */

/* Unix sockets that are made for a skill */
#define MAX_UNIX_PLACES     8    /* private places of one sandbox */
#define MAX_UNIX_CWD        1024 /* bytes; a longer working directory has no relative names */
#define MAX_UNIX_WAITS      48   /* connect() calls of one run that wait; each holds an fd */
#define MAX_UNIX_WAITS_EACH 32   /* of them for one listener */
#define MAX_UNIX_CALLS      512  /* of one run, under way or waiting */

/* What the broker holds of bytes that cannot go on yet */
#define MIN_HEAD_BYTES 4096         /* room for a connection's first ones; it grows */
#define MAX_HELD_BYTES (16UL << 20) /* of all connections and flows together */

/* Sessions: what one keeper holds */
#define MAX_TALLY_NAMES  1024  /* hosts contacted by a run that are remembered */
#define MAX_LIVE_CLIENTS 32    /* of a control socket, at once */
#define MAX_LIVE         65536 /* runs that live at once on one machine */

/* The store of sessions */
#define MAX_STORE_URL  2048          /* bytes of the owner's PostgreSQL URL, all parts */
#define MAX_STORE_TEXT (1024 * 1024) /* of one value */

/* Messages of a session to its owner */
#define MAX_NOTIFY_BODY   (256 * 1024)
#define MAX_NOTIFY_REPLY  (64 * 1024) /* head and body of an answer, each */
#define MAX_NOTIFY_SECRET 4096
#define MAX_NOTIFY_HELD   64           /* taken from the outbox and not done with */
#define MAX_SEND_BYTES    (256 * 1024) /* lines of a ledger in one request */
#define MAX_NOTIFY_POSTS  32           /* requests at once, of different receivers */

/* The server */
#define MAX_SKILLS        1024          /* served at once */
#define MAX_JOBS          256           /* runs under way at once, whatever the owner says */
#define MAX_ERRANDS       8             /* processes that look at something, at once */
#define MAX_ERRANDS_EACH  4             /* for one client */
#define MAX_ERRAND_TIME   30            /* seconds that one takes */
#define MAX_ERRAND_BYTES  (17UL << 20)  /* that it brings back: a result and a little more */
#define MAX_PLANS         32            /* kept: each holds the fds of its grants */
#define MAX_RESULT_OUTPUT (64 * 1024)   /* of each stream, in the result of a run */
#define MAX_RESULT_DENIED 50            /* different things, in the same */
#define MAX_NEWS_BYTES    4096          /* of each stream in one progress notification */
#define MAX_DENIALS       500           /* told of in one answer */
#define MAX_TRACE_PAGE    1000          /* lines of a record in one answer */
#define MAX_TRACE_TEXT    (256 * 1024)  /* bytes of them, escaped */
#define MAX_TRACE_SCAN    (8UL << 20)   /* bytes looked at for them */
#define MAX_SERVED_RECORD (32UL << 20)  /* bytes of a record that is read or checked whole */
#define MAX_RESOURCE_TEXT (1024 * 1024) /* bytes of a record or an output as a resource */
#define MAX_LISTED_RUNS   500           /* the newest, looked at to be told of */
#define MAX_STARTED       1024          /* runs that the server remembers as its own */
#define MAX_RESOURCE_PAGE 100           /* resources in one answer */
#define MAX_SKILL_PAGE    16            /* skills with all their files in one answer */
#define MAX_SKILL_FILES   512           /* of one skill that is served as files */
#define MAX_SKILL_BYTES   (16UL << 20)  /* of all of them */
#define MAX_SKILL_FILE    (4UL << 20)   /* of one */
#define MAX_SKILL_LEFT    64            /* of what is not served, told by name */
#define MAX_COMPLETIONS   100           /* in one answer */
#define MAX_URI           8192          /* bytes of an address */
#define MAX_CURSOR        4096          /* bytes of a place in a list */

/* A governed run */
#define MAX_GOVERN_NAMES 8192 /* of connections that the governor has not heard of yet */

/* The protocol library: whoever speaks to it may be anybody */
#define MAX_MCP_MESSAGE    (4UL << 20)  /* bytes of one that comes in */
#define MAX_MCP_RESULT     (16UL << 20) /* of one that goes out */
#define MAX_MCP_ID         256          /* bytes of an id or of a token that are echoed */
#define MAX_MCP_METHOD     128          /* bytes of a method's name */
#define MAX_MCP_CALLS      256          /* under way at once for one peer */
#define MAX_MCP_HELD       (64UL << 20) /* bytes of their messages together, as read */
#define MAX_MCP_HELD_ALL   (1UL << 28)  /* of all peers, but for small ones */
#define MAX_MCP_SMALL      (64 * 1024)  /* bytes of such a one */
#define MAX_MCP_ANSWERS    (256 * 1024) /* bytes of all answers to one call */
#define MAX_MCP_ASKS       16           /* questions of one call */
#define MAX_MCP_ROUNDS     16           /* times that one call may ask */
#define MAX_MCP_CLIENT     256          /* bytes of a client's name */
#define MAX_MCP_EXTENSIONS 4096         /* bytes of the names of a client's extensions */
#define MAX_MCP_STATE      (16 * 1024)  /* bytes of a handler's own in a requestState */
#define MAX_MCP_STATES     1024         /* that have not come back */
#define MAX_MCP_PROBLEMS   16           /* told of the arguments of one call; more are counted */
#define MAX_MCP_LISTENS    32           /* subscriptions/listen of one peer, at once */
#define MAX_MCP_WATCHED    1024         /* resources and tasks that one peer listens to */
#define MAX_MCP_URI        4096         /* bytes of one of them */
#define MAX_MCP_TASKS      128          /* kept, under way or not */
#define MAX_MCP_TASK_BYTES (32UL << 20) /* of the answers that are kept, all together */
#define MAX_MCP_TASK_TEXT  1024         /* bytes of its status message */

/* The protocol server's ways in */
#define MAX_MCP_NEWS      (256 * 1024)  /* waiting for a client: past it, news are dropped */
#define MAX_MCP_QUEUE     (32UL << 20)  /* answers waiting: past it, the client is */
#define MAX_MCP_CLIENTS   64            /* of the unix socket, at once */
#define MAX_HTTP_CONNS    128           /* at once; the oldest that says nothing makes room */
#define MAX_HTTP_BODIES   (64UL << 20)  /* bytes of all bodies that are coming in, but small ones */
#define MAX_HTTP_QUEUED   (256UL << 20) /* of all answers that wait for clients */
#define MAX_HTTP_SESSIONS 256           /* of the legacy era; idle ones make room */
#define MAX_HTTP_STREAMS  64            /* broken ones of a session, that may be resumed */
#define MAX_HTTP_REPLAY   (256 * 1024)  /* bytes kept of one for that */
#define MAX_HTTP_KEPT     (64UL << 20)  /* of all */
#define MAX_HTTP_TOKEN    512           /* bytes of the bearer's token */

#define MIN_RUN_FILES 64    /* that a supervisor may open, for a plan without grants */
#define MAX_RUN_FILES 10240 /* for one with grants and all the repositories in them */

/* A server of runs: each has five fds in it, each plan one for each of its grants. */
#define MAX_SERVE_FILES 65536

/* The search for repositories in a writable grant */
#define MAX_REPO_DEPTH   32 /* directories beneath the grant's own */
#define MAX_REPO_ENTRIES 20000
#define MAX_REPO_CPU_MS  1000 /* for all grants of a run together */
#define MAX_REPO_WALL_MS 5000
#define MAX_REPOS        256         /* or fewer: each holds an fd for each name */
#define MAX_KNOWN_BYTES  (1UL << 20) /* of one file that runs keep for later ones */
#define MAX_REPO_CONFIG  (64 * 1024) /* bytes of one file of git's settings */
#define MAX_REPO_CONFIGS 32          /* of one tree, or of the owner; with what they include */
#define MAX_WORKTREES    32          /* of one repository that are held one by one */
#define MAX_GITDIRS      512         /* git directories that lie apart from their trees */
#define MAX_AROUND       1024        /* directories above writable grants */
#define MAX_LISTED_NAMES 500         /* of a directory with protected names; of more, known ones */
#define MAX_NAMED        128         /* directories of hooks and files that the settings name */
#define MAX_HELD         4096        /* links that protected names go by, and what they mean */

/* A client's command line, as its hook asks about it */
#define MAX_SHELL_BYTES     (256 * 1024)
#define MAX_SHELL_WORDS     16384
#define MAX_SHELL_COMMANDS  4096
#define MAX_SHELL_DEPTH     16
#define MAX_HOOK_INPUT      (4UL << 20) /* of the whole question */
#define MAX_HOOK_PLACES     16          /* directories that a line may have changed to */
#define MAX_HOOK_MATCHES    4096        /* names that one pattern may stand for */
#define MAX_HOOK_EXPANSIONS 256         /* that its braces make of it */
#define MAX_HOOK_WALK       50000       /* entries of directories looked at for skills */
#define MAX_CONFIG_BYTES    (8UL << 20) /* of a client's configuration */
#define MAX_CONFIG_DEPTH    64          /* arrays and tables within each other in it */
#define MAX_SERVED          64          /* directories of skills named on one command line */

/* What a skill needs, from its records and its files */
#define MAX_NEEDS         4096          /* different ones; what comes after them is left out */
#define MAX_NEED_REPEATS  (1 << 18)     /* lines of a record that count others again */
#define MAX_NEED_NAMES    1024          /* hosts by whose address a record speaks of them */
#define MAX_PROPOSED_NOTE 64            /* comments of each list of a proposed manifest */
#define MAX_HINT_FILES    512           /* of a skill, looked at */
#define MAX_HINT_BYTES    (1024 * 1024) /* of one of them */
#define MAX_HINT_TOTAL    (8UL << 20)   /* of all */
#define MAX_HINT_LOOKS    256           /* variables of one script that are looked up in it */
#define MAX_HINT_DEPTH    8             /* directories in each other */

/* Snapshots of directories that cannot be mapped to the skill's uid */
#define MAX_SNAPSHOT_BYTES (256ULL << 20)
#define MAX_SNAPSHOT_FILES 20000

#endif
