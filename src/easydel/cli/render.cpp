// `easydel render`: shows a conversation formatted by a chat template.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/text_table.h"
#include "easydel/cli/commands.h"
#include "easydel/hub/resolve.h"
#include "easydel/text/chat_capabilities.h"
#include "easydel/text/output/output_parser.h"
#include "easydel/text/render_chat.h"

namespace easydel::cli {
namespace {

bool is_template_file(const std::filesystem::path& path) {
  return files::is_file(path) && path.extension() != ".json" && path.extension() != ".gz" &&
         path.extension() != ".model" && path.extension() != ".gguf" && path.extension() != ".tiktoken";
}

text::ChatOptions options_of(const RenderCommand& command) {
  text::ChatOptions out;
  out.add_generation_prompt = command.generation_prompt;
  if (!command.tools.empty()) {
    out.tools = parse_file(command.tools);
    if (!out.tools.is_list()) refuse(command.tools, "is not a list of tools", R"(as in [{"type": "function", ...}])");
  }
  out.extra = Value::map();
  for (const std::string& each : command.set) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0)
      refuse("--set", each + " has no name", "for example --set enable_thinking=false");
    out.extra.set(each.substr(0, equals), parse_yaml(each.substr(equals + 1), "--set " + each));
  }
  return out;
}

// The messages: a list, or a map that also has variables of the template.
Value messages_of(const RenderCommand& command, text::ChatOptions& options) {
  Value document =
      parse_json(read_input(command.messages), command.messages == "-" ? "standard input" : command.messages);
  Value messages;
  if (!document.is_map()) messages = std::move(document);
  for (auto& [name, value] : document.entries) {
    if (name == "messages")
      messages = std::move(value);
    else if (name == "tools" && options.tools.is_null())
      options.tools = std::move(value);
    else if (name != "tools")
      options.extra.set(name, std::move(value));
  }
  const bool are_messages = messages.is_list() && std::ranges::all_of(messages.items, &Value::is_map);
  if (!are_messages)
    refuse(command.messages == "-" ? "standard input" : command.messages, "is not a list of messages",
           R"(as in [{"role": "user", "content": "Hello"}], or a map with such a list below "messages")");
  return messages;
}

// A template without a tokenizer has no special tokens and no ids.
std::string rendered_alone(const RenderCommand& command, const Value& messages, const text::ChatOptions& options) {
  if (command.ids || command.mask)
    refuse(command.source, str(command.ids ? "--ids" : "--mask", " needs a tokenizer"), "give a model folder");
  Value context = Value::map();
  context.set("messages", messages);
  context.set("tools", options.tools);
  context.set("add_generation_prompt", Value::boolean(options.add_generation_prompt));
  for (const auto& [name, value] : options.extra.entries) context.set(name, value);
  return text::ChatTemplate(files::read(command.source), command.source).render(context).text;
}

// Tokens as text; the assistant's are green, or between marks if there are no colors.
std::string marked(const text::Tokenizer& tokenizer, const text::RenderedChat& chat) {
  const char* plain = std::getenv("NO_COLOR");
  const bool colour = isatty(STDOUT_FILENO) && !(plain && *plain);
  const std::string on = colour ? "\x1b[32m" : "\u27e6", off = colour ? "\x1b[0m" : "\u27e7";
  std::string out;
  for (size_t i = 0; i < chat.ids.size();) {
    size_t end = i;
    while (end < chat.ids.size() && chat.assistant_mask[end] == chat.assistant_mask[i]) ++end;
    const std::string piece = tokenizer.decode(
        std::vector<text::TokenId>(chat.ids.begin() + int64_t(i), chat.ids.begin() + int64_t(end)), false);
    out += chat.assistant_mask[i] ? on + piece + off : piece;
    i = end;
  }
  return out;
}

std::string template_of(const std::filesystem::path& path, const std::string& source) {
  if (is_template_file(path)) return files::read(path);
  const auto found = text::Tokenizer::load(path)->chat_template();
  if (!found) refuse(source, "has no chat template", "give a folder that has one, or a template file");
  return *found;
}

// What the template supports, and how the model's answers are parsed by default.
std::string about(const std::string& source) {
  const std::filesystem::path path = hub::resolve_tokenizer(source);
  const std::string text = template_of(path, source);
  const text::ChatCapabilities can = text::capabilities_of(text::ChatTemplate(text, source));
  std::string type;
  if (const auto config = path / "config.json"; files::is_file(config))
    if (const Value parsed = parse_file(config); const Value* named = parsed.find("model_type")) type = named->scalar;
  const text::OutputFormat format = text::detect_output_format(text, type);
  const auto word = [](bool yes) { return std::string(yes ? "yes" : "no"); };
  const auto parser = [](const std::string& name) { return name.empty() ? "none" : name; };
  return text_table({{"conversation", word(can.conversation)},
                     {"system role", word(can.system_role)},
                     {"tools", word(can.tools)},
                     {"earlier tool calls", word(can.tool_calls)},
                     {"tool results", word(can.tool_results)},
                     {"content as a string", word(can.content_strings)},
                     {"content in parts", word(can.content_parts)},
                     {"thinking can be switched", word(can.thinking)},
                     {"keeps earlier reasoning", word(can.keeps_reasoning)},
                     {"generation prompt", word(can.generation_prompt)},
                     {"marks generated text", word(can.generation_markers)},
                     {"tool parser", parser(format.tools)},
                     {"reasoning parser", parser(format.reasoning)}});
}

}  // namespace

int run_render(const RenderCommand& command) {
  if (command.about) return print(about(command.source)), 0;
  text::ChatOptions options = options_of(command);
  const Value messages = messages_of(command, options);
  const std::filesystem::path path = hub::expand_home(command.source);
  if (is_template_file(path)) return print(rendered_alone(command, messages, options) + "\n"), 0;
  const auto tokenizer = text::Tokenizer::load(hub::resolve_tokenizer(command.source));
  const text::ChatRenderer renderer(tokenizer);
  if (command.ids && !command.mask) {
    std::string ids;
    for (const text::TokenId id : renderer.ids(messages, options)) ids += (ids.empty() ? "" : " ") + std::to_string(id);
    return print(ids + "\n"), 0;
  }
  if (!command.mask) return print(renderer.text(messages, options) + "\n"), 0;
  const text::RenderedChat chat = renderer.with_mask(messages, options);
  if (!command.ids) return print(marked(*tokenizer, chat) + "\n"), 0;
  std::string lines;
  for (size_t i = 0; i < chat.ids.size(); ++i)
    lines += str(chat.ids[i], chat.assistant_mask[i] ? "\t1\t" : "\t0\t", tokenizer->token_of(chat.ids[i]), "\n");
  return print(lines), 0;
}

}  // namespace easydel::cli
