// The package openai for Node against a server: openai_client.mjs URL. Prints what is wrong and exits with 1.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const messages = [{ role: "user", content: "Tell me about a cat, ünder a tree." }];
const tools = [{ type: "function", function: { name: "f", description: "d", strict: true, parameters: {
  type: "object", properties: { x: { enum: ["a", "b"] } }, required: ["x"], additionalProperties: false } } }];

for (let seed = 0; seed < 6; ++seed) {
  const request = { model, messages, max_tokens: 5 + 7 * seed, temperature: 0.4 * (seed % 3), seed, logprobs: seed % 2 === 0, n: 1 + (seed % 2) };
  const whole = await client.chat.completions.create(request);
  const runner = client.chat.completions.stream(request);
  let text = "";
  for await (const chunk of runner) for (const choice of chunk.choices) if (choice.index === 0) text += choice.delta.content ?? "";
  const added = await runner.finalChatCompletion();
  assert.equal(text, whole.choices[0].message.content);
  added.choices.forEach((choice, i) => {
    assert.equal(choice.message.content, whole.choices[i].message.content);
    assert.equal(choice.finish_reason, whole.choices[i].finish_reason);
    assert.deepEqual(choice.logprobs?.content ?? null, whole.choices[i].logprobs?.content ?? null);
  });
}

const called = { model, messages, tools, tool_choice: "required", parallel_tool_calls: false, max_tokens: 200, temperature: 1, seed: 3 };
const call = (await client.chat.completions.create(called)).choices[0];
assert.equal(call.finish_reason, "tool_calls");
assert.ok(["a", "b"].includes(JSON.parse(call.message.tool_calls[0].function.arguments).x));
const streamed = await client.chat.completions.stream(called).finalChatCompletion();
assert.equal(streamed.choices[0].message.tool_calls[0].function.arguments, call.message.tool_calls[0].function.arguments);

const legacy = { model, prompt: ["Once", "The old king"], max_tokens: 12, temperature: 0, logprobs: 2 };
const texts = (await client.completions.create(legacy)).choices.map((choice) => choice.text);
const parts = ["", ""];
for await (const chunk of await client.completions.create({ ...legacy, stream: true }))
  for (const choice of chunk.choices) parts[choice.index] += choice.text;
assert.deepEqual(parts, texts);

const response = await client.responses.create({ model, input: "Hi", max_output_tokens: 20, temperature: 0 });
const events = client.responses.stream({ model, input: "Hi", max_output_tokens: 20, temperature: 0 });
let number = 0;
for await (const event of events) assert.equal(event.sequence_number, number++);
assert.equal((await events.finalResponse()).output_text, response.output_text);
const next = await client.responses.create({ model, input: "And?", previous_response_id: response.id, max_output_tokens: 5 });
assert.equal(next.previous_response_id, response.id);
await client.responses.delete(response.id);

await assert.rejects(client.chat.completions.create({ model: "other", messages }), OpenAI.NotFoundError);
await assert.rejects(client.chat.completions.create({ model, messages, temperature: 9 }), (error) =>
  error instanceof OpenAI.BadRequestError && error.param === "temperature");

const stopped = new AbortController();
const long = client.chat.completions.create({ model, messages, max_tokens: 400, stream: true }, { signal: stopped.signal });
await assert.rejects((async () => {
  for await (const _ of await long) stopped.abort();
  stopped.signal.throwIfAborted();  // the iteration ends quietly
})());
console.log("passed");
