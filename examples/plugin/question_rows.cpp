// A function over rows from outside the tree: {title, body} becomes {prompt, completion}, and rows without a body are
// left out. In YAML: informs: [{data_files: articles.jsonl, preprocessing_fn: articles_to_questions}].
#include "easydel/base/error.h"
#include "easydel/elarge/plugin.h"
#include "easydel/elarge/plugin_abi.h"

using easydel::Value;

namespace {

std::optional<Value> articles_to_questions(const Value& fields) {
  const Value *const title = fields.find("title"), *const body = fields.find("body");
  if (!title || !title->is_text()) easydel::refuse("title", "is missing", "each row has a title, a text");
  if (!body || !body->is_text() || body->scalar.empty()) return std::nullopt;
  Value out = Value::map();
  out.set("prompt", Value::text("Write about " + title->scalar + ".\n"));
  out.set("completion", *body);
  return out;
}

}  // namespace

extern "C" const char* easydel_plugin_abi() { return easydel::elarge::kPluginAbi; }

extern "C" void easydel_plugin(easydel::elarge::Registry& registry) {
  registry.add_row_function("articles_to_questions", articles_to_questions);
}
