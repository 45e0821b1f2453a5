// A model's parameters as the tensors of a weights file: several parameters may share one, and one may be many.
#pragma once

#include <string>
#include <vector>

#include "easydel/nn/parameter.h"

namespace easydel::models {

struct FilePart {
  const nn::Entry* entry = nullptr;
  int64_t index = -1;  // in the entry's dimension 0; -1: the whole entry
};

struct FileTensor {
  std::string name;   // as it is saved
  std::string found;  // its name in the loaded file; `name` if nothing was loaded
  std::vector<int64_t> shape;
  at::ScalarType type = at::ScalarType::Undefined;  // as loaded
  std::vector<FilePart> parts;                      // where each is in the tensor follows from its entry's source

  // Whether it is one part, value for value.
  bool is_parameter() const;
};

// In the order of the table.
std::vector<FileTensor> file_tensors(const nn::ParameterTable& table);

}  // namespace easydel::models
