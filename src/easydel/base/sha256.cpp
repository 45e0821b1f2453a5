#include "easydel/base/sha256.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <vector>

#include "easydel/base/file_operations.h"
#include "easydel/base/ranged_file.h"

namespace easydel::files {
namespace {

EVP_MD_CTX* context_of(const std::shared_ptr<void>& context) { return static_cast<EVP_MD_CTX*>(context.get()); }

std::string hex_of(const unsigned char* bytes, unsigned int count) {
  std::string out;
  for (unsigned int i = 0; i < count; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

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
  return hex_of(digest, bytes);
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  unsigned char code[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  check(HMAC(EVP_sha256(), key.data(), int(key.size()), reinterpret_cast<const unsigned char*>(message.data()),
             message.size(), code, &bytes) != nullptr,
        "libcrypto: HMAC failed");
  return hex_of(code, bytes);
}

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(size_t count) {
  std::string out(count, '\0');
  check(RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), int(count)) == 1, "there are no random bytes");
  return out;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hex();
}

std::string sha256_of_file(const fs::path& path) {
  if (const auto elsewhere = ranged(path)) {
    Sha256 hash;
    std::vector<char> piece(size_t{1} << 20);
    for (uint64_t at = 0; const size_t got = elsewhere->read(at, piece.data(), piece.size()); at += got)
      hash.add(piece.data(), got);
    return hash.hex();
  }
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
