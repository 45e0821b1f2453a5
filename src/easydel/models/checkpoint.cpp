#include "easydel/models/checkpoint.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/models/parts_config.h"
#include "easydel/quant/file_format.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/mapped.h"

namespace easydel::models {
namespace {

// This rank's slice of an entry's values, or of one index of its dimension 0.
Tensor slice_of(const Tensor& values, const nn::Entry& entry) {
  Tensor part = values;
  const auto dropped = int64_t(entry.shape.size()) - values.dim();
  for (int64_t d = 0; d < values.dim(); ++d) {
    const auto at = size_t(d + dropped);
    if (entry.slice.size[at] != entry.shape[at]) part = part.narrow(d, entry.slice.begin[at], entry.slice.size[at]);
  }
  return part;
}

// Blocks and scales as one weight [experts, rows, k].
std::shared_ptr<const quant::CodedWeight> packed_experts(const quant::CodedFolder& folder,
                                                         const nn::TensorSource& source) {
  const auto weight =
      quant::read_mxfp4(folder.folder().where(source.found[0]), folder.at(source.found[0]), folder.at(source.found[1]));
  weight->check_scales();
  return weight;
}

// Releases the memory of the file's bytes; they are read again on next use.
void forget(const quant::CodedWeight& weight) {
  for (const auto& [name, view] : weight.parts) files::Mapped::forget(view.bytes);
}

}  // namespace

Tensor mean_of_rows(const Tensor& values, int64_t rows) {
  Tensor sum = at::zeros(values.sizes().slice(1), at::TensorOptions().dtype(at::kDouble).device(values.device()));
  constexpr int64_t chunk = 4096;  // no copy of the whole
  for (int64_t row = 0; row < rows; row += chunk)
    sum += values.narrow(0, row, std::min(chunk, rows - row)).to(at::kDouble).sum(0);
  return (sum / double(rows)).to(at::kFloat);
}

Checkpoint::Checkpoint(quant::CodedFolder folder, const Family& family, bool tied, std::string stack, bool other_head,
                       const FamilyPart* part)
    : folder_(std::move(folder)), family_(family), tied_(tied), stack_(std::move(stack)), other_head_(other_head) {
  for (const std::string& file : folder_.names()) {
    const std::string name = part ? part_tensor_name(file, *part, stack_) : file;
    if (name.empty()) {
      left_alone_.push_back(file);
      continue;
    }
    names_.emplace(name, file);
    unused_.emplace(file, name);
  }
}

const std::string* Checkpoint::in_file(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

Checkpoint::Found Checkpoint::find(const std::string& name) const {
  std::vector<std::string> candidates = {name};
  for (const auto& [ours, other] : family_.spellings)
    for (size_t i = 0, known = candidates.size(); i < known; ++i)
      if (const size_t at = candidates[i].find(ours); at != std::string::npos)
        candidates.push_back(std::string(candidates[i]).replace(at, ours.size(), other));
  const std::string own = stack_.empty() ? "" : stack_ + ".", usual = str(family_.base_prefix, ".");
  for (const std::string& candidate : candidates) {
    if (const std::string* const file = in_file(candidate)) return {candidate, *file};
    if (!candidate.starts_with(own)) continue;
    // A checkpoint of the stack alone has no prefix, and some heads have their own.
    const std::string rest = candidate.substr(own.size());
    for (const std::string& name : {rest, usual + rest})
      if (const std::string* const file = in_file(name)) return {candidate, *file};
  }
  return {};
}

bool Checkpoint::starts(const nn::Entry& entry, const std::vector<nn::TensorSource>& sources) const {
  return other_head_ && entry.head && !choose(sources);
}

bool Checkpoint::in_stack(const std::string& name) const {
  return name.starts_with(str(family_.base_prefix, ".")) || (!stack_.empty() && name.starts_with(stack_ + "."));
}

// With the tensors' names in the file; nullopt: no source is complete.
std::optional<nn::TensorSource> Checkpoint::choose(const std::vector<nn::TensorSource>& sources) const {
  for (nn::TensorSource source : sources) {
    bool all = true;
    for (std::string& name : source.tensors) {
      Found found = find(name);
      if (!(all = !found.file.empty())) break;
      name = std::move(found.spelled);
      source.found.push_back(std::move(found.file));
    }
    if (all) return source;
  }
  return std::nullopt;
}

// If no source is complete: the one with the most tensors in the file, which is probably meant.
const nn::TensorSource& Checkpoint::likeliest(const std::vector<nn::TensorSource>& sources) const {
  return *std::ranges::max_element(sources, {}, [&](const nn::TensorSource& source) {
    return std::ranges::count_if(source.tensors, [&](const std::string& name) { return !find(name).file.empty(); });
  });
}

// For the error about a parameter without a source: the first missing tensor, and the number of others.
std::string Checkpoint::missing_name(const nn::TensorSource& source) const {
  std::vector<std::string> gone;
  for (const std::string& name : source.tensors)
    if (find(name).file.empty()) gone.push_back(name);
  return gone.size() > 1 ? str(gone.front(), " (and ", gone.size() - 1, " more of its kind)") : gone.front();
}

bool Checkpoint::fits(const nn::Entry& entry) {
  if (entry.source.packing != nn::Packing::none) return true;  // its file contains codes; fill() looks at the values
  const auto shape = entry.source.file_shape(entry.shape);
  bool all = true;
  for (const std::string& name : entry.source.found) {
    const weights::TensorView found = folder_.info(name);
    const bool numbers = at::isFloatingType(tensor::scalar_type(found.dtype));
    const bool sized = found.shape == shape || grows(entry, found.shape);
    if (!numbers) mistyped_.push_back(str(name, ": ", weights::name_of(found.dtype)));
    if (!sized) misshapen_.push_back({name, entry.path, entry.source, found.shape, shape});
    all = all && numbers && sized;
  }
  return all;
}

void Checkpoint::grow(int64_t from, int64_t to) {
  old_rows_ = from;
  rows_ = to;
}

bool Checkpoint::grows(const nn::Entry& entry, std::vector<int64_t> found) const {
  const bool of_tokens =
      entry.split == nn::Split::vocabulary || (entry.head && entry.role == nn::Role::bias && entry.shape[0] == rows_);
  if (rows_ == 0 || !of_tokens || entry.source.stacked || entry.source.transposed) return false;
  if (found.empty() || found[0] != old_rows_) return false;
  found[0] = rows_;
  return found == entry.shape;
}

bool Checkpoint::match(nn::Entry& entry, const std::vector<nn::TensorSource>& sources) {
  std::optional<nn::TensorSource> source = choose(sources);
  const std::vector<std::string>& usual = (source ? sources.front() : likeliest(sources)).tensors;
  asked_.insert(asked_.end(), usual.begin(), usual.end());
  // A tied checkpoint may contain the shared values only under the head's name.
  const bool shared = tied_ && entry.role == nn::Role::embedding && entry.split == nn::Split::vocabulary;
  if (!source && shared) {
    nn::TensorSource head;
    head.tensors = {"lm_head.weight"};
    source = choose({head});
    if (source) source->tensors = sources.front().tensors;
  }
  if (const std::string* const head = in_file("lm_head.weight"); head && shared) unused_.erase(*head);
  if (!source) {
    const nn::TensorSource& meant = likeliest(sources);
    for (const std::string& name : meant.tensors) unused_.erase(find(name).file);
    missing_.push_back(missing_name(meant));
    return false;
  }
  entry.source = std::move(*source);
  for (const std::string& name : entry.source.found) unused_.erase(name);
  return fits(entry);
}

void Checkpoint::fill(nn::Entry& entry, const std::vector<nn::TensorSource>& sources, const at::TensorOptions& given,
                      bool frozen, bool own_type, KeptCodes* keep) {
  at::TensorOptions options = given;
  const auto make_room = [&] { entry.shard = at::empty(entry.slice.size, options); };
  if (!match(entry, sources)) return;
  nn::TensorSource& source = entry.source;
  // A packed tensor is a weight of the usual source from now on.
  const auto unpacked = [&] {
    if (source.packing == nn::Packing::none) return;
    source = sources.front();
    source.found = source.tensors;
  };
  if (keep && KeptCodes::can_keep(entry) && in_codes(source) && keep->converts(entry))
    options = options.dtype(at::kFloat);
  else if (keep && KeptCodes::can_keep(entry))
    if (auto codes = codes_of(entry, *keep); !codes.empty()) {
      keep->keep(entry, std::move(codes));
      return unpacked();
    }
  if (own_type && source.packing == nn::Packing::none)
    if (const auto type = take(source.found[0]).scalar_type(); type == at::kFloat || type == at::kBFloat16)
      options = options.dtype(type);
  // Releases the file's memory of values that were copied.
  const auto put = [](const Tensor& to, const Tensor& values, const Tensor& whole) {
    to.copy_(values);
    tensor::forget(whole);
  };
  if (source.packing == nn::Packing::mxfp4) {
    const auto codes = packed_experts(folder_, source);
    if (const auto shape = source.file_shape(entry.shape); codes->shape != shape) {
      misshapen_.push_back({source.found[0], entry.path, source, codes->shape, shape});
      return;
    }
    make_room();
    entry.shard.copy_(slice_of(source.part_of(quant::values_of(codes)), entry));
    forget(*codes);
    return unpacked();
  }
  if (!source.stacked) {
    Tensor whole = take(source.found[0]);
    if (grows(entry, whole.sizes().vec())) {
      std::vector<int64_t> more(whole.sizes().begin(), whole.sizes().end());
      more[0] = rows_ - old_rows_;
      whole = at::cat({whole, mean_of_rows(whole, old_rows_).to(whole.scalar_type()).expand(more)});
    }
    const Tensor values = slice_of(source.part_of(whole), entry);
    source.found_type = whole.scalar_type();
    const bool as_it_is = frozen && values.is_contiguous() && values.numel() == whole.numel() &&
                          values.scalar_type() == options.dtype().toScalarType() && options.device().is_cpu();
    if (as_it_is) return void(entry.shard = values);
    make_room();
    return put(entry.shard, values, whole);
  }
  make_room();
  const int64_t first = entry.slice.begin[0], count = entry.slice.size[0];
  if (int64_t(source.found.size()) < entry.shape[0]) entry.shard.zero_();
  for (size_t i = 0; i < source.found.size(); ++i) {
    const Tensor whole = take(source.found[i]);
    source.found_type = whole.scalar_type();
    const Tensor values = slice_of(source.part_of(whole), entry);
    if (const int64_t at = int64_t(i) - first; at >= 0 && at < count) put(entry.shard.select(0, at), values, whole);
  }
}

Tensor Checkpoint::take(const std::string& file) const {
  const auto codes = folder_.codes(file);
  if (!codes) return tensor::from_view(folder_.at(file));
  codes->check_scales();
  const Tensor values = quant::values_of(codes);
  forget(*codes);
  return values;
}

int64_t Checkpoint::coded_bytes(const nn::Entry& entry, const KeptCodes& keep) const {
  const nn::TensorSource& source = entry.source;
  if (source.found.empty()) return 0;
  if (source.packing == nn::Packing::mxfp4) {  // blocks of two codes a byte, and scales
    const weights::TensorView blocks = folder_.at(source.found[0]), scales = folder_.at(source.found[1]);
    return int64_t(double(entry.elements()) * (1.0 + double(scales.elements()) / double(blocks.elements())) / 2);
  }
  const auto codes = folder_.codes(source.found[0]);
  if (!codes || !keep.keeps(entry, *codes)) return 0;
  return int64_t(double(entry.elements()) * double(codes->bytes()) / double(codes->rows() * codes->k()));
}

bool Checkpoint::in_codes(const nn::TensorSource& source) const {
  return source.packing == nn::Packing::mxfp4 ||
         std::ranges::all_of(source.found, [&](const std::string& name) { return folder_.codes(name) != nullptr; });
}

std::vector<ops::Matrix> Checkpoint::codes_of(const nn::Entry& entry, const KeptCodes& keep) const {
  const nn::TensorSource& source = entry.source;
  const bool packed = source.packing == nn::Packing::mxfp4;
  std::vector<std::shared_ptr<const quant::CodedWeight>> files;
  for (const std::string& name : source.found) {
    if (packed && !files.empty()) break;  // the scales belong to the blocks
    files.push_back(packed ? packed_experts(folder_, source) : folder_.codes(name));
    if (!files.back() || !keep.keeps(entry, *files.back())) return {};
  }
  const size_t matrices = entry.shape.size() == 3 ? size_t(entry.shape[0]) : 1;
  const int64_t out = entry.shape[entry.shape.size() - 2];
  // A part must be made of rows.
  const size_t dimensions = files.front()->shape.size();
  const bool rows_alone = source.end == 0 || size_t(source.dimension) + 2 == dimensions;
  const bool counted = source.stacked ? files.size() == matrices && dimensions == 2
                                      : dimensions == entry.shape.size() && files.front()->shape[0] == entry.shape[0];
  const bool whole = source.end > 0 || dimensions == 3 || source.stacked || files.front()->shape[0] == out;
  if (source.transposed || !source.viewed.empty() || !rows_alone || !whole) return {};
  if (!counted && !(dimensions == 2 && entry.shape.size() == 2)) return {};
  std::vector<ops::Matrix> kept;
  for (size_t i = 0; i < matrices; ++i) {
    const auto& file = files[source.stacked ? i : 0];
    const int64_t rows = file->shape[dimensions - 2], before = source.stacked ? 0 : int64_t(i) * rows;
    if (file->k() != entry.shape.back()) return {};
    kept.push_back(quant::matrix_of(file, out, before + source.begin, source.end > 0 ? source.step : 1, entry.compute));
  }
  for (const auto& file : files) {
    file->check_scales();
    forget(*file);  // packed codes are a copy; a product that reads codes in the file itself loads them again
  }
  return kept;
}

namespace {

// The index after "layers." in a name; -1: none.
int64_t layer_of(const std::string& name) {
  const size_t at = name.find("layers.");
  if (at == std::string::npos || at + 7 >= name.size() || !std::isdigit(static_cast<unsigned char>(name[at + 7])))
    return -1;
  return std::strtoll(name.c_str() + at + 7, nullptr, 10);
}

}  // namespace

bool Checkpoint::unties(const nn::ParameterTable& untied) const {
  const auto name_of = [&](nn::Role role) -> std::string {
    for (const nn::Entry& entry : untied.entries())
      if (entry.role == role && entry.split == nn::Split::vocabulary && !entry.source.tensors.empty())
        if (const std::string file = find(entry.source.tensors.front()).file; !file.empty()) return file;
    return {};
  };
  const std::string embedding_name = name_of(nn::Role::embedding), head_name = name_of(nn::Role::weight);
  if (embedding_name.empty() || head_name.empty()) return false;
  if (folder_.codes(embedding_name) || folder_.codes(head_name)) return true;
  const weights::TensorView owned_embedding = folder_.at(embedding_name), owned_head = folder_.at(head_name);
  const auto *const embedding = &owned_embedding, *const head = &owned_head;
  if (embedding->dtype != head->dtype || embedding->shape != head->shape) return true;
  return embedding->bytes.data() != head->bytes.data() && !std::ranges::equal(embedding->bytes, head->bytes);
}

// Tensors that no parameter uses and that must not be ignored.
std::vector<std::string> Checkpoint::unexpected(int64_t layers) const {
  std::vector<std::string> out;
  // A file with the head of another task has a prefix before the stack's names.
  const bool has_stack =
      other_head_ && std::ranges::any_of(names_, [&](const auto& known) { return in_stack(known.first); });
  for (const auto& [file, name] : unused_) {
    bool ignored = (family_.extra_layers && layer_of(name) >= layers) || (has_stack && !in_stack(name));
    for (const std::string_view part : family_.ignored_parts) ignored = ignored || name.find(part) != std::string::npos;
    for (const std::string_view ending : family_.ignored) ignored = ignored || name.ends_with(ending);
    if (!ignored) out.push_back(file);
  }
  return out;
}

void Checkpoint::refuse_unfit(const std::string& where, int64_t layers, const Value& config,
                              const std::string& config_file) const {
  constexpr size_t max_shown = 20;
  std::string problems;
  const auto list = [&](const char* title, size_t count, const auto& line) {
    if (count == 0) return;
    problems += str(problems.empty() ? "" : "\n    ", title, " (", count, "):");
    for (size_t i = 0; i < std::min(count, max_shown); ++i) problems += "\n      " + line(i);
    if (count > max_shown) problems += str("\n      ... and ", count - max_shown, " more");
  };
  const auto nearest = [](const char* says, const std::string& name, const std::vector<std::string>& known) {
    const std::string found = nearest_tensor(name, known);
    return found.empty() ? std::string() : str("; ", says, " ", found);
  };
  const std::vector<std::string> more = unexpected(layers);
  list("missing", missing_.size(), [&](size_t i) { return missing_[i] + nearest("the file has", missing_[i], more); });
  const std::vector<Misshapen> shown(misshapen_.begin(), misshapen_.begin() + std::min(misshapen_.size(), max_shown));
  const auto keys = deciding_keys(config, config_file, shown);
  list("wrong shape", misshapen_.size(), [&](size_t i) {
    return str(shown[i].name, ": the file has ", shape_text(shown[i].found), ", config.json requires ",
               shape_text(shown[i].wanted), keys[i].empty() ? "" : " by ", join(keys[i], ", "));
  });
  list("codes of a quantized model, or no weights; a weight is F64, F32, F16, BF16 or F8", mistyped_.size(),
       [&](size_t i) { return mistyped_[i]; });
  list("not in the model", more.size(), [&](size_t i) { return more[i] + nearest("nearest is", more[i], asked_); });
  if (!problems.empty()) refuse(where, "the weights do not fit config.json", problems);
}

int64_t Checkpoint::elements() const {
  int64_t out = 0;
  for (const auto& [name, file] : names_) out += folder_.info(file).elements();
  return out;
}

at::ScalarType Checkpoint::type() const {
  for (const auto& [name, file] : names_) {
    const at::ScalarType type = tensor::scalar_type(folder_.info(file).dtype);
    if (at::isFloatingType(type)) return type;
  }
  return at::kFloat;
}

}  // namespace easydel::models
