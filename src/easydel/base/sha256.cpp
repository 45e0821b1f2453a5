#include "easydel/base/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>

#include <vector>

#include "easydel/base/file_operations.h"

namespace easydel::files {
namespace {

EVP_MD_CTX* context_of(const std::shared_ptr<void>& context) { return static_cast<EVP_MD_CTX*>(context.get()); }

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), [](void* one) { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(one)); }) {
  check(context_ && EVP_DigestInit_ex(context_of(context_), EVP_sha256(), nullptr) == 1, "libcrypto: no SHA-256");
}

void Sha256::add(const void* data, size_t bytes) {
  check(EVP_DigestUpdate(context_of(context_), data, bytes) == 1, "libcrypto: SHA-256 failed");
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  check(EVP_DigestFinal_ex(context_of(context_), digest, &bytes) == 1, "libcrypto: SHA-256 failed");
  std::string out;
  for (unsigned int i = 0; i < bytes; ++i) {
    out += "0123456789abcdef"[digest[i] >> 4];
    out += "0123456789abcdef"[digest[i] & 15];
  }
  return out;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hex();
}

std::string sha256_of_file(const fs::path& path) {
  const detail::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) detail::fail(path, "read", errno);
  Sha256 hash;
  std::vector<char> piece(size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(file, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) detail::fail(path, "read", errno);
    if (got == 0) return hash.hex();
    hash.add(piece.data(), size_t(got));
  }
}

}  // namespace easydel::files
