// SHA-256 of bytes that come in pieces. files.h has it of a text and of a file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace easydel::files {

class Sha256 {
 public:
  Sha256();
  void add(const void* data, size_t bytes);
  std::string hex();  // 64 lower-case hex digits; nothing may be added after it

 private:
  std::shared_ptr<void> context_;  // EVP_MD_CTX
};

}  // namespace easydel::files
