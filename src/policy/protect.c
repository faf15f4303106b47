/* protect.c - the table of names that are protected in a writable grant. */
#include "policy/protect.h"

#include <assert.h>
#include <string.h>

#include "base/own.h"

const struct protected_place PROTECTED[] = {
	/* version control: hooks, settings that name programs, and names that lead git to other
	 * settings */
	/* "git rebase --continue" executes commands from these two: the "exec" lines, and the merge
	 * strategies, which are programs. */
	{ ".git/rebase-merge", true, HOLD_BY_LINK },
	{ ".git/rebase-apply", true, HOLD_BY_LINK },
	{ ".git/sequencer", true, HOLD_PRIVATE },
	{ ".git/hooks", true, HOLD_ANYWHERE },
	{ ".git/config", false, HOLD_ANYWHERE },
	{ ".git/config.worktree", false, HOLD_ANYWHERE },
	{ ".git/commondir", false, HOLD_ANYWHERE }, /* its placeholder contains "." */
	{ ".git/info", true, HOLD_ANYWHERE },
	{ ".git/modules", true, HOLD_ANYWHERE },
	/* these name the repositories to push to, and a push runs the hooks there */
	{ ".git/remotes", true, HOLD_ANYWHERE },
	{ ".git/branches", true, HOLD_ANYWHERE },
	{ ".git/gitdir", false, HOLD_NOT }, /* exists only for a worktree: see repos_gitdirs.c */
	/* its placeholder makes git reject the directory as a bare repository */
	{ "commondir", false, HOLD_ANYWHERE },
	{ ".gitmodules", false, HOLD_NOT },
	{ ".gitconfig", false, HOLD_NOT },
	{ ".config/git", true, HOLD_NOT },
	/* not held: hg would take a .hg that contains only a placeholder for a repository */
	{ ".hg/hgrc", false, HOLD_NOT },
	{ ".hgrc", false, HOLD_NOT },
	{ ".husky", true, HOLD_ANYWHERE },
	{ ".githooks", true, HOLD_NOT },
	{ ".pre-commit-config.yaml", false, HOLD_NOT },
	{ "lefthook.yml", false, HOLD_NOT },
	/* directory environments */
	{ ".envrc", false, HOLD_ANYWHERE },
	{ ".mise.toml", false, HOLD_NOT },
	{ "mise.toml", false, HOLD_NOT },
	{ ".tool-versions", false, HOLD_NOT },
	{ ".autoenv", false, HOLD_NOT },
	/* editors */
	{ ".vscode", true, HOLD_ANYWHERE },
	{ ".idea", true, HOLD_NOT },
	{ ".zed", true, HOLD_NOT },
	{ ".fleet", true, HOLD_NOT },
	{ ".devcontainer", true, HOLD_NOT },
	{ ".vimrc", false, HOLD_NOT },
	{ ".exrc", false, HOLD_NOT },
	{ ".nvim.lua", false, HOLD_NOT },
	{ ".nvimrc", false, HOLD_NOT },
	{ ".vim", true, HOLD_NOT },
	{ ".config/nvim", true, HOLD_NOT },
	{ ".dir-locals.el", false, HOLD_NOT },
	{ ".emacs", false, HOLD_NOT },
	{ ".emacs.d", true, HOLD_NOT },
	/* agents: instructions, tools and hooks */
	{ ".claude", true, HOLD_ANYWHERE },
	{ ".claude.json", false, HOLD_NOT },
	{ ".cursor", true, HOLD_ANYWHERE },
	{ ".cursorrules", false, HOLD_ANYWHERE },
	{ ".codex", true, HOLD_ANYWHERE },
	{ ".gemini", true, HOLD_ANYWHERE },
	{ ".opencode", true, HOLD_ANYWHERE },
	{ "opencode.json", false, HOLD_ANYWHERE },
	{ "opencode.jsonc", false, HOLD_ANYWHERE },
	{ ".qwen", true, HOLD_ANYWHERE },
	{ ".roo", true, HOLD_ANYWHERE },
	{ ".windsurf", true, HOLD_ANYWHERE },
	{ ".windsurfrules", false, HOLD_ANYWHERE },
	{ ".continue", true, HOLD_NOT },
	{ ".aider.conf.yml", false, HOLD_NOT },
	{ ".mcp.json", false, HOLD_ANYWHERE },
	{ "mcp.json", false, HOLD_NOT },
	{ "CLAUDE.md", false, HOLD_ANYWHERE },
	{ "CLAUDE.local.md", false, HOLD_ANYWHERE },
	{ "AGENTS.md", false, HOLD_ANYWHERE },
	{ "AGENTS.override.md", false, HOLD_ANYWHERE },
	{ "GEMINI.md", false, HOLD_ANYWHERE },
	{ ".github/copilot-instructions.md", false, HOLD_NOT },
	{ ".github/workflows", true, HOLD_NOT },
	/* shells and logins */
	{ ".bashrc", false, HOLD_IN_HOME },
	{ ".bash_profile", false, HOLD_IN_HOME },
	{ ".bash_login", false, HOLD_IN_HOME },
	{ ".bash_logout", false, HOLD_IN_HOME },
	{ ".bash_aliases", false, HOLD_IN_HOME },
	{ ".profile", false, HOLD_IN_HOME },
	{ ".inputrc", false, HOLD_IN_HOME },
	{ ".zshrc", false, HOLD_IN_HOME },
	{ ".zshenv", false, HOLD_IN_HOME },
	{ ".zprofile", false, HOLD_IN_HOME },
	{ ".zlogin", false, HOLD_IN_HOME },
	{ ".zlogout", false, HOLD_IN_HOME },
	{ ".kshrc", false, HOLD_IN_HOME },
	{ ".cshrc", false, HOLD_IN_HOME },
	{ ".tcshrc", false, HOLD_IN_HOME },
	{ ".login", false, HOLD_IN_HOME },
	{ ".xprofile", false, HOLD_IN_HOME },
	{ ".xinitrc", false, HOLD_IN_HOME },
	{ ".xsession", false, HOLD_IN_HOME },
	{ ".config/fish", true, HOLD_IN_HOME },
	{ ".config/autostart", true, HOLD_IN_HOME },
	{ ".config/systemd", true, HOLD_IN_HOME },
	{ ".config/environment.d", true, HOLD_IN_HOME },
	{ ".local/bin", true, HOLD_IN_HOME },
	{ ".local/share/applications", true, HOLD_IN_HOME },
	{ ".ssh", true, HOLD_IN_HOME },
	{ ".pam_environment", false, HOLD_IN_HOME },
	/* Interpreters and package tools read these in the directory where you start them. Ordinary
	 * work creates them, so they are not held. */
	{ ".npmrc", false, HOLD_NOT },
	{ ".yarnrc", false, HOLD_NOT },
	{ ".yarnrc.yml", false, HOLD_NOT },
	{ ".pythonrc", false, HOLD_NOT },
	{ ".pypirc", false, HOLD_NOT },
	{ ".cargo/config.toml", false, HOLD_NOT },
	{ ".cargo/config", false, HOLD_NOT },
	{ ".gdbinit", false, HOLD_NOT },
	{ ".tmux.conf", false, HOLD_NOT },
};

const size_t PROTECTED_COUNT = ARRAY_LEN(PROTECTED);
static_assert(ARRAY_LEN(PROTECTED) <= PROTECTED_MAX, "raise PROTECTED_MAX");

const char *protect_in_gitdir(const struct protected_place *p)
{
	static const char GIT[] = ".git/";

	return strncmp(p->name, GIT, sizeof(GIT) - 1) == 0 ? p->name + sizeof(GIT) - 1 : NULL;
}

size_t protect_count_held(void)
{
	size_t n = 0;

	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		n += PROTECTED[i].hold == HOLD_ANYWHERE || PROTECTED[i].hold == HOLD_PRIVATE;
	}
	return n;
}

bool protect_has_name(const char *name)
{
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		size_t len = strlen(PROTECTED[i].name);
		if (strncmp(name, PROTECTED[i].name, len) == 0 &&
		    (name[len] == '\0' || name[len] == '/')) {
			return true;
		}
	}
	return false;
}

bool protect_is_file(const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		size_t len = strlen(PROTECTED[i].name);
		if (!PROTECTED[i].is_dir && n > len && path[n - len - 1] == '/' &&
		    strcmp(path + n - len, PROTECTED[i].name) == 0) {
			return true;
		}
	}
	return false;
}
