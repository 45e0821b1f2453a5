#include "easydel/hub/blob.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <system_error>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/hub/http.h"

namespace easydel::hub {
namespace fs = std::filesystem;
namespace {

bool is_hex(const std::string& text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Throws NetworkError if another try may help.
void fetch_rest(const Download& download, files::ResumingWriter& partial,
                const std::function<void(int64_t)>& progress) {
  const Response answer = perform({.url = download.url,
                                   .headers = {"Accept-Encoding: identity"},
                                   .token = download.token,
                                   .resume_from = int64_t(partial.size()),
                                   .begin = [&](int, int64_t from) { partial.begin_at(uint64_t(from)); },
                                   .on_data =
                                       [&](std::string_view bytes) {
                                         partial.write(bytes);
                                         progress(int64_t(partial.size()));
                                       },
                                   .stall_seconds = download.stall_seconds});
  if (answer.status == 416) {  // the local part is longer than the file
    partial.begin_at(0);
    throw NetworkError("the part that was there does not fit");
  }
  if (answer.status >= 500 || answer.status == 429) throw NetworkError(str("the hub answers ", answer.status));
  if (answer.status / 100 != 2)
    refuse(download.where, str(download.url, " answers ", answer.status), "try again later");
  if (download.size >= 0 && int64_t(partial.size()) < download.size)
    throw NetworkError(str("only ", partial.size(), " of ", download.size, " bytes came"));
}

}  // namespace

Lock::Lock(const fs::path& file) {
  files::make_directories(file.parent_path());
  file_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0 || ::flock(file_, LOCK_EX) != 0)
    refuse(file.string(), "cannot lock: " + std::generic_category().message(errno));
}

Lock::~Lock() { ::close(file_); }

std::string git_hash_of_file(const fs::path& file) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  check(context && EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) == 1, "SHA-1 could not be set up");
  const std::string head = str("blob ", files::size(file)) + '\0';
  EVP_DigestUpdate(context.get(), head.data(), head.size());
  std::ifstream in(file, std::ios::binary);
  std::array<char, 1 << 16> buffer;
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0)
    EVP_DigestUpdate(context.get(), buffer.data(), size_t(in.gcount()));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &length);
  std::string out;
  for (unsigned int i = 0; i < length; ++i) {
    out += "0123456789abcdef"[digest[i] >> 4];
    out += "0123456789abcdef"[digest[i] & 15];
  }
  return out;
}

void download(const Download& download, const fs::path& blob, const std::function<void(int64_t)>& progress) {
  const fs::path aside = blob.string() + ".incomplete";
  {
    files::ResumingWriter partial(aside);
    const auto here = [&] { return int64_t(partial.size()); };
    if (download.size >= 0 && here() > download.size) partial.begin_at(0);
    for (int attempt = 1; download.size < 0 || here() < download.size || download.size == 0; ++attempt) {
      try {
        fetch_rest(download, partial, progress);
        break;
      } catch (const NetworkError& broken) {
        if (attempt >= download.tries)
          refuse(download.where, str("the transfer broke ", attempt, " times: ", broken.what()),
                 "try again; it goes on where it stopped");
        log::warning("the transfer broke at byte ", partial.size(), ": ", broken.what());
      }
    }
    partial.sync();
  }
  const auto wrong = [&](const std::string& what) {
    files::remove_all(aside);
    refuse(download.where, download.url + ": " + what, "try again; what came was thrown away");
  };
  const auto size = int64_t(files::size(aside));
  if (download.size >= 0 && size != download.size) wrong(str(size, " bytes came, not ", download.size));
  if (is_hex(download.etag, 64) && files::sha256_of_file(aside) != download.etag)
    wrong("the bytes do not have the SHA-256 that the hub announced");
  if (is_hex(download.etag, 40) && git_hash_of_file(aside) != download.etag)
    wrong("the bytes do not have the hash that the hub announced");
  files::rename(aside, blob);
}

}  // namespace easydel::hub
