// A file of torch.save with a model's tensors (pytorch_model.bin): the current zip format and the legacy format.
// pickle.h reads the pickle in it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/files.h"
#include "easydel/weights/pickle.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

class TorchFile final : public TensorFile {
 public:
  // Checks every tensor against its storage; UserError "path: ...".
  static std::shared_ptr<const TorchFile> open(const std::filesystem::path& path);
  TorchFile(std::span<const std::byte> bytes, std::filesystem::path path);  // `bytes` must outlive it

  const std::filesystem::path& path() const override { return path_; }
  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override { return tensors_.find(name) != tensors_.end(); }
  TensorView at(std::string_view name) const override;  // a copy if the tensor is not contiguous
  TensorView info(std::string_view name) const override;

 private:
  void read_zip();
  void read_old();
  void check_tensor(const std::string& name, const PickledTensor& tensor) const;
  const PickledTensor& find(std::string_view name) const;

  std::filesystem::path path_;
  std::shared_ptr<const files::Mapped> mapped_;
  std::span<const std::byte> bytes_;
  std::map<std::string, std::span<const std::byte>, std::less<>> storages_;
  std::map<std::string, PickledTensor, std::less<>> tensors_;
};

}  // namespace easydel::weights
