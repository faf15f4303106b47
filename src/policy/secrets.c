/* secrets.c - the words that show that a variable holds a secret. */
#include "policy/secrets.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/own.h"

/* Known names of variables that hold a key of the owner, whichever skill runs. */
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

/* The following lists contain words, each between spaces. A name is judged by its words, which "_"
 * separates. */

/* Services whose keys are always the owner's: clouds, code, publishing, payment, messages, team
 * tools, and models, which cost money. A key for any other service may be the skill's own. */
static const char OWNERS[] =
        " AWS AZURE ARM GCP GOOGLE GCLOUD CLOUDSDK CLOUDFLARE CF DIGITALOCEAN DO HEROKU VERCEL "
        "NETLIFY"
        " FLY RENDER RAILWAY LINODE HCLOUD HETZNER VULTR SCW SCALEWAY OVH OCI ALIBABA ALICLOUD "
        "ALIYUN"
        " TENCENTCLOUD IBMCLOUD GITHUB GH GITLAB CI BITBUCKET GITEA FORGEJO CODEBERG SSH GPG NPM "
        "NODE"
        " YARN PYPI TWINE POETRY UV CARGO CRATES RUBYGEMS GEM NUGET MAVEN HEX DOCKER DOCKERHUB QUAY"
        " KUBE KUBERNETES K8S STRIPE PAYPAL SQUARE PLAID SLACK DISCORD TELEGRAM TWILIO SENDGRID"
        " MAILGUN POSTMARK VAULT CONSUL NOMAD TF TFE TERRAFORM PULUMI ANSIBLE SOPS DOPPLER "
        "INFISICAL"
        " OP BW OPENAI ANTHROPIC CLAUDE GEMINI VERTEX BEDROCK OPENROUTER GROQ MISTRAL COHERE "
        "DEEPSEEK"
        " PERPLEXITY REPLICATE TOGETHER FIREWORKS XAI GROK CEREBRAS VOYAGE JINA TAVILY ELEVENLABS "
        "HF"
        " HUGGINGFACE HUGGING HUGGINGFACEHUB WANDB COMET NEPTUNE KAGGLE LANGCHAIN LANGSMITH "
        "PINECONE"
        " WEAVIATE QDRANT SENTRY DATADOG DD NEW GRAFANA HONEYCOMB PAGERDUTY OPSGENIE ROLLBAR "
        "CODECOV"
        " COVERALLS SNYK SONAR CIRCLE CIRCLECI TRAVIS BUILDKITE JENKINS JIRA ATLASSIAN CONFLUENCE"
        " LINEAR NOTION AIRTABLE ASANA TRELLO ZENDESK HUBSPOT SALESFORCE SHOPIFY DROPBOX SUPABASE"
        " FIREBASE PLANETSCALE NEON TURSO UPSTASH SNOWFLAKE DATABRICKS ALGOLIA CONTENTFUL AUTH0 "
        "OKTA"
        " CLERK TAILSCALE TS NGROK GITPOD REPLIT EXPO ";
/* Services whose addresses contain a password: "redis://user:password@host". */
static const char STORES[] =
        " REDIS MONGO MONGODB POSTGRES POSTGRESQL PG MYSQL MARIADB RABBITMQ AMQP"
        " CLICKHOUSE CELERY DATABASE DB BROKER CONNECTION JDBC ";
/* The last word of a variable that says something about a secret, but does not hold it:
 * COOKIE_NAME, PASSWORD_MIN_LENGTH. */
static const char ABOUT[] =
        " DIR NAME TYPE TTL TIMEOUT LENGTH LEN SIZE COUNT LIMIT MIN MAX ENABLED"
        " DISABLED POLICY ALGORITHM ALG PROVIDER DOMAIN HOST PORT SECURE SAMESITE"
        " HTTPONLY REGION EXPIRY EXPIRES SOCK PARALLELISM MODE METHOD PROMPT ";
/* Words before KEY or TOKEN that make the variable a secret of the owner, whichever service the key
 * or token is for. */
#define OF_OWNERS                                                                                  \
	" PRIVATE SECRET ACCESS AGE SIGNING SIGN ENCRYPTION ENCRYPT MASTER DEPLOY ADMIN ROOT"      \
	" ACCOUNT STORAGE SHARED RECOVERY SSH GPG PGP SESSION AUTH REFRESH BEARER PERSONAL BOT "

/* Words of OWNERS that are also ordinary words. They name a service only as the first word of a
 * name. */
static const char ORDINARY[] = " ARM CI CF DO FLY RENDER NODE UV GEM HEX SQUARE OP BW TF TOGETHER"
                               " COMET NEPTUNE NEW DD CIRCLE LINEAR NOTION NEON TS EXPO CLERK ";
/* Words before TOKENS that show that the variable is not a secret, but a number of tokens of a
 * language model: MAX_TOKENS. */
static const char COUNTED[] = " MAX MIN NUM N NEW TOTAL INPUT OUTPUT PROMPT COMPLETION CONTEXT"
                              " THINKING REASONING STOP SPECIAL CACHED BUDGET CHUNK ";

enum word_place {
	ENDS = 1,  /* other letters may come directly before it: PGPASSWORD */
	INNER = 2, /* must not be the first word, as in PWD and KEY_REPEAT */
	LAST = 4,  /* must be the last word */
};

/* The first row that matches a word decides about that word. The most severe word decides about a
 * name. */
static const struct {
	const char *word;
	const char *before; /* the word before it must be one of these; NULL: any word, or none */
	unsigned where;
	enum secret kind;
} WORDS[] = {
	{ "PASSWORD", NULL, ENDS, SECRET_OWNERS },
	{ "PASSWORDS", NULL, ENDS, SECRET_OWNERS },
	{ "PASSWD", NULL, ENDS, SECRET_OWNERS },
	{ "PASSPHRASE", NULL, ENDS, SECRET_OWNERS },
	{ "PASSCODE", NULL, ENDS, SECRET_OWNERS },
	{ "SSHPASS", NULL, 0, SECRET_OWNERS },
	{ "PASS", NULL, INNER, SECRET_OWNERS },
	{ "PWD", NULL, INNER, SECRET_OWNERS },
	{ "SECRET", NULL, ENDS, SECRET_OWNERS },
	{ "SECRETS", NULL, ENDS, SECRET_OWNERS },
	{ "CREDENTIAL", NULL, ENDS, SECRET_OWNERS },
	{ "CREDENTIALS", NULL, ENDS, SECRET_OWNERS },
	{ "CREDS", NULL, ENDS, SECRET_OWNERS },
	{ "PRIVATEKEY", NULL, ENDS, SECRET_OWNERS },
	{ "SECRETKEY", NULL, ENDS, SECRET_OWNERS },
	{ "ACCESSKEY", NULL, ENDS, SECRET_OWNERS },
	{ "AUTHKEY", NULL, ENDS, SECRET_OWNERS },
	{ "COOKIE", NULL, ENDS, SECRET_OWNERS },
	{ "COOKIES", NULL, ENDS, SECRET_OWNERS },
	{ "JWT", NULL, 0, SECRET_OWNERS },
	{ "BEARER", NULL, 0, SECRET_OWNERS },
	{ "MNEMONIC", NULL, 0, SECRET_OWNERS },
	{ "AUTHORIZATION", NULL, LAST, SECRET_OWNERS },
	{ "AUTH", NULL, LAST, SECRET_OWNERS },
	{ "DSN", NULL, 0, SECRET_OWNERS },
	{ "WEBHOOK", NULL, 0, SECRET_OWNERS },
	{ "SESSION", " BW OP ", 0, SECRET_OWNERS },
	{ "STRING", " CONNECTION CONN ", 0, SECRET_OWNERS },
	{ "URL", STORES, LAST, SECRET_OWNERS },
	{ "URI", STORES, LAST, SECRET_OWNERS },
	{ "TOKENS", COUNTED, 0, SECRET_NOT },
	{ "KEY", " PUBLIC PUB PUBLISHABLE ", 0, SECRET_NOT },
	{ "KEYS", " PUBLIC PUB PUBLISHABLE ", 0, SECRET_NOT },
	{ "KEY", OF_OWNERS, 0, SECRET_OWNERS },
	{ "KEYS", OF_OWNERS, 0, SECRET_OWNERS },
	{ "TOKEN", OF_OWNERS, ENDS, SECRET_OWNERS },
	{ "TOKENS", OF_OWNERS, 0, SECRET_OWNERS },
	{ "TOKEN", NULL, ENDS, SECRET_SOUNDS },
	{ "TOKENS", NULL, INNER | LAST, SECRET_SOUNDS },
	{ "APIKEY", NULL, ENDS, SECRET_SOUNDS },
	{ "APIKEYS", NULL, ENDS, SECRET_SOUNDS },
	{ "KEY", NULL, INNER, SECRET_SOUNDS },
	{ "KEYS", NULL, INNER, SECRET_SOUNDS },
};

struct secret_word {
	const char *s; /* not terminated */
	size_t len;    /* without its final digits */
	size_t whole;  /* with its final digits, as in AUTH0 */
	bool last;
};

static struct secret_word word_at(const char *s)
{
	size_t whole = strcspn(s, "_");
	size_t len = whole;

	while (len > 1 && isdigit((unsigned char)s[len - 1])) {
		len--;
	}
	return (struct secret_word){ s, len, whole, s[whole] == '\0' };
}

static bool is_listed(const char *list, struct secret_word w)
{
	for (const char *p = list + 1; *p != '\0'; p += strcspn(p, " ") + 1) {
		size_t len = strcspn(p, " ");
		if ((len == w.len || len == w.whole) && strncasecmp(p, w.s, len) == 0) {
			return true;
		}
	}
	return false;
}

static bool word_fits(size_t row, struct secret_word w, const struct secret_word *before)
{
	size_t len = strlen(WORDS[row].word);
	unsigned where = WORDS[row].where;

	return w.len >= len && strncasecmp(w.s + w.len - len, WORDS[row].word, len) == 0 &&
	       (w.len == len || (where & ENDS) != 0) && (before != NULL || (where & INNER) == 0) &&
	       (w.last || (where & LAST) == 0) &&
	       (WORDS[row].before == NULL ||
	        (before != NULL && is_listed(WORDS[row].before, *before)));
}

static enum secret secret_of_word(struct secret_word w, const struct secret_word *before)
{
	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
		if (word_fits(i, w, before)) {
			return WORDS[i].kind;
		}
	}
	return SECRET_NOT;
}

/* Judges a name by its words. The name of a service affects the words after it. */
static enum secret secret_of_words(const char *name)
{
	const struct secret_word first = word_at(name);
	bool owners = is_listed(OWNERS, first);
	bool store = is_listed(STORES, first);
	struct secret_word before = { 0 };
	enum secret worst = SECRET_NOT;

	for (const char *s = name;; s += strcspn(s, "_") + 1) {
		struct secret_word w = word_at(s);
		enum secret kind = secret_of_word(w, s != name ? &before : NULL);
		if ((owners && (kind == SECRET_SOUNDS || is_listed(" AUTH PAT ", w))) ||
		    (store && is_listed(" URL URI ", w))) {
			kind = SECRET_OWNERS;
		}
		worst = kind > worst ? kind : worst;
		if (w.last) {
			return is_listed(ABOUT, w) ? SECRET_NOT : worst;
		}
		owners = owners || (is_listed(OWNERS, w) && !is_listed(ORDINARY, w));
		before = w;
	}
}

enum secret secret_of(const char *name, const char **ret_opens)
{
	assert(name != NULL);
	for (size_t i = 0; i < ARRAY_LEN(CREDENTIALS); i++) {
		if (strcmp(CREDENTIALS[i].name, name) == 0) {
			if (ret_opens != NULL) {
				*ret_opens = CREDENTIALS[i].opens;
			}
			return SECRET_CREDENTIAL;
		}
	}
	return secret_of_words(name);
}

bool secret_is_general(const char *word)
{
	return is_listed(" API KEY KEYS TOKEN APIKEY APP THE SERVICE USER ", word_at(word));
}
