// Reads the pickles of torch.save without executing anything: only a fixed list of opcodes and globals is known, and
// only tensors and dictionaries of tensors are returned. Everything else is refused by name. Format: Python's
// pickletools.py; what torch writes: torch/_utils.py and torch/serialization.py.
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
  std::string key;             // name of its bytes in the file
  std::optional<DType> dtype;  // nullopt: untyped bytes, the tensor has the dtype
  int64_t elements = 0;        // as the pickle says; bytes if there is no dtype
};

struct PickledTensor {
  PickledStorage storage;
  DType dtype = DType::f32;
  int64_t offset = 0;                   // into the storage, in elements
  std::vector<int64_t> shape, strides;  // of equal length, not negative; not yet checked against the storage
};

// Reads consecutive pickles from `bytes`, which must outlive it. All functions throw UserError "file: ...".
class Unpickler {
 public:
  Unpickler(std::string_view bytes, std::string file);
  ~Unpickler();

  // A dictionary from names to tensors.
  std::vector<std::pair<std::string, PickledTensor>> state_dict();
  std::vector<std::string> texts();  // a list of strings
  void skip();                       // a pickle of plain values
  size_t at() const;                 // offset of the end of the last pickle

  // Every storage that the last pickle named.
  const std::vector<PickledStorage>& storages() const;

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace easydel::weights
