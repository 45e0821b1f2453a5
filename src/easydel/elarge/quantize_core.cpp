#include "easydel/elarge/quantize.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/regular_expression.h"
#include "easydel/base/text_table.h"
#include "easydel/models/file_tensors.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/file_codes.h"
#include "easydel/tensor/executor.h"
#include "easydel/tensor/mapped.h"
#include "easydel/text/chat_fingerprint.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/weights/safetensors.h"

namespace easydel::elarge {
namespace {

constexpr std::string_view leaf = ".weight";

RegularExpression compiled(const QuantizeRequest& request) {
  try {
    return RegularExpression(request.pattern);
  } catch (const InvalidRegularExpression&) {
    refuse(request.pattern_where, "'" + request.pattern + "' is not a regular expression",
           R"(for example: "self_attn|mlp")");
  }
}

// A file's tensor [out, in] that holds one linear layer, or several below one another.
bool holds_linear_layers(const models::FileTensor& file) {
  if (file.shape.size() != 2 || !file.name.ends_with(leaf)) return false;
  int64_t rows = 0;
  for (const models::FilePart& part : file.parts) {
    if (!nn::is_linear(*part.entry) || part.index >= 0 || part.entry->shape[1] != file.shape[1]) return false;
    rows += part.entry->shape[0];
  }
  return rows == file.shape[0] && (file.parts.size() > 1 || file.is_parameter());
}

// A file's tensor [out, in] of one expert.
bool holds_expert(const models::FileTensor& file) {
  return file.shape.size() == 2 && file.name.ends_with(leaf) && file.is_parameter() && file.parts.front().index >= 0;
}

// A file's tensor of all experts, which such files hold in blocks of mxfp4 instead.
bool becomes_blocks(const models::FileTensor& file) {
  return file.shape.size() == 3 &&
         std::ranges::all_of(file.parts, [](const auto& part) { return part.entry->packing == nn::Packing::mxfp4; });
}

// The file's own name of a tensor: some checkpoints leave out the "model." in front, or have one more.
std::string name_in(const weights::Folder& folder, const std::string& name) {
  if (folder.has(name)) return name;
  const std::string longer = "model." + name;
  if (folder.has(longer)) return longer;
  return name.starts_with("model.") && folder.has(name.substr(6)) ? name.substr(6) : "";
}

struct Layers {
  std::set<std::string> chosen, others;  // names of the file's tensors, without ".weight"
  std::map<std::string, std::vector<int64_t>> shapes;
  std::map<std::string, bool> blocks;  // tensors of all experts; whether they are stored transposed
};

// `stacks`: the folder's tensors of all experts, and a layer that each belongs to.
Layers layers_of(const QuantizeRequest& request, const weights::Folder& folder, const nn::ParameterTable& table,
                 const std::map<std::string, std::string>& stacks) {
  const RegularExpression pattern = compiled(request);
  // transformers 5 reads experts in compressed-tensors' codes, but not in bitsandbytes'.
  const bool bitsandbytes = request.to == "nf4" || request.to == "fp4";
  Layers out;
  for (const models::FileTensor& file : models::file_tensors(table)) {
    const std::string name = name_in(folder, file.name);
    if (name.empty()) continue;
    const auto named = [&] {
      return pattern.found_in(name) || std::ranges::any_of(file.parts, [&](const models::FilePart& part) {
               return pattern.found_in(nn::layer_name(*part.entry));
             });
    };
    if (request.to == "mxfp4" && becomes_blocks(file) && named())
      out.blocks[name] = file.parts.front().entry->source.transposed;
    if (!holds_linear_layers(file) && !holds_expert(file)) {
      // Routers, and what a format's own library would take for a linear layer.
      const bool matrix =
          file.shape.size() == 2 && name.ends_with(leaf) &&
          std::ranges::all_of(file.parts, [](const auto& part) { return part.entry->role == nn::Role::weight; });
      if (matrix) out.others.insert(name.substr(0, name.size() - leaf.size()));
      continue;
    }
    const bool head = std::ranges::any_of(file.parts, [](const auto& part) { return part.entry->head; });
    const bool meant = request.pattern.empty() ? !head && !(bitsandbytes && holds_expert(file)) : named();
    const std::string layer = name.substr(0, name.size() - leaf.size());
    (meant ? out.chosen : out.others).insert(layer);
    out.shapes[layer] = file.shape;
  }
  if (!out.blocks.empty() && request.pattern.empty()) out.others.merge(out.chosen);
  if (!out.blocks.empty() && !out.chosen.empty())
    refuse(request.pattern_where,
           str("'", request.pattern, "' names experts, which become blocks of mxfp4, and ", *out.chosen.begin(),
               ", which is plain in such files"),
           R"(name the experts alone: "experts")");
  if (!out.chosen.empty() || !out.blocks.empty()) return out;
  for (const auto& [name, layer] : stacks)
    if (pattern.found_in(name) || pattern.found_in(layer))
      refuse(request.pattern_where,
             str(name, " holds all experts, and no file has codes of such a tensor in ", request.to),
             "choose other layers");
  refuse(request.pattern_where, str("no linear layer is called as '", request.pattern, "' asks"),
         out.others.empty() ? "this model has no linear layers that are tensors of their own"
                            : "one is called " + *out.others.begin());
}

// The largest of the usual groups that divides the rows of most layers.
int64_t group_of(const Layers& layers) {
  const auto fitting = [&](int64_t group) {
    return std::ranges::count_if(layers.chosen,
                                 [&](const std::string& one) { return layers.shapes.at(one)[1] % group == 0; });
  };
  int64_t best = 128;
  for (const int64_t group : {64, 32})
    if (fitting(group) > fitting(best)) best = group;
  return best;
}

class Writer {
 public:
  Writer(const weights::Folder& folder, const quant::FileCodesSpec& spec) : folder_(folder), spec_(spec) {}

  void plain(const std::string& name) {
    const weights::TensorView info = folder_.info(name);
    before_ += int64_t(folder_.at(name).bytes.size());
    if (info.blocks) {
      const weights::OutTensor out = tensor::to_file(name, tensor::from_view(folder_.at(name)), at::kFloat);
      return tensors_.push_back(out);
    }
    tensors_.push_back({name, info.dtype, info.shape, [this, name](const auto& sink) {
                          const weights::TensorView view = folder_.at(name);
                          sink(view.bytes.data(), view.bytes.size());
                          files::Mapped::forget(view.bytes);
                        }});
  }

  void coded(const std::string& layer, const std::vector<int64_t>& shape) {
    const std::vector<quant::CodesPart> parts = quant::parts_of(spec_, shape[0], shape[1]);
    for (size_t i = 0; i < parts.size(); ++i) {
      tensors_.push_back(
          {layer + parts[i].ending, parts[i].dtype, parts[i].shape, [this, layer, shape, i](const auto& sink) {
             const auto bytes = bytes_of(layer, shape);
             sink((*bytes)[i].data(), (*bytes)[i].size());
           }});
      after_ += int64_t(*weights::bytes_of_shape(parts[i].shape, weights::size_of(parts[i].dtype)));
    }
    coded_before_ += int64_t(folder_.at(layer + std::string(leaf)).bytes.size());
    ++weights_;
  }

  void blocks(const std::string& name, bool transposed) {
    const weights::TensorView info = folder_.info(name);
    std::vector<int64_t> shape = info.shape;
    if (transposed) std::swap(shape[1], shape[2]);
    const auto matrix = [this, name, transposed](int64_t expert) {
      const Tensor one = finite(name, tensor::from_view(folder_.at(name))[expert]);
      const Tensor values = transposed ? one.t().contiguous() : one;
      return quant::bytes_of_parts(tensor::executor(), spec_, values.const_data_ptr<float>(), values.size(0),
                                   values.size(1));
    };
    for (weights::OutTensor& part : quant::blocks_of_stack(name, shape, matrix)) {
      after_ += int64_t(*weights::bytes_of_shape(part.shape, 1));
      tensors_.push_back(std::move(part));
    }
    coded_before_ += int64_t(folder_.at(name).bytes.size());
    ++weights_;
  }

  void write(const std::filesystem::path& output, uint64_t max_shard_bytes) const {
    weights::write_folder(output, tensors_, max_shard_bytes);
  }
  std::string said(const std::string& to) const {
    return str(weights_, " weights in ", to, ": ", bytes_text(after_), " of ", bytes_text(coded_before_), "; ",
               bytes_text(before_), " stay as they are");
  }

 private:
  static Tensor finite(const std::string& name, const Tensor& stored) {
    const Tensor values = stored.to(at::kFloat).contiguous();
    if (!values.isfinite().all().item<bool>())
      refuse(name, "holds values that are not finite (NaN or infinity), so it has no codes",
             "leave it out with --pattern, or repair the model");
    return values;
  }
  // All parts of a layer; the last one is kept, because a file asks for them one by one.
  std::shared_ptr<const std::vector<std::vector<std::byte>>> bytes_of(const std::string& layer,
                                                                      const std::vector<int64_t>& shape) {
    if (last_layer_ == layer) return last_;
    last_.reset();
    const std::string name = layer + std::string(leaf);
    const Tensor values = finite(name, tensor::from_view(folder_.at(name)));
    last_ = std::make_shared<const std::vector<std::vector<std::byte>>>(
        quant::bytes_of_parts(tensor::executor(), spec_, values.const_data_ptr<float>(), shape[0], shape[1]));
    last_layer_ = layer;
    return last_;
  }

  const weights::Folder& folder_;
  quant::FileCodesSpec spec_;
  std::vector<weights::OutTensor> tensors_;
  std::string last_layer_;
  std::shared_ptr<const std::vector<std::vector<std::byte>>> last_;
  int64_t weights_ = 0, before_ = 0, coded_before_ = 0, after_ = 0;
};

weights::DType dtype_of(const weights::Folder& folder, const Layers& layers) {
  if (layers.chosen.empty()) return weights::DType::f32;  // blocks
  const weights::DType dtype = folder.info(*layers.chosen.begin() + std::string(leaf)).dtype;
  const bool kept = dtype == weights::DType::bf16 || dtype == weights::DType::f16;
  return kept ? dtype : weights::DType::f32;
}

std::string quantized(const QuantizeRequest& request) {
  quant::FileCodesSpec spec{.codes = quant::file_codes(request.to, request.where)};
  const weights::ConfigFile config = weights::read_config(request.model);
  const weights::Folder folder = weights::Folder::open(request.model);
  const quant::CodedFolder coded = quant::open_coded(request.model, config.document, config.where);
  if (const quant::CodedWeight* const codes = coded.only_codes())
    refuse(request.model.string(), str("is in codes already (", codes->format, ")"), "give the unquantized model");
  std::map<std::string, std::string> stacks;
  const auto table = models::plan_parameters(
      config.document, config.where, [&](const nn::Entry& entry, const std::vector<nn::TensorSource>& sources) {
        for (const nn::TensorSource& source : sources)
          if (entry.shape.size() == 3 && entry.role == nn::Role::weight && !source.stacked)
            if (const std::string name = name_in(folder, source.tensors.front()); !name.empty())
              stacks[name] = nn::layer_name(entry);
      });
  Layers layers = layers_of(request, folder, *table, stacks);
  if (spec.codes == quant::FileCodes::w4a16) spec.group = group_of(layers);
  spec.dtype = dtype_of(folder, layers);
  for (const auto& [layer, shape] : layers.shapes)
    if (layers.chosen.contains(layer) && !quant::fits(spec, shape[1])) {
      layers.chosen.erase(layer);
      layers.others.insert(layer);
    }
  for (const auto& [name, transposed] : layers.blocks)
    if (const int64_t k = folder.info(name).shape[transposed ? 1 : 2]; k % 32 != 0)
      refuse(request.where, str(name, " has rows of ", k, ", which groups of 32 do not divide"),
             "choose another format");
  if (layers.chosen.empty() && layers.blocks.empty())
    refuse(request.where, str("no layer of this model has rows that ", request.to, " can cut into groups"),
           "choose nf4, int8 or fp8");
  // A tied output layer has no tensor of its own, and stays plain as well.
  if (!layers.chosen.contains("lm_head")) layers.others.insert("lm_head");
  Writer writer(folder, spec);
  for (const std::string& name : folder.names()) {
    const std::string layer = name.ends_with(leaf) ? name.substr(0, name.size() - leaf.size()) : "";
    if (const auto blocks = layers.blocks.find(name); blocks != layers.blocks.end())
      writer.blocks(name, blocks->second);
    else if (layers.chosen.contains(layer))
      writer.coded(layer, layers.shapes.at(layer));
    else
      writer.plain(name);
  }
  const std::shared_ptr<const text::Tokenizer> tokenizer =
      text::Tokenizer::exists(request.model) ? text::Tokenizer::load(request.model) : nullptr;
  const bool is_new = !files::exists(request.output);
  files::make_directories(request.output);
  try {
    writer.write(request.output, request.max_shard_bytes);
    Value document = config.document;
    document.set("quantization_config", layers.blocks.empty()
                                            ? quant::section_of(spec, {layers.others.begin(), layers.others.end()})
                                            : quant::section_of_blocks());
    files::write(request.output / "config.json", to_json(document, 2) + "\n");
    weights::keep_generation_config(request.model, request.output);
    if (tokenizer) text::save_tokenizer(*tokenizer, request.output);
    text::keep_chat_fingerprint(request.model, request.output);
  } catch (...) {
    for (const std::filesystem::path& one : files::list(request.output)) files::remove_all(one);
    if (is_new) files::remove_all(request.output);
    throw;
  }
  return writer.said(request.to);
}

}  // namespace
}  // namespace easydel::elarge

extern "C" void easydel_quantize_model(const easydel::elarge::QuantizeRequest& request, std::string& said) {
  said = easydel::elarge::quantized(request);
}
