// The pickles of torch.save, read without running anything: opcodes and globals of a closed list, and of what they
// build only tensors and dictionaries of tensors. Everything else is refused by name. Format: Python's pickletools.py;
// what torch writes: torch/_utils.py and torch/serialization.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/weights/dtype.h"

namespace easydel::weights {

struct PickledStorage {
  std::string key;             // where its bytes lie
  std::optional<DType> dtype;  // nullopt: bytes, the tensor knows the type
  int64_t elements = 0;        // as the pickle says; of bytes where there is no type
};

struct PickledTensor {
  PickledStorage storage;
  DType dtype = DType::f32;
  int64_t offset = 0;                   // into the storage, in elements
  std::vector<int64_t> shape, strides;  // of equal length, nothing below zero; not yet held against the storage
};

// One pickle after the other out of `bytes`, which must outlive it. All throw UserError "file: ...".
class Unpickler {
 public:
  Unpickler(std::string_view bytes, std::string file);
  ~Unpickler();

  // A dictionary of names to tensors.
  std::vector<std::pair<std::string, PickledTensor>> state_dict();
  std::vector<std::string> texts();  // a list of strings
  void skip();                       // a pickle of plain values
  size_t at() const;                 // behind the last pickle

  // Of the last pickle: every storage that it named.
  const std::vector<PickledStorage>& storages() const;

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace easydel::weights
