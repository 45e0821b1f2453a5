#include "easydel/data/remote_files.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/data/columnar.h"
#include "easydel/data/remote_ranges.h"
#include "easydel/data/remote_requests.h"
#include "easydel/data/rows.h"
#include "easydel/hub/blob.h"
#include "easydel/hub/http.h"
#include "easydel/hub/resolve.h"
#include "easydel/hub/settings.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* source_name = "source.json";

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string text_in(const Value& map, const char* name) {
  const Value* const value = map.find(name);
  return value ? value->scalar : "";
}

// One address and its copy in the cache.
class RemoteFile {
 public:
  RemoteFile(std::string url, const RemoteOptions& options, std::string where)
      : url_(std::move(url)), options_(options), where_(std::move(where)) {
    const size_t end = url_.find_first_of("?#");
    const std::string path = url_.substr(0, end);
    name_ = path.substr(path.rfind('/') + 1);
    if (name_.empty() || path.find('/', path.find("://") + 3) == std::string::npos)
      refuse(where_, "'" + url_ + "' names no file", "give the address of a file, for example https://host/rows.jsonl");
    constexpr size_t digits = 16;
    folder_ = options_.cache / "remote" / files::sha256(url_).substr(0, digits);
    copy_ = folder_ / name_;
  }
  virtual ~RemoteFile() = default;

  fs::path fetched() {
    const hub::Lock lock(folder_ / "lock");
    const std::optional<Value> known = known_copy();
    if (known && seconds_now() - known->find("checked")->as_int().value_or(0) < options_.expiry_seconds) return copy_;
    if (hub::settings().offline) {
      if (known) return copy_;
      refuse(where_, "'" + url_ + "' is not in the cache, and HF_HUB_OFFLINE is set", "run once with the network");
    }
    try {
      const RemoteVersion now = trying(options_, where_, [&] { return asked(); });
      const bool is_same =
          known && now.is_known() &&
          now == RemoteVersion{text_in(*known, "etag"), text_in(*known, "modified"), text_in(*known, "size")};
      note(is_same ? now : fetch(now));
    } catch (const hub::NetworkError& error) {
      if (!known)
        refuse(where_, str("'", url_, "' cannot be fetched: ", error.what()),
               "try again, or raise mixture.cloud_max_retries");
      log::warning(where_, ": '", url_, "' cannot be reached; the copy in ", folder_.string(), " is used");
    }
    return copy_;
  }

 protected:
  // What is there now; NetworkError: another try may help.
  virtual RemoteVersion asked() const = 0;
  // Writes the copy.
  virtual RemoteVersion fetch(RemoteVersion announced) const = 0;

  std::optional<Value> known_copy() const {
    if (!files::is_file(copy_) || !files::is_file(folder_ / source_name)) return std::nullopt;
    Value out = parse_file(folder_ / source_name);
    if (!out.find("checked")) return std::nullopt;
    return out;
  }

  void note(const RemoteVersion& version) const {
    Value out = Value::map();
    out.set("url", Value::text(url_));
    out.set("etag", Value::text(version.etag));
    out.set("modified", Value::text(version.modified));
    out.set("size", Value::text(version.size));
    out.set("checked", Value::integer(seconds_now()));
    files::write(folder_ / source_name, to_json(out, 2) + "\n");
  }

  std::string url_;
  const RemoteOptions& options_;
  std::string where_, name_;
  fs::path folder_, copy_;
};

class WebFile final : public RemoteFile {
 public:
  using RemoteFile::RemoteFile;

 private:
  RemoteVersion asked() const override {
    const hub::Response answer = hub::perform({.method = "HEAD", .url = url_, .token = options_.token});
    constexpr int not_allowed = 405, not_implemented = 501;
    if (answer.status == not_allowed || answer.status == not_implemented) return {};
    check_answer(where_, url_, answer);
    return version_of(answer);
  }

  // After an interruption it goes on where it stopped, if the file is still the same one.
  RemoteVersion fetch(RemoteVersion announced) const override {
    const fs::path aside = copy_.string() + ".incomplete";
    files::ResumingWriter partial(aside);
    partial.begin_at(0);
    const RemoteVersion out = trying(options_, where_, [&] {
      const bool can_resume = announced.etag.starts_with('"');  // weak ones do not tell bytes apart
      if (!can_resume) partial.begin_at(0);
      hub::Request request{.url = url_, .headers = {"Accept-Encoding: identity"}, .token = options_.token};
      request.resume_from = int64_t(partial.size());
      if (request.resume_from > 0) request.headers.push_back("If-Range: " + announced.etag);
      request.begin = [&](int, int64_t from) { partial.begin_at(uint64_t(from)); };
      request.on_data = [&](std::string_view bytes) { partial.write(bytes); };
      const hub::Response answer = hub::perform(request);
      check_answer(where_, url_, answer);
      const RemoteVersion came = version_of(answer);
      if (request.resume_from > 0 && came.etag != announced.etag) {
        announced = came;
        partial.begin_at(0);
        throw hub::NetworkError("the file changed while it was fetched");
      }
      if (!came.size.empty() && came.size != std::to_string(partial.size()))
        throw hub::NetworkError(str("only ", partial.size(), " of ", came.size, " bytes came"));
      return came;
    });
    partial.sync();
    files::rename(aside, copy_);
    log::info("fetched ", url_, " into ", folder_.string());
    return out;
  }
};

class CloudCopy final : public RemoteFile {
 public:
  CloudCopy(columnar::CloudFile file, const RemoteOptions& options, const std::string& where)
      : RemoteFile(file.address, options, where), file_(std::move(file)) {}

 private:
  RemoteVersion asked() const override { return {"", std::to_string(file_.changed), std::to_string(file_.bytes)}; }
  RemoteVersion fetch(RemoteVersion announced) const override {
    const fs::path aside = copy_.string() + ".incomplete";
    files::ResumingWriter partial(aside);
    partial.begin_at(0);
    trying(options_, where_, [&] {
      asking_cloud(where_, url_, [&] {
        columnar_library().read_cloud(url_, options_.account, int64_t(partial.size()),
                                      [&](std::string_view bytes) { partial.write(bytes); });
      });
      return RemoteVersion();
    });
    if (int64_t(partial.size()) != file_.bytes)
      refuse(where_, "'" + url_ + "' changed while it was fetched", "run again when nothing writes to it");
    partial.sync();
    files::rename(aside, copy_);
    log::info("fetched ", url_, " into ", folder_.string());
    return announced;
  }

  columnar::CloudFile file_;
};

// Of "s3://bucket/data/*.jsonl" the files that match, of "s3://bucket/data" those of rows below it.
std::vector<fs::path> cloud_files(const std::string& name, const RemoteOptions& options, const std::string& where) {
  const size_t star = name.find_first_of("*?[{");
  const std::string listed = star == std::string::npos ? name : name.substr(0, name.rfind('/', star));
  if (listed.size() <= name.find("://") + 3)
    refuse(where, "'" + name + "' names no bucket",
           "write " + name.substr(0, name.find("://")) + "://bucket/file.jsonl");
  std::vector<columnar::CloudFile> found;
  asking_cloud(where, name, [&] { found = columnar_library().list_cloud(listed, options.account); });
  std::erase_if(found, [&](const columnar::CloudFile& file) {
    if (star != std::string::npos) return !is_match(file.address, name);
    return file.address != name && !source_of_file(file.address);
  });
  if (found.empty()) refuse(where, "there is no file at '" + name + "'", "check the address");
  std::vector<fs::path> out;
  for (columnar::CloudFile& file : found)
    out.push_back(options.keeps ? CloudCopy(std::move(file), options, where).fetched()
                                : ranged_cloud_file(file, options, where));
  return out;
}

// "hf://datasets/owner/name@revision/data/*.parquet"
std::vector<fs::path> hub_files(const std::string& name, const RemoteOptions& options, const std::string& where) {
  constexpr std::string_view scheme = "hf://datasets/";
  const size_t owner_end = name.starts_with(scheme) ? name.find('/', scheme.size()) : std::string::npos;
  const size_t name_end = owner_end == std::string::npos ? owner_end : name.find('/', owner_end + 1);
  if (name_end == std::string::npos || name_end + 1 == name.size())
    refuse(where, "'" + name + "' names no file of a dataset",
           "write hf://datasets/owner/name/file.jsonl; for a whole dataset give type: owner/name");
  std::string dataset = name.substr(scheme.size(), name_end - scheme.size()), revision = "main";
  const std::string pattern = name.substr(name_end + 1);
  if (const size_t at = dataset.find('@'); at != std::string::npos) {
    revision = dataset.substr(at + 1);
    dataset.resize(at);
  }
  const auto is_meant = [&](std::string_view file) { return file == pattern || is_match(std::string(file), pattern); };
  std::vector<fs::path> out;
  std::vector<std::string> there;
  const auto fetches = [&](std::string_view file) {
    if (is_meant(file)) there.emplace_back(file);
    return options.keeps && is_meant(file);
  };
  const fs::path folder = hub::resolve_dataset(dataset, where, fetches, revision);
  if (!options.keeps) {
    RemoteOptions on_hub = options;
    on_hub.token = hub::settings().token;
    for (const std::string& file : there)
      out.push_back(ranged_web_file(hub::address_of_dataset_file(dataset, file, revision), on_hub, where));
    if (!out.empty()) return out;
  }
  for (const fs::path& file : files::list_files_below(folder))
    if (is_meant(file.generic_string())) out.push_back(folder / file);
  if (out.empty())
    refuse(where, "no file of '" + dataset + "' matches '" + pattern + "'",
           "https://huggingface.co/datasets/" + dataset + "/tree/" + revision + " lists its files");
  return out;
}

}  // namespace

RemoteOptions remote_options(const MixtureConfig& mixture) {
  RemoteOptions out;
  out.cache = hub::expand_home(mixture.cache_dir);
  out.keeps = mixture.cache_remote_files;
  out.expiry_seconds = mixture.cache_expiry_seconds;
  out.retries = mixture.cloud_max_retries;
  out.retry_seconds = mixture.cloud_retry_delay;
  const Value& words = mixture.dask_storage_options;
  out.token = text_in(words, "token");
  out.account = {text_in(words, "key"),
                 text_in(words, "secret"),
                 out.token,
                 text_in(words, "endpoint_url"),
                 "",
                 false,
                 out.retries};
  if (const Value* const client = words.find("client_kwargs"); client && client->is_map()) {
    if (out.account.endpoint_url.empty()) out.account.endpoint_url = text_in(*client, "endpoint_url");
    out.account.region = text_in(*client, "region_name");
  }
  if (const Value* const anonymous = words.find("anon")) out.account.anonymous = anonymous->as_bool().value_or(false);
  return out;
}

bool is_remote(std::string_view name) { return name.find("://") != std::string_view::npos; }

std::vector<fs::path> local_copies(const std::string& name, const RemoteOptions& options, const std::string& where) {
  const bool is_web = name.starts_with("https://") || name.starts_with("http://");
  const bool is_cloud = name.starts_with("s3://") || name.starts_with("gs://");
  if (!is_web && !is_cloud && !name.starts_with("hf://"))
    refuse(where, "reading '" + name + "' is not built yet",
           "https://, hf://, s3:// and gs:// are read; copy other files here");
  if (is_cloud) {
    try {
      return cloud_files(name, options, where);
    } catch (const hub::NetworkError& error) {
      refuse(where, str("'", name, "' cannot be read: ", error.what()),
             "check mixture.dask_storage_options, and try again");
    }
  }
  if (!is_web) return hub_files(name, options, where);
  if (!options.keeps) return {ranged_web_file(name, options, where)};
  return {WebFile(name, options, where).fetched()};
}

}  // namespace easydel::data
