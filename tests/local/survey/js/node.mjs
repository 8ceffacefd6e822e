// Runs the default function of a module on JSON from stdin, as the page of the browser harness does.
import { text } from "node:stream/consumers";

const { default: run } = await import(process.argv[2]);
console.log(JSON.stringify(await run(JSON.parse(await text(process.stdin)))));
