#include "easydel/cli/quantize.h"

#include "easydel/base/byte_count.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/quantize.h"
#include "easydel/hub/resolve.h"

namespace easydel::cli {

int run_quantize(const QuantizeOptions& options) {
  if (options.to == "q4_0" || options.to == "q8_0") {
    if (!options.pattern.empty())
      refuse("--pattern", "a GGUF file is written in one format", "leave it out, or choose another --to");
    if (!options.texts.empty()) refuse("--text", "a GGUF file is not measured here", "run `easydel perplexity` on it");
    if (options.max_shard_size != QuantizeOptions().max_shard_size)
      refuse("--max-shard-size", "a GGUF file is not cut into shards", "leave it out, or choose another --to");
    ExportOptions gguf;
    gguf.model = options.model;
    gguf.dtype = options.to;
    gguf.output = options.output;
    return run_export(gguf);
  }
  const auto most = byte_count(options.max_shard_size);
  if (!most)
    refuse("--max-shard-size", "'" + options.max_shard_size + "' is not a size",
           "write 500MB, 2GiB or a number of bytes");
  const elarge::QuantizeRequest request{.model = hub::resolve_model(options.model, "quantize"),
                                        .output = options.output,
                                        .to = options.to,
                                        .pattern = options.pattern,
                                        .max_shard_bytes = uint64_t(*most)};
  if (files::is_same(request.model, request.output))
    refuse("--out", "'" + options.output + "' is the model's own folder", "give another folder");
  if (files::exists(request.output) && (!files::is_folder(request.output) || !files::list(request.output).empty()))
    refuse("--out", "'" + options.output + "' exists and is not empty", "give a new folder");
  for (const std::string& file : options.texts)
    if (!files::is_file(file)) refuse("--text", "'" + file + "' is not a file", "give files of text");
  const std::string said = elarge::quantize_model(request);
  print(str(options.output, ": ", said, "\n"));
  if (options.texts.empty()) return 0;
  // The plain model, and how the quantized one differs.
  PerplexityCommand command;
  command.model = request.model.string();
  command.compare = options.output;
  command.files = options.texts;
  return run_perplexity(command);
}

}  // namespace easydel::cli
