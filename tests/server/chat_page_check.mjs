// Run by chat_page_test.cpp: the page's Markdown on texts that try to become more than text, whole and cut anywhere.
// Prints what is wrong.
import { readFileSync } from 'node:fs';

class Node {
  constructor(name) { this.name = name; this.children = []; this.attributes = {}; }
  append(...children) { this.children.push(...children.filter((c) => c !== '')); }
  setAttribute(name, value) { this.attributes[name] = value; }
}
globalThis.document = { createElement: (name) => new Node(name) };
const script = /<script>([\s\S]*)<\/script>/.exec(readFileSync(process.argv[2], 'utf8'))[1];
const source = script.slice(0, script.indexOf('const page = '));
const { blocks } = new Function(source + '\nreturn markdown;')();

const elements = new Set(['div', 'p', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'pre', 'code', 'strong', 'em', 'a', 'span', 'table', 'tr', 'th', 'td', 'blockquote']);
let wrong = 0;
const complain = (what, text) => { ++wrong; console.log(what + ': ' + JSON.stringify(text)); };
const walk = (node, text) => {
  if (typeof node === 'string') return;
  if (!(node instanceof Node)) return complain('not a node', text);
  if (!elements.has(node.name)) complain('element ' + node.name, text);
  for (const [name, value] of Object.entries(node.attributes)) {
    if (node.name !== 'a' || !['href', 'rel', 'target'].includes(name)) complain('attribute ' + name, text);
    if (name === 'href' && !/^https?:\/\//i.test(value)) complain('link ' + value, text);
  }
  node.children.forEach((child) => walk(child, text));
};

const script_words = ['<script>x()</script>', '<img src=x onerror=x()>', '<svg/onload=x()>', '<iframe src="javascript:x()">', '<a href="javascript:x()">', '"><b>', "'><b onclick=x()>", '&lt;script&gt;', '<!--', '<style>@import "//x"</style>', 'javascript:x()', 'data:text/html,<script>'];
const frames = [(w) => w, (w) => '`' + w + '`', (w) => '```\n' + w + '\n```', (w) => '# ' + w, (w) => '- ' + w, (w) => '[a](' + w + ')', (w) => '[' + w + '](https://x)', (w) => '![a](' + w + ')', (w) => '|a|b|\n|-|-|\n|' + w + '|' + w + '|', (w) => '> **' + w + '**', (w) => '```' + w, (w) => '[a](https://x/' + w + ')', (w) => '[a]( ' + w + ' )', (w) => '[a](JaVaScRiPt:' + w + ')', (w) => '***' + w + '***\n1. ' + w];
let payloads = 0;
for (const word of script_words)
  for (const frame of frames) {
    const text = frame(word);
    ++payloads;
    for (let cut = 0; cut <= text.length; ++cut) walk(blocks(text.slice(0, cut), new Node('div')), text.slice(0, cut));
  }
// Random texts of Markdown's own characters end, and keep their letters.
let seed = 1;
const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
const letters = ['a', 'b', ' ', '\n', '`', '*', '#', '-', '|', '>', '[', ']', '(', ')', '~', '1.', '<', '&', 'https://x'];
const content = (node) => typeof node === 'string' ? node : node.children.map(content).join('');
for (let i = 0; i < 3000; ++i) {
  let text = '';
  for (let length = random(40); length > 0; --length) text += letters[random(letters.length)];
  const out = blocks(text, new Node('div'));
  walk(out, text);
  for (const letter of ['a', 'b'])
    if (!text.includes('```') && !text.includes('~~~') && content(out).split(letter).length < text.split(letter).length) complain('lost ' + letter, text);
}
console.log(`${payloads} payloads, ${wrong} wrong`);
process.exit(wrong ? 1 : 0);
