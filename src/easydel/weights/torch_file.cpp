#include "easydel/weights/torch_file.h"

#include <cstring>

#include "easydel/base/error.h"
#include "easydel/weights/zip.h"

namespace easydel::weights {
namespace {

constexpr const char* save_file_again = "the file is damaged or was not written by torch.save; fetch or save it again";
constexpr std::string_view pickle_name = "data.pkl";

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool lies_in_a_row(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

}  // namespace

std::shared_ptr<const TorchFile> TorchFile::open(const std::filesystem::path& path) {
  auto mapped = files::Mapped::open(path);
  auto file = std::make_shared<TorchFile>(mapped->bytes(), path);
  file->mapped_ = std::move(mapped);
  return file;
}

TorchFile::TorchFile(std::span<const std::byte> bytes, std::filesystem::path path)
    : path_(std::move(path)), bytes_(bytes) {
  if (looks_like_zip(bytes))
    read_zip();
  else
    read_old();
  for (const auto& [name, tensor] : tensors_) check_tensor(name, tensor);
}

void TorchFile::read_zip() {
  const std::string file = path_.string();
  const auto members = zip_members(bytes_, file);
  std::string folder;
  std::span<const std::byte> pickle;
  for (const auto& [name, member] : members)
    if (name == pickle_name || name.ends_with("/" + std::string(pickle_name))) {
      folder = name.substr(0, name.size() - pickle_name.size());
      pickle = member;
      break;
    }
  if (pickle.empty()) refuse(file, "is a zip archive without a data.pkl", save_file_again);
  if (const auto order = members.find(folder + "byteorder"); order != members.end() && text(order->second) != "little")
    refuse(file, "was written on a machine of the other byte order", "save it as safetensors");
  for (auto& [name, tensor] : Unpickler(text(pickle), file).state_dict()) {
    const auto member = members.find(folder + "data/" + tensor.storage.key);
    if (member == members.end()) refuse(file, str("has no bytes for the tensor ", in_quotes(name)), save_file_again);
    storages_.emplace(tensor.storage.key, member->second);
    if (!tensors_.emplace(name, std::move(tensor)).second)
      refuse(file, str("has the tensor ", in_quotes(name), " twice"), save_file_again);
  }
}

// Legacy format: a magic number, a protocol, the machine's sizes, the object, the keys of its storages, then for each
// storage its number of elements and its bytes.
void TorchFile::read_old() {
  const std::string file = path_.string();
  constexpr std::string_view magic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  const std::string_view all = text(bytes_);
  if (all.substr(0, 64).find(magic) == std::string_view::npos)
    refuse(file, "is not a file of torch.save", save_file_again);
  Unpickler pickles(all, file);
  for (int i = 0; i < 3; ++i) pickles.skip();
  auto tensors = pickles.state_dict();
  std::map<std::string, PickledStorage> known;
  for (const PickledStorage& storage : pickles.storages()) known.emplace(storage.key, storage);
  const auto keys = pickles.texts();
  size_t at = pickles.at();
  for (const std::string& key : keys) {
    const auto storage = known.find(key);
    if (storage == known.end())
      refuse(file, str("has the storage ", in_quotes(key), ", which no tensor uses"), save_file_again);
    uint64_t count = 0;
    if (all.size() - at < sizeof count) refuse(file, "is truncated in its storages", save_file_again);
    std::memcpy(&count, all.data() + at, sizeof count);
    at += sizeof count;
    const size_t unit = storage->second.dtype ? size_of(*storage->second.dtype) : 1;
    if (count > (all.size() - at) / unit) refuse(file, "is truncated in its storages", save_file_again);
    storages_[key] = bytes_.subspan(at, count * unit);
    at += count * unit;
  }
  for (auto& [name, tensor] : tensors)
    if (!tensors_.emplace(name, std::move(tensor)).second)
      refuse(file, str("has the tensor ", in_quotes(name), " twice"), save_file_again);
}

void TorchFile::check_tensor(const std::string& name, const PickledTensor& tensor) const {
  const auto outside = [&] {
    refuse(path_.string(), str("tensor ", in_quotes(name), " reaches beyond its storage"), save_file_again);
  };
  const auto storage = storages_.find(tensor.storage.key);
  if (storage == storages_.end()) return outside();
  const uint64_t unit = size_of(tensor.dtype);
  // The number of elements is limited as well: strides of 0 could make a huge tensor of few bytes.
  const auto bytes = bytes_of_shape(tensor.shape, unit);
  if (!bytes || *bytes > storage->second.size()) return outside();
  if (*bytes == 0) return;
  uint64_t last = uint64_t(tensor.offset);
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    uint64_t reach = 0;
    if (__builtin_mul_overflow(uint64_t(tensor.shape[d] - 1), uint64_t(tensor.strides[d]), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return outside();
  }
  if (last >= storage->second.size() / unit) outside();
}

const PickledTensor& TorchFile::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end())
    refuse(path_.string(), "has no tensor " + in_quotes(name), str("it has ", tensors_.size(), " other tensors"));
  return it->second;
}

std::vector<std::string> TorchFile::names() const {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : tensors_) out.push_back(name);
  return out;
}

TensorView TorchFile::info(std::string_view name) const {
  const PickledTensor& tensor = find(name);
  return {tensor.dtype, tensor.shape, {}, mapped_};
}

TensorView TorchFile::at(std::string_view name) const {
  const PickledTensor& tensor = find(name);
  const std::span<const std::byte> storage = storages_.find(tensor.storage.key)->second;
  const size_t unit = size_of(tensor.dtype), bytes = *bytes_of_shape(tensor.shape, unit);
  TensorView out{tensor.dtype, tensor.shape, {}, mapped_};
  if (bytes == 0) return out;
  if (lies_in_a_row(tensor)) {
    out.bytes = storage.subspan(size_t(tensor.offset) * unit, bytes);
    return out;
  }
  auto copy = std::make_shared<std::vector<std::byte>>(bytes);
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (size_t to = 0; to < bytes; to += unit) {
    int64_t from = tensor.offset;
    for (size_t d = 0; d < index.size(); ++d) from += index[d] * tensor.strides[d];
    std::memcpy(copy->data() + to, storage.data() + size_t(from) * unit, unit);
    for (size_t d = index.size(); d-- > 0 && ++index[d] == tensor.shape[d];) index[d] = 0;
  }
  out.bytes = *copy;
  out.owner = std::move(copy);
  return out;
}

}  // namespace easydel::weights
