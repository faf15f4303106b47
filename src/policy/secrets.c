#include "policy/secrets.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/own.h"

/* Keys to what is the owner's whatever skill is run. */
static const struct {
	const char *name;
	const char *opens;
} CREDENTIALS[] = {
	{ "AWS_ACCESS_KEY_ID", "AWS" },
	{ "AWS_SECRET_ACCESS_KEY", "AWS" },
	{ "AWS_SESSION_TOKEN", "AWS" },
	{ "AWS_SECURITY_TOKEN", "AWS" },
	{ "AZURE_CLIENT_SECRET", "Azure" },
	{ "GOOGLE_APPLICATION_CREDENTIALS", "Google Cloud" },
	{ "DIGITALOCEAN_ACCESS_TOKEN", "DigitalOcean" },
	{ "CLOUDFLARE_API_TOKEN", "Cloudflare" },
	{ "GITHUB_TOKEN", "GitHub" },
	{ "GH_TOKEN", "GitHub" },
	{ "GITHUB_PAT", "GitHub" },
	{ "GITLAB_TOKEN", "GitLab" },
	{ "NPM_TOKEN", "package publishing" },
	{ "NODE_AUTH_TOKEN", "package publishing" },
	{ "PYPI_TOKEN", "package publishing" },
	{ "TWINE_PASSWORD", "package publishing" },
	{ "CARGO_REGISTRY_TOKEN", "package publishing" },
	{ "DOCKER_PASSWORD", "image publishing" },
	{ "OPENAI_API_KEY", "OpenAI" },
	{ "AZURE_OPENAI_API_KEY", "Azure" },
	{ "ANTHROPIC_API_KEY", "Anthropic" },
	{ "GOOGLE_API_KEY", "Google" },
	{ "GEMINI_API_KEY", "Google" },
	{ "STRIPE_SECRET_KEY", "Stripe" },
	{ "SLACK_TOKEN", "Slack" },
	{ "SLACK_BOT_TOKEN", "Slack" },
	{ "DATABASE_URL", "a database" },
	{ "REDIS_URL", "a database" },
	{ "MONGODB_URI", "a database" },
	{ "POSTGRES_PASSWORD", "a database" },
	{ "PGPASSWORD", "a database" },
	{ "MYSQL_PASSWORD", "a database" },
	{ "MYSQL_PWD", "a database" },
	{ "VAULT_TOKEN", "Vault" },
	{ "HF_TOKEN", "Hugging Face" },
	{ "HUGGING_FACE_HUB_TOKEN", "Hugging Face" },
	{ "HUGGINGFACEHUB_API_TOKEN", "Hugging Face" },
	{ "OPENROUTER_API_KEY", "OpenRouter" },
	{ "GROQ_API_KEY", "Groq" },
	{ "MISTRAL_API_KEY", "Mistral" },
	{ "COHERE_API_KEY", "Cohere" },
	{ "DEEPSEEK_API_KEY", "DeepSeek" },
};

/* Whose secret a name speaks of is seldom said by its end alone: a skill's own key for its
 * own service is what it has a manifest for. The first row that matches counts. No letter may
 * follow: MAX_TOKENS, TOKENIZERS_PARALLELISM and X_KEYBOARD are none. */
static const struct {
	const char *part;
	enum secret kind;
} PARTS[] = {
	{ "PASSWORD", SECRET_OWNERS },
	{ "PASSWORDS", SECRET_OWNERS },
	{ "PASSWD", SECRET_OWNERS },
	{ "_PASS", SECRET_OWNERS },
	{ "_PWD", SECRET_OWNERS },
	{ "PASSPHRASE", SECRET_OWNERS },
	{ "PRIVATE_KEY", SECRET_OWNERS },
	{ "PRIVATEKEY", SECRET_OWNERS },
	{ "CREDENTIAL", SECRET_OWNERS },
	{ "CREDENTIALS", SECRET_OWNERS },
	{ "SECRET", SECRET_OWNERS },
	{ "SECRETS", SECRET_OWNERS },
	{ "DATABASE_URL", SECRET_OWNERS },
	{ "DB_URL", SECRET_OWNERS },
	{ "CONNECTION_STRING", SECRET_OWNERS },
	{ "_DSN", SECRET_OWNERS },
	{ "TOKEN", SECRET_SOUNDS },
	{ "APIKEY", SECRET_SOUNDS },
	{ "_KEY", SECRET_SOUNDS },
	{ "_KEYS", SECRET_SOUNDS },
};

/* Of these places every key is the owner's: clouds, publishing, and models, which are paid for. */
static const char *const OWNERS[] = {
	"AWS_",       "AZURE_",      "GCP_",          "GOOGLE_",     "GITHUB_",      "GH_",
	"GITLAB_",    "SSH_",        "GPG_",          "NPM_",        "PYPI_",        "DOCKER_",
	"KUBE",       "CLOUDFLARE_", "DIGITALOCEAN_", "STRIPE_",     "SLACK_",       "VAULT_",
	"OPENAI_",    "ANTHROPIC_",  "CLAUDE_",       "GEMINI_",     "OPENROUTER_",  "GROQ_",
	"MISTRAL_",   "COHERE_",     "DEEPSEEK_",     "PERPLEXITY_", "REPLICATE_",   "TOGETHER_",
	"FIREWORKS_", "XAI_",        "HF_",           "HUGGINGFACE", "HUGGING_FACE",
};
static const char *const KEYS[] = { "TOKEN", "KEY", "KEYS", "AUTH", "_PAT" };
/* They carry a password: "redis://user:password@host". */
static const char *const STORES[] = { "REDIS_",    "MONGO", "POSTGRES",      "MYSQL_",
	                              "RABBITMQ_", "AMQP_", "CELERY_BROKER_" };
static const char *const ADDRESSES[] = { "URL", "URI" };

/* In any case, and no letter follows. */
static bool has_part(const char *name, const char *part)
{
	size_t len = strlen(part);

	for (const char *p = strcasestr(name, part); p != NULL; p = strcasestr(p + 1, part)) {
		if (!isalpha((unsigned char)p[len])) {
			return true;
		}
	}
	return false;
}

static bool begins(const char *name, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strncasecmp(name, v[i], strlen(v[i])) == 0) {
			return true;
		}
	}
	return false;
}

static bool has_any(const char *name, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (has_part(name, v[i])) {
			return true;
		}
	}
	return false;
}

static bool is_owners(const char *name)
{
	return (begins(name, OWNERS, ARRAY_LEN(OWNERS)) && has_any(name, KEYS, ARRAY_LEN(KEYS))) ||
	       (begins(name, STORES, ARRAY_LEN(STORES)) &&
	        has_any(name, ADDRESSES, ARRAY_LEN(ADDRESSES)));
}

enum secret secret_of(const char *name, const char **ret_opens)
{
	for (size_t i = 0; i < ARRAY_LEN(CREDENTIALS); i++) {
		if (strcmp(CREDENTIALS[i].name, name) == 0) {
			if (ret_opens != NULL) {
				*ret_opens = CREDENTIALS[i].opens;
			}
			return SECRET_CREDENTIAL;
		}
	}
	if (is_owners(name)) {
		return SECRET_OWNERS;
	}
	for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
		if (has_part(name, PARTS[i].part)) {
			return PARTS[i].kind;
		}
	}
	return SECRET_NOT;
}
