// A model's parameters as the tensors of a weights file: several parameters may share one, and one may be many.
#pragma once

#include <string>
#include <vector>

#include "easydel/nn/parameter.h"

namespace easydel::models {

struct FilePart {
  const nn::Entry* entry = nullptr;
  int64_t index = -1;  // of the entry's dimension 0; -1: all of it
};

struct FileTensor {
  std::string name;   // as it is saved
  std::string found;  // as the loaded file calls it; the name, where nothing was loaded
  std::vector<int64_t> shape;
  at::ScalarType type = at::ScalarType::Undefined;  // as loaded
  std::vector<FilePart> parts;                      // each lies where its entry's source says

  // Whether it is one part, value for value.
  bool is_parameter() const;
};

// In the order of the table.
std::vector<FileTensor> file_tensors(const nn::ParameterTable& table);

}  // namespace easydel::models
