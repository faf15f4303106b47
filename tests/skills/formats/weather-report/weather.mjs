import { readFileSync } from "node:fs";

const all = JSON.parse(readFileSync(new URL("./data.json", import.meta.url), "utf8"));
console.log(JSON.stringify({ ...all[process.argv[2]], key: process.env.WEATHER_KEY ?? null }));
