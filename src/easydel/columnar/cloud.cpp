#include "easydel/columnar/cloud.h"

#include <arrow/buffer.h>
#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/gcsfs.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>

#include <algorithm>
#include <cstdlib>

namespace easydel::columnar {
namespace {

constexpr int64_t bytes_at_a_time = int64_t{4} << 20;
constexpr double connect_seconds = 10, request_seconds = 60;

[[noreturn]] void fail(const arrow::Status& status) {
  const std::string text = status.message().substr(0, status.message().find('\n'));
  const auto says = [&](const char* word) { return text.find(word) != std::string::npos; };
  throw CloudError{text, says("ACCESS_DENIED") || says("HTTP status 403") || says("INVALID_ACCESS_KEY_ID") ||
                             says("PERMISSION_DENIED") || says("UNAUTHENTICATED")};
}

void ensure(const arrow::Status& status) {
  if (!status.ok()) fail(status);
}

template <class T>
T ensured(arrow::Result<T> result) {
  if (!result.ok()) fail(result.status());
  return std::move(result).MoveValueUnsafe();
}

// "http", "127.0.0.1:9000"
std::pair<std::string, std::string> scheme_and_host(const std::string& url) {
  const size_t end = url.find("://");
  if (end == std::string::npos) return {"https", url};
  std::string host = url.substr(end + 3);
  while (host.ends_with('/')) host.pop_back();
  return {url.substr(0, end), host};
}

std::shared_ptr<arrow::fs::FileSystem> s3(const CloudAccount& account) {
  ensure(arrow::fs::EnsureS3Initialized());
  arrow::fs::S3Options options;
  if (account.anonymous)
    options.ConfigureAnonymousCredentials();
  else if (!account.key.empty())
    options.ConfigureAccessKey(account.key, account.secret, account.token);
  else
    options.ConfigureDefaultCredentials();
  options.region = account.region;
  if (!account.endpoint_url.empty()) {
    std::tie(options.scheme, options.endpoint_override) = scheme_and_host(account.endpoint_url);
    if (options.region.empty()) options.region = "us-east-1";
  }
  options.connect_timeout = connect_seconds, options.request_timeout = request_seconds;
  options.retry_strategy = arrow::fs::S3RetryStrategy::GetAwsDefaultRetryStrategy(account.retries);
  auto out = ensured(arrow::fs::S3FileSystem::Make(options));
  // Arrow must be told before the process ends. Its globals, which are there by now, are destroyed after this.
  static const int told = std::atexit([] { (void)arrow::fs::EnsureS3Finalized(); });
  (void)told;
  return out;
}

std::shared_ptr<arrow::fs::FileSystem> gcs(const CloudAccount& account) {
  arrow::fs::GcsOptions options =
      account.anonymous ? arrow::fs::GcsOptions::Anonymous() : arrow::fs::GcsOptions::Defaults();
  if (!account.anonymous && !account.token.empty()) {
    constexpr auto lifetime = std::chrono::hours(1);
    options = arrow::fs::GcsOptions::FromAccessToken(account.token, std::chrono::system_clock::now() + lifetime);
  }
  if (!account.endpoint_url.empty())
    std::tie(options.scheme, options.endpoint_override) = scheme_and_host(account.endpoint_url);
  options.retry_limit_seconds = request_seconds;
  return ensured(arrow::fs::GcsFileSystem::Make(options));
}

// The storage of an address, and the address without its scheme.
std::pair<std::shared_ptr<arrow::fs::FileSystem>, std::string> opened(const std::string& address,
                                                                      const CloudAccount& account) {
  const size_t end = address.find("://");
  return {address.starts_with("s3") ? s3(account) : gcs(account), address.substr(end + 3)};
}

CloudFile file_of(const std::string& scheme, const arrow::fs::FileInfo& info) {
  return {scheme + info.path(), info.size(), int64_t(info.mtime().time_since_epoch().count())};
}

class Parts final : public CloudReader {
 public:
  Parts(const std::string& address, const CloudAccount& account) {
    std::tie(storage_, path_) = opened(address, account);
    file_ = ensured(storage_->OpenInputFile(path_));
    opened_ = file_of("", ensured(storage_->GetFileInfo(path_)));
  }
  CloudPart read(int64_t from, int64_t bytes) override {
    auto piece = file_->ReadAt(from, bytes);
    const CloudFile now = file_of("", ensured(storage_->GetFileInfo(path_)));
    // The version that was opened may be gone.
    if (now.bytes != opened_.bytes || now.changed != opened_.changed) return {"", now.bytes, now.changed};
    return {ensured(std::move(piece))->ToString(), now.bytes, now.changed};
  }

 private:
  std::shared_ptr<arrow::fs::FileSystem> storage_;
  std::string path_;
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  CloudFile opened_;
};

}  // namespace

std::unique_ptr<CloudReader> open_cloud_file(const std::string& address, const CloudAccount& account) {
  return std::make_unique<Parts>(address, account);
}

std::vector<CloudFile> list_cloud_files(const std::string& address, const CloudAccount& account) {
  const auto [storage, path] = opened(address, account);
  const std::string scheme = address.substr(0, address.size() - path.size());
  const arrow::fs::FileInfo info = ensured(storage->GetFileInfo(path));
  std::vector<CloudFile> out;
  if (info.type() == arrow::fs::FileType::File) out.push_back(file_of(scheme, info));
  if (info.type() != arrow::fs::FileType::Directory) return out;
  arrow::fs::FileSelector all;
  all.base_dir = path;
  all.recursive = true;
  for (const arrow::fs::FileInfo& one : ensured(storage->GetFileInfo(all)))
    if (one.type() == arrow::fs::FileType::File) out.push_back(file_of(scheme, one));
  std::ranges::sort(out, {}, &CloudFile::address);
  return out;
}

void read_cloud_file(const std::string& address, const CloudAccount& account, int64_t from,
                     const std::function<void(std::string_view)>& sink) {
  const auto [storage, path] = opened(address, account);
  const auto file = ensured(storage->OpenInputFile(path));
  const int64_t size = ensured(file->GetSize());
  while (from < size) {
    const auto piece = ensured(file->ReadAt(from, std::min(bytes_at_a_time, size - from)));
    if (piece->size() == 0) throw CloudError{"the file ends early"};
    sink({reinterpret_cast<const char*>(piece->data()), size_t(piece->size())});
    from += piece->size();
  }
}

}  // namespace easydel::columnar
