# fish completion for skillsandbox(1)

set -l commands run validate inspect prove doctor approve approvals ps watch why audit session help
set -l audits list show verify export prune
set -l sessions start list show check settle violation pause resume kill complete expire
set -l plans 'run inspect prove'

complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -f
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -l version -d 'Show the version'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -s h -l help -d 'Show the commands'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a skill, or a bare command, in a sandbox'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a validate -d 'Check manifests; execute nothing'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a inspect -d 'Show what a skill asks for'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a prove -d 'Attack the sandbox from inside'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'Show what this machine offers'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a approve -d 'Grant a skill for good what it asks for'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a approvals -d 'List what was approved'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a ps -d 'List the runs that live'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a watch -d 'Show what a run does, as it happens'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a why -d 'Explain what a run was denied'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a audit -d 'List, show, verify, export and prune runs'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a session -d 'Hold many runs to one policy, and end them'
complete -c skillsandbox -n "not __fish_seen_subcommand_from $commands" -a help -d 'Explain a command'

complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -f -a '(__fish_complete_directories)'
complete -c skillsandbox -n '__fish_seen_subcommand_from validate' -F
complete -c skillsandbox -n '__fish_seen_subcommand_from approve' -f -a '(__fish_complete_directories)'
complete -c skillsandbox -n '__fish_seen_subcommand_from approve' -l yes -d 'Do not ask'
complete -c skillsandbox -n '__fish_seen_subcommand_from approve' -l revoke -d 'Take back what was approved'
complete -c skillsandbox -n '__fish_seen_subcommand_from approve' -l policy -r -F -d 'Policy file'
complete -c skillsandbox -n '__fish_seen_subcommand_from approvals' -f -l json -d 'JSON for programs'
complete -c skillsandbox -n '__fish_seen_subcommand_from help' -f -a "$commands"
complete -c skillsandbox -n '__fish_seen_subcommand_from doctor ps' -f
set -l runs '(echo last; command ls (set -q XDG_STATE_HOME; and echo $XDG_STATE_HOME; or echo ~/.local/state)/skillsandbox/runs 2>/dev/null)'
complete -c skillsandbox -n '__fish_seen_subcommand_from watch why' -f -a "$runs"
complete -c skillsandbox -n "__fish_seen_subcommand_from audit; and not __fish_seen_subcommand_from $audits" -f -a "$audits"
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from show verify export' -F -a "$runs"
complete -c skillsandbox -n "__fish_seen_subcommand_from session; and not __fish_seen_subcommand_from $sessions" -f -a "$sessions"
complete -c skillsandbox -n "__fish_seen_subcommand_from session; and __fish_seen_subcommand_from $sessions" -f
complete -c skillsandbox -n '__fish_seen_subcommand_from list prune' -f

complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -s r -l read -r -F -d 'Let the skill read a path'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -s w -l write -r -F -d 'Let the skill read and write a path'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l net -x -a '(__fish_print_hostnames)' -d 'Let the skill connect to a host'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l allow-private -x -a '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 127.0.0.1/32 fd00::/8' -d 'Let granted hosts be in a private range'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l env -x -a '(set -nx)' -d 'Pass a variable on, or set it'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -s m -l memory -x -d 'Memory of all processes'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -s t -l timeout -x -d 'Run time at most'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l cpu-shares -x -d 'Weight of the processor share'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l max-output -x -d 'Bytes of stdout and of stderr at most'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l max-processes -x -d 'Processes and threads at most'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l max-files -x -d 'Open files per process at most'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l max-disk -x -d 'Size of the private directories'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l audit -x -a 'full violations off' -d 'What is observed and written down'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l profile -x -a 'default strict permissive' -d 'System calls'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l toolchain -x -a 'auto off' -d 'Grant an interpreter outside /usr'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l best-effort -x -a 'userns net mounts env limits caps landlock seccomp' -d 'Run although a layer cannot be applied'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l unix-sockets -d 'Unix sockets although a directory is writable'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans" -l policy -r -F -d 'Policy file'

complete -c skillsandbox -n '__fish_seen_subcommand_from run' -l trace-output -r -F -d 'Write the trace to a file'
complete -c skillsandbox -n '__fish_seen_subcommand_from run' -l tty -d 'Give the skill a terminal of its own'
complete -c skillsandbox -n '__fish_seen_subcommand_from run' -l no-tty -d 'Give the skill pipes'
complete -c skillsandbox -n '__fish_seen_subcommand_from run' -l dry-run -d 'Print the plan and execute nothing'
complete -c skillsandbox -n '__fish_seen_subcommand_from run' -l prove -d 'Attack the sandbox first'

complete -c skillsandbox -n '__fish_seen_subcommand_from run' -x -l session -d 'Run as part of this session'
complete -c skillsandbox -n '__fish_seen_subcommand_from run' -l watch -d 'Show what the skill does, as it happens'
complete -c skillsandbox -n '__fish_seen_subcommand_from run' -l otel -d 'Export the run as OpenTelemetry says'
complete -c skillsandbox -n '__fish_seen_subcommand_from watch' -s a -l all -d 'All runs, also later ones'
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from list' -l skill -x -d 'Only this skill'
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from list' -l since -x -d 'Started after'
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from list' -l until -x -d 'Started before'
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from list' -l violations -d 'Only runs with violations'
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from list' -l severity -x -a 'low medium high critical' -d 'At least'
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from list' -s n -l limit -x -d 'At most'
complete -c skillsandbox -n '__fish_seen_subcommand_from audit; and __fish_seen_subcommand_from list' -l rebuild -d 'Make the index anew'
complete -c skillsandbox -n '__fish_seen_subcommand_from verify export' -l key -r -F -d 'The public key to trust'
complete -c skillsandbox -n '__fish_seen_subcommand_from export' -s o -l output -r -F -d 'Where to'
complete -c skillsandbox -n '__fish_seen_subcommand_from prune' -l older-than -x -d 'Last written before'
complete -c skillsandbox -n '__fish_seen_subcommand_from prune' -l keep -x -d 'All but the newest'
complete -c skillsandbox -n '__fish_seen_subcommand_from prune' -l dry-run -d 'Say what would be removed'

complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from start' -l policy -r -F -d 'What it may spend and do'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from start' -l id -x -d 'Its name'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from start' -l parent -x -d 'The session that it counts in too'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from start' -l agent -x -d 'Whose it is'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from list' -s a -l all -d 'Also those that are over'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from show' -l ledger -d 'The ledger as it stands'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from check' -l action -x -d 'What the money is for'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from check settle' -l cost -x -d 'Dollars'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from check settle' -l model -x -d 'Cost by the tokens of a model'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from check settle' -l tokens-in -x -d 'Tokens sent'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from check settle' -l tokens-out -x -d 'Tokens that it wrote'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from settle' -l release -d 'The action did not happen'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from violation' -l type -x -d 'What was found'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from violation' -l details -x -d 'More about it'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from pause resume kill complete expire' -l reason -x -d 'Why'
complete -c skillsandbox -n '__fish_seen_subcommand_from session; and __fish_seen_subcommand_from kill' -l grace -x -d 'SIGTERM first, and so much time'
complete -c skillsandbox -n "__fish_seen_subcommand_from session; and __fish_seen_subcommand_from $sessions" -l json -d 'JSON for programs'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans validate doctor ps watch why list show verify prune" -l json -d 'JSON for programs'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans validate show" -s v -l verbose -d 'Also warnings, notes and a summary'
complete -c skillsandbox -n "__fish_seen_subcommand_from $plans validate verify prune" -s q -l quiet -d 'No messages but errors'
complete -c skillsandbox -n "__fish_seen_subcommand_from $commands" -s h -l help -d 'Explain the command'
