// `easydel merge`: a model with adapters, saved as a plain model, tensor by tensor.
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/core.h"
#include "easydel/elarge/overrides.h"
#include "easydel/hub/resolve.h"
#include "easydel/text/chat_fingerprint.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::cli {
namespace {

namespace fs = std::filesystem;

// "DIR" or "DIR:0.5"; a folder whose name contains a colon is taken as it is.
elarge::MergeRequest::Part part_of(const std::string& given) {
  const size_t colon = given.rfind(':');
  if (colon == std::string::npos || files::exists(given)) return {hub::resolve_model(given, "--adapter"), 1};
  const Value weight = parse_yaml(given.substr(colon + 1), "--adapter");
  if (!weight.as_double())
    refuse("--adapter", "'" + given.substr(colon + 1) + "' is not a number (" + given + ")",
           "write FOLDER, or FOLDER:0.5 to add half of it");
  return {hub::resolve_model(given.substr(0, colon), "--adapter"), *weight.as_double()};
}

// The codes that --set makes of the model's weights.
elarge::QuantizationConfig quantization_of(const MergeOptions& options) {
  for (const elarge::Override& given : elarge::overrides_of(options.set))
    if (!given.path.starts_with("quantization"))
      refuse("--set", given.path + " has no effect on merging", "quantization.* has");
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(options.model));
  document.set("model", model);
  return elarge::configuration(document, options.set).quantization;
}

models::MergeBase base_of(const std::string& word) {
  if (const auto base = config::value_of<models::MergeBase>(word)) return *base;
  refuse("--merge-base", "'" + word + "' is not a base of merging", "known: trained, original");
}

}  // namespace

int run_merge(const MergeOptions& options) {
  elarge::MergeRequest request;
  request.model = hub::resolve_model(options.model, "merge");
  request.output = options.output;
  request.dtype = models::dtype_setting(options.dtype, "--dtype");
  request.quantization = quantization_of(options);
  request.base = base_of(options.base);
  request.to_codes = options.to_codes;
  for (const std::string& given : options.adapters) request.adapters.push_back(part_of(given));
  if (files::is_same(request.model, request.output))
    refuse("--out", "'" + options.output + "' is the model's own folder", "give another folder");
  if (files::exists(request.output) && !files::list(request.output).empty())
    refuse("--out", "'" + options.output + "' exists and is not empty", "give a new folder");
  elarge::core().merge(request);
  for (const fs::path& folder : {request.adapters.back().folder, request.model})
    if (text::Tokenizer::exists(folder)) {
      text::save_tokenizer(*text::Tokenizer::load(folder), request.output);
      text::keep_chat_fingerprint(folder, request.output);
      break;
    }
  return print(request.output.string() + "\n"), 0;
}

}  // namespace easydel::cli
