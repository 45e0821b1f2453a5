#include "easydel/data/token_shard.h"

#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/weights/safetensors.h"

namespace easydel::data {
namespace {

using weights::DType;

constexpr std::string_view values_prefix = "column.", present_prefix = "present.";
constexpr std::array per_names{"example", "sequence", "token"};  // in the order of Column::Per

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::u16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::u32;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
}

template <class T>
weights::OutTensor array(std::string name, std::span<const T> values) {
  return {std::move(name), dtype_of<T>(), {int64_t(values.size())}, [values](const auto& sink) {
            sink(values.data(), values.size_bytes());
          }};
}

// The array of this name; empty: there is none.
template <class T>
std::span<const T> array_in(const weights::SafetensorsFile& file, const std::string& name) {
  if (!file.has(name)) return {};
  const weights::TensorView view = file.at(name);
  if (view.dtype != dtype_of<T>() || view.shape.size() != 1 ||
      reinterpret_cast<uintptr_t>(view.bytes.data()) % alignof(T) != 0)
    refuse(file.path().string(), "'" + name + "' is not an array of a token store");
  return {reinterpret_cast<const T*>(view.bytes.data()), size_t(view.shape[0])};
}

template <class T>
bool rises_to(std::span<const T> offsets, size_t end) {
  return !offsets.empty() && offsets.front() == 0 && offsets.back() == end && std::ranges::is_sorted(offsets);
}

// Whether every place that a reader computes is inside of the arrays.
bool fits_together(const BlockView& block, std::span<const int64_t> rows) {
  const size_t tokens = block.narrow_tokens.size() + block.wide_tokens.size(), examples = block.rules.size();
  if (!block.narrow_tokens.empty() && !block.wide_tokens.empty()) return false;
  if (block.token_offsets.size() != examples + 1 || block.sequence_offsets.size() != examples + 1) return false;
  if (!rises_to(block.token_offsets, tokens) || !rises_to(block.sequence_offsets, block.lengths.size())) return false;
  if (block.learned.size() != (tokens + 7) / 8 || rows.size() != examples) return false;
  if (block.exception_places.size() != block.exception_labels.size()) return false;
  if (!std::ranges::is_sorted(block.exception_places)) return false;
  if (!block.exception_places.empty() && block.exception_places.back() >= tokens) return false;
  if (std::ranges::any_of(block.rules, [](uint8_t rule) { return rule > uint8_t(LabelRule::same); })) return false;
  for (size_t i = 0; i < examples; ++i) {
    int64_t sum = 0;
    for (size_t s = block.sequence_offsets[i]; s < block.sequence_offsets[i + 1]; ++s) {
      if (block.lengths[s] < 0) return false;
      sum += block.lengths[s];
    }
    if (sum != int64_t(block.token_offsets[i + 1]) - block.token_offsets[i]) return false;
  }
  return std::ranges::all_of(block.columns, [&](const BlockColumn& column) {
    const size_t described = column.per == Column::Per::token      ? tokens
                             : column.per == Column::Per::sequence ? block.lengths.size()
                                                                   : examples;
    const size_t values = std::visit([](const auto& list) { return list.size(); }, column.values);
    return values == described && column.present.size() == examples;
  });
}

}  // namespace

void write_token_shard(const std::filesystem::path& file, const BlockView& block, const std::vector<int64_t>& rows,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<weights::OutTensor> out;
  if (block.wide_tokens.empty())
    out.push_back(array("tokens", block.narrow_tokens));
  else
    out.push_back(array("tokens", block.wide_tokens));
  out.push_back(array("learned", block.learned));
  out.push_back(array("token_offsets", block.token_offsets));
  out.push_back(array("sequence_offsets", block.sequence_offsets));
  out.push_back(array("lengths", block.lengths));
  out.push_back(array("rules", block.rules));
  out.push_back(array("exception_places", block.exception_places));
  out.push_back(array("exception_labels", block.exception_labels));
  out.push_back(array("rows", std::span(rows)));
  for (const BlockColumn& column : block.columns) {
    std::string name{values_prefix};
    name.append(per_names[size_t(column.per)]).append(".").append(column.name);
    std::visit([&](const auto& values) { out.push_back(array(name, values)); }, column.values);
    out.push_back(array(std::string(present_prefix) + column.name, column.present));
  }
  weights::write_safetensors(file, out, metadata);
}

TokenShard open_token_shard(const std::filesystem::path& file) {
  const std::shared_ptr<const weights::SafetensorsFile> shard = weights::SafetensorsFile::open(file);
  TokenShard out;
  out.owner = shard;
  out.metadata = shard->header().metadata;
  BlockView& block = out.block;
  if (shard->has("tokens") && shard->at("tokens").dtype == DType::u16)
    block.narrow_tokens = array_in<uint16_t>(*shard, "tokens");
  else
    block.wide_tokens = array_in<uint32_t>(*shard, "tokens");
  block.learned = array_in<uint8_t>(*shard, "learned");
  block.token_offsets = array_in<uint32_t>(*shard, "token_offsets");
  block.sequence_offsets = array_in<uint32_t>(*shard, "sequence_offsets");
  block.lengths = array_in<int32_t>(*shard, "lengths");
  block.rules = array_in<uint8_t>(*shard, "rules");
  block.exception_places = array_in<uint32_t>(*shard, "exception_places");
  block.exception_labels = array_in<int32_t>(*shard, "exception_labels");
  out.rows = array_in<int64_t>(*shard, "rows");
  for (const std::string& name : shard->names()) {
    out.bytes.push_back(shard->at(name).bytes);
    for (size_t per = 0; per < per_names.size(); ++per) {
      const std::string prefix = std::string(values_prefix) + per_names[per] + ".";
      if (!name.starts_with(prefix)) continue;
      BlockColumn& column = block.columns.emplace_back();
      column.name = name.substr(prefix.size()), column.per = Column::Per(per);
      if (shard->at(name).dtype == DType::f32)
        column.values = array_in<float>(*shard, name);
      else
        column.values = array_in<int64_t>(*shard, name);
      column.present = array_in<uint8_t>(*shard, std::string(present_prefix) + column.name);
    }
  }
  if (!fits_together(block, out.rows))
    refuse(file.string(), "its arrays do not fit together", "remove the token store");
  return out;
}

}  // namespace easydel::data
