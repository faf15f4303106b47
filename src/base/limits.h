/* limits.h - the caps on everything that a skill, manifest or peer can make large. For each cap
 * there are two tests: one at the cap, and one past it. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* Manifest and policy files */
#define MAX_YAML_BYTES   (256 * 1024)
#define MAX_YAML_DEPTH   16
#define MAX_YAML_NODES   8192
#define MAX_SCALAR_BYTES 4096
#define MAX_NAME_BYTES   128 /* skill.name, skill.version */
#define MAX_LIST_ITEMS   256 /* items of one list in a manifest */
#define MAX_DIAGS        64  /* findings kept for one file */

/* Skills without a manifest; their texts are read leniently */
#define MAX_LOOSE_ENTRIES  256 /* entries of one frontmatter */
#define MAX_BLANK_LINES    64  /* blank lines before the frontmatter */
#define MAX_WISHES         256 /* names of one kind (enum wishes) that a skill asks for */
#define MAX_SHEBANG_BYTES  512
#define MAX_SHEBANG_WORDS  8
#define MAX_SCRIPT_NAMES   256  /* names of scripts that are listed */
#define MAX_LISTED_SCRIPTS 32   /* of one skill, for a client */
#define MAX_SCRIPT_WALK    4096 /* directory entries read to find them */
#define MAX_SCRIPT_DEPTH   4

/* Plans */
#define MAX_REQUESTS     (5UL * MAX_LIST_ITEMS + MAX_GRANTS) /* asked for, and remembered */
#define MAX_GRANTS       256
#define MAX_NAMED_WORDS  1024 /* arguments that are checked for names of the caller's files */
#define MAX_NAMED_FILES  128  /* files of the caller that one run is granted */
#define MAX_PRESETS      16   /* of one run */
#define MAX_COVERS       64   /* covers in all grants together */
#define MAX_ENV_VARS     256
#define MAX_ENV_BYTES    (1024 * 1024)
#define MAX_ARGS         4096
#define MAX_ARG_BYTES    (1024 * 1024)
#define MAX_PATH_BYTES   4096
#define MAX_PATH_DEPTH   128   /* components of a granted path */
#define MAX_HIDDEN_NAMES 65536 /* names in the home directory that are read to find symlinks */
#define MAX_HIDDEN_LINKS 1024  /* symlinks among these names */
#define MIN_STACK_BYTES  (256 * 1024) /* planning a run needs 80 KiB of the stack */
#define MAX_MOUNTS_BYTES (4UL << 20)  /* bytes of /proc/self/mountinfo */

/* Caches of skills */
#define CACHES_DIR           "caches" /* in the state directory */
#define DEF_CACHE_SIZE       "1G"
#define MAX_CACHE_MB         (1024 * 1024)
#define CACHE_BYTES_PER_FILE 1024 /* a cache with more files is emptied */
#define MAX_CACHE_DEPTH      64   /* a cache with deeper directories is emptied */

/* Root file systems and the images that they are unpacked from */
#define IMAGES_DIR       "images" /* in the state directory */
#define MAX_ROOTFS_PARTS 1024     /* mounts and links made in /, /etc and /var */
#define MAX_IMAGE_JSON   ((size_t)4 * 1024 * 1024)
#define MAX_IMAGE_LAYERS 128
#define MAX_IMAGE_FILES  UINT64_C(1000000)
#define MAX_IMAGE_BYTES  (UINT64_C(16) << 30) /* unpacked */
#define MAX_IMAGE_DEPTH  64                   /* nested directories */

/* Resources: the range that a manifest may ask for */
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
#define MAX_CONNECTION_RATE  100000 /* per second */
#define MAX_NET_BYTES_CAP    (1ULL << 50)

/* Limits of inotify for one run. All processes of the caller's uid together usually may have 128
 * instances and at least 8,192 watches. */
#define MAX_INOTIFY_INSTANCES 16
#define MAX_INOTIFY_WATCHES   4096
#define MAX_TERMINALS         "64" /* ptys; all sandboxes of the machine share 3,072 */

/* Resources: the value of a missing key */
#define DEF_MEMORY_MB       256
#define DEF_CPU_SHARES      512
#define DEF_RUNTIME_SECONDS 60
#define DEF_OUTPUT_BYTES    1048576
#define DEF_PROCESSES       256
#define DEF_OPEN_FILES      1024
#define DEF_DISK_MB         64
#define DEF_CONNECTIONS     64
#define DEF_CONNECTION_RATE 100          /* per second */
#define DEF_NET_BYTES       (1ULL << 30) /* in each direction */

/* Session policies and prices */
#define MAX_SESSION_COUNT   1000000000ULL        /* greatest `max` of a limit that counts */
#define MAX_SESSION_SECONDS (366ULL * 24 * 3600) /* greatest `max` of a limit of time */
#define MAX_GRACE_SECONDS   3600ULL
#define MAX_NOTIFY          16   /* receivers that one policy names */
#define MAX_EXPORTS         16   /* exports of one ledger */
#define MAX_NOTIFY_URL      2048 /* bytes, with the NUL */
#define MAX_OTEL_URL        2032 /* bytes, with the NUL; the path of a signal is appended */
#define MAX_ROUTING_KEY     129  /* bytes, with the NUL */
#define MAX_PRICES          1024 /* models in the owner's price file */

/* The list of the skill's files in the record of a run */
#define MAX_SKILL_DEPTH    64 /* nested directories, for every reader */
#define MAX_RECORDED_FILES 100000
#define SMALL_SKILL_FILES  32 /* a skill with more files is read by a separate process */
#define SMALL_SKILL_BYTES  (256UL << 10)
#define MAX_RECORDED_READ  (4UL << 30)  /* bytes read from all files together */
#define MAX_RECORDED_PATHS (32UL << 20) /* bytes of all paths together */
#define MAX_SMALL_NAMES    4096         /* a directory with more names is read last */
#define MAX_SMALL_FILE     (16L << 20)  /* a file with more bytes is read last */

/* Approvals of the owner */
#define MAX_APPROVED       1024         /* approved skills; also approvals by one client */
#define MAX_LOCK_BYTES     (16UL << 20) /* bytes of the lock of one skill */
#define MAX_LOCK_TEXT      8192         /* bytes of one text in a lock */
#define MAX_REASON_BYTES   256          /* of a remembered grant (allow --reason) */
#define MAX_PINNED_FILES   20000        /* files of a skill that can be approved */
#define MAX_PINNED_BYTES   (1024UL << 20)
#define MAX_PINNED_PATHS   (2UL << 20) /* bytes of all paths and link targets together */
#define MAX_PINNED_DIRS    20000
#define MAX_PINNED_HOLES   (64UL * 1024) /* bytes of a file for which no disk block exists */
#define MAX_MARK_WAIT      5000000000LL  /* ns; all waits for files that were changed just now */
#define SNAPSHOT_BYTES     (64UL << 20)  /* a larger skill is not copied, but checked at each run */
#define MAX_APPROVE_ROUNDS 4             /* times that one call may ask the owner */
#define MAX_APPROVE_ITEMS  16            /* things asked for in one question */

/* Questions at the terminal, and the texts that they show */
#define MAX_WORD_BYTES  200         /* shown of one text; a longer text loses its middle */
#define MAX_SHOWN_ITEMS 12          /* listed abilities; further ones are only counted */
#define MAX_SHOWN_FILES 20          /* listed changed files; further ones are only counted */
#define MAX_DIFF_BYTES  (1UL << 20) /* a larger file is not compared line by line */
#define MAX_DIFF_LINES  4096 /* lines of a changed file, from its first difference to its last */
#define MAX_DIFF_EDITS  512  /* different lines of a changed file */
#define MAX_DIFF_SHOWN  60   /* lines shown for one file */

/* Learning */
#define MAX_LEARN_ROUNDS  8
#define MAX_LEARN_TRIALS  4           /* additional rounds, each without one variable */
#define MAX_LEARN_SECONDS 600         /* no further round begins after this */
#define MAX_LEARN_OUTPUT  (64 * 1024) /* bytes read from a round's output */
#define MAX_DECOYS        64
#define MAX_HINT_DECOYS   32  /* decoys at paths that only the skill's files mention */
#define MAX_DECOY_ENTRIES 256 /* names that are read in a directory to make its decoy */
#define MAX_DECOY_SAMPLES 8   /* files in the decoy of a directory */

/* The linter, which reports a skill that exceeds these limits */
#define MAX_LINT_FILES     4096
#define MAX_LINT_BYTES     (16UL << 20) /* of all files together */
#define MAX_LINT_FILE      (1UL << 20)  /* of one file */
#define MAX_LINT_LINE      16384        /* bytes; a longer line is read in pieces */
#define LINT_OVERLAP       1024         /* bytes that two neighbouring pieces share */
#define LINT_BLOB_BYTES    512 /* base64 characters in a row; people do not write so many */
#define LINT_PAYLOAD_BYTES 40  /* the same, in a line that also decodes base64 */
#define MAX_LINT_TRIES     32  /* places in one line that are compared with one idiom */
#define MAX_LINT_FINDINGS  2048
#define MAX_LINT_SAME      8 /* findings of one rule in one file */

/* Scratch space. Inodes have a cap, too, because they use kernel memory */
#define SCRATCH_INODES        8192
#define SCRATCH_INODES_PER_MB 128

/* Traces */
#define MAX_TRACE_EVENTS 10000 /* further events are counted, not written */
#define MAX_EVENT_TEXT   4096  /* bytes of one event's message */

/* Records that are read back. Any process that can write there may have forged them */
#define MAX_RECORD_LINE  (1024 * 1024) /* bytes of one line; genuine lines have at most 64 KiB */
#define MAX_JSON_DEPTH   32
#define MAX_JSON_NODES   (256 * 1024)
#define MAX_JSON_MEMBERS 1024 /* of one object */
/* Different things shown for one record; further ones are counted. */
#define MAX_VIEW_DENIED 5120      /* the first denied attempts, of any threat class */
#define MAX_VIEW_CLASS  256       /* further denied attempts of each threat class */
#define MAX_LOST        16        /* files in the private home that a message counts */
#define MAX_VIEW_GROUP  640       /* attempts of each enum render_group that were not denied */
#define MAX_VIEW_FIRSTS (1 << 18) /* lines to which a later line may refer as `repeat_of` */
#define MAX_RUNS        (1 << 20) /* runs in the state directory */
#define MAX_FOLLOWED    256       /* runs watched at the same time */

/* Egress */
#define EGRESS_POOL        32   /* names that a run may use under one wildcard */
#define LEARN_POOL         256  /* names that a learning run may use under one wildcard */
#define MAX_LEARN_PORTS    64   /* ports that a learning run listens on */
#define HOST_NAME_SIZE     254  /* of a host's name, with the NUL */
#define MAX_EGRESS_SLOTS   4096 /* host names, each of which gets an address */
#define MAX_DIALS          64   /* names that are resolved and connected at the same time */
#define MAX_DIAL_ADDRESSES 16   /* addresses that are tried for one name */
#define MAX_SPARES         8    /* spares for one server */
#define MAX_UDP_FLOWS      1024 /* flows at the same time, even if max_connections is larger */
#define MAX_PROXY_URL      2048 /* bytes of the URL of the owner's proxy */
#define MAX_PROXY_USER     512  /* decoded bytes of user and password in that URL */
#define MIN_RANGE_BITS4    16   /* shortest prefix of an IPv4 range in a rule */
#define MIN_RANGE_BITS6    48
#define MAX_RANGE_SOCKETS  128 /* sockets for one range; with more, one socket serves the range */

/* Unix sockets that are made for a skill */
#define MAX_UNIX_PLACES     8    /* private directories of one sandbox */
#define MAX_UNIX_CWD        1024 /* bytes of the longest directory in which relative names work */
#define MAX_UNIX_WAITS      48   /* waiting connect() calls of one run; each holds an fd */
#define MAX_UNIX_WAITS_EACH 32   /* waiting connect() calls for one listener */
#define MAX_UNIX_CALLS      512  /* calls of one run that wait for the maker's answer */

/* Bytes that the broker holds because it cannot forward them yet */
#define MIN_HEAD_BYTES 4096         /* initial room for the first bytes of a connection */
#define MAX_HELD_BYTES (16UL << 20) /* of all connections and flows together */

/* Sessions, in one keeper */
#define MAX_TALLY_NAMES  1024  /* names of contacted hosts that are kept */
#define MAX_LIVE_CLIENTS 32    /* clients of one control socket at the same time */
#define MAX_LIVE         65536 /* runs at the same time on one machine */

/* The store of sessions */
#define MAX_STORE_URL  2048          /* bytes of the owner's PostgreSQL URL */
#define MAX_STORE_TEXT (1024 * 1024) /* of one value */

/* Webhook messages of a session to its owner */
#define MAX_NOTIFY_BODY   (256 * 1024)
#define MAX_NOTIFY_REPLY  (64 * 1024) /* bytes of the head of an answer, and as many of its body */
#define MAX_NOTIFY_SECRET 4096
#define MAX_NOTIFY_HELD   64           /* messages taken from the outbox and not yet delivered */
#define MAX_SEND_BYTES    (256 * 1024) /* ledger lines in one request */
#define MAX_NOTIFY_POSTS  32           /* requests to different receivers at the same time */

/* The server */
#define MAX_SKILLS        1024         /* skills served at the same time */
#define MAX_JOBS          256          /* runs at the same time, even if the owner allows more */
#define MAX_ERRANDS       8            /* helper processes at the same time */
#define MAX_ERRANDS_EACH  4            /* helper processes for one client */
#define MAX_ERRAND_TIME   30           /* seconds that one helper process may take */
#define MAX_ERRAND_BYTES  (17UL << 20) /* bytes of one helper's result */
#define MAX_PLANS         32          /* plans that are kept; each has the fds of its grants open */
#define MAX_RESULT_OUTPUT (64 * 1024) /* bytes of each stream in the result of a run */
#define MAX_RESULT_DENIED 50          /* different denials, in the result of a run */
#define MAX_NEWS_BYTES    4096        /* bytes of each stream in one progress notification */
#define MAX_DENIALS       500         /* denials listed in one answer */
#define MAX_TRACE_PAGE    1000        /* lines of a record in one answer */
#define MAX_TRACE_TEXT    (256 * 1024)  /* bytes of these lines, escaped */
#define MAX_TRACE_SCAN    (8UL << 20)   /* bytes of the record that are read to find these lines */
#define MAX_SERVED_RECORD (32UL << 20)  /* bytes of a record that is read or verified whole */
#define MAX_RESOURCE_TEXT (1024 * 1024) /* bytes of a record or an output as a resource */
#define MAX_LISTED_RUNS   500           /* the newest runs; only these are examined for a list */
#define MAX_STARTED       1024          /* runs that the server remembers to have started */
#define MAX_RESOURCE_PAGE 100           /* resources in one answer */
#define MAX_SKILL_PAGE    16            /* skills in one answer, with all their files */
#define MAX_SKILL_FILES   512           /* files of one skill that is served as files */
#define MAX_SKILL_BYTES   (16UL << 20)  /* bytes of all files of one served skill */
#define MAX_SKILL_FILE    (4UL << 20)   /* bytes of one file of a served skill */
#define MAX_SKILL_LEFT    64            /* files that are listed by name but not served */
#define MAX_COMPLETIONS   100           /* completions in one answer */
#define MAX_URI           8192          /* bytes of a URI */
#define MAX_CURSOR        4096          /* bytes of a cursor */

/* A governed run */
#define MAX_GOVERN_NAMES 8192 /* connections that wait to be reported to the governor */

/* The MCP library. Its peers may be hostile */
#define MAX_MCP_MESSAGE    (4UL << 20)  /* bytes of an incoming message */
#define MAX_MCP_RESULT     (16UL << 20) /* bytes of an outgoing message */
#define MAX_MCP_ID         256          /* bytes of an id or token that is echoed */
#define MAX_MCP_METHOD     128          /* bytes of a method's name */
#define MAX_MCP_CALLS      256          /* calls in progress for one peer */
#define MAX_MCP_HELD       (64UL << 20) /* bytes of all requests in progress for one peer */
#define MAX_MCP_HELD_ALL   (1UL << 28)  /* the same for all peers; small requests may exceed it */
#define MAX_MCP_SMALL      (64 * 1024)  /* most bytes of a request that counts as small */
#define MAX_MCP_ANSWERS    (256 * 1024) /* bytes of all answers to one call */
#define MAX_MCP_ASKS       16           /* questions of one call in one round */
#define MAX_MCP_ROUNDS     16           /* rounds in which one call may ask questions */
#define MAX_MCP_CLIENT     256          /* bytes of a client's name */
#define MAX_MCP_EXTENSIONS 4096         /* bytes of the names of a client's extensions */
#define MAX_MCP_STATE      (16 * 1024)  /* bytes of a handler's own state in a requestState */
#define MAX_MCP_STATES     1024         /* states that the clients have not returned yet */
#define MAX_MCP_PROBLEMS   16           /* problems listed for one call; further ones are counted */
#define MAX_MCP_LISTENS    32           /* subscriptions/listen of one peer at the same time */
#define MAX_MCP_WATCHED    1024         /* resources and tasks that one peer listens to */
#define MAX_MCP_URI        4096         /* bytes of the URI of one resource */
#define MAX_MCP_TASKS      128          /* tasks that are kept, running or finished */
#define MAX_MCP_TASK_BYTES (32UL << 20) /* bytes of all answers of tasks that are kept */
#define MAX_MCP_TASK_TEXT  1024         /* bytes of the status message of one task */

/* The MCP server's transports */
#define MAX_MCP_NEWS      (256 * 1024)  /* bytes waiting for one client; further news are dropped */
#define MAX_MCP_QUEUE     (32UL << 20)  /* bytes for one client; with more it is disconnected */
#define MAX_MCP_CLIENTS   64            /* clients of the Unix socket at the same time */
#define MAX_HTTP_CONNS    128           /* with more, the one that is silent longest is closed */
#define MAX_HTTP_BODIES   (64UL << 20)  /* bytes of all incoming bodies; small ones may exceed it */
#define MAX_HTTP_QUEUED   (256UL << 20) /* bytes of all answers that wait for clients */
#define MAX_HTTP_SESSIONS 256           /* legacy sessions; with more, idle ones are closed */
#define MAX_HTTP_STREAMS  64            /* broken streams of one session that can be resumed */
#define MAX_HTTP_REPLAY   (256 * 1024)  /* bytes kept for one broken stream */
#define MAX_HTTP_KEPT     (64UL << 20)  /* bytes kept for all broken streams */
#define MAX_HTTP_TOKEN    512           /* bytes of the bearer token */

#define MIN_RUN_FILES 64    /* files that a supervisor opens for a plan without grants */
#define MAX_RUN_FILES 10240 /* files that a supervisor opens for a plan with grants */

/* Open files of the server of runs: five for each run and, for each plan that it keeps, one for
 * each grant. */
#define MAX_SERVE_FILES 65536

/* The search for git repositories in a writable grant */
#define MAX_REPO_DEPTH   32 /* directories beneath the directory of the grant */
#define MAX_REPO_ENTRIES 20000
#define MAX_REPO_CPU_MS  1000 /* for all grants of a run together */
#define MAX_REPO_WALL_MS 5000
#define MAX_REPOS        256         /* each needs an open fd for each protected name */
#define MAX_KNOWN_BYTES  (1UL << 20) /* bytes of one file in which runs keep rows for later runs */
#define MAX_REPO_CONFIG  (64 * 1024) /* bytes of one git configuration file */
#define MAX_REPO_CONFIGS 32          /* git configuration files of one tree or of the owner */
#define MAX_WORKTREES    32          /* worktrees of one repository, protected one by one */
#define MAX_GITDIRS      512         /* git directories outside of their working trees */
#define MAX_AROUND       1024 /* directories above writable grants, searched for repositories */
#define MAX_LISTED_NAMES                                                                           \
	500 /* names listed in a directory with protected names; in a larger directory only known  \
	       names are protected */
#define MAX_NAMED 128  /* directories of hooks, and files named by the configuration */
#define MAX_HELD  4096 /* symlinks to protected names, and their targets */

/* A client's command line, as its hook sends it */
#define MAX_SHELL_BYTES  (256 * 1024)
#define MAX_HOOK_INPUT   (4UL << 20) /* bytes of everything that the hook sends */
#define MAX_HOOK_PLACES  16          /* directories that a command names */
#define MAX_HOOK_WALK    50000       /* entries examined to find skills */
#define MAX_PASSED       64          /* options that `setup` passes on to the server */
#define MAX_CONFIG_BYTES (8UL << 20) /* bytes of a client's configuration */
#define MAX_SERVED       64          /* directories of skills named on one command line */

/* What a skill needs, from its records and its files */
#define MAX_NEEDS         4096          /* different needs; further ones are dropped */
#define MAX_NEED_REPEATS  (1 << 18)     /* lines of a record that count repeats of other lines */
#define MAX_NEED_NAMES    1024          /* addresses whose host names were taken from a record */
#define MAX_PROPOSED_NOTE 64            /* comments in one list of a proposed manifest */
#define MAX_HINT_FILES    512           /* files of a skill that are searched */
#define MAX_HINT_BYTES    (1024 * 1024) /* of one file */
#define MAX_HINT_TOTAL    (8UL << 20)   /* of all files together */
#define MAX_HINT_LOOKS    256           /* searches of one script for assignments to variables */
#define MAX_HINT_DEPTH    8             /* nested directories */

/* Snapshots of directories that cannot be mapped to the skill's uid */
#define MAX_SNAPSHOT_BYTES (256ULL << 20)
#define MAX_SNAPSHOT_FILES 20000

#endif
