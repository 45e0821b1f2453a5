// Writes safetensors: one file, or shards with their index. Order and padding follow upstream's serializer.
#include <algorithm>
#include <future>
#include <set>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/regular_expression.h"
#include "easydel/weights/safetensors.h"

namespace easydel::weights {
namespace {

namespace fs = std::filesystem;

std::string json_string(std::string_view text) { return to_json(Value::text(std::string(text))); }

uint64_t bytes_of(const OutTensor& tensor) {
  uint64_t total = size_of(tensor.dtype);
  for (int64_t size : tensor.shape) {
    check(size >= 0, "tensor '", tensor.name, "' has a size below zero");
    check(!__builtin_mul_overflow(total, uint64_t(size), &total), "tensor '", tensor.name, "' is too large");
  }
  return total;
}

// Upstream sorts by its own order of dtypes, which is the order of their alignments.
size_t rank_of(DType dtype) {
  constexpr DType order[] = {DType::boolean, DType::u8,  DType::i8,  DType::f8_e5m2, DType::f8_e4m3, DType::f8_e8m0,
                             DType::i16,     DType::u16, DType::f16, DType::bf16,    DType::i32,     DType::u32,
                             DType::f32,     DType::f64, DType::i64, DType::u64};
  return size_t(std::find(std::begin(order), std::end(order), dtype) - std::begin(order));
}

std::vector<const OutTensor*> in_file_order(std::span<const OutTensor> tensors) {
  std::vector<const OutTensor*> order;
  std::set<std::string_view> names;
  for (auto& tensor : tensors) {
    check(names.insert(tensor.name).second, "tensor '", tensor.name, "' is written twice");
    check(tensor.name != "__metadata__", "a tensor cannot be called __metadata__");
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    size_t x = rank_of(a->dtype), y = rank_of(b->dtype);
    return x != y ? x > y : a->name < b->name;
  });
  return order;
}

std::string header_of(std::span<const OutTensor* const> order, const std::map<std::string, std::string>& metadata) {
  std::string out = "{";
  if (!metadata.empty()) {
    out += "\"__metadata__\":{";
    for (auto& [key, value] : metadata)
      out += (out.back() == '{' ? "" : ",") + json_string(key) + ":" + json_string(value);
    out += "}";
  }
  uint64_t at = 0;
  for (auto* tensor : order) {
    std::string shape;
    for (int64_t size : tensor->shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
    uint64_t end = at + bytes_of(*tensor);
    out += (out.size() == 1 ? "" : ",") + json_string(tensor->name) +
           str(":{\"dtype\":\"", name_of(tensor->dtype), "\",\"shape\":[", shape, "],\"data_offsets\":[", at, ",", end,
               "]}");
    at = end;
  }
  out += "}";
  out.resize((out.size() + 7) / 8 * 8, ' ');
  return out;
}

constexpr uint64_t max_held_bytes = uint64_t(1) << 30;  // of the tensor that is written and the next one

void write_file(const fs::path& path, std::span<const OutTensor* const> order,
                const std::map<std::string, std::string>& metadata) {
  files::Writer file(path);
  std::string header = header_of(order, metadata);
  char length[8];
  for (int i = 0; i < 8; ++i) length[i] = char(uint64_t(header.size()) >> (8 * i));
  file.write(length, 8);
  file.write(header);
  std::future<HeldBytes> next;  // of the tensor after the one that is written
  for (size_t i = 0; i < order.size(); ++i) {
    const OutTensor& tensor = *order[i];
    uint64_t expected = bytes_of(tensor), given = 0;
    const auto put = [&](const void* data, size_t bytes) {
      given += bytes;
      check(given <= expected, "tensor '", tensor.name, "' gives more than its ", expected, " bytes");
      file.write(data, bytes);
    };
    if (tensor.make) {
      const HeldBytes own = next.valid() ? next.get() : tensor.make();
      // Two large tensors, say an output layer and an embedding, are not held at once.
      if (i + 1 < order.size() && order[i + 1]->make && expected + bytes_of(*order[i + 1]) <= max_held_bytes)
        next = std::async(std::launch::async, order[i + 1]->make);
      put(own.bytes.data(), own.bytes.size());
    } else {
      tensor.write(put);
    }
    check(given == expected, "tensor '", tensor.name, "' gives ", given, " of its ", expected, " bytes");
  }
  file.commit();
}

// Removes old shards: "model-00001-of-00003.safetensors".
void remove_shards(const fs::path& folder, const std::set<std::string>& keep) {
  static const RegularExpression shard("model-[0-9]{5,}-of-[0-9]{5,}\\.safetensors");
  std::vector<fs::path> old;
  for (const fs::path& path : files::list(folder))
    if (const std::string name = path.filename().string(); shard.matches(name) && !keep.contains(name))
      old.push_back(path);
  for (const fs::path& path : old) files::remove_all(path);
}

}  // namespace

void write_safetensors(const fs::path& path, std::span<const OutTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_file(path, in_file_order(tensors), metadata);
}

void write_folder(const fs::path& folder, std::span<const OutTensor> tensors, uint64_t max_shard_bytes) {
  check(max_shard_bytes > 0, "shards of at most 0 bytes hold nothing");
  // Shards are filled in the given order; a tensor larger than a shard gets one of its own.
  std::vector<std::vector<OutTensor>> shards(1);
  uint64_t filled = 0, total = 0;
  for (auto& tensor : tensors) {
    uint64_t bytes = bytes_of(tensor);
    if (!shards.back().empty() && filled + bytes > max_shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(tensor);
    filled += bytes;
    total += bytes;
  }
  files::make_directories(folder);
  if (shards.size() == 1) {
    write_safetensors(folder / "model.safetensors", shards[0]);
    files::remove_all(folder / "model.safetensors.index.json");
    return remove_shards(folder, {});
  }
  Value map = Value::map();
  std::set<std::string> written;
  for (size_t i = 0; i < shards.size(); ++i) {
    auto digits = [](size_t number) {
      return std::string(5 - std::min<size_t>(5, std::to_string(number).size()), '0') + std::to_string(number);
    };
    std::string name = "model-" + digits(i + 1) + "-of-" + digits(shards.size()) + ".safetensors";
    write_safetensors(folder / name, shards[i]);
    written.insert(name);
    for (auto& tensor : shards[i]) map.entries.emplace_back(tensor.name, Value::text(name));
  }
  std::sort(map.entries.begin(), map.entries.end(), [](auto& a, auto& b) { return a.first < b.first; });
  Value index = Value::map(), metadata = Value::map();
  metadata.set("total_size", Value::integer(int64_t(total)));
  index.set("metadata", std::move(metadata));
  index.set("weight_map", std::move(map));
  files::write(folder / "model.safetensors.index.json", to_json(index, 2) + "\n");
  files::remove_all(folder / "model.safetensors");  // it would take precedence over the index
  remove_shards(folder, written);
}

}  // namespace easydel::weights
