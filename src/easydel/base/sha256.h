// SHA-256 of bytes that come in pieces, and what proves that a secret is known. files.h has the hash of a text and of a
// file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace easydel::files {

class Sha256 {
 public:
  Sha256();
  void add(const void* data, size_t bytes);
  std::string hex();  // 64 lower-case hex digits; nothing may be added after it

 private:
  std::shared_ptr<void> context_;  // EVP_MD_CTX
};

// HMAC (RFC 2104) with SHA-256, 64 lower-case hex digits: whoever knows `key` has written `message`.
std::string hmac_sha256(std::string_view key, std::string_view message);
// Whether they are equal. The time that it takes depends on their sizes alone.
bool equal_secrets(std::string_view a, std::string_view b);
// Random bytes that are fit for secrets.
std::string random_bytes(size_t count);

}  // namespace easydel::files
