// Finds a model's weights in a folder (shards through their index) and its configuration.
#include "easydel/weights/folder.h"

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/fetched.h"
#include "easydel/base/files.h"
#include "easydel/base/simdjson.h"
#include "easydel/weights/gguf_checkpoint.h"
#include "easydel/weights/safetensors.h"
#include "easydel/weights/torch_file.h"

namespace easydel::weights {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::shared_ptr<const TensorFile>, std::less<>>;

bool is_gguf(const fs::path& path) { return path.extension() == ".gguf"; }

std::shared_ptr<const TensorFile> open_file(const fs::path& path) {
  files::refuse_unfetched(path);
  if (is_gguf(path)) return GgufCheckpoint::open(path);
  if (path.extension() == ".bin") return TorchFile::open(path);
  return SafetensorsFile::open(path);
}

// *.index.json is {"weight_map": {tensor: shard}}; each shard must hold exactly the tensors that the index lists.
Files open_sharded(const fs::path& index) {
  files::refuse_unfetched(index);
  std::string text = files::read(index);
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  simdjson::padded_string padded(text);
  if (auto error = parser.parse(padded).get(document))
    refuse(index.string(), str("is not valid JSON: ", simdjson::error_message(error)), "fetch or save the model again");
  simdjson::dom::object map;
  if (document["weight_map"].get_object().get(map))
    refuse(index.string(), "has no 'weight_map' of tensor names to files", "fetch or save the model again");
  Files tensors;
  std::map<std::string, std::shared_ptr<const TensorFile>> shards;
  for (auto [name, value] : map) {
    std::string_view word;
    if (value.get_string().get(word) || word.empty() || fs::path(word).filename() != fs::path(word))
      refuse(index.string(), str("tensor ", in_quotes(name), " has no plain file name"),
             "fetch or save the model again");
    std::string shard(word);
    auto& file = shards[shard];
    if (!file) {
      fs::path path = index.parent_path() / shard;
      if (!files::exists(path))
        refuse(path.string(), "is missing; " + index.filename().string() + " names it", "fetch the model again");
      file = open_file(path);
    }
    if (!file->has(name))
      refuse(file->path().string(),
             str("has no tensor ", in_quotes(name), ", which ", index.filename().string(), " says it has"),
             "the shards belong to different models; fetch the model again");
    if (!tensors.emplace(name, file).second)
      refuse(index.string(), str("tensor ", in_quotes(name), " is listed twice"), "fetch or save the model again");
  }
  for (auto& [shard, file] : shards)
    for (const std::string& name : file->names()) {
      auto it = tensors.find(name);
      if (it == tensors.end() || it->second != file)
        refuse(file->path().string(),
               str("has the tensor ", in_quotes(name), ", but ", index.filename().string(),
                   it == tensors.end() ? " does not name it" : " says that it is in another file"),
               "the shards belong to different models; fetch the model again");
    }
  return tensors;
}

bool is_adapter(const fs::path& file) { return file.filename().string().starts_with("adapter_model."); }

// A folder that PEFT saved holds what is added to a model, and names that model.
void refuse_adapter(const fs::path& folder) {
  const fs::path config = folder / "adapter_config.json";
  if (!files::is_file(config)) return;
  const Value document = parse_file(config);
  const auto word = [&](const char* key) {
    const Value* const value = document.is_map() ? document.find(key) : nullptr;
    return value && value->is_text() ? value->scalar : std::string();
  };
  const std::string base = word("base_model_name_or_path"), kind = word("peft_type");
  refuse(folder.string(),
         str("is an adapter", kind.empty() ? "" : " (" + kind + ")", base.empty() ? "" : " of '" + base + "'",
             ", not a model"),
         str("give ", base.empty() ? "its model" : "'" + base + "'", ", and this folder with --adapter"));
}

// The only file of a folder with this ending, or the index; empty: none. Several files without an index are refused. A
// single file takes precedence over an index, as in transformers.
fs::path safetensors_of(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (files::exists(folder / name)) return folder / name;
  std::vector<fs::path> found;
  for (const fs::path& path : files::list(folder)) {
    if (path.string().ends_with(".safetensors.index.json")) return path;
    if (path.extension() == ".safetensors" && !is_adapter(path)) found.push_back(path);
  }
  if (found.size() > 1)
    refuse(folder.string(), str("has ", found.size(), " safetensors files and no index"),
           "put model.safetensors.index.json next to them, or keep one");
  return found.empty() ? fs::path() : found[0];
}

// For models that are split into parts, the first part of each.
std::vector<fs::path> gguf_files(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::path& path : files::list(folder))
    if (is_gguf(path) && path.filename() != vocabulary_file) found.push_back(first_gguf_part(path));
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// The file with a model's weights, or their index; empty: none.
fs::path weights_file(const fs::path& model) {
  if (!files::is_folder(model)) return is_gguf(model) && files::exists(model) ? first_gguf_part(model) : fs::path();
  if (const fs::path found = safetensors_of(model); !found.empty()) return found;
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (files::exists(model / name)) return model / name;
  const auto found = gguf_files(model);
  if (found.size() > 1)
    refuse(model.string(), str("has ", found.size(), " GGUF files"), str("give one of them: ", found[0].string()));
  return found.empty() ? fs::path() : found[0];
}

// A file with weights in a format that is not read; empty: none.
std::string unread_weights(const fs::path& folder) {
  std::set<std::string> found;
  for (const fs::path& path : files::list(folder)) {
    const std::string name = path.filename().string();
    const auto is = [&](std::string_view begin, std::string_view end) {
      return name.starts_with(begin) && name.ends_with(end);
    };
    if (is("pytorch_model", ".bin") || is("tf_model", ".h5") || is("flax_model", ".msgpack") ||
        is("consolidated", ".pth"))
      found.insert(name);
  }
  return found.empty() ? std::string() : *found.begin();
}

}  // namespace

Folder Folder::open(const fs::path& model) {
  Folder out;
  out.folder_ = model;
  const fs::path path = weights_file(model);
  if (path.empty() && !files::is_folder(model)) refuse(model.string(), "is not a folder", "give the folder of a model");
  if (path.empty()) {
    refuse_adapter(model);
    const std::string unread = unread_weights(model);
    refuse(
        model.string(),
        unread.empty() ? "has no weights (model.safetensors)" : "has only weights that are not read (" + unread + ")",
        unread.empty() ? "give a folder with model.safetensors or its shards and index"
                       : "convert them to safetensors");
  }
  if (path.extension() == ".json") {
    out.of_ = open_sharded(path);
  } else {
    const auto file = open_file(path);
    for (const std::string& name : file->names()) out.of_.emplace(name, file);
  }
  return out;
}

bool Folder::has_weights(const fs::path& model) {
  if (!files::is_folder(model)) return !weights_file(model).empty();
  for (const fs::path& path : files::list(model)) {
    const std::string name = path.filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") || is_adapter(path)) return true;
  }
  return !gguf_files(model).empty() || !unread_weights(model).empty();
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> out;
  for (auto& [name, file] : of_) out.push_back(name);
  return out;
}

bool Folder::has(std::string_view name) const { return of_.find(name) != of_.end(); }

const TensorFile& Folder::file_of(std::string_view name) const {
  auto it = of_.find(name);
  if (it == of_.end())
    refuse(folder_.string(), "has no tensor " + in_quotes(name), str("its weights are ", of_.size(), " other tensors"));
  return *it->second;
}

TensorView Folder::at(std::string_view name) const { return file_of(name).at(name); }

StoredRows Folder::stored(std::string_view name) const { return file_of(name).stored(name); }

TensorView Folder::info(std::string_view name) const { return file_of(name).info(name); }

std::string Folder::where(std::string_view name) const {
  auto it = of_.find(name);
  return (it == of_.end() ? folder_ : it->second->path()).string() + ": " + std::string(name);
}

fs::path gguf_of(const fs::path& model) {
  const fs::path file = weights_file(model);
  return is_gguf(file) ? file : fs::path();
}

bool has_config(const fs::path& model) { return files::exists(model / "config.json") || !gguf_of(model).empty(); }

DType dtype_of_weights(const Value& config) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (const Value* const word = config.find(key); word && word->is_text())
      if (const auto type = dtype_of_config(word->scalar)) return *type;
  return DType::f32;
}

ConfigFile read_config(const fs::path& model) {
  const fs::path path = model / "config.json";
  if (!files::exists(path))
    if (const fs::path gguf = gguf_of(model); !gguf.empty()) {
      files::refuse_unfetched(gguf);
      return {GgufCheckpoint::open(gguf)->config(), FilePlace{gguf.string()}};
    }
  if (!files::exists(model)) refuse(model.string(), "there is no such model folder");
  if (!files::is_file(path)) {
    refuse_adapter(model);
    refuse(model.string(), "no config.json in this folder", "a model folder holds config.json and its weights");
  }
  files::refuse_unfetched(path);
  ConfigFile out{parse_file(path), FilePlace{path.string()}};
  if (!out.document.is_map()) refuse(out.where, "is not a mapping");
  return out;
}

void keep_generation_config(const fs::path& model, const fs::path& folder) {
  const fs::path own = model / "generation_config.json", kept = folder / "generation_config.json";
  if (model.empty() || !files::is_file(own) || files::is_same(own, kept)) return;
  files::write(kept, files::read(own));
}

}  // namespace easydel::weights
