import { readFileSync } from "node:fs";

const seen = new Map();
let fenced = false;
for (const line of readFileSync(0, "utf8").split(/\r?\n/)) {
  fenced = line.startsWith("```") ? !fenced : fenced;
  const m = /^(#{1,6}) (.+?)\s*#*$/.exec(line);
  if (!m || fenced) continue;
  let slug = m[2].toLowerCase().replace(/[^\w\- ]/g, "").replace(/ /g, "-");
  const n = seen.get(slug) ?? 0;
  seen.set(slug, n + 1);
  console.log(`${"  ".repeat(m[1].length - 1)}- [${m[2]}](#${n ? `${slug}-${n}` : slug})`);
}
