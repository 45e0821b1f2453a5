#include "easydel/weights/gguf.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::weights {
namespace {

constexpr const char* fetch_gguf_again = "fetch the file again";
constexpr uint32_t max_dimensions = 8;

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, size_t at, const std::string& name) : bytes_(bytes), at_(at), name_(name) {}

  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_) refuse(name_, "is truncated in its list of tensors", fetch_gguf_again);
    const auto* const from = reinterpret_cast<const char*>(bytes_.data()) + at_;
    at_ += size;
    return {from, size};
  }
  template <class T>
  T number() {
    T out;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }
  size_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_;
  const std::string& name_;
};

void check_apart(const std::map<std::string, GgufFile::Entry, std::less<>>& tensors, const std::string& file) {
  std::vector<const std::pair<const std::string, GgufFile::Entry>*> order;
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->second.begin < b->second.begin; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->second.begin < order[i - 1]->second.end)
      refuse(file, str("tensors ", in_quotes(order[i - 1]->first), " and ", in_quotes(order[i]->first), " overlap"),
             fetch_gguf_again);
}

}  // namespace

std::shared_ptr<const GgufFile> GgufFile::open(const std::filesystem::path& path) {
  auto mapped = files::Mapped::open(path);
  auto file = std::make_shared<GgufFile>(mapped->bytes(), path.string());
  file->mapped_ = std::move(mapped);
  return file;
}

GgufFile::GgufFile(std::span<const std::byte> bytes, std::string name)
    : bytes_(bytes), metadata_(bytes, std::move(name)) {
  Reader reader(bytes, metadata_.end(), metadata_.name());
  for (uint64_t i = 0; i < metadata_.tensors(); ++i) {
    const std::string tensor(reader.take(reader.number<uint64_t>()));
    const auto refuse_it = [&](const std::string& what) {
      refuse(this->name(), str("tensor ", in_quotes(tensor), " ", what), fetch_gguf_again);
    };
    const auto dimensions = reader.number<uint32_t>();
    if (dimensions > max_dimensions) refuse_it(str("has ", dimensions, " dimensions"));
    Entry entry;
    for (uint32_t d = 0; d < dimensions; ++d) {
      const auto size = reader.number<uint64_t>();
      if (size > INT64_MAX) refuse_it("has a size that is out of range");
      entry.shape.insert(entry.shape.begin(), int64_t(size));
    }
    const auto type = reader.number<uint32_t>();
    const GgmlForm* const form = find_ggml_form(type);
    if (!form)
      refuse(this->name(), str("tensor ", in_quotes(tensor), " has ggml type ", type, ", which is not supported"),
             "supported: F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL, IQ4_XS, TQ1_0, "
             "TQ2_0, MXFP4, "
             "NVFP4; convert it with llama-quantize");
    entry.type = form->type;
    entry.begin = reader.number<uint64_t>();
    const int64_t row = entry.shape.empty() ? 1 : entry.shape.back();
    if (row % form->elements != 0) refuse_it(str("has rows of ", row, ", which are not whole blocks of ", form->name));
    std::vector<int64_t> blocks = entry.shape;
    if (!blocks.empty()) blocks.back() /= form->elements;
    const auto size = bytes_of_shape(blocks, form->bytes);
    if (!size || __builtin_add_overflow(entry.begin, *size, &entry.end)) refuse_it("has a size that is out of range");
    if (!tensors_.emplace(tensor, std::move(entry)).second) refuse_it("is listed twice");
  }
  const int64_t alignment = metadata_.integer("general.alignment").value_or(32);
  if (alignment < 1 || alignment > 1 << 20)
    refuse(this->name(), str("'general.alignment' is ", alignment), fetch_gguf_again);
  const auto unit = uint64_t(alignment);
  const uint64_t data = (reader.at() + unit - 1) / unit * unit;
  for (auto& [tensor, entry] : tensors_) {
    if (data > bytes.size() || entry.end > bytes.size() - data)
      refuse(this->name(), str("tensor ", in_quotes(tensor), " reaches beyond the end of the file"),
             "the file is truncated; fetch it again");
    entry.begin += data;
    entry.end += data;
  }
  check_apart(tensors_, this->name());
}

const GgufFile::Entry* GgufFile::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

TensorView GgufFile::view(const Entry& entry) const {
  const GgmlForm& form = form_of(entry.type);
  TensorView out{form.dtype, entry.shape, bytes_.subspan(entry.begin, entry.end - entry.begin), mapped_};
  if (!form.plain()) out.blocks = entry.type;
  return out;
}

}  // namespace easydel::weights
