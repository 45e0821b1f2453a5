#include "easydel/hub/push.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/hub/blob.h"
#include "easydel/hub/http.h"

namespace easydel::hub {
namespace fs = std::filesystem;
namespace {

constexpr size_t sample_bytes = 512;       // first bytes of a file, from which the hub tells text from binary
constexpr size_t files_per_request = 256;  // files per request

struct File {
  std::string name;
  fs::path path;
  int64_t size = 0;
  bool large = false;  // stored outside the repository by its SHA-256 (git LFS)
  std::string sha256;
};

std::string base64(std::string_view bytes) {
  static constexpr char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? base64_digits[word >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

Value member(const Value& map, std::string_view key) {
  const Value* const value = map.find(key);
  return value ? *value : Value{};
}

class Push {
 public:
  Push(const std::string& where, const fs::path& folder, const PushOptions& options)
      : where_(where), options_(options) {
    check_push(where, options);
    if (!files::is_folder(folder)) refuse(where, "'" + folder.string() + "': no such folder");
    for (const fs::path& path : files::list_files_below(folder)) {
      const std::string name = path.generic_string();
      const bool hidden = name.starts_with('.') || name.find("/.") != std::string::npos;
      if (!hidden && !name.ends_with(".incomplete") && (!options.filter || options.filter(name)))
        files_.push_back({name, folder / path, int64_t(files::size(folder / path)), false, ""});
    }
    std::ranges::sort(files_, {}, &File::name);
  }

  Pushed run() {
    make_repository();
    drop_unchanged();
    Pushed out;
    out.unchanged = unchanged_;
    if (files_.empty()) return out;
    ask_how();
    send_large();
    return commit(std::move(out));
  }

 private:
  std::string api(const std::string& rest) const {
    return options_.settings.endpoint + "/api/" + (options_.type == RepositoryType::model ? "models/" : "datasets/") +
           options_.repository + rest;
  }

  Response ask(const std::string& method, const std::string& url, const std::string& body,
               const std::string& kind = "application/json") const {
    try {
      return perform({.method = method,
                      .url = url,
                      .headers = {"Content-Type: " + kind, "Accept: application/json"},
                      .token = options_.settings.token,
                      .body = body,
                      .stall_seconds = std::max(60.0, options_.settings.download_seconds)});
    } catch (const NetworkError& broken) {
      refuse(where_, str("the hub cannot be reached: ", broken.what()),
             "try again; what the hub has already is not sent twice");
    }
  }

  Value told(const Response& answer) const {
    std::string message = answer.header("x-error-message");
    if (answer.status / 100 != 2 && message.empty()) message = answer.body.substr(0, 300);
    check_answer(where_, options_.repository, answer.status, answer.header("x-error-code"), message, true);
    return answer.body.empty() ? Value::map() : parse_json(answer.body, options_.settings.endpoint);
  }

  void make_repository() const {
    Value body = Value::map();
    const size_t slash = options_.repository.find('/');
    body.set("name", Value::text(options_.repository.substr(slash == std::string::npos ? 0 : slash + 1)));
    if (slash != std::string::npos) body.set("organization", Value::text(options_.repository.substr(0, slash)));
    if (options_.type == RepositoryType::dataset) body.set("type", Value::text("dataset"));
    body.set("private", Value::boolean(options_.is_private));
    const Response answer = ask("POST", options_.settings.endpoint + "/api/repos/create", to_json(body));
    if (answer.status != 409) told(answer);  // 409: it exists
  }

  // Files whose hash the hub already lists.
  void drop_unchanged() {
    std::string url = api("/tree/" + url_path(options_.revision) + "?recursive=true");
    std::map<std::string, Value> there;
    const std::string home = options_.settings.endpoint + "/";
    while (!url.empty()) {
      const Response answer = ask("GET", url, "");
      if (answer.status == 404) return;  // a new branch, or an empty repository
      const Value list = told(answer);
      for (const Value& entry : list.items) there[member(entry, "path").scalar] = entry;
      // Pages: Link: <address>; rel="next"
      const std::string link = answer.header("link");
      const size_t open = link.find('<'), close = link.find('>');
      url =
          link.find("rel=\"next\"") != std::string::npos && open < close ? link.substr(open + 1, close - open - 1) : "";
      if (!url.starts_with(home)) url.clear();
    }
    std::erase_if(files_, [&](const File& file) {
      const auto found = there.find(file.name);
      if (found == there.end()) return false;
      const std::string large = member(member(found->second, "lfs"), "oid").scalar;
      const bool same = large.empty() ? member(found->second, "oid").scalar == git_hash_of_file(file.path)
                                      : large == files::sha256_of_file(file.path);
      unchanged_ += same;
      return same;
    });
  }

  void ask_how() {
    for (size_t begin = 0; begin < files_.size(); begin += files_per_request) {
      Value list = Value::list(), body = Value::map();
      const size_t end = std::min(files_.size(), begin + files_per_request);
      for (size_t i = begin; i < end; ++i) {
        std::ifstream in(files_[i].path, std::ios::binary);
        std::string sample(sample_bytes, '\0');
        in.read(sample.data(), static_cast<std::streamsize>(sample.size()));
        sample.resize(size_t(in.gcount()));
        Value file = Value::map();
        file.set("path", Value::text(files_[i].name));
        file.set("size", Value::integer(files_[i].size));
        file.set("sample", Value::text(base64(sample)));
        list.items.push_back(file);
      }
      body.set("files", list);
      const Value answer = told(ask("POST", api("/preupload/" + url_path(options_.revision)), to_json(body)));
      for (const Value& file : member(answer, "files").items)
        for (size_t i = begin; i < end; ++i)
          if (files_[i].name == member(file, "path").scalar)
            files_[i].large = member(file, "uploadMode").scalar == "lfs";
    }
  }

  void send_large() {
    Value objects = Value::list(), body = Value::map(), transfers = Value::list();
    for (File& file : files_) {
      if (!file.large) continue;
      file.sha256 = files::sha256_of_file(file.path);
      Value object = Value::map();
      object.set("oid", Value::text(file.sha256));
      object.set("size", Value::integer(file.size));
      objects.items.push_back(object);
    }
    if (objects.items.empty()) return;
    transfers.items = {Value::text("basic")};
    body.set("operation", Value::text("upload"));
    body.set("transfers", transfers);
    body.set("objects", objects);
    body.set("hash_algo", Value::text("sha256"));
    const std::string kind = "application/vnd.git-lfs+json";
    const std::string prefix = options_.type == RepositoryType::dataset ? "/datasets/" : "/";
    const std::string batch = options_.settings.endpoint + prefix + options_.repository + ".git/info/lfs/objects/batch";
    const Value answer = told(ask("POST", batch, to_json(body), kind));
    for (const Value& object : member(answer, "objects").items) {
      if (const Value error = member(object, "error"); error.is_map())
        refuse(where_, "the hub refuses a file: " + member(error, "message").scalar);
      const Value actions = member(object, "actions"), upload = member(actions, "upload");
      if (!upload.is_map()) continue;  // the hub already has it
      for (const File& file : files_)
        if (file.sha256 == member(object, "oid").scalar) {
          put(file, upload);
          break;
        }
      if (const Value verify = member(actions, "verify"); verify.is_map()) {
        Value said = Value::map();
        said.set("oid", member(object, "oid"));
        said.set("size", member(object, "size"));
        told(ask("POST", member(verify, "href").scalar, to_json(said), kind));
      }
    }
  }

  // The upload url may be on another host: it gets no token, only the headers that the hub named.
  void put(const File& file, const Value& upload) const {
    log::info("sending ", file.name, " (", (file.size + (1 << 20) - 1) >> 20, " MiB)");
    std::ifstream in(file.path, std::ios::binary);
    std::vector<std::string> headers{"Content-Type: application/octet-stream"};
    for (const auto& [name, value] : member(upload, "header").entries) headers.push_back(name + ": " + value.scalar);
    const auto read = [&](char* buffer, size_t room) -> size_t {
      in.read(buffer, static_cast<std::streamsize>(room));
      return size_t(in.gcount());
    };
    try {
      const Response answer = perform({.method = "PUT",
                                       .url = member(upload, "href").scalar,
                                       .headers = headers,
                                       .upload = read,
                                       .upload_bytes = file.size,
                                       .stall_seconds = std::max(60.0, options_.settings.download_seconds)});
      if (answer.status / 100 != 2) refuse(where_, str(file.name, ": the store answers ", answer.status), "try again");
    } catch (const NetworkError& broken) {
      refuse(where_, str(file.name, ": the transfer broke: ", broken.what()),
             "try again; what the hub has already is not sent twice");
    }
  }

  Pushed commit(Pushed out) const {
    const auto line = [](const char* key, const Value& value) {
      Value one = Value::map();
      one.set("key", Value::text(key));
      one.set("value", value);
      return to_json(one) + "\n";
    };
    Value head = Value::map();
    head.set("summary", Value::text(options_.message));
    head.set("description", Value::text(options_.description));
    std::string body = line("header", head);
    for (const File& file : files_) {
      Value entry = Value::map();
      entry.set("path", Value::text(file.name));
      if (file.large) {
        entry.set("algo", Value::text("sha256"));
        entry.set("oid", Value::text(file.sha256));
        entry.set("size", Value::integer(file.size));
      } else {
        entry.set("content", Value::text(base64(files::read(file.path))));
        entry.set("encoding", Value::text("base64"));
      }
      body += line(file.large ? "lfsFile" : "file", entry);
      out.sent.push_back(file.name);
    }
    const std::string url =
        api("/commit/" + url_path(options_.revision)) + (options_.pull_request ? "?create_pr=1" : "");
    const Value answer = told(ask("POST", url, body, "application/x-ndjson"));
    out.commit = member(answer, "commitOid").scalar;
    out.url = member(answer, "commitUrl").scalar;
    return out;
  }

  const std::string& where_;
  const PushOptions& options_;
  std::vector<File> files_;
  int64_t unchanged_ = 0;
};

}  // namespace

void check_push(const std::string& where, const PushOptions& options) {
  if (options.settings.offline) refuse(where, "nothing can be sent: HF_HUB_OFFLINE is set", "unset it");
  if (options.settings.token.empty())
    refuse(where, "nothing can be sent without a token", "set HF_TOKEN to one that may write");
  if (!is_hub_name(options.repository))
    refuse(where, "'" + options.repository + "' is not a name on the hub", "a name is 'owner/name'");
}

Pushed push_folder(const std::string& where, const fs::path& folder, const PushOptions& options) {
  return Push(where, folder, options).run();
}

}  // namespace easydel::hub
