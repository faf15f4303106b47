// client.mjs NPM SPEC - a client of an official SDK performs its steps with a server. It prints
// the result of each step in one JSON object: {"STEP": {"value": ..}} or
// {"STEP": {"error": .., "code": ..}}. The tests judge the results.
//
// SPEC is JSON: sdk 1 or 2, era "legacy" or "modern", url and token (HTTP) or command
// (stdio), and the skills that the steps need.
import { createRequire } from 'node:module';
import { readdirSync, readFileSync } from 'node:fs';

const [npm, text] = process.argv.slice(2);
const spec = JSON.parse(text);
const need = createRequire(`${npm}/package.json`);
const INFO = { name: 'skillsandbox-tests', version: '1.0.0' };

// The functions that have other names in the two SDKs.
const SDKS = {
  1: {
    client: () => need('@modelcontextprotocol/sdk/client/index.js').Client,
    http: () => need('@modelcontextprotocol/sdk/client/streamableHttp.js')
      .StreamableHTTPClientTransport,
    stdio: () => need('@modelcontextprotocol/sdk/client/stdio.js').StdioClientTransport,
    onElicit: (client, fn) => client.setRequestHandler(
      need('@modelcontextprotocol/sdk/types.js').ElicitRequestSchema, fn),
    call: (client, params, options) => client.callTool(params, undefined, options),
    request: (client, method, params) => client.request({ method, params },
      need('@modelcontextprotocol/sdk/types.js').EmptyResultSchema),
  },
  2: {
    client: () => need('@modelcontextprotocol/client').Client,
    http: () => need('@modelcontextprotocol/client').StreamableHTTPClientTransport,
    stdio: () => need('@modelcontextprotocol/client/stdio').StdioClientTransport,
    onElicit: (client, fn) => client.setRequestHandler('elicitation/create', fn),
    call: (client, params, options) => client.callTool(params, options),
    request: (client, method, params) => client.request({ method, params }, {
      '~standard': { version: 1, vendor: 'tests', validate: (value) => ({ value }) },
    }),
  },
};
const sdk = SDKS[spec.sdk];

function transport() {
  if (spec.url) {
    const headers = { Authorization: `Bearer ${spec.token}` };
    return new (sdk.http())(new URL(spec.url), { requestInit: { headers } });
  }
  const [command, ...args] = spec.command;
  return new (sdk.stdio())({ command, args, env: spec.env, cwd: spec.cwd, stderr: 'inherit' });
}

// How forms are answered: `accept` takes the first choice of each field that contains `word`.
let wish = { action: 'decline' };
const forms = [];
function answer(request) {
  forms.push(request.params);
  if (wish.action !== 'accept') {
    return { action: wish.action };
  }
  const content = {};
  for (const [name, field] of Object.entries(request.params.requestedSchema.properties)) {
    const choices = field.enum ?? (field.oneOf ?? []).map((one) => one.const);
    const fit = choices.find((one) => one.includes(wish.word));
    content[name] = fit ?? field.default ?? (field.type === 'boolean' ? true : '');
  }
  return { action: 'accept', content };
}

async function connect(capabilities) {
  const options = { capabilities };
  if (spec.era === 'modern') {
    options.versionNegotiation = { mode: { pin: '2026-07-28' } };
  }
  const client = new (sdk.client())(INFO, options);
  client.onerror = (e) => process.stderr.write(`client: ${e.message}\n`);
  if (capabilities.elicitation) {
    sdk.onElicit(client, answer);
  }
  await client.connect(transport());
  return client;
}

const client = await connect({ elicitation: {} });
const call = (name, args, options) =>
  sdk.call(client, { name, arguments: args }, { timeout: 60000, ...options });
const run = (skill, args, options) =>
  call('run_skill', { skill_dir: spec.skills[skill], ...(args ? { args } : {}) }, options);

// Returns the pids of this machine whose command line contains the word.
function alive(word) {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word);
    } catch {
      return false;
    }
  }).filter((pid) => Number(pid) !== process.pid);
}
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function untilGone(word) {
  const begun = performance.now();
  while (alive(word).length > 0 && performance.now() - begun < 10000) {
    await pause(5);
  }
  return performance.now() - begun;
}

async function asked(how, skill) {
  wish = how;
  const before = forms.length;
  const result = await run(skill);
  return { result, forms: forms.slice(before) };
}

const STEPS = {
  server: async () => ({
    info: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    version: client.getNegotiatedProtocolVersion?.(),
  }),
  tools: async () => (await client.listTools()).tools,
  list: async () => call('list_skills', {}),
  validate: async () => call('validate_skill', { path: spec.skills.echo }),
  inspect: async () => call('inspect_skill', { skill_dir: spec.skills.echo }),
  run: async () => run('echo', ['one', 'two words']),
  denied: async () => run('naughty'),
  unknown_skill: async () => call('run_skill', { skill_dir: 'no-such-skill' }),
  outside: async () => call('run_skill', { skill_dir: '/etc' }),
  bad_arguments: async () => call('run_skill', { skill_dir: 5, args: 'x', more: true }),
  unknown_tool: async () => call('no_such_tool', {}),
  unknown_method: async () => sdk.request(client, 'no/such/method', {}),
  progress: async () => {
    const told = [];
    const result = await run('live', undefined, { onprogress: (p) => told.push(p) });
    return { result, told };
  },
  cancel: async () => {
    const stop = new AbortController();
    let started;
    const begun = new Promise((done) => { started = done; });
    const failed = run('sleeper', [spec.marker], {
      signal: stop.signal,
      onprogress: (p) => (p.message ?? '').includes('asleep') && started(),
    }).then(() => null, (e) => e);
    await Promise.race([begun, failed]);
    const before = alive(spec.marker).length;
    stop.abort('enough');
    const ms = await untilGone(spec.marker);
    return { before, ms, error: String((await failed)?.message), after: await run('echo', []) };
  },
  // The order matters: an approval for the session is valid for every client with the token.
  unasked: async () => {
    const other = await connect({});
    try {
      return await sdk.call(other,
        { name: 'run_skill', arguments: { skill_dir: spec.skills.asker } }, {});
    } finally {
      await other.close();
    }
  },
  decline: async () => asked({ action: 'decline' }, 'asker'),
  dismiss: async () => asked({ action: 'cancel' }, 'asker'),
  accept: async () => asked({ action: 'accept', word: 'once' }, 'asker'),
  accept_once: async () => asked({ action: 'decline' }, 'asker'),
  accept_session: async () => asked({ action: 'accept', word: 'session' }, 'asker'),
  remembered: async () => asked({ action: 'decline' }, 'asker'),
  resources: async () => {
    const done = await run('echo', []);
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();
    const mine = resources.filter((r) => r.uri.includes(done.structuredContent.run_id));
    const read = mine.length ? await client.readResource({ uri: mine[0].uri }) : null;
    return { run_id: done.structuredContent.run_id, resources, resourceTemplates, read };
  },
  unknown_resource: async () => client.readResource({ uri: 'skillsandbox://runs/nothing' }),
  prompts: async () => {
    const { prompts } = await client.listPrompts();
    const got = await client.getPrompt(
      { name: 'review_skill', arguments: { skill: spec.skills.asker } });
    return { prompts, got };
  },
  parallel: async () => {
    const results = await Promise.all(Array.from({ length: 20 },
      (_, i) => run('napper', [`nap-${i}`])));
    return { results };
  },
};

const report = {};
for (const step of spec.steps ?? Object.keys(STEPS)) {
  try {
    report[step] = { value: await STEPS[step]() };
  } catch (e) {
    report[step] = { error: String(e?.message ?? e), code: e?.code };
  }
}
await client.close();
process.stdout.write(JSON.stringify(report), () => process.exit(0));
