# bash completion for skillsandbox(1)

_skillsandbox()
{
	local cur prev command i
	cur=${COMP_WORDS[COMP_CWORD]}
	prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()

	local commands='run shell list validate lint inspect prove doctor init shrink check learn approve allow diff approvals serve ps watch why audit session setup hook help'
	local presets='browser git go java node python rust'
	local sets='@anthropic @bitbucket @crates @debian @gemini @github @gitlab @go @gradle @huggingface @maven
		@mistral @nodejs @npm @openai @openrouter @packagist @pypi @rubygems @rustup @ubuntu @yarn'
	local grants='--read --write --project --project-read --preset --cache --net --allow-private --env --memory --timeout --cpu-shares
		--max-output --max-processes --max-files --max-disk --profile --audit --toolchain
		--best-effort --unix-sockets --without --policy'
	local files='--rootfs --image'
	local output='--json --verbose --quiet --help'

	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$cur")
		return
	fi
	command=${COMP_WORDS[1]}
	if [[ $command == audit ]]; then
		if ((COMP_CWORD == 2)); then
			mapfile -t COMPREPLY < <(compgen -W 'list show verify export prune' -- "$cur")
			return
		fi
		command="audit ${COMP_WORDS[2]}"
	fi
	if [[ $command == session ]]; then
		if ((COMP_CWORD == 2)); then
			mapfile -t COMPREPLY < <(compgen -W 'start list show check settle violation
				pause resume kill complete expire' -- "$cur")
			return
		fi
		command="session ${COMP_WORDS[2]}"
	fi

	# Behind "--" stands a command with words of its own.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if ((i + 1 == COMP_CWORD)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
				compopt -o filenames
			fi
			return
		fi
	done

	case $prev in
	-r | --read | -w | --write | --rootfs | --image | --policy | --session-policy | --socket | --trace-output | -o | --output | --key)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		compopt -o filenames
		return
		;;
	--env)
		mapfile -t COMPREPLY < <(compgen -e -- "$cur")
		return
		;;
	--net)
		mapfile -t COMPREPLY < <(compgen -A hostname -W "$sets" -- "$cur")
		return
		;;
	--skills)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		compopt -o filenames
		return
		;;
	--http)
		mapfile -t COMPREPLY < <(compgen -W '127.0.0.1:8080' -- "$cur")
		return
		;;
	--audit)
		mapfile -t COMPREPLY < <(compgen -W 'full violations off' -- "$cur")
		return
		;;
	--preset)
		mapfile -t COMPREPLY < <(compgen -W "$presets" -- "$cur")
		return
		;;
	--profile)
		mapfile -t COMPREPLY < <(compgen -W 'default strict permissive' -- "$cur")
		return
		;;
	--class)
		mapfile -t COMPREPLY < <(compgen -W 'unauthorized_file_access data_exfiltration resource_abuse discovery supply_chain_attack credential_exfiltration credential_harvesting privilege_escalation sandbox_evasion persistence command_and_control' -- "$cur")
		return
		;;
	--severity)
		mapfile -t COMPREPLY < <(compgen -W 'low medium high critical' -- "$cur")
		return
		;;
	--toolchain)
		mapfile -t COMPREPLY < <(compgen -W 'auto off' -- "$cur")
		return
		;;
	--best-effort)
		mapfile -t COMPREPLY < <(compgen -W \
			'userns net mounts env limits caps landlock seccomp audit' -- "$cur")
		return
		;;
	--session | --expires | --without | --id | --parent | --agent | --action | --cost | --model | --tokens-in | --tokens-out | --type | --details | --reason | --grace | --skill | --since | --until | -n | --limit | --older-than | --keep | --allow-private | -m | --memory | -t | --timeout | --cpu-shares | --max-*)
		return
		;;
	esac

	if [[ $cur == -* ]]; then
		local words=--help
		case $command in
		run) words="$grants $files $output --trace-output --session --tty --no-tty --dry-run --prove --watch --otel" ;;
		shell) words="$grants $files --verbose --quiet --help --trace-output --session --watch --otel" ;;
		list) words='--json --help' ;;
		inspect | prove) words="$grants $files $output" ;;
		serve) words="$grants --skills --http --socket --session --session-policy --max-runs --all-runs --otel --help" ;;
		validate) words=$output ;;
		lint) words='--sarif --output --json --help' ;;
		setup) words="$grants --skills --local --no-hook --yes --remove --help" ;;
		init) words='--output --sidecar --help' ;;
		shrink) words='--json --help' ;;
		check) words='--against --json --help' ;;
		learn) words='--read --net --allow-private --env --memory --timeout --cpu-shares --max-output --max-processes --max-files --max-disk --toolchain --best-effort --policy --connect --interactive --sidecar --write --output --verbose --help' ;;
		approve) words='--yes --once --expires --without --revoke --policy --help' ;;
		allow) words='--net --read --write --env --reason --last --list --revoke --yes --without --policy --json --help' ;;
		diff) words='--policy --all --json --help' ;;
		doctor | ps | why) words='--json --help' ;;
		approvals) words='--json --revoke --help' ;;
		watch) words='--all --json --verbose --help' ;;
		'audit list') words='--skill --since --until --path --host --reason --class --violations --severity --limit
			--rebuild --json --help' ;;
		'audit show') words='--plan --html --json --verbose --help' ;;
		'audit verify') words='--key --json --quiet --help' ;;
		'audit export') words='--output --key --help' ;;
		'session start') words='--policy --id --parent --agent --json --help' ;;
		'session list') words='--all --json --help' ;;
		'session show') words='--ledger --json --help' ;;
		'session check') words='--action --cost --model --tokens-in --tokens-out --json --help' ;;
		'session settle') words='--cost --model --tokens-in --tokens-out --release --json --help' ;;
		'session violation') words='--type --details --json --help' ;;
		'session kill') words='--grace --reason --json --help' ;;
		'session '*) words='--reason --json --help' ;;
		'audit prune') words='--older-than --caches --keep --dry-run --json --quiet --help' ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
	fi

	case $command in
	run | shell | list | lint | inspect | prove | init | shrink | learn | approve | allow | approvals | diff | serve)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		compopt -o filenames
		;;
	setup)
		mapfile -t COMPREPLY < <(compgen -W 'claude-code codex cursor gemini-cli goose openclaw opencode vscode' -- "$cur")
		;;
	hook)
		mapfile -t COMPREPLY < <(compgen -W claude-code -- "$cur")
		;;
	validate)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		compopt -o filenames
		;;
	why | watch | 'audit show' | 'audit verify' | 'audit export')
		local runs=${XDG_STATE_HOME:-$HOME/.local/state}/skillsandbox/runs
		mapfile -t COMPREPLY < <(compgen -W "last $(ls "$runs" 2>/dev/null)" -- "$cur")
		if [[ $command == 'audit show' || $command == 'audit verify' ]]; then
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
			compopt -o filenames
		fi
		;;
	help)
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
		;;
	esac
}

complete -F _skillsandbox skillsandbox
