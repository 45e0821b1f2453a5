// `easydel export`: converts a model's files to another format. Nothing is computed with the model, and torch is not
// needed.
#include <filesystem>

#include "easydel/base/byte_count.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/text_table.h"
#include "easydel/cli/commands.h"
#include "easydel/hub/resolve.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/text/tokenizers/gguf_vocabulary.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/weights/export.h"

namespace easydel::cli {
namespace {

namespace fs = std::filesystem;

// The dtype of most of the model's elements, as the file format names it.
std::string own_type(const weights::Folder& model) {
  std::string out = "f32";
  int64_t most = 0;
  for (const std::string& name : model.names())
    if (const weights::TensorView info = model.info(name); info.elements() > most) {
      most = info.elements();
      out = info.blocks == weights::GgmlType::q8_0   ? "q8_0"
            : info.blocks == weights::GgmlType::q4_0 ? "q4_0"
            : info.dtype == weights::DType::bf16     ? "bf16"
            : info.dtype == weights::DType::f16      ? "f16"
                                                     : "f32";
    }
  return out;
}

std::string title_of(const fs::path& model) {
  const fs::path path = files::canonical(model);
  return (files::is_folder(path) ? path.filename() : path.stem()).string();
}

}  // namespace

int run_export(const ExportOptions& options) {
  if (options.format != "gguf" && options.format != "safetensors")
    refuse("--format", "'" + options.format + "' is not a model format", "known: gguf, safetensors");
  const auto most = byte_count(options.max_shard_size);
  if (!most)
    refuse("--max-shard-size", "'" + options.max_shard_size + "' is not a size",
           "write 500MB, 2GiB or a number of bytes");
  const fs::path path = hub::resolve_model(options.model, "export"), output = options.output;
  const fs::path tokenizer = options.tokenizer.empty() ? path : hub::resolve_model(options.tokenizer, "--tokenizer");
  const weights::ConfigFile config = weights::read_config(path);
  const weights::Folder model = weights::Folder::open(path);
  const quant::CodedFolder coded = quant::open_coded(path, config.document, config.where);
  if (const quant::CodedWeight* const codes = coded.only_codes())
    refuse(path.string(), str("exporting weights in codes (", codes->format, ") is not built yet"),
           "export the unquantized model");
  if (options.format == "safetensors") {
    weights::write_hugging_face(output, model, config, options.dtype, uint64_t(*most));
    weights::keep_generation_config(path, output);
    if (text::Tokenizer::exists(tokenizer)) text::save_tokenizer(*text::Tokenizer::load(tokenizer), output);
    return print(output.string() + "\n"), 0;
  }
  weights::GgufWriter out;
  const weights::GgmlType type =
      weights::gguf_type(options.dtype == "auto" ? own_type(model) : options.dtype, "--dtype");
  weights::add_model(out, model, config, title_of(path), type);
  text::add_vocabulary(out, tokenizer, *config.document.find("vocab_size")->as_int(), options.pre);
  weights::add_token_ids(out, config);
  if (output.has_parent_path()) files::make_directories(output.parent_path());
  out.write(output);
  return print(str(output.string(), ": ", weights::form_of(type).name, ", ", bytes_text(files::size(output)), "\n")), 0;
}

}  // namespace easydel::cli
