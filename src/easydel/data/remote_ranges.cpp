#include "easydel/data/remote_ranges.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>

#include "easydel/base/error.h"
#include "easydel/base/ranged_file.h"
#include "easydel/data/columnar.h"
#include "easydel/data/remote_requests.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Columns of a Parquet file are read side by side, each from a piece of its own.
constexpr size_t kept_pieces = 16;

// Asks for pieces and keeps the last ones.
class Pieces : public files::RangedFile {
 public:
  Pieces(std::string url, RemoteOptions options)
      : url_(std::move(url)), options_(std::move(options)), piece_(uint64_t(options_.piece_bytes)) {}

  uint64_t size() const final { return size_; }
  size_t read(uint64_t from, char* to, size_t bytes) final {
    size_t done = 0;
    while (done < bytes && from < size_) {
      const std::shared_ptr<const std::string> piece = piece_at(from / piece_);
      const size_t at = from % piece_, count = std::min(bytes - done, piece->size() - at);
      std::memcpy(to + done, piece->data() + at, count);
      done += count, from += count;
    }
    return done;
  }

 protected:
  // Exactly the bytes [from, from + bytes). NetworkError: another try may help. UserError: none does.
  virtual std::string ask(uint64_t from, uint64_t bytes) const = 0;
  [[noreturn]] void refuse_changed() const {
    refuse(url_, "changed while it was read", "run again when nothing writes to it");
  }

  void keep(uint64_t index, std::shared_ptr<const std::string> piece) {
    const std::lock_guard lock(mutex_);
    kept_.emplace_front(index, std::move(piece));
    if (kept_.size() > kept_pieces) kept_.pop_back();
  }

  const std::string url_;
  const RemoteOptions options_;
  const uint64_t piece_;  // bytes
  uint64_t size_ = 0;

 private:
  std::shared_ptr<const std::string> piece_at(uint64_t index) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find(kept_, index, &Kept::first);
      if (found != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, found);
        return found->second;
      }
    }
    const uint64_t from = index * piece_, bytes = std::min(piece_, size_ - from);
    try {
      auto piece = std::make_shared<const std::string>(trying(options_, url_, [&] { return ask(from, bytes); }));
      keep(index, piece);
      return piece;
    } catch (const hub::NetworkError& error) {
      refuse(url_, str("cannot be read from byte ", from, " on: ", error.what()),
             "try again, or raise mixture.cloud_max_retries");
    }
  }

  using Kept = std::pair<uint64_t, std::shared_ptr<const std::string>>;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the last one that was used first
};

class WebPieces final : public Pieces {
 public:
  WebPieces(const std::string& url, const RemoteOptions& options, const std::string& where) : Pieces(url, options) {
    std::string first;
    const hub::Response answer = trying(options, where, [&] {
      hub::Response out = asked(0, piece_, first, where);
      if (out.status != range_is_outside) check_answer(where, url, out);
      return out;
    });
    version_ = version_of(answer);
    if (answer.status == range_is_outside && version_.size == "0") return;  // it is empty
    if (version_.size.empty() || version_.size.find_first_not_of("0123456789") != std::string::npos)
      refuse_ranges(where);
    size_ = std::stoull(version_.size);
    if (first.size() == std::min(piece_, size_)) keep(0, std::make_shared<const std::string>(std::move(first)));
  }
  std::string version() const override { return version_.etag + " " + version_.modified + " " + version_.size; }

 private:
  static constexpr int range_is_outside = 416, partial_content = 206;

  [[noreturn]] void refuse_ranges(const std::string& where) const {
    refuse(where, "the server of '" + url_ + "' sends no ranges of bytes, so the file cannot be read without a copy",
           "leave mixture.cache_remote_files out, or set it to true");
  }

  hub::Response asked(uint64_t from, uint64_t bytes, std::string& body, const std::string& where) const {
    body.clear();
    hub::Request request{.url = url_,
                         .headers = {"Accept-Encoding: identity", str("Range: bytes=", from, "-", from + bytes - 1)},
                         .token = options_.token};
    // Before a byte of the whole file is taken.
    request.begin = [&](int status, int64_t) {
      if (status != partial_content) refuse_ranges(where);
    };
    request.on_data = [&](std::string_view some) {
      if (body.size() + some.size() > bytes) throw hub::NetworkError("the server sends more bytes than were asked for");
      body += some;
    };
    return hub::perform(request);
  }

  std::string ask(uint64_t from, uint64_t bytes) const override {
    std::string out;
    const hub::Response answer = asked(from, bytes, out, url_);
    if (answer.status == range_is_outside) refuse_changed();
    check_answer(url_, url_, answer);
    if (version_of(answer) != version_) refuse_changed();
    if (out.size() != bytes) throw hub::NetworkError(str("only ", out.size(), " of ", bytes, " bytes came"));
    return out;
  }

  RemoteVersion version_;
};

class CloudPieces final : public Pieces {
 public:
  CloudPieces(const columnar::CloudFile& file, const RemoteOptions& options, const std::string& where)
      : Pieces(file.address, options), file_(file) {
    size_ = uint64_t(file.bytes);
    asking_cloud(where, url_, [&] { reader_ = columnar_library().open_cloud(url_, options.account); });
  }
  std::string version() const override { return str(file_.changed, " ", file_.bytes); }

 private:
  std::string ask(uint64_t from, uint64_t bytes) const override {
    columnar::CloudPart part;
    asking_cloud(url_, url_, [&] { part = reader_->read(int64_t(from), int64_t(bytes)); });
    if (part.file_bytes != file_.bytes || part.changed != file_.changed) refuse_changed();
    if (part.bytes.size() != bytes)
      throw hub::NetworkError(str("only ", part.bytes.size(), " of ", bytes, " bytes came"));
    return std::move(part.bytes);
  }

  columnar::CloudFile file_;
  std::unique_ptr<columnar::CloudReader> reader_;
};

// Which addresses are open, so that a run that asks for its files again reads the same versions.
struct Open {
  std::string url, token;
  Clock::time_point since;
};

fs::path opened(const std::string& url, const RemoteOptions& options, const std::string& where,
                const std::function<std::shared_ptr<files::RangedFile>()>& open) {
  static std::mutex mutex;
  static std::map<std::string, Open> known;
  const fs::path path = url.substr(0, url.find_first_of("?#"));
  for (const char* packed : {".parquet.gz", ".arrow.gz"})
    if (path.string().ends_with(packed))
      refuse(where, "'" + url + "' is packed and must be read whole, so it cannot be read without a copy",
             "leave mixture.cache_remote_files out, or set it to true");
  const std::lock_guard lock(mutex);
  const auto found = known.find(path.string());
  if (found != known.end() && found->second.url != url)
    refuse(where, "'" + url + "' and '" + found->second.url + "' differ in their query alone",
           "leave mixture.cache_remote_files out, or set it to true");
  if (found != known.end() && found->second.token == options.token &&
      Clock::now() - found->second.since < std::chrono::seconds(options.expiry_seconds))
    return path;
  try {
    files::put_ranged(path, open());
  } catch (const hub::NetworkError& error) {
    refuse(where, str("'", url, "' cannot be read: ", error.what()), "try again, or raise mixture.cloud_max_retries");
  }
  known[path.string()] = {url, options.token, Clock::now()};
  return path;
}

}  // namespace

fs::path ranged_web_file(const std::string& url, const RemoteOptions& options, const std::string& where) {
  return opened(url, options, where, [&] { return std::make_shared<WebPieces>(url, options, where); });
}

fs::path ranged_cloud_file(const columnar::CloudFile& file, const RemoteOptions& options, const std::string& where) {
  return opened(file.address, options, where, [&] { return std::make_shared<CloudPieces>(file, options, where); });
}

}  // namespace easydel::data
